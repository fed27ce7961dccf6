"""Reading and writing one entry of each row of an array, fast and in place.

One index into the flat array is several times faster on a CPU than a pair of them, and
an index out of range is defined: reads give some entry, writes do nothing.
"""

import jax
import jax.numpy as jnp


def pick(array: jax.Array, node: jax.Array) -> jax.Array:
    """`array[b, node[b]]` for every b."""
    return take(array, jnp.arange(len(array), dtype=jnp.int32), node)


def take(array: jax.Array, row: jax.Array, node: jax.Array) -> jax.Array:
    """`array[row[m], node[m]]` for every m."""
    index = row * array.shape[1] + node
    flat = array.reshape(-1, *array.shape[2:])
    return flat.at[index].get(mode="clip", wrap_negative_indices=False)


def pick_in_row(array: jax.Array, node: jax.Array, column: jax.Array) -> jax.Array:
    """`array[b, node[b], column[b]]` for every b."""
    # Not flat: the index of the last entry may be beyond int32.
    return jax.vmap(
        lambda row, n, c: row.at[n, c].get(mode="clip", wrap_negative_indices=False)
    )(array, node, column)


def put(array: jax.Array, node: jax.Array, values: jax.Array) -> jax.Array:
    """Sets `array[b, node[b]]` for every b."""
    return set_entries(array, jnp.arange(len(array), dtype=jnp.int32), node, values)


def set_entries(
    array: jax.Array, row: jax.Array, node: jax.Array, values: jax.Array
) -> jax.Array:
    """Sets `array[row[m], node[m]]` for every m."""
    flat = array.reshape(-1, *array.shape[2:])
    index = jnp.where(node < array.shape[1], row * array.shape[1] + node, len(flat))
    flat = flat.at[index].set(values, mode="drop", wrap_negative_indices=False)
    return flat.reshape(array.shape)


def put_in_row(
    array: jax.Array, node: jax.Array, column: jax.Array, values: jax.Array
) -> jax.Array:
    """Sets `array[b, node[b], column[b]]` for every b."""
    # Not flat: XLA would copy an array that a slice is written into as well.
    return jax.vmap(
        lambda row, n, c, v: row.at[n, c].set(
            v, mode="drop", wrap_negative_indices=False
        )
    )(array, node, column, values)
