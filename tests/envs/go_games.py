"""Games of Go for the tests: one of each kind, and its compiled steps."""

import functools

import jax
import numpy as np

import envs
from envs.go import bits


@functools.cache
def go(size, **options):
    return envs.make(f"go_{size}x{size}", **options)


@functools.cache
def batched(env):
    """`init` of so many boards, and `step` of them all."""
    starts = jax.jit(lambda keys: jax.vmap(env.init)(keys))
    return (
        lambda number: starts(jax.random.split(jax.random.key(0), number)),
        jax.jit(jax.vmap(env.step)),
    )


def cells(states):
    """Boards [..., N * N]: 1 Black, -1 White, 0 empty."""
    both = bits.spread_out(np.asarray(states.chains.stones)).astype(np.int8)
    both = both.reshape(*both.shape[:-2], -1)
    return both[..., 0, :] - both[..., 1, :]


def rows(state):
    """The board as the records have it: ". X O" from the top."""
    size = state.chains.stones.shape[-1]
    board = cells(state).reshape(size, size)
    return [" ".join(".XO"[cell] for cell in row) for row in board]


def text(board, to_play="X"):
    """The text of a board of the records."""
    return "/".join(row.replace(" ", "") for row in board) + f" {to_play}"


def legal_names(env, state):
    legal = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
    return {env.action_to_text(state, action) for action in legal}
