"""Selection: which child the next simulation goes to from each node of the paths."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search.loop_sizes import loop_sizes
from jaxsearch.search.rows import pick, read, row_starts, write
from jaxsearch.search.tree import Tree

_WIDTHS = (4, 16, 64, 256)  # children that a choice can be compiled for


class NodeStatistics(NamedTuple):
    """What a selection rule sees of M nodes, of any rows of the batch.

    Column 0 is the unvisited action of highest prior. Then come the visited children
    from the newest to the oldest, and last some empty columns (prior and visits 0).
    """

    prior_probs: jax.Array  # [M, C] float: exactly 0 where illegal or empty
    visit_counts: jax.Array  # [M, C] int32
    qvalues: jax.Array  # [M, C] float: mover's view; to be ignored where unvisited
    node_value: jax.Array  # [M] float: mean value of the node, mover's view
    raw_value: jax.Array  # [M] float: the model's value of the node, mover's view
    node_visits: jax.Array  # [M] int32: its own evaluation included
    num_actions: int  # A, the illegal ones included
    # [M] int32: the search of the batch that a node belongs to; None: node i to i.
    rows: jax.Array | None
    actions: jax.Array | None = None  # [M, C] int32: of the columns, at the root
    mean_square: jax.Array | None = None  # [M] float: of the node's returns, if kept
    qvalue_range: jax.Array | None = None  # [M, 2] float: of all Q of the tree, if kept
    row_parameters: Any = None  # arrays [B, ...]: what `search` was given for the rules
    full: jax.Array | None = None  # [M] bool: no room for a new child; None: never so
    lost: jax.Array | None = None  # [M, C] bool: proven so, while another move is not

    def without_lost(self) -> "NodeStatistics":
        """The same with nothing in the columns that are lost: no prior, no visits."""
        if self.lost is None:
            return self
        return self._replace(
            prior_probs=jnp.where(self.lost, 0, self.prior_probs),
            visit_counts=jnp.where(self.lost, 0, self.visit_counts),
        )

    @property
    def parameters(self) -> Any:
        """The row parameters [M, ...] of the nodes."""
        if self.rows is None:
            return self.row_parameters
        return jax.tree.map(lambda x: x[self.rows], self.row_parameters)


ScoreFn = Callable[[NodeStatistics], jax.Array]
"""Scores [M, C] of the columns: the highest is followed.

