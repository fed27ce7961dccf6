"""Random openings: different unfinished positions after some random moves."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.vector import random_actions

_MAX_ROUNDS = 100


class Openings(NamedTuple):
    states: Any  # [n]
    returns: jax.Array  # [n, P] float32: rewards on the way, zeros in most games
    position: np.ndarray  # [n] int: equal for equal positions, 0..num_distinct - 1
    num_distinct: int


def random_openings(
    env: Any, *, count: int, num_plies: int, key: jax.Array
) -> Openings:
    """`count` positions after `num_plies` random moves, none of them finished.

    All are different as long as random play finds new ones; then they are repeated in
    order. The key is consumed.

    Raises:
      ValueError: a count below 1, negative plies, or random play that never gets there.
    """
    if count < 1 or num_plies < 0:
        raise ValueError(
            f"openings need a count of at least 1 and plies of at least 0, got {count} "
            f"openings of {num_plies} plies"
        )
    batch_size = max(256, count)
    structure = jax.tree.structure(jax.eval_shape(env.init, key))
    found: dict[bytes, tuple[list[np.ndarray], np.ndarray]] = {}
    for round_key in jax.random.split(key, _MAX_ROUNDS):
        num_before = len(found)
        states, returns, unfinished = _play_randomly(
            env, round_key, batch_size, num_plies
        )
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(states)]
        returns = np.asarray(returns)
        for row in np.flatnonzero(unfinished):
            position = [leaf[row] for leaf in leaves]
            text = b"".join(leaf.tobytes() for leaf in position)
            found.setdefault(text, (position, returns[row]))
        if len(found) >= count or len(found) == num_before:
            break
    if not found:
        raise ValueError(
            f"random play of {env.id} is over before {num_plies} plies: choose fewer "
            "opening plies"
        )
    openings = list(found.values())[:count]
    order = np.arange(count) % len(openings)
    columns = zip(*(leaves for leaves, _ in openings), strict=True)
    return Openings(
        states=jax.tree.unflatten(
            structure, [jnp.asarray(np.stack(column)[order]) for column in columns]
        ),
        returns=jnp.asarray(np.stack([opening[1] for opening in openings])[order]),
        position=order,
        num_distinct=len(openings),
    )


@partial(jax.jit, static_argnames=("env", "batch_size", "num_plies"))
def _play_randomly(env, key, batch_size, num_plies):
    """States [B], returns [B, P] and whether the game is still going on [B]."""
    init_key, moves_key = jax.random.split(key)
    states = jax.vmap(env.init)(jax.random.split(init_key, batch_size))

    def play(carry, key):
        states, returns = carry
        states = jax.vmap(env.step)(states, random_actions(key, states))
        return (states, returns + states.rewards), None

    carry = states, jnp.zeros_like(states.rewards)
    (states, returns), _ = jax.lax.scan(
        play, carry, jax.random.split(moves_key, num_plies)
    )
    return states, returns, ~(states.terminated | states.truncated)
