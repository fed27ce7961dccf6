"""Random games and positions, every one compared with python-chess."""

import chess
import jax
import numpy as np
import pytest

from tests.envs.chess_games import (
    BATCH,
    ENV,
    action_of,
    check_position,
    check_state,
    placement,
    play_beside_python_chess,
    stack,
    step,
)

PARTS = 40  # of 500 games or 5000 positions each


def test_random_games_equal_python_chess():
    ends = play_beside_python_chess(24, seed=0)
    assert sum(ends.values()) == 24


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_20000_random_games_equal_python_chess(part):
    ends = play_beside_python_chess(500, seed=part + 1)
    assert set(ends) == {
        "checkmate",
        "stalemate",
        "insufficient material",
        "the 50-move rule",
        "repetition",
    }


def test_random_positions_equal_python_chess():
    seen = compare_positions(960, seed=0)
    assert min(seen.values()) > 0, seen


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_200000_random_positions_equal_python_chess(part):
    seen = compare_positions(5000, seed=part + 1)
    assert min(seen.values()) > 20, seen


def compare_positions(number: int, seed: int) -> dict[str, int]:
    """Compares random positions and one random move from each.

    Gives how many had a pinned piece, a double check, and so on.
    """
    random = np.random.default_rng(seed)
    seen = dict.fromkeys(
        ("pin", "double check", "en passant", "no en passant", "promotion", "castling"),
        0,
    )
    boards: list[chess.Board] = []
    for _ in range(number):
        boards.append(random_position(random))
        count_features(boards[-1], seen)
        if len(boards) < BATCH:
            continue
        states = stack([ENV.from_text(board.fen(en_passant="fen")) for board in boards])
        compare(states, boards)
        actions = np.zeros(BATCH, np.int32)
        for row, board in enumerate(boards):
            legal = list(board.legal_moves)
            if not states.terminated[row]:
                move = legal[random.integers(len(legal))]
                actions[row] = action_of(move, board.turn == chess.BLACK)
                board.push(move)
        live = ~states.terminated
        states = step(ENV, states, actions)
        compare(
            jax.tree.map(lambda leaf: leaf[live], states),  # noqa: B023
            [board for board, go_on in zip(boards, live, strict=True) if go_on],
        )
        boards = []
    return seen


def compare(states, boards):
    words = placement(states)
    for row, board in enumerate(boards):
        check_position(words[row], board)
        check_state(jax.tree.map(lambda leaf: leaf[row], states), board)  # noqa: B023


def count_features(board: chess.Board, seen: dict[str, int]) -> None:
    pieces = chess.SquareSet(board.occupied_co[board.turn])
    seen["pin"] += any(board.is_pinned(board.turn, square) for square in pieces)
    seen["double check"] += len(board.checkers()) > 1
    if board.ep_square is not None and board.has_pseudo_legal_en_passant():
        legal = board.has_legal_en_passant()
        seen["en passant" if legal else "no en passant"] += 1
    seen["promotion"] += any(move.promotion for move in board.legal_moves)
    seen["castling"] += any(map(board.is_castling, board.legal_moves))


def random_position(random: np.random.Generator) -> chess.Board:
    """A position that python-chess takes, with much that is rare in games."""
    while True:
        board = chess.Board(None)
        board.turn = bool(random.integers(2))
        home = random.random() < 0.3
        for colour in (chess.WHITE, chess.BLACK):
            rank = 0 if colour else 7
            square = chess.square(4, rank) if home else int(random.integers(64))
            if not home and random.random() < 0.3:  # on the rank of en passant
                square = chess.square(square % 8, 4 if board.turn else 3)
            if board.piece_at(square):
                break
            board.set_piece_at(square, chess.Piece(chess.KING, colour))
            for file in (0, 7):
                if home and random.random() < 0.8:
                    corner = chess.square(file, rank)
                    board.set_piece_at(corner, chess.Piece(chess.ROOK, colour))
        place_pieces(board, random)
        if random.random() < 0.5:
            place_en_passant(board, random)
        if home:
            board.set_castling_fen("".join(c for c in "KQkq" if random.random() < 0.8))
        board.castling_rights = board.clean_castling_rights()
        board.halfmove_clock = (
            int(random.integers(101)) if board.ep_square is None else 0
        )
        if board.king(True) is None or board.king(False) is None:
            continue
        if not board.status() & (
            chess.STATUS_OPPOSITE_CHECK
            | chess.STATUS_INVALID_EP_SQUARE
            | chess.STATUS_PAWNS_ON_BACKRANK
        ):
            return board


def place_pieces(board: chess.Board, random: np.random.Generator) -> None:
    for _ in range(random.integers(1, 25)):
        square = int(random.integers(64))
        kind = int(random.choice([1, 1, 1, 2, 3, 3, 4, 4, 5, 5]))
        rank = chess.square_rank(square)
        if kind == chess.PAWN and random.random() < 0.3:  # about to promote
            rank = 6 if random.random() < 0.5 else 1
            square = chess.square(square % 8, rank)
        if board.piece_at(square) or (kind == chess.PAWN and rank in (0, 7)):
            continue
        colour = bool(random.integers(2))
        if kind == chess.PAWN and rank in (1, 6) and random.random() < 0.7:
            colour = rank == 6
        board.set_piece_at(square, chess.Piece(kind, colour))


def place_en_passant(board: chess.Board, random: np.random.Generator) -> None:
    """A pawn that has just come two steps, and pawns beside it."""
    file = int(random.integers(8))
    rank, step = (4, 1) if board.turn else (3, -1)
    for empty in (rank + step, rank + 2 * step):
        if board.piece_type_at(chess.square(file, empty)) == chess.KING:
            return
        board.remove_piece_at(chess.square(file, empty))
    pawns = [(file, not board.turn)]
    pawns += [(f, board.turn) for f in (file - 1, file + 1) if 0 <= f < 8]
    for place, colour in pawns:
        square = chess.square(place, rank)
        if board.piece_type_at(square) == chess.KING:
            if colour != board.turn:
                return
        elif colour != board.turn or random.random() < 0.7:
            board.set_piece_at(square, chess.Piece(chess.PAWN, colour))
    board.ep_square = chess.square(file, rank + step)
