"""Random games and positions, every one compared with python-chess."""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import chess
import jax
import numpy as np
import pytest

from tests.envs.chess_games import BATCH, ENV, planes, row_of, stack, starts, step

PARTS = 40  # of 500 games or 5000 positions each
PLANES = planes(8)


@functools.cache
def action_of(move: chess.Move, black: bool) -> int:
    """The number of a move, from its squares alone."""
    turn = 7 if black else 0
    file = chess.square_file(move.from_square)
    rank = chess.square_rank(move.from_square) ^ turn
    way = (
        chess.square_file(move.to_square) - file,
        (chess.square_rank(move.to_square) ^ turn) - rank,
    )
    if move.promotion in (chess.ROOK, chess.BISHOP, chess.KNIGHT):
        kind = (chess.ROOK, chess.BISHOP, chess.KNIGHT).index(move.promotion)
        plane = 3 * kind + PLANES[:3].index(way)
    else:
        plane = 9 + PLANES[9:].index(way)
    return 73 * (8 * file + rank) + plane


def end_of(board: chess.Board, can_move: bool) -> str:
    """How a game ends by python-chess, at threefold repetition and fifty moves.

    Where several reasons hold, the first one in the order of `chess.Board.outcome`.
    """
    if not can_move and board.is_check():
        return "checkmate"
    if board.is_insufficient_material():
        return "insufficient material"
    if not can_move:
        return "stalemate"
    if board.halfmove_clock >= 100:
        return "the 50-move rule"
    return "repetition" if board.halfmove_clock >= 8 and board.is_repetition(3) else ""


def placement(states: Any) -> list[list[int]]:
    """The sets of squares of batched states as python-chess's words, a1 b1 c1 ..."""
    bits = states.board[..., None] >> np.arange(32, dtype=np.uint32) & 1
    squares = bits.reshape(-1, 8, 8, 8)  # [states, sets, files, ranks]
    upturned = states.current_player[:, None, None, None] == 1
    squares = np.where(upturned, squares[..., ::-1], squares).swapaxes(2, 3)
    rows = np.packbits(squares.astype(bool), axis=-1, bitorder="little")
    return np.ascontiguousarray(rows[..., 0]).view("<u8")[..., 0].tolist()


def facts(states: Any) -> list[tuple[Any, ...]]:
    """All of batched states but their legal moves, row by row in plain numbers."""
    names = (
        *("current_player", "clock", "move_number"),
        *("terminated", "truncated", "rewards"),
    )
    columns = (getattr(states, name).tolist() for name in names)
    return list(zip(placement(states), *columns, strict=True))


def facts_of(board: chess.Board, end: str) -> tuple[Any, ...]:
    """The same of a board that ends so."""
    passed = chess.BB_SQUARES[board.ep_square] if board.has_legal_en_passant() else 0
    sets = [
        board.pawns,
        board.knights,
        board.bishops | board.queens,
        board.rooks | board.queens,
        board.kings,
        board.occupied_co[board.turn],
        board.clean_castling_rights(),
        passed,
    ]
    won = [1, -1] if board.turn == chess.BLACK else [-1, 1]
    return (
        *(sets, board.turn == chess.BLACK, board.halfmove_clock, board.fullmove_number),
        *(bool(end), False, won if end == "checkmate" else [0, 0]),
    )


def compare(
    states: Any, boards: list[chess.Board], rows: Iterable[int]
) -> Iterator[tuple[int, dict[int, chess.Move], str]]:
    """Compares some rows of batched states; gives each, its moves and how it ends."""
    found = facts(states)
    for row in rows:
        board = boards[row]
        black = board.turn == chess.BLACK
        legal = {action_of(move, black): move for move in board.legal_moves}
        end = end_of(board, bool(legal))
        assert found[row] == facts_of(board, end), board.fen()
        mask = np.flatnonzero(states.legal_action_mask[row]).tolist()
        assert mask == ([] if end else sorted(legal)), board.fen()
        if end:
            assert ENV.ending(row_of(states, row)) == end, board.fen()
        yield row, legal, end


def choose(random: np.random.Generator, legal: dict[int, chess.Move]) -> int:
    """A random one of the legal actions."""
    return list(legal)[random.integers(len(legal))]


def play_beside_python_chess(num_games: int, seed: int) -> Counter[str]:
    """Plays random games, comparing every position; gives the number of each end."""
    random = np.random.default_rng(seed)
    ends = Counter()
    for first in range(0, num_games, BATCH):
        boards = [chess.Board() for _ in range(min(BATCH, num_games - first))]
        states, live, ply = starts(ENV), range(len(boards)), 0
        while live:
            actions, unfinished = np.zeros(BATCH, np.int32), []
            for game, legal, end in compare(states, boards, live):
                state = row_of(states, game)
                if ply % 32 == game % 32 or end:
                    assert ENV.to_text(state) == boards[game].fen()
                if end:
                    ends[end] += 1
                    continue
                unfinished.append(game)
                action = actions[game] = choose(random, legal)
                assert ENV.action_to_text(state, action) == legal[action].uci()
                boards[game].push(legal[action])
            states, live, ply = step(ENV, states, actions), unfinished, ply + 1
    return ends


def test_stalemate_without_material_has_the_reason_of_python_chess():
    # The king on a1 has no move, and a lone bishop cannot mate.
    board = chess.Board("8/8/4b3/8/8/8/8/K1k5 w - - 0 219")
    outcome = board.outcome()
    assert outcome and outcome.termination == chess.Termination.INSUFFICIENT_MATERIAL
    states = stack([jax.tree.map(np.asarray, ENV.from_text(board.fen()))])
    ((_, legal, end),) = compare(states, [board], range(1))
    assert not legal and end == "insufficient material"


def test_random_games_equal_python_chess():
    ends = play_beside_python_chess(24, seed=0)
    assert sum(ends.values()) == 24


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_20000_random_games_equal_python_chess(part):
    ends = play_beside_python_chess(500, seed=part + 1)
    assert sum(ends.values()) == 500 and set(ends) == {
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
        actions = np.zeros(BATCH, np.int32)
        live = []
        for row, legal, end in compare(states, boards, range(BATCH)):
            if not end:
                live.append(row)
                actions[row] = choose(random, legal)
                boards[row].push(legal[actions[row]])
        for _ in compare(step(ENV, states, actions), boards, live):
            pass
        boards = []
    return seen


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
