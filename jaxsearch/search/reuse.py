"""Going on with a tree: after a move with the subtree of that move, or as it is."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.search import proofs
from jaxsearch.search.expand import highest
from jaxsearch.search.rows import pick, row_starts
from jaxsearch.search.sharding import over_rows
from jaxsearch.search.tree import Proofs, Tree


def advance(tree: Tree, actions: jax.Array, reset: jax.Array | None = None) -> Tree:
    """The trees below the `actions` [B] of the roots: the children become the roots.

    The statistics of the nodes that stay are unchanged. A row starts empty, with no
    nodes, if `reset` [B] says so, if its action was not visited or ends the game, or if
    its search failed; the next search fills it from the root that it is given.

    Meant for `policy(..., tree=tree.advance(actions))`.

    Args:
      actions: [B] int; one out of range starts its row empty.
      reset: [B] bool; None for no row.

    Raises:
      ValueError: another shape or dtype.
    """
    if reset is None:
        reset = jnp.zeros_like(tree.failed)
    actions, reset = jnp.asarray(actions), jnp.asarray(reset)
    for name, array, kind in (
        ("actions", actions, jnp.integer),
        ("reset", reset, jnp.bool),
    ):
        if array.shape != tree.failed.shape or not jnp.issubdtype(array.dtype, kind):
            raise ValueError(
                f"{name} is an array of {array.dtype} of shape {array.shape}, expected "
                f"one {kind.__name__} for each row, {tree.failed.shape}"
            )
    return over_rows(_advance, (), (tree, actions, reset), like=tree.visits)


def _advance(tree, actions, reset):
    child = pick(tree.root_children, jnp.clip(actions, 0, tree.num_actions - 1))
    in_range = (actions >= 0) & (actions < tree.num_actions)
    kept = in_range & (child != Tree.NO_CHILD) & ~tree.failed
    kept = kept & (pick(tree.discounts, child) != 0) & ~reset
    stays = _is_below(tree, child) & kept[:, None]
    count = jnp.sum(stays, axis=1, dtype=jnp.int32)
    new_index = jnp.where(stays, jnp.cumsum(stays, axis=1, dtype=jnp.int32) - 1, -1)
    nodes = jnp.broadcast_to(jnp.arange(tree.capacity, dtype=jnp.int32), stays.shape)
    source = _scatter(jnp.zeros_like(nodes), new_index, nodes)
    in_use = nodes < count[:, None]

    def moved(array, fill=0):
        taken = jax.vmap(lambda row, index: row[index])(array, source)
        shape = (*in_use.shape, *(1,) * (taken.ndim - 2))
        return jnp.where(in_use.reshape(shape), taken, jnp.asarray(fill, array.dtype))

    def of_links(links):
        target = jax.vmap(lambda row, index: row[index])(new_index, links)
        return moved(jnp.where(links >= 0, target, Tree.NO_CHILD), Tree.NO_CHILD)

    def without_root(array, fill=0):
        return array.at[:, Tree.ROOT].set(jnp.asarray(fill, array.dtype))

    new_proofs = None
    if tree.proofs is not None:
        edge = proofs.of_edge(tree.proofs, row_starts(tree.visits) + child)
        bounds = proofs.of_node(edge, pick(tree.discounts, child))
        lower, upper = moved(tree.proofs.lower, -1), moved(tree.proofs.upper, 1)
        new_proofs = Proofs(
            lower=lower.at[:, Tree.ROOT].set(
                jnp.where(kept, bounds.lower, -1).astype(jnp.int8)
            ),
            upper=upper.at[:, Tree.ROOT].set(
                jnp.where(kept, bounds.upper, 1).astype(jnp.int8)
            ),
            may_win=moved(tree.proofs.may_win),
            may_draw=moved(tree.proofs.may_draw),
        )
    square_sums, slot_actions = tree.square_sums, tree.slot_actions
    unvisited = moved(tree.unvisited_prior_probs)
    tree = dataclasses.replace(
        tree,
        visits=moved(tree.visits),
        raw_values=moved(tree.raw_values),
        value_sums=moved(tree.value_sums),
        square_sums=None if square_sums is None else moved(square_sums),
        num_children=moved(tree.num_children),
        last_child=of_links(tree.last_child),
        unvisited_prior_probs=unvisited,
        slot_actions=None if slot_actions is None else moved(slot_actions),
        next_slot=moved(tree.next_slot),
        next_prior_prob=moved(tree.next_prior_prob),
        selected=of_links(tree.selected),
        embeddings=jax.tree.map(
            lambda x: jax.vmap(lambda row, index: row[index])(x, source),
            tree.embeddings,
        ),
        previous_sibling=without_root(of_links(tree.previous_sibling), Tree.NO_CHILD),
        parents=without_root(of_links(tree.parents), Tree.NO_PARENT),
        actions=without_root(moved(tree.actions, Tree.NO_PARENT), Tree.NO_PARENT),
        prior_probs=without_root(moved(tree.prior_probs)),
        rewards=without_root(moved(tree.rewards)),
        discounts=without_root(moved(tree.discounts)),
        qvalues=without_root(moved(tree.qvalues)),
        num_nodes=count,
        simulations=jnp.zeros_like(count),
        not_stored=jnp.zeros_like(count),
        failed=jnp.zeros_like(tree.failed),
        proofs=new_proofs,
    )
    return dataclasses.replace(tree, root_prior_probs=_root_prior_probs(tree))


def continued(tree: Tree, fresh: Tree) -> Tree:
    """`tree` under the roots of a new search, or `fresh` where a row has no nodes.

    The nodes keep their statistics; the root gets the new priors, and its visited edges
    as well.
    """
    kept = (tree.num_nodes > 0) & ~tree.failed & ~fresh.failed & ~fresh.root_finished

    def choose(old: Any, new: Any) -> Any:
        return jax.tree.map(
            lambda o, n: jnp.where(kept.reshape(-1, *(1,) * (o.ndim - 1)), o, n),
            old,
            new,
        )

    of_root = fresh.unvisited_prior_probs[:, Tree.ROOT]
    visited = tree.root_children != Tree.NO_CHILD
    new_slots = None
    if tree.slot_actions is not None and fresh.slot_actions is not None:
        of_slots = fresh.slot_actions[:, Tree.ROOT]
        new_slots = tree.slot_actions.at[:, Tree.ROOT].set(of_slots)
        slot_actions = of_slots.astype(jnp.int32)
        visited = jax.vmap(lambda row, action: row[action])(visited, slot_actions)
    of_root = jnp.where(visited, jnp.zeros_like(of_root), of_root)
    next_slot, next_prior_prob = highest(of_root.astype(tree.value_sums.dtype))
    of_actions = jax.vmap(lambda row, action: row[action])(
        fresh.root_prior_probs, jnp.maximum(tree.actions, 0)
    )
    at_root = tree.parents == Tree.ROOT
    tree = dataclasses.replace(
        tree,
        unvisited_prior_probs=tree.unvisited_prior_probs.at[:, Tree.ROOT].set(of_root),
        slot_actions=new_slots,
        next_slot=tree.next_slot.at[:, Tree.ROOT].set(next_slot),
        next_prior_prob=tree.next_prior_prob.at[:, Tree.ROOT].set(next_prior_prob),
        prior_probs=jnp.where(at_root, of_actions, tree.prior_probs),
        root_prior_probs=fresh.root_prior_probs,
        simulations=fresh.simulations,
        not_stored=fresh.not_stored,
        failed=fresh.failed,
    )
    return choose(tree, fresh)


def _is_below(tree, top):
    """Whether each node [B, M] is the node `top` [B] or below it."""
    nodes = jnp.broadcast_to(jnp.arange(tree.capacity), tree.parents.shape)
    ends = (tree.parents < 0) | (nodes == top[:, None])
    above = jnp.where(ends, nodes, tree.parents)
    for _ in range((tree.capacity - 1).bit_length()):
        above = jax.vmap(lambda row: row[row])(above)
    return above == top[:, None]


def _scatter(into, index, values):
    """Sets `into[b, index[b, m]]`, nothing where the index is below 0."""
    return jax.vmap(
        lambda row, i, v: row.at[i].set(v, mode="drop", wrap_negative_indices=False)
    )(into, index, values)


def _root_prior_probs(tree):
    """The priors [B, A] of the roots, gathered from visited and unvisited actions."""
    unvisited = tree.unvisited_prior_probs[:, Tree.ROOT].astype(tree.value_sums.dtype)
    probs = jnp.zeros_like(tree.root_prior_probs)
    if tree.slot_actions is None:
        probs = unvisited
    else:
        slot_actions = tree.slot_actions[:, Tree.ROOT].astype(jnp.int32)
        probs = jax.vmap(lambda row, i, v: row.at[i].max(v))(
            probs, slot_actions, unvisited
        )
    action = jnp.where(tree.parents == Tree.ROOT, tree.actions, -1)
    return _scatter(probs, action, tree.prior_probs)
