"""Descent and backup: the paths of one simulation, for a batch of trees at once."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search import proofs
from jaxsearch.search.rows import read, row_starts, write
from jaxsearch.search.tree import Tree

STRIDE = 4  # levels that a descent takes in one turn of its loop


class Descent(NamedTuple):
    """B paths from the root to the node where each descent stopped."""

    path: jax.Array  # [D, B] int32: the place at each depth, B * M past a row's end
    last: jax.Array  # [B] int32: the place of the node at the end
    length: jax.Array  # [B] int32: depth of the last node, -1 for a row at rest
    longest: jax.Array  # [] int32: a bound of the lengths


class Backup(NamedTuple):
    """What goes up the paths."""

    node_return: jax.Array  # [B] float: of the last node of each path, its mover's view
    bounds: proofs.Bounds  # of the edge just opened there, if any, else [-1, 1]


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
    stride = STRIDE if next_child is None else 1
    roots = row_starts(tree.visits)
    no_place = jnp.full_like(roots, tree.visits.size)
    path = path.at[0].set(jnp.where(searched, roots, no_place))

    def step(carry):
        depth, place, walking, path, length = carry
        for _ in range(stride):
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
            path = jax.lax.dynamic_update_index_in_dim(
                path, jnp.where(walking, place, no_place), depth, axis=0
            )
        return depth, place, walking, path, length

    length = searched.astype(jnp.int32) - 1
    depth, last, _, path, length = jax.lax.while_loop(
        lambda carry: jnp.any(carry[2]),
        step,
        (jnp.int32(0), roots, searched, path, length),
    )
    return Descent(path=path, last=last, length=length, longest=depth)


def back_up(
    tree: Tree, descent: Descent, backup: Backup, below: jax.Array
) -> tuple[Tree, jax.Array]:
    """Adds the returns to every node from the ends of the paths to the roots.

    Returns the tree and `below`, whose first entries are now the places of the nodes of
    the paths below the roots, row after row.
    """
    no_place = tree.visits.size
    moving = descent.length >= 0
    num_below = jnp.maximum(descent.length, 0)
    first = jnp.cumsum(num_below) - num_below

    def step(carry):
        depth, tree, below, node_return, before, now = carry
        place = jnp.where(moving, descent.path[depth], no_place)
        on_path = place < no_place
        reward, discount = read(tree.rewards, place), read(tree.discounts, place)
        changes: dict[str, Any] = {}
        proven = jnp.zeros_like(on_path)
        if tree.proofs is not None:
            changes["proofs"], above_before, above_now, bounds = proofs.update(
                tree, tree.proofs, place, before, now
            )
            before = _where(on_path, above_before, before)
            now = _where(on_path, above_now, now)
            proven = on_path & (bounds.lower == bounds.upper)
            node_return = jnp.where(proven, bounds.lower, node_return)
        count = read(tree.visits, place) + 1

        def add(sums, value):
            """To the sums of the nodes; all terms of a proven one are exact."""
            return jnp.where(proven, count * value, read(sums, place) + value)

        total = add(tree.value_sums, node_return)
        if tree.square_sums is not None:
            squares = add(tree.square_sums, node_return**2)
            changes["square_sums"] = write(tree.square_sums, place, squares)
        # One rounding for the mean, so that equal means are equal to the last bit.
        mean = (count * reward + discount * total) / count
        qvalue = jnp.where(discount == 0, reward, mean)
        if tree.qvalue_range is not None:
            changes["qvalue_range"] = widened(
                tree.qvalue_range, qvalue, on_path & (depth > 0)
            )
        entry = jnp.where(on_path & (depth > 0), first + depth - 1, len(below))
        below = below.at[entry].set(place, mode="drop", wrap_negative_indices=False)
        tree = dataclasses.replace(
            tree,
            visits=write(tree.visits, place, count),
            value_sums=write(tree.value_sums, place, total),
            qvalues=write(tree.qvalues, place, qvalue),
            **changes,
        )
        edge_return = jnp.where(on_path, reward + discount * node_return, node_return)
        return depth - 1, tree, below, edge_return, before, now

    carry = (
        descent.longest,
        tree,
        below,
        backup.node_return,
        proofs.unknown_bounds(num_below),
        backup.bounds,
    )
    _, tree, below, *_ = jax.lax.while_loop(lambda carry: carry[0] >= 0, step, carry)
    return tree, below


def widened(qvalue_range, qvalue, changed):
    """The range [B, 2] of what it held and of the changed Q [B]."""
    lowest, highest = qvalue_range[:, 0], qvalue_range[:, 1]
    return jnp.stack(
        [
            jnp.where(changed, jnp.minimum(lowest, qvalue), lowest),
            jnp.where(changed, jnp.maximum(highest, qvalue), highest),
        ],
        axis=1,
    )


def _where(condition, new, old):
    return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)
