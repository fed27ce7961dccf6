"""All positions of a game, ply by ply, with the number of games that reach each."""

import functools
import json
import pathlib
from collections import Counter
from typing import Any, NamedTuple

import jax
import numpy as np

_CHUNK = 2048  # states expanded in one call, so that one shape is compiled


class Ply(NamedTuple):
    games: int  # move sequences of this length
    positions: int  # different positions among them
    ended: Counter  # sequences that end here, by the first player's reward


def record(name: str) -> Any:
    """Counts and positions of tests/data/rules."""
    path = pathlib.Path(__file__).parents[1] / "data" / "rules" / f"{name}.json"
    return json.loads(path.read_text())


@functools.cache
def jitted_step(env):
    """The same compiled step for all tests of a game."""
    return jax.jit(env.step)


def play(env, actions):
    """The state after actions from the start."""
    state = env.init()
    for action in actions:
        state = jitted_step(env)(state, action)
    return state


def expand(env, num_plies: int, field: str) -> list[Ply]:
    """Expands every position of plies 0 to num_plies - 1.

    Args:
      field: the field of the state that tells positions of one ply apart.
    """
    actions = np.arange(env.num_actions, dtype=np.int32)
    step = jax.jit(jax.vmap(jax.vmap(env.step, (None, 0)), (0, None)))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], env.init())
    games = np.ones(1, np.int64)
    plies = [Ply(1, 1, Counter())]
    for _ in range(num_plies):
        live = np.flatnonzero(~states.terminated)
        found, counts = [], []
        for start in range(0, len(live), _CHUNK):
            rows = live[start : start + _CHUNK]
            padded = np.resize(rows, _CHUNK)
            parents = jax.tree.map(lambda leaf: leaf[padded], states)  # noqa: B023
            children = jax.tree.map(np.asarray, step(parents, actions))
            row, action = np.nonzero(parents.legal_action_mask[: len(rows)])
            found.append(jax.tree.map(lambda x: x[row, action], children))  # noqa: B023
            counts.append(games[rows][row])
        states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
        games = np.concatenate(counts)
        ended = Counter()
        for reward in (-1, 0, 1):
            over = states.terminated & (states.rewards[:, 0] == reward)
            ended[reward] = int(games[over].sum())
        board = np.ascontiguousarray(getattr(states, field).reshape(len(games), -1))
        rows = board.view(f"V{board.shape[1] * board.itemsize}")[:, 0]
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        merged = np.zeros(len(first), np.int64)
        np.add.at(merged, which, games)
        states = jax.tree.map(lambda leaf: leaf[first], states)  # noqa: B023
        plies.append(Ply(int(games.sum()), len(first), ended))
        games = merged
    return plies
