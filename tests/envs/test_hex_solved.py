"""Small Hex boards solved: every position, ply by ply, and then backwards."""

import jax
import numpy as np
import pytest

import envs
from tests.envs.positions import record

CHUNK = 4096  # positions in one call, so that one shape is compiled
FIRST_MOVES = record("hex")["winning_first_moves"]


def _wins_of_moves(size, swap):
    """Whether the mover wins by each move: a list of (cells [M, N * N], mask, wins).

    Plies 0 and 1 come first. Cells are 1, -1 and 0; a move wins if the position after
    it is won for who made it.
    """
    env = envs.Hex(size=size, swap=swap)
    step = jax.jit(jax.vmap(env.step))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], env.init())
    levels = []
    while len(states.terminated):
        mask = states.legal_action_mask
        rows, actions = np.nonzero(mask)
        if not len(rows):
            levels.append((states, mask, rows, actions, rows))
            break
        parts = []
        for start in range(0, len(rows), CHUNK):
            chunk = np.resize(rows[start : start + CHUNK], CHUNK)
            moves = np.resize(actions[start : start + CHUNK], CHUNK).astype(np.int32)
            parents = jax.tree.map(lambda leaf: leaf[chunk], states)  # noqa: B023
            part = jax.tree.map(np.asarray, step(parents, moves))
            count = min(CHUNK, len(rows) - start)
            parts.append(jax.tree.map(lambda leaf: leaf[:count], part))  # noqa: B023
        after = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
        # Whose stones stand where, and whether a swap is open, is all that matters.
        cells = np.sign(after.labels).astype(np.int8)
        key = np.concatenate([cells, after.legal_action_mask[:, size**2 :]], axis=1)
        key = np.ascontiguousarray(key.astype(np.int8))
        _, first, which = np.unique(
            key.view(f"V{key.shape[1]}")[:, 0], return_index=True, return_inverse=True
        )
        levels.append((states, mask, rows, actions, which))
        states = jax.tree.map(lambda leaf: leaf[first], after)  # noqa: B023
    mover_wins, found = np.zeros(0, bool), []
    for states, mask, rows, actions, which in reversed(levels):
        wins = np.zeros_like(mask)
        if len(mover_wins):
            wins[rows, actions] = ~mover_wins[which]
        # A finished position is lost for who would be to move.
        assert (states.rewards[states.terminated, 0] != 0).all()
        mover_wins = wins.any(axis=1)
        found.append((np.sign(states.labels), mask, wins))
    return found[::-1][:2]


def _check_first_moves(size):
    (_, _, wins), _ = _wins_of_moves(size, swap=False)
    rows = ["".join(".W"[int(w)] for w in row) for row in wins[0].reshape(size, size)]
    assert rows == FIRST_MOVES[str(size)]


@pytest.mark.parametrize("size", [2, 3])
def test_small_boards_have_the_known_winning_first_moves(size):
    _check_first_moves(size)


@pytest.mark.slow
def test_board_of_four_has_the_known_winning_first_moves():
    _check_first_moves(4)


@pytest.mark.parametrize("size", [2, 3])
def test_second_player_wins_by_swapping_exactly_the_winning_first_moves(size):
    (_, _, wins), (cells, mask, replies) = _wins_of_moves(size, swap=True)
    assert not wins.any() and replies.any(axis=1).all()
    assert mask[:, size**2].all() and len(cells) == size**2
    good = np.array([c == "W" for row in FIRST_MOVES[str(size)] for c in row])
    first_cell = np.abs(cells).argmax(axis=1)
    np.testing.assert_array_equal(replies[:, size**2], good[first_cell])
