"""Area scoring: stones, and the empty points that only one side's stones reach."""

import jax
import jax.numpy as jnp

from envs.go import bits


@jax.jit
def areas(stones: jax.Array) -> jax.Array:
    """The points that are Black's and those that are White's, [2, N] of [2, N]."""
    reach = bits.reached(stones, bits.empty_points(stones[0], stones[1])[None, :])
    return reach & ~reach[::-1]


def lead(stones: jax.Array) -> jax.Array:
    """How many points Black has more than White: int32."""
    black, white = bits.count(areas(stones))
    return black - white


def lead_at_end(stones: jax.Array, finished: jax.Array) -> jax.Array:
    """The same where the game is over; else 0, at no cost.

    Under `vmap` the boards that are still played on do not keep the loop turning.
    """
    return lead(jnp.where(finished, stones, bits.WORD(0)))
