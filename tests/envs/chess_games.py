"""Chess positions in batches, their actions numbered anew, and python-chess beside."""

import functools
from typing import Any

import chess
import jax
import numpy as np

import envs

BATCH = 64  # states stepped in one call, so that one shape is compiled

ENV = envs.make("chess")


@functools.cache
def batched_step(env):
    return jax.jit(jax.vmap(env.step))


def stack(states):
    """States as one batch, filled up with copies of the first."""
    padded = [*states, *[states[0]] * (BATCH - len(states))]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *padded)


def step(env, states, actions):
    """The states after actions, on the host."""
    stepped = batched_step(env)(states, np.resize(actions, BATCH).astype(np.int32))
    return jax.tree.map(np.asarray, stepped)


def moves(env, state, *names):
    """The state after moves by name."""
    for name in names:
        action = env.text_to_action(state, name)
        after = step(env, stack([state]), [action])
        state = jax.tree.map(lambda leaf: leaf[0], after)
    return state


# The planes of the actions as (files, ranks), by the layout that pgx publishes.
_BACK, _ON = range(-7, 0), range(1, 8)
PLANES = [(0, 1), (1, 1), (-1, 1)] * 3
PLANES += [(0, n) for n in [*_BACK, *_ON]]
PLANES += [(n, 0) for n in [*_BACK, *_ON]]
PLANES += [(n, n) for n in [*_BACK, *_ON]]
PLANES += [(n, -n) for n in [*_BACK, *_ON]]
PLANES += [(-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2)]


@functools.cache
def action_of(move: chess.Move, black: bool) -> int:
    """The number of a move, from its squares alone."""
    turn = 7 if black else 0
    file, rank = (
        chess.square_file(move.from_square),
        chess.square_rank(move.from_square),
    )
    to = chess.square_file(move.to_square), chess.square_rank(move.to_square)
    way = (to[0] - file, (to[1] ^ turn) - (rank ^ turn))
    if move.promotion in (chess.ROOK, chess.BISHOP, chess.KNIGHT):
        kind = (chess.ROOK, chess.BISHOP, chess.KNIGHT).index(move.promotion)
        plane = 3 * kind + PLANES[:3].index(way)
    else:
        plane = 9 + PLANES[9:].index(way)
    return 73 * (8 * file + (rank ^ turn)) + plane


def end_of(board: chess.Board) -> str:
    """How a game ends by python-chess, at threefold repetition and fifty moves."""
    if not any(board.legal_moves):
        return "checkmate" if board.is_check() else "stalemate"
    if board.is_insufficient_material():
        return "insufficient material"
    if board.halfmove_clock >= 100:
        return "the 50-move rule"
    return "repetition" if board.halfmove_clock >= 8 and board.is_repetition(3) else ""


def placement(states: Any) -> list[list[int]]:
    """The sets of squares of batched states as python-chess's words, a1 b1 c1 ..."""
    bits = states.board[..., None] >> np.arange(32, dtype=np.uint32) & 1
    squares = bits.reshape(-1, 8, 8, 8)  # [states, sets, files, ranks]
    upturned = np.asarray(states.current_player)[:, None, None, None] == 1
    squares = np.where(upturned, squares[..., ::-1], squares).swapaxes(2, 3)
    rows = np.packbits(squares.astype(bool), axis=-1, bitorder="little")
    return np.ascontiguousarray(rows[..., 0]).view("<u8")[..., 0].tolist()


def check_position(found: list[int], board: chess.Board) -> None:
    """Compares one row of `placement`."""
    mine = board.occupied_co[board.turn]
    passed = chess.BB_SQUARES[board.ep_square] if board.has_legal_en_passant() else 0
    wanted = [
        board.pawns,
        board.knights,
        board.bishops | board.queens,
        board.rooks | board.queens,
        board.kings,
        mine,
        board.clean_castling_rights(),
        passed,
    ]
    assert found == wanted, board.fen()


def check_state(state: Any, board: chess.Board) -> None:
    """Compares all but the position: legal moves, end, rewards and counts."""
    where = board.fen()
    end = end_of(board)
    black = board.turn == chess.BLACK
    wanted = [] if end else sorted(action_of(m, black) for m in board.legal_moves)
    assert np.flatnonzero(state.legal_action_mask).tolist() == wanted, where
    assert state.terminated == bool(end) and not state.truncated, where
    won = [1, -1] if black else [-1, 1]
    assert state.rewards.tolist() == (won if end == "checkmate" else [0, 0]), where
    counts = (state.current_player, state.clock, state.move_number)
    assert counts == (black, board.halfmove_clock, board.fullmove_number), where
    if end:
        assert ENV.ending(state) == end, where


def play_beside_python_chess(num_games: int, seed: int) -> dict[str, int]:
    """Plays random games, comparing every position; gives the number of each end."""
    random = np.random.default_rng(seed)
    ends: dict[str, int] = {}
    for first in range(0, num_games, BATCH):
        boards = [chess.Board() for _ in range(min(BATCH, num_games - first))]
        states = stack([jax.tree.map(np.asarray, ENV.init())])
        ply = 0
        live = list(range(len(boards)))
        while live:
            words = placement(states)
            actions = np.zeros(BATCH, np.int32)
            for game in list(live):
                state = jax.tree.map(lambda leaf: leaf[game], states)  # noqa: B023
                check_position(words[game], boards[game])
                check_state(state, boards[game])
                if ply % 32 == game % 32 or state.terminated:
                    assert ENV.to_text(state) == boards[game].fen()
                if state.terminated:
                    live.remove(game)
                    end = ENV.ending(state)
                    ends[end] = ends.get(end, 0) + 1
                    continue
                legal = np.flatnonzero(state.legal_action_mask)
                actions[game] = random.choice(legal)
                name = ENV.action_to_text(state, actions[game])
                boards[game].push_uci(name)
            states = step(ENV, states, actions)
            ply += 1
    return ends
