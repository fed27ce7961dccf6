"""Sets of points as a word a row: bit c of word r is the point in row r, column c.

A set is an array [..., N] uint32, row 0 being the top one. What `around` and
`neighbours` give may have bits from N on, off the board: cut it to what is on it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

WORD = np.uint32
Bits = jax.Array | np.ndarray


def empty_points(mine: jax.Array, yours: jax.Array) -> jax.Array:
    """The points of the board that neither set has, [..., N]."""
    board = np.array((1 << mine.shape[-1]) - 1, WORD)
    return jnp.bitwise_and(board, ~(mine | yours))


def point(action: jax.Array, size: int) -> jax.Array:
    """The set of one point, [N]; empty for the pass, whose row lies off the board."""
    row, column = action // size, action % size
    rows = np.arange(size, dtype=np.int32)
    return jnp.where(rows == row, WORD(1) << column.astype(WORD), WORD(0))


def neighbours(points: jax.Array) -> jax.Array:
    """The points to the right, left, below and above of a set, [..., 4, N]."""
    edge = jnp.zeros_like(points[..., :1])
    below = jnp.concatenate([edge, points[..., :-1]], axis=-1)
    above = jnp.concatenate([points[..., 1:], edge], axis=-1)
    return jnp.stack([points << 1, points >> 1, below, above], axis=-2)


def around(points: jax.Array) -> jax.Array:
    """The points next to any point of a set, [..., N]."""
    edge = jnp.zeros_like(points[..., :1])
    below = jnp.concatenate([edge, points[..., :-1]], axis=-1)
    above = jnp.concatenate([points[..., 1:], edge], axis=-1)
    return points << 1 | points >> 1 | below | above


def reached(start: jax.Array, within: jax.Array) -> jax.Array:
    """The points of `start`, and those of `within` that a path through it leads to.

    Both are [..., N]. The loop turns as often as the longest such path has points, and
    once where there is none.
    """

    def spread(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        now, _ = carry
        return now | around(now) & within, now

    def spreading(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        return (carry[0] != carry[1]).any()

    first = start | around(start) & within
    return jax.lax.while_loop(spreading, spread, (first, start))[0]


def count(points: jax.Array) -> jax.Array:
    """How many points there are, [...] int32."""
    return jax.lax.population_count(points).sum(axis=-1, dtype=jnp.int32)


def union(sets: jax.Array, axis: int = -2) -> jax.Array:
    """The union of sets along an axis, or of the words of a set with axis=-1."""
    return jax.lax.reduce(sets, WORD(0), jax.lax.bitwise_or, (axis % sets.ndim,))


def lowest(points: jax.Array) -> jax.Array:
    """The first point of the first row that has any, as a set [N]."""
    rows = np.arange(points.shape[-1], dtype=np.int32)
    first = jnp.where(points != 0, rows, len(rows)).min()
    return jnp.where(rows == first, points & -points, WORD(0))


def spread_out(points: Bits) -> Any:
    """A set as booleans, [..., N] to [..., N, N]."""
    columns = np.arange(points.shape[-1], dtype=WORD)
    return (points[..., None] >> columns[(None,) * points.ndim] & WORD(1)) != 0


def packed(cells: np.ndarray) -> np.ndarray:
    """Booleans [..., N, N] as a set, on the host."""
    columns = np.arange(cells.shape[-1], dtype=WORD)
    return (cells.astype(WORD) << columns).sum(axis=-1, dtype=WORD)
