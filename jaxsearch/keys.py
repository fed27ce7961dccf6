"""Random keys of a search: one for the whole batch, as in mctx, or one for each row.

With keys [B] what a row draws depends on its own key alone: not on its place in the
batch, on the other rows, or on how the rows are spread over devices.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp


def is_for_each_row(key: jax.Array) -> bool:
    """Whether there is a key for each row, typed [B] or raw [B, words]."""
    return jnp.ndim(key) == (1 if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else 2)


def split(key: jax.Array, number: int) -> jax.Array:
    """`jax.random.split`; of keys [B] it gives [number, B]."""
    if not is_for_each_row(key):
        return jax.random.split(key, number)
    return jax.vmap(lambda one: jax.random.split(one, number), out_axes=1)(key)


def draw(
    sampler: Callable[..., jax.Array], key: jax.Array, *of_rows: jax.Array
) -> jax.Array:
    """`sampler(key, *of_rows)`, or row by row where each of [B] has its key."""
    if not is_for_each_row(key):
        return sampler(key, *of_rows)
    return jax.vmap(sampler)(key, *of_rows)
