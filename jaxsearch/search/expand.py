"""Opening nodes: the tree before the first simulation, then one node a simulation."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search import proofs
from jaxsearch.search.arguments import MOST_VALUE, check_output
from jaxsearch.search.paths import Backup, Descent, widened
from jaxsearch.search.rows import (
    pick,
    pick_in_row,
    put_in_row,
    read,
    row_starts,
    write,
)
from jaxsearch.search.tree import Proofs, Tree


class Roots(NamedTuple):
    """What is known of B roots before their search."""

    value: jax.Array  # [B] float
    embedding: Any  # [B, ...]
    prior_probs: jax.Array  # [B, A] float: exactly 0 where illegal
    order: jax.Array | None  # [B, A] float: highest first, 0 never; None: by priors
    num_legal: jax.Array  # [B] int32
    failed: jax.Array  # [B] bool: cannot be searched


def new_tree(
    roots: Roots,
    *,
    capacity: int,
    max_children: int | None,
    prior_dtype: Any | None,
    count_root_evaluation: bool,
    keep_squares: bool,
    keep_qvalue_range: bool,
    solve: bool,
) -> Tree:
    """The tree that holds the B roots and has room for `capacity` nodes a row."""
    prior_probs = roots.prior_probs
    value = jnp.where(roots.failed, 0, roots.value.astype(prior_probs.dtype))
    count = jnp.zeros_like(value, jnp.int32)

    def of_nodes(like, fill=0):
        return _filled((len(count), capacity), like, fill)

    def of_root(values, fill=0):
        return of_nodes(values, fill).at[:, Tree.ROOT].set(values)

    prior_dtype = prior_dtype or prior_probs.dtype
    value_sum = value if count_root_evaluation else value * 0
    order = prior_probs if roots.order is None else roots.order
    kept, actions = keep_highest(order, max_children)
    if roots.order is None and actions is not None:  # scaled already
        kept = jnp.take_along_axis(prior_probs, actions.astype(jnp.int32), axis=1)
    next_slot, next_prior_prob = highest(kept)
    slots = of_nodes(kept[:, 0].astype(prior_dtype))
    slots = _filled((*slots.shape, kept.shape[1]), slots[:, 0], 0)
    slot_actions = None
    if actions is not None:
        slot_actions = _filled(slots.shape, actions[:, 0], 0)
        slot_actions = slot_actions.at[:, Tree.ROOT].set(actions)
    return Tree(
        visits=of_nodes(count).at[:, 0].set(int(count_root_evaluation)),
        raw_values=of_root(value),
        value_sums=of_root(value_sum),
        square_sums=of_root(value_sum**2) if keep_squares else None,
        num_children=of_nodes(count),
        last_child=of_nodes(count, Tree.NO_CHILD),
        unvisited_prior_probs=slots.at[:, Tree.ROOT].set(kept.astype(prior_dtype)),
        slot_actions=slot_actions,
        next_slot=of_root(next_slot),
        next_prior_prob=of_root(next_prior_prob),
        selected=of_nodes(count, Tree.NO_CHILD),
        embeddings=jax.tree.map(
            lambda x: jnp.repeat(x[:, None], capacity, axis=1), roots.embedding
        ),
        previous_sibling=of_nodes(count, Tree.NO_CHILD),
        parents=of_nodes(count, Tree.NO_PARENT),
        actions=of_nodes(count, Tree.NO_PARENT),
        prior_probs=of_nodes(value),
        rewards=of_nodes(value),
        discounts=of_nodes(value),
        qvalues=of_nodes(value),
        root_prior_probs=prior_probs,
        num_nodes=count + 1,
        simulations=count,
        not_stored=count,
        failed=roots.failed,
        qvalue_range=jnp.stack([value * 0 + jnp.inf, value * 0 - jnp.inf], axis=1)
        if keep_qvalue_range
        else None,
        proofs=Proofs(
            lower=of_nodes(count.astype(jnp.int8), -1),
            upper=of_nodes(count.astype(jnp.int8), 1),
            may_win=of_root(roots.num_legal),
            may_draw=of_root(roots.num_legal),
        )
        if solve
        else None,
    )


def expand(
    tree: Tree,
    descent: Descent,
    params: Any,
    key: jax.Array,
    recurrent_fn: Any,
    *,
    max_depth: int | None,
    max_children: int | None,
) -> tuple[Tree, Backup]:
    """Evaluates the ends of the paths; returns the tree and what to back up.

    Where a descent stopped at a finished position or at the greatest depth, that
    position is evaluated again; elsewhere the best unvisited action of the node opens a
    new one, if there is a free slot.
    """
    searched = descent.length >= 0
    roots = row_starts(tree.visits)
    no_place = jnp.full_like(roots, tree.visits.size)
    last = descent.last
    again = ends_the_search(tree, last)
    if max_depth is not None:
        again = again | (descent.length == max_depth)
    parent = jnp.where(again, roots + read(tree.parents, last), last)
    slot = read(tree.next_slot, parent)
    action = slot
    if tree.slot_actions is not None:
        action = pick_in_row(tree.slot_actions, parent - roots, slot).astype(jnp.int32)
    action = jnp.where(again, read(tree.actions, last), action)
    embedding = jax.tree.map(lambda x: read(x, parent), tree.embeddings)
    result = recurrent_fn(params, key, action, embedding)
    output, embedding = check_output(result, tree)

    dtype = tree.value_sums.dtype
    reward, discount = output.reward.astype(dtype), output.discount.astype(dtype)
    value = jnp.where(discount == 0, 0, output.value.astype(dtype))
    probs, has_probs = _softmax(output.prior_logits, dtype)
    kept, actions = keep_highest(probs, max_children)
    most = jnp.maximum(jnp.abs(reward), jnp.abs(discount * value))
    fine = (most <= MOST_VALUE) & (has_probs | (discount == 0))
    failed = tree.failed | (searched & ~fine)
    opening = searched & fine & ~again
    opened = opening & (tree.num_nodes < tree.capacity)
    num_children = read(tree.num_children, parent)

    # What is written below, read in a branch: otherwise XLA reads it after the write as
    # well, for which it copies the whole array, in every simulation.
    def read_links():
        return (
            jnp.where(opened, roots + tree.num_nodes, no_place),
            jnp.where(opened, parent, no_place),
            read(tree.last_child, parent),
            read(tree.next_prior_prob, parent),
        )

    def skip():
        return no_place, no_place, jnp.zeros_like(parent), jnp.zeros_like(value)

    new_place, linked_parent, sibling, prior_prob = jax.lax.cond(
        jnp.any(opened), read_links, skip
    )

    def write_new(array, values):
        return write(array, new_place, values)

    # This row is read from the array just written, for the same reason.
    unvisited = put_in_row(
        write_new(tree.unvisited_prior_probs, kept),
        jnp.where(opened, parent - roots, tree.capacity),
        slot,
        jnp.zeros_like(kept[:, 0], tree.unvisited_prior_probs.dtype),
    )
    is_root = parent == roots
    prior_prob = jnp.where(is_root, pick(tree.root_prior_probs, action), prior_prob)
    next_slot, next_prior_prob = highest(kept)
    rest_slot, rest_prior_prob = highest(read(unvisited, parent).astype(dtype))
    edge_return = reward + discount * value
    qvalue = jnp.where(discount == 0, reward, edge_return)
    bounds = proofs.of_new_edge(
        jnp.where(opened, reward, 0), jnp.where(opened, discount, 1)
    )
    changes = {}
    if tree.square_sums is not None:
        changes["square_sums"] = write_new(tree.square_sums, value**2)
    if tree.slot_actions is not None:
        changes["slot_actions"] = write_new(tree.slot_actions, actions)
    if tree.qvalue_range is not None:
        changes["qvalue_range"] = widened(tree.qvalue_range, qvalue, opened)
    if tree.proofs is not None:
        num_legal = jnp.sum(probs > 0, axis=1)
        changes["proofs"] = Proofs(
            lower=write_new(tree.proofs.lower, bounds.lower),
            upper=write_new(tree.proofs.upper, bounds.upper),
            may_win=write_new(tree.proofs.may_win, num_legal),
            may_draw=write_new(tree.proofs.may_draw, num_legal),
        )
    tree = dataclasses.replace(
        tree,
        visits=write_new(tree.visits, jnp.ones_like(action)),
        raw_values=write_new(tree.raw_values, value),
        value_sums=write_new(tree.value_sums, value),
        num_children=write(tree.num_children, linked_parent, num_children + 1),
        last_child=write(tree.last_child, linked_parent, new_place - roots),
        unvisited_prior_probs=unvisited,
        next_slot=write(write_new(tree.next_slot, next_slot), linked_parent, rest_slot),
        next_prior_prob=write(
            write_new(tree.next_prior_prob, next_prior_prob),
            linked_parent,
            rest_prior_prob,
        ),
        embeddings=jax.tree.map(write_new, tree.embeddings, embedding),
        previous_sibling=write_new(tree.previous_sibling, sibling),
        parents=write_new(tree.parents, parent - roots),
        actions=write_new(tree.actions, action),
        prior_probs=write_new(tree.prior_probs, prior_prob),
        rewards=write_new(tree.rewards, reward),
        discounts=write_new(tree.discounts, discount),
        qvalues=write_new(tree.qvalues, qvalue),
        num_nodes=tree.num_nodes + opened,
        not_stored=tree.not_stored + (opening & ~opened),
        failed=failed,
        **changes,
    )
    node_return = jnp.where(again, value, edge_return)
    return tree, Backup(known_return(tree, last, node_return), bounds)


def ends_the_search(tree: Tree, place: jax.Array) -> jax.Array:
    """Whether nodes [B] are finished or proven: nothing is to be found below."""
    is_root = place == row_starts(tree.visits)
    ends = ~is_root & (read(tree.discounts, place) == 0)
    if tree.proofs is not None:
        edge = proofs.of_edge(tree.proofs, place)
        ends = ends | (edge.lower == edge.upper)
    return ends


def known_return(tree: Tree, place: jax.Array, node_return: jax.Array) -> jax.Array:
    """The returns [B] of nodes, in place of `node_return` where they are known."""
    discount = read(tree.discounts, place)
    finished = (place != row_starts(tree.visits)) & (discount == 0)
    if tree.proofs is not None:
        bounds = proofs.of_node(proofs.of_edge(tree.proofs, place), discount)
        exact = bounds.lower.astype(node_return.dtype)
        node_return = jnp.where(bounds.lower == bounds.upper, exact, node_return)
    return jnp.where(finished, 0, node_return)


def keep_highest(
    probs: jax.Array, max_children: int | None
) -> tuple[jax.Array, jax.Array | None]:
    """The `max_children` highest entries of each row [B, A], and their columns.

    Where there are more than zeros to be left out the rest is scaled to the same sum.
    With `max_children` None or not below A they are the rows as they are, and None.
    """
    num_actions = probs.shape[1]
    if max_children is None or max_children >= num_actions:
        return probs, None
    dtype = jnp.int16 if num_actions < 2**15 else jnp.int32
    kept, actions = jax.lax.top_k(probs, max_children)
    total, kept_total = jnp.sum(probs, axis=1), jnp.sum(kept, axis=1)
    cut = jnp.sum(probs > 0, axis=1) > max_children
    scale = jnp.where(cut, total / jnp.maximum(kept_total, 1e-30), 1)
    return kept * scale[:, None], actions.astype(dtype)


def highest(probs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The first column [B] of the highest entry [B, K] and the entry [B]."""
    columns = jnp.arange(probs.shape[1], dtype=jnp.int32)[None, :]
    highest = jnp.max(probs, axis=1)
    is_highest = probs == highest[:, None]
    return jnp.min(jnp.where(is_highest, columns, probs.shape[1] - 1), axis=1), highest


def _softmax(logits, dtype):
    """The softmax of each row [B, A], and whether it is one [B]: all zeros if not.

    The lowest number of the logits' own dtype means illegal, as -inf does.
    """
    logits = jnp.where(
        logits <= jnp.finfo(logits.dtype).min, -jnp.inf, logits.astype(dtype)
    )
    weights = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    total = jnp.sum(weights, axis=1, keepdims=True)
    is_finite = jnp.isfinite(total)
    return jnp.where(is_finite, weights / total, 0), is_finite[:, 0]


def _filled(shape, like, fill):
    """A constant array, sharded and varying over devices as `like` [B]."""
    like = jax.lax.expand_dims(jnp.full_like(like, fill), range(1, len(shape)))
    return jnp.broadcast_to(like, shape)
