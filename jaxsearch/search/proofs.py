"""Exact outcomes: bounds that go up the tree, from finished positions to the root.

Source: "Score bounded Monte-Carlo tree search" (Cazenave and Saffidine 2010), with
outcomes of -1, 0 and 1. An action not visited yet may have any outcome. For a node that
means: its outcome is no less than that of any child, and no more than 1 as long as
some legal action may win, no more than 0 as long as some may draw.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search.rows import pick, put
from jaxsearch.search.tree import Proofs, Tree


class Bounds(NamedTuple):
    """Bounds [B] int32 of the outcome of an edge, its mover's view."""

    lower: jax.Array
    upper: jax.Array


def of_new_edge(reward: jax.Array, discount: jax.Array) -> Bounds:
    """The bounds of an edge just opened: exact if it ends the game with an outcome."""
    is_outcome = (reward == -1) | (reward == 0) | (reward == 1)
    exact = (discount == 0) & is_outcome
    outcome = jnp.where(exact, reward, 0).astype(jnp.int32)
    return Bounds(jnp.where(exact, outcome, -1), jnp.where(exact, outcome, 1))


def unknown_bounds(rows: jax.Array) -> Bounds:
    """What is known of any edge of the rows [B]."""
    ones = jnp.ones_like(rows, jnp.int32)
    return Bounds(-ones, ones)


def of_edge(proofs: Proofs, node: jax.Array) -> Bounds:
    """The bounds of the edges into the nodes [B]."""
    return Bounds(
        pick(proofs.lower, node).astype(jnp.int32),
        pick(proofs.upper, node).astype(jnp.int32),
    )


def of_node(edge: Bounds, discount: jax.Array) -> Bounds:
    """The bounds of the nodes that edges [B] enter, in the view of their movers."""
    opponent = discount == -1
    return Bounds(
        jnp.where(opponent, -edge.upper, edge.lower),
        jnp.where(opponent, -edge.lower, edge.upper),
    )


def update(
    tree: Tree, proofs: Proofs, node: jax.Array, before: Bounds, now: Bounds
) -> tuple[Proofs, Bounds, Bounds, Bounds]:
    """Takes the changed bounds of one edge below each of the nodes [B] into account.

    Args:
      before, now: of that edge.

    Returns:
      The proofs; the bounds of the edges into the nodes, before and now; the bounds of
      the nodes, their movers' view.
    """
    reward, discount = pick(tree.rewards, node), pick(tree.discounts, node)
    edge = of_edge(proofs, node)
    may_win = pick(proofs.may_win, node) - ((before.upper > 0) & (now.upper <= 0))
    may_draw = pick(proofs.may_draw, node) - ((before.upper >= 0) & (now.upper < 0))
    bounds = Bounds(
        jnp.maximum(of_node(edge, discount).lower, now.lower),
        jnp.where(may_win > 0, 1, jnp.where(may_draw > 0, 0, -1)),
    )
    # What is won or lost on the way proves nothing above.
    carries = (node == Tree.ROOT) | ((reward == 0) & (jnp.abs(discount) == 1))
    above = of_node(bounds, discount)
    edge_now = jax.tree.map(lambda new, old: jnp.where(carries, new, old), above, edge)
    proofs = dataclasses.replace(
        proofs,
        lower=put(proofs.lower, node, edge_now.lower.astype(proofs.lower.dtype)),
        upper=put(proofs.upper, node, edge_now.upper.astype(proofs.upper.dtype)),
        may_win=put(proofs.may_win, node, may_win),
        may_draw=put(proofs.may_draw, node, may_draw),
    )
    return proofs, edge, edge_now, bounds