Of equals it is the lowest action at the root, and the oldest child below it. Of two
unvisited actions the one with the higher prior must not score lower.
"""


def places_buffer(rows: jax.Array, num_steps: int) -> jax.Array:
    """Room for the places that `select_below` reads: `num_steps` in each row [B]."""
    return jnp.pad(jnp.repeat(rows, num_steps), (0, loop_sizes(len(rows)).choices))


class Rules(NamedTuple):
    """How choices are made: the scores at the roots and below, and what they read."""

    root_score: ScoreFn
    interior_score: ScoreFn
    row_parameters: Any
    on_descent: bool  # below the roots, because the scores change elsewhere
    reused: bool  # the tree of an earlier search: it may be full, the root have more
    # children than slots


def select_at_roots(tree: Tree, searched: jax.Array, rules: Rules) -> Tree:
    """Chooses anew at the roots of the rows `searched` [B]."""
    roots = row_starts(tree.visits)
    choice = _select(tree, roots, searched, rules, at_root=True)
    roots = jnp.where(searched, roots, tree.visits.size)
    return dataclasses.replace(tree, selected=write(tree.selected, roots, choice))


def select_below(
    tree: Tree, places: jax.Array, num_places: jax.Array, rules: Rules
) -> Tree:
    """Chooses anew at nodes below the roots.

    Args:
      places: see `places_buffer`; the first `num_places` entries count.
    """
    chunk = loop_sizes(len(tree.visits)).choices

    def step(carry):
        start, selected = carry
        place = jax.lax.dynamic_slice(places, (start,), (chunk,))
        exists = start + jnp.arange(chunk) < num_places
        place = jnp.where(exists, place, 0)
        choice = _select(tree, place, exists, rules)
        place = jnp.where(exists, place, selected.size)
        return start + chunk, write(selected, place, choice)

    _, selected = jax.lax.while_loop(
        lambda carry: carry[0] < num_places, step, (jnp.int32(0), tree.selected)
    )
    return dataclasses.replace(tree, selected=selected)


def select_on_descent(tree: Tree, place: jax.Array, rules: Rules) -> jax.Array:
    """The children [B] chosen at nodes [B]; the roots have chosen already."""
    is_root = place == row_starts(tree.visits)
    choice = _select(tree, place, ~is_root, rules)
    return jnp.where(is_root, tree.selected[:, Tree.ROOT], choice)


def _select(tree, place, exists, rules, at_root=False):
    """The child [M] that the scores choose at nodes [M], NO_CHILD for a new one.

    Most nodes have few visited children: they are read only as far as the widest of
    these nodes needs.
    """

    def read_nodes(array):
        return read(array, place)

    row = jax.lax.div(place, jnp.int32(tree.capacity))
    row_start = row * tree.capacity
    num_children = jnp.where(exists, read_nodes(tree.num_children), 0)
    visits = read_nodes(tree.visits)
    counts = jnp.maximum(visits, 1)
    node_value = read_nodes(tree.value_sums) / counts
    mean_square = None
    if tree.square_sums is not None:
        mean_square = read_nodes(tree.square_sums) / counts
    qvalue_range = None
    if tree.qvalue_range is not None:
        qvalue_range = tree.qvalue_range[row]
    next_prior_prob = read_nodes(tree.next_prior_prob)
    newest = read_nodes(tree.last_child)
    full = (tree.num_nodes == tree.capacity)[row] if rules.reused else None

    def of_width(width):
        def older(child, _):
            return read(tree.previous_sibling, row_start + child), child

        _, children = jax.lax.scan(older, newest, length=width, unroll=4)
        children = children.T
        column_exists = jnp.arange(width)[None, :] < num_children[:, None]

        def read_children(array, default=None):
            values = read(array, row_start[:, None] + children)
            if default is None:
                return values
            return jnp.where(column_exists, values, default)

        actions = None
        if at_root:
            slot = read_nodes(tree.next_slot)
            if tree.slot_actions is not None:
                slot = pick(tree.slot_actions[:, Tree.ROOT], slot).astype(slot.dtype)
            actions = _prepend(slot, read_children(tree.actions, tree.num_actions))
        prior_probs = _prepend(next_prior_prob, read_children(tree.prior_probs, 0))
        lost = None
        if tree.proofs is not None:
            lost = read_children(tree.proofs.upper, 1) < 0
            lost = _prepend(jnp.zeros_like(next_prior_prob, bool), lost)
            lost = lost & _any(~lost & (prior_probs > 0))
        statistics = NodeStatistics(
            prior_probs=prior_probs,
            visit_counts=_prepend(0 * visits, read_children(tree.visits, 0)),
            qvalues=_prepend(0 * node_value, read_children(tree.qvalues)),
            node_value=node_value,
            raw_value=read_nodes(tree.raw_values),
            node_visits=visits,
            mean_square=mean_square,
            qvalue_range=qvalue_range,
            actions=actions,
            num_actions=tree.num_actions,
            rows=row,
            row_parameters=rules.row_parameters,
            full=full,
            lost=lost,
        )
        score = rules.root_score if at_root else rules.interior_score
        scores = score(statistics)
        if lost is not None:
            scores = _of_others_if_any(scores, lost)
        if full is not None:
            scores = _of_visited_if_full(scores, column_exists, full)
        column = _best_column(scores, actions)
        choices = _prepend(jnp.full_like(place, Tree.NO_CHILD), children)
        choice = pick(choices, column)
        return jnp.where(num_children == 0, Tree.NO_CHILD, choice)

    most = tree.unvisited_prior_probs.shape[2]
    if at_root and rules.reused:  # earlier searches may have kept other actions
        most = tree.num_actions
    most = min(most, tree.capacity)
    widths = [width for width in _WIDTHS if width < most]
    widest = jnp.max(num_children)
    branch = sum((widest > width).astype(jnp.int32) for width in widths)
    widths.append(most)
    choice = jax.lax.switch(branch, [partial(of_width, width) for width in widths])
    if tree.proofs is not None:
        lower, upper = tree.proofs.lower, tree.proofs.upper
        proven = read_nodes(lower) == read_nodes(upper)
        choice = jnp.where(proven, Tree.NO_CHILD, choice)
    return choice


def _of_others_if_any(scores, lost):
    """Scores [M, C]: no child that is lost, if another action may be chosen."""
    others = _any(~lost & (scores > -jnp.inf))
    return jnp.where(lost & others, -jnp.inf, scores)


def _of_visited_if_full(scores, is_child, full):
    """Scores [M, C]: where a tree is full no new action, but any child there is."""
    visited = _prepend(jnp.zeros_like(full), is_child)
    lowest = jnp.finfo(scores.dtype).min
    of_visited = jnp.where(visited, jnp.maximum(scores, lowest), -jnp.inf)
    return jnp.where(full[:, None], of_visited, scores)


def root_statistics(tree: Tree, row_parameters: Any = None) -> NodeStatistics:
    """The B roots as nodes with a column for every action."""
    summary = tree.summary()
    visits = tree.visits[:, Tree.ROOT]
    mean_square = None
    if tree.square_sums is not None:
        mean_square = tree.square_sums[:, Tree.ROOT] / jnp.maximum(visits, 1)
    return NodeStatistics(
        prior_probs=tree.root_prior_probs,
        visit_counts=summary.visit_counts.astype(jnp.int32),
        qvalues=summary.qvalues,
        node_value=summary.value,
        raw_value=tree.raw_values[:, Tree.ROOT],
        node_visits=visits,
        mean_square=mean_square,
        qvalue_range=tree.qvalue_range,
        actions=None,
        num_actions=tree.num_actions,
        rows=None,
        row_parameters=row_parameters,
        lost=None if tree.proofs is None else ~tree.playable,
    )


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


def _any(columns):
    return jnp.any(columns, axis=1, keepdims=True)


def _prepend(first, columns):
    return jnp.concatenate([first[:, None], columns], axis=1)
