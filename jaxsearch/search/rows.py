"""Reading and writing entries of arrays [B, M, ...], fast and in place.

A place is an index into the flat array: row * M + node. One index is several times
faster on a CPU than a pair of them, and out of range it is defined: reads give some
entry, writes do nothing. B * M stands for no place.
"""

import jax
import jax.numpy as jnp


def row_starts(array: jax.Array) -> jax.Array:
    """The places [B] of the first entries of the rows of an array [B, M]."""
    rows = jnp.arange(len(array), dtype=jnp.int32)
    # Varying over devices as the array does.
    return jnp.zeros_like(array[:, 0], jnp.int32) + rows * array.shape[1]


def read(array: jax.Array, place: jax.Array) -> jax.Array:
    """The entries at places of any shape."""
    flat = array.reshape(-1, *array.shape[2:])
    return flat.at[place].get(mode="clip", wrap_negative_indices=False)


def write(array: jax.Array, place: jax.Array, values: jax.Array) -> jax.Array:
    """Sets the entries at places [...] to values [..., ...], cast to the array's type.

    No place may come twice.
    """
    flat = array.reshape(-1, *array.shape[2:])
    flat = flat.at[place].set(
        values.astype(array.dtype), mode="drop", wrap_negative_indices=False
    )
    return flat.reshape(array.shape)


def pick(array: jax.Array, node: jax.Array) -> jax.Array:
    """`array[b, node[b]]` for every b of an array [B, M]."""
    return read(array, row_starts(array) + node)


def pick_in_row(array: jax.Array, node: jax.Array, column: jax.Array) -> jax.Array:
    """`array[b, node[b], column[b]]` for every b."""
    # Not flat: the index of the last entry may be beyond int32.
    return jax.vmap(
        lambda row, n, c: row.at[n, c].get(mode="clip", wrap_negative_indices=False)
    )(array, node, column)


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
