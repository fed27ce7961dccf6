"""Games as files of other programs: python-chess reads the PGN of chess."""

import io

import chess
import chess.pgn
import pytest

import envs
from envs.chess import pgn

ENV = envs.make("chess")


@pytest.mark.parametrize(
    "fen",
    [
        pytest.param("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", id="castling"),
        pytest.param("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2", id="en passant"),
        pytest.param("1n2k3/P1P5/8/8/8/8/p1p5/1N2K3 b - - 0 1", id="promotions"),
        pytest.param("8/6k1/1N3N2/8/1N3N2/8/Q6Q/Q3K3 w - - 0 1", id="like pieces"),
    ],
)
def test_san_of_all_moves_is_that_of_python_chess(fen):
    state, board = ENV.from_text(fen), chess.Board(fen)
    for move in board.legal_moves:
        action = ENV.text_to_action(state, move.uci())
        assert pgn.san(ENV, state, action) == board.san(move).rstrip("+#")


def test_pgn_is_read_by_python_chess():
    board, states, actions = chess.Board(), [], []
    moves = ["e2e4", "e7e5", "d1h5", "b8c6", "f1c4", "g8f6", "h5f7"]
    for move in moves:
        states.append(ENV.from_text(board.fen()))
        actions.append(ENV.text_to_action(states[-1], move))
        board.push_uci(move)
    ending, text = envs.write_record(ENV, states, actions, "1-0")
    assert ending == "pgn"
    file = io.StringIO(text * 2)
    for _ in range(2):
        game = chess.pgn.read_game(file)
        assert [move.uci() for move in game.mainline_moves()] == moves
        assert not game.errors and game.headers["Result"] == "1-0"
    assert chess.pgn.read_game(file) is None
