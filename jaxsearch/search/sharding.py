"""Rows spread over devices: each device works on its own, in a loop of its own."""

from collections.abc import Callable
from typing import Any

import jax


def over_rows(
    function: Callable[..., Any], whole: tuple, rows: tuple, like: jax.Array
) -> Any:
    """`function(*whole, *rows)`, on each device with the rows that it holds.

    That is where the batch of `like` [B, ...] is spread over the axes of an explicit
    mesh. Elsewhere the function is called as it is; to get the same for an automatic
    mesh, wrap the call of the search in `jax.shard_map`.

    Args:
      whole: arguments that every device gets, spread as they are.
      rows: arguments and results are arrays [B, ...]; arguments that are not spread
        over the mesh are spread.
    """
    axes = _explicit_axes(like)[0]
    if axes is None:
        return function(*whole, *rows)
    rows = jax.tree.map(lambda x: jax.sharding.reshard(x, jax.P(axes)), rows)
    return jax.shard_map(
        function,
        in_specs=(
            *(jax.tree.map(_explicit_axes, argument) for argument in whole),
            *(jax.P(axes) for _ in rows),
        ),
        out_specs=jax.P(axes),
    )(*whole, *rows)


def _explicit_axes(x) -> jax.P:
    """The axes of an explicit mesh that each dimension of `x` is spread over."""
    return jax.P(*jax.typeof(x).sharding.spec)
