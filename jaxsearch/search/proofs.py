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

from jaxsearch.search.rows import read, row_starts, write
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


def of_edge(proofs: Proofs, place: jax.Array) -> Bounds:
    """The bounds of the edges into the nodes at places [B]."""
    return Bounds(
        read(proofs.lower, place).astype(jnp.int32),
        read(proofs.upper, place).astype(jnp.int32),
    )


def of_node(edge: Bounds, discount: jax.Array) -> Bounds:
    """The bounds of the nodes that edges [B] enter, in the view of their movers."""
    opponent = discount == -1
    return Bounds(
        jnp.where(opponent, -edge.upper, edge.lower),
        jnp.where(opponent, -edge.lower, edge.upper),
    )


def update(
    tree: Tree, proofs: Proofs, place: jax.Array, before: Bounds, now: Bounds
) -> tuple[Proofs, Bounds, Bounds, Bounds]:
    """Takes the changed bounds of one edge below each of B nodes into account.

    Args:
      place: [B] int32, of the nodes.
      before, now: of that edge.

    Returns:
      The proofs; the bounds of the edges into the nodes, before and now; the bounds of
      the nodes, their movers' view.
    """
    reward, discount = read(tree.rewards, place), read(tree.discounts, place)
    edge = of_edge(proofs, place)
    may_win = read(proofs.may_win, place) - ((before.upper > 0) & (now.upper <= 0))
    may_draw = read(proofs.may_draw, place) - ((before.upper >= 0) & (now.upper < 0))
    bounds = Bounds(
        jnp.maximum(of_node(edge, discount).lower, now.lower),
        jnp.where(may_win > 0, 1, jnp.where(may_draw > 0, 0, -1)),
    )
    # What is won or lost on the way proves nothing above.
    is_root = place == row_starts(tree.visits)
    carries = is_root | ((reward == 0) & (jnp.abs(discount) == 1))
    above = of_node(bounds, discount)
    edge_now = jax.tree.map(lambda new, old: jnp.where(carries, new, old), above, edge)
    proofs = dataclasses.replace(
        proofs,
        lower=write(proofs.lower, place, edge_now.lower),
        upper=write(proofs.upper, place, edge_now.upper),
        may_win=write(proofs.may_win, place, may_win),
        may_draw=write(proofs.may_draw, place, may_draw),
    )
    return proofs, edge, edge_now, bounds
