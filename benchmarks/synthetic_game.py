# pyright: reportCallIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""A game without rules, to measure a search and nothing else.

The state is a hash of the actions played. It picks a row of a table that holds the
prior logits and the value, so that an evaluation costs two look-ups. Nobody ever wins.
"""

import jax
import jax.numpy as jnp
import mctx
import numpy as np

TABLE_ROWS = 4096


def make_tables(
    num_actions: int, seed: int = 0, num_legal: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Standard-normal logits [R, A] and values [R] in [-1, 1], float32.

    With `num_legal` each row has that many legal actions, at random; the others have a
    logit of -inf.
    """
    random = np.random.default_rng(seed)
    logits = random.standard_normal((TABLE_ROWS, num_actions), np.float32)
    values = random.uniform(-1, 1, TABLE_ROWS).astype(np.float32)
    if num_legal is not None:
        order = random.random(logits.shape, np.float32)
        illegal = np.argpartition(order, num_legal, axis=1)[:, num_legal:]
        np.put_along_axis(logits, illegal, -np.inf, axis=1)
    return logits, values


def root_states(batch_size: int, seed: int = 1) -> np.ndarray:
    """States [B] uint32 to search from."""
    return np.random.default_rng(seed).integers(2**32, size=batch_size, dtype=np.uint32)


def root_of(tables, states: jax.Array) -> mctx.RootFnOutput:
    """The roots of a search, for the states [B]."""
    logits, values = _look_up(tables, states)
    return mctx.RootFnOutput(prior_logits=logits, value=values, embedding=states)


def recurrent_fn(tables, key, action, states):
    """mctx's model of the game; the params are the tables, the embedding the states."""
    del key
    states = play(states, action)
    logits, values = _look_up(tables, states)
    output = mctx.RecurrentFnOutput(
        reward=jnp.zeros_like(values),
        discount=jnp.full_like(values, -1),
        prior_logits=logits,
        value=values,
    )
    return output, states


def play(states: jax.Array, action: jax.Array) -> jax.Array:
    """The states [B] after the actions [B]."""
    states = (states ^ (action.astype(jnp.uint32) + 1)) * jnp.uint32(0x9E3779B1)
    states = (states ^ (states >> 15)) * jnp.uint32(0x85EBCA77)
    return states ^ (states >> 13)


def _look_up(tables, states):
    logits, values = tables
    row = states % TABLE_ROWS
    return logits[row], values[row]
