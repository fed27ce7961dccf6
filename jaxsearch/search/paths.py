"""Descent and backup: the paths of one simulation, for a batch of trees at once."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search import proofs
from jaxsearch.search.loop_sizes import loop_sizes
from jaxsearch.search.rows import read, row_starts, write
from jaxsearch.search.tree import Tree


class Descent(NamedTuple):
    """B paths from the root to the node where each descent stopped."""

    path: jax.Array  # [D, B] int32: the place at each depth, anything past a row's end
    last: jax.Array  # [B] int32: the place of the node at the end
    length: jax.Array  # [B] int32: depth of the last node, -1 for a row at rest
    num_levels: jax.Array  # [] int32: of the longest path, or some more


class Backup(NamedTuple):
    """What goes up the paths."""

    node_return: jax.Array  # [B] float: of the last node of each path, its mover's view
    bounds: proofs.Bounds  # of the edge just opened there, if any, else [-1, 1]


def path_buffer(rows: jax.Array, num_steps: int) -> jax.Array:
    """Room [D, B] for paths of up to `num_steps` edges in the rows [B] int32."""
    sizes = loop_sizes(len(rows))
    turns = -(-(num_steps + sizes.descent_levels) // sizes.backup_levels)
    return jnp.repeat(rows[None, :], turns * sizes.backup_levels, axis=0)


def descend(
    tree: Tree,
    searched: jax.Array,
    path: jax.Array,
    next_child: Callable[[jax.Array], jax.Array] | None,
    max_depth: int | None,
) -> Descent:
    """Goes from the roots of the rows `searched` [B] to nodes without a selected child.

    Args:
      path: [D, B], to write into.
      next_child: chooses the children [B] of nodes at places [B], or NO_CHILD; None to
        follow those that were selected at the backup.
    """
    levels = loop_sizes(len(searched)).descent_levels if next_child is None else 1
    roots = row_starts(tree.visits)
    path = path.at[0].set(roots)

    def step(carry):
        depth, place, walking, path, length = carry
        for _ in range(levels):
            if next_child is None:
                child = read(tree.selected, place)
            else:
                child = next_child(place)
            walking = walking & (child != Tree.NO_CHILD)
            if max_depth is not None:
                walking = walking & (depth < max_depth)
            place = jnp.where(walking, roots + child, place)
            depth = depth + 1
            length = length + walking
            path = jax.lax.dynamic_update_index_in_dim(path, place, depth, axis=0)
        return depth, place, walking, path, length

    length = searched.astype(jnp.int32) - 1
    num_levels, last, _, path, length = jax.lax.while_loop(
        lambda carry: jnp.any(carry[2]),
        step,
        (jnp.int32(0), roots, searched, path, length),
    )
    return Descent(path, last, length, num_levels)


def back_up(
    tree: Tree, descent: Descent, backup: Backup, below: jax.Array
) -> tuple[Tree, jax.Array]:
    """Adds the returns to every node from the ends of the paths to the roots.

    Returns the tree and `below`, whose first entries are now the places of the nodes of
    the paths below the roots, row after row.
    """
    levels = loop_sizes(len(descent.length)).backup_levels
    no_place = tree.visits.size
    num_below = jnp.maximum(descent.length, 0)
    first = jnp.cumsum(num_below) - num_below

    def go_up(carry, level):
        """From the returns of the nodes of a level to those of the level above."""
        proof, node_return, before, now = carry
        place, on_path, reward, discount = level
        proven = jnp.zeros_like(on_path)
        if proof is not None:
            proof, above_before, above_now, bounds = proofs.update(
                tree, proof, place, before, now
            )
            before = _where(on_path, above_before, before)
            now = _where(on_path, above_now, now)
            proven = on_path & (bounds.lower == bounds.upper)
            node_return = jnp.where(proven, bounds.lower, node_return)
        edge_return = jnp.where(on_path, reward + discount * node_return, node_return)
        return (proof, edge_return, before, now), (node_return, proven)

    def step(carry):
        highest, tree, below, upward = carry
        depth = highest + jnp.arange(levels, dtype=jnp.int32)[:, None]
        on_path = depth <= descent.length[None, :]
        place = jax.lax.dynamic_slice_in_dim(descent.path, highest, levels)
        place = jnp.where(on_path, place, no_place)
        reward, discount = read(tree.rewards, place), read(tree.discounts, place)
        upward, (node_return, proven) = jax.lax.scan(
            go_up, upward, (place, on_path, reward, discount), reverse=True, unroll=True
        )
        count = read(tree.visits, place) + 1

        def add(sums, value):
            """To the sums of the nodes; all terms of a proven one are exact."""
            return jnp.where(proven, count * value, read(sums, place) + value)

        total = add(tree.value_sums, node_return)
        # One rounding for the mean, so that equal means are equal to the last bit.
        mean = (count * reward + discount * total) / count
        qvalue = jnp.where(discount == 0, reward, mean)
        is_below = on_path & (depth > 0)
        changes: dict[str, Any] = {}
        if tree.square_sums is not None:
            squares = add(tree.square_sums, node_return**2)
            changes["square_sums"] = write(tree.square_sums, place, squares)
        if tree.qvalue_range is not None:
            changes["qvalue_range"] = widened(tree.qvalue_range, qvalue, is_below)
        entry = jnp.where(is_below, first[None, :] + depth - 1, len(below))
        below = below.at[entry].set(place, mode="drop", wrap_negative_indices=False)
        tree = dataclasses.replace(
            tree,
            visits=write(tree.visits, place, count),
            value_sums=write(tree.value_sums, place, total),
            qvalues=write(tree.qvalues, place, qvalue),
            **changes,
        )
        return highest - levels, tree, below, upward

    unknown = proofs.unknown_bounds(descent.length)
    upward = (tree.proofs, backup.node_return, unknown, backup.bounds)
    lowest_turn = jnp.maximum(descent.num_levels - 1, 0) // levels
    _, tree, below, upward = jax.lax.while_loop(
        lambda carry: carry[0] >= 0,
        step,
        (lowest_turn * levels, tree, below, upward),
    )
    return dataclasses.replace(tree, proofs=upward[0]), below


def widened(qvalue_range, qvalue, changed):
    """The range [B, 2] of what it held and of the changed Q, both [..., B]."""
    levels = tuple(range(qvalue.ndim - 1))
    lowest = jnp.min(jnp.where(changed, qvalue, jnp.inf), axis=levels)
    highest = jnp.max(jnp.where(changed, qvalue, -jnp.inf), axis=levels)
    return jnp.stack(
        [
            jnp.minimum(qvalue_range[:, 0], lowest),
            jnp.maximum(qvalue_range[:, 1], highest),
        ],
        axis=1,
    )


def _where(condition, new, old):
    return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)
