"""Selection: which child the next simulation goes to from each node of the paths."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search.rows import pick, put, set_entries, take
from jaxsearch.search.tree import Tree

_WIDTHS = (4, 16, 64, 256)  # children that a choice can be compiled for


class NodeStatistics(NamedTuple):
    """What a selection rule sees of M nodes.

    Column 0 is the unvisited action of highest prior. Then come the visited children
    from the newest to the oldest, and last some empty columns (prior and visits 0).
    """

    prior_probs: jax.Array  # [M, C] float: exactly 0 where illegal or empty
    visit_counts: jax.Array  # [M, C] int32
    qvalues: jax.Array  # [M, C] float: mover's view; to be ignored where unvisited
    node_value: jax.Array  # [M] float: mean value of the node, mover's view
    raw_value: jax.Array  # [M] float: the model's value of the node, mover's view
    node_visits: jax.Array  # [M] int32: its own evaluation included
    actions: jax.Array | None  # [M, C] int32: of the columns; None below the root
    num_actions: int  # A, the illegal ones included
    rows: jax.Array  # [M] int32: the search of the batch that a node belongs to
    row_parameters: Any  # arrays [B, ...]: what `search` was given for the rules


QTransform = Callable[[NodeStatistics], jax.Array]
"""Value scores [M, C] of the columns of M nodes, unvisited ones included."""

ScoreFn = Callable[[NodeStatistics], jax.Array]
"""Scores [M, C] of the columns: the highest is followed.

Of equals it is the lowest action at the root, and the oldest child below it. Of two
unvisited actions the one with the higher prior must not score lower.
"""


def chunk_size(batch_size: int) -> int:
    """The number of nodes below the roots whose choices are made together."""
    return min(8 * batch_size, 512)


def select_on_paths(
    tree: Tree,
    searched: jax.Array,
    nodes: jax.Array,
    num_below: jax.Array,
    *,
    root_score: ScoreFn,
    interior_score: ScoreFn,
    row_parameters: Any,
) -> Tree:
    """Chooses anew at the roots and at every node that a simulation went through.

    Args:
      searched: [B] bool, the rows that the simulation went through.
      nodes: int32, of which the first `num_below` entries are those nodes but for the
        roots: row * N + node; `chunk_size` entries longer than needed.
    """
    batch_size, num_nodes = tree.visits.shape
    chunk = chunk_size(batch_size)
    rows = jnp.arange(batch_size, dtype=jnp.int32)
    roots = jnp.where(searched, Tree.ROOT, num_nodes)
    selected = put(
        tree.selected,
        roots,
        _select(tree, rows, 0 * rows, searched, root_score, row_parameters, True),
    )

    def step(carry):
        start, selected = carry
        index = jax.lax.dynamic_slice(nodes, (start,), (chunk,))
        exists = start + jnp.arange(chunk) < num_below
        index = jnp.where(exists, index, 0)
        row, node = index // num_nodes, index % num_nodes
        choice = _select(tree, row, node, exists, interior_score, row_parameters)
        return start + chunk, set_entries(
            selected, row, jnp.where(exists, node, num_nodes), choice
        )

    _, selected = jax.lax.while_loop(
        lambda carry: carry[0] < num_below, step, (jnp.int32(0), selected)
    )
    return dataclasses.replace(tree, selected=selected)


def _select(tree, row, node, exists, score, row_parameters, at_root=False):
    """The child [M] that the scores choose at nodes [M], NO_CHILD for a new one.

    Most nodes have few visited children: they are read only as far as the widest of
    these nodes needs.
    """
    num_nodes = tree.visits.shape[1]

    def read(array, node):
        return take(array, row, node)

    num_children = jnp.where(exists, read(tree.num_children, node), 0)
    visits = read(tree.visits, node)
    node_value = read(tree.value_sums, node) / jnp.maximum(visits, 1)
    next_prior_prob = read(tree.next_prior_prob, node)
    newest = read(tree.last_child, node)

    def of_width(width):
        def older(child, _):
            return read(tree.previous_sibling, child), child

        _, children = jax.lax.scan(older, newest, length=width, unroll=4)
        children = children.T
        column_exists = jnp.arange(width)[None, :] < num_children[:, None]

        def read_children(array):
            return take(array, row[:, None], children)

        actions = None
        if at_root:
            no_action = tree.num_actions
            actions = _prepend(
                read(tree.next_action, node),
                jnp.where(column_exists, read_children(tree.actions), no_action),
            )
        statistics = NodeStatistics(
            prior_probs=_prepend(
                next_prior_prob,
                jnp.where(column_exists, read_children(tree.prior_probs), 0),
            ),
            visit_counts=_prepend(
                0 * visits, jnp.where(column_exists, read_children(tree.visits), 0)
            ),
            qvalues=_prepend(0 * node_value, read_children(tree.qvalues)),
            node_value=node_value,
            raw_value=read(tree.raw_values, node),
            node_visits=visits,
            actions=actions,
            num_actions=tree.num_actions,
            rows=row,
            row_parameters=row_parameters,
        )
        column = _best_column(score(statistics), actions)
        choices = _prepend(jnp.full_like(node, Tree.NO_CHILD), children)
        choice = pick(choices, column)
        return jnp.where(num_children == 0, Tree.NO_CHILD, choice)

    most = min(tree.num_actions, num_nodes)
    widths = [width for width in _WIDTHS if width < most]
    widest = jnp.max(num_children)
    branch = sum((widest > width).astype(jnp.int32) for width in widths)
    widths.append(most)
    return jax.lax.switch(branch, [partial(of_width, width) for width in widths])


def _best_column(scores, actions):
    """The column [M] of the highest score [M, C].

    Of equals it is that of the lowest action if given, else the last one.
    """
    # On a CPU two plain reductions are several times faster than an argmax.
    columns = jnp.arange(scores.shape[1], dtype=jnp.int32)[None, :]
    is_best = scores == jnp.max(scores, axis=1, keepdims=True)
    if actions is not None:
        actions = jnp.where(is_best, actions, jnp.iinfo(jnp.int32).max)
        is_best &= actions == jnp.min(actions, axis=1, keepdims=True)
    return jnp.max(jnp.where(is_best, columns, 0), axis=1)


def _prepend(first, columns):
    return jnp.concatenate([first[:, None], columns], axis=1)
