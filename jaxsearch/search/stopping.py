"""Stopping a row before its budget is used up."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsearch.search.arguments import check_count, check_numbers
from jaxsearch.search.tree import Tree


@dataclass(frozen=True, kw_only=True)
class EarlyStop:
    """When a row stops early. Looked at after every `interval` simulations of the row.

    `policy_change` is the rule of Leela Chess Zero (KLDGain): the row stops once the
    shares of the visits at the root have moved less than this since the last look, in
    nats a simulation, measured as KL(before || now).

    With `solve` a proof may still have changed the move of a row that stopped.
    """

    interval: int = 16
    most_visited: bool = True  # stop when what is left cannot change that move
    policy_change: float = 0.0  # 0 for not at all

    def __post_init__(self):
        check_count("EarlyStop.interval", self.interval)
        check_numbers(**{"EarlyStop.policy_change": (self.policy_change, 0, 1e30)})


class Watch(NamedTuple):
    """What has been seen of B rows."""

    stopped: jax.Array  # [B] bool
    visit_counts: jax.Array  # [B, A] float: at the last look, 0 before the first
    not_counted: jax.Array  # [B, A] int: visits of earlier searches


def watch(tree: Tree, not_counted: jax.Array | None) -> Watch:
    """The state before the first simulation.

    Args:
      not_counted: [B, A], visits that the choice of the move leaves out; None for none.
    """
    zeros = jnp.zeros_like(tree.root_prior_probs)
    if not_counted is None:
        not_counted = zeros.astype(jnp.int32)
    return Watch(jnp.zeros_like(tree.failed), zeros, not_counted)


def look(
    rule: EarlyStop, watch: Watch, tree: Tree, moved: jax.Array, budgets: jax.Array
) -> Watch:
    """Stops rows of those that have just `moved` [B], if their time has come."""
    due = moved & (tree.simulations % rule.interval == 0)

    def look_now():
        counts = tree.summary().visit_counts - watch.not_counted
        stop = jnp.zeros_like(due)
        if rule.most_visited:
            of_playable = jnp.where(tree.playable, counts, 0)
            stop = stop | (_lead(of_playable) > budgets - tree.simulations)
        if rule.policy_change > 0:
            change = _divergence(watch.visit_counts, counts) / rule.interval
            seen = jnp.any(watch.visit_counts > 0, axis=1)
            stop = stop | (seen & (change < rule.policy_change))
        return watch._replace(
            stopped=watch.stopped | (due & stop),
            visit_counts=jnp.where(due[:, None], counts, watch.visit_counts),
        )

    return jax.lax.cond(jnp.any(due), look_now, lambda: watch)


def _lead(counts):
    """By how many visits [B] the most visited action [B, A] leads."""
    if counts.shape[1] == 1:
        return counts[:, 0]
    first, second = jnp.moveaxis(jax.lax.top_k(counts, 2)[0], 1, 0)
    return first - second


def _divergence(before, now):
    """KL(before || now) [B] of the shares of two counts [B, A]."""
    before = before / jnp.maximum(jnp.sum(before, axis=1, keepdims=True), 1)
    now = now / jnp.maximum(jnp.sum(now, axis=1, keepdims=True), 1)
    known = before > 0
    ratio = jnp.where(known, before, 1) / jnp.where(known, now, 1)
    return jnp.sum(before * jnp.log(ratio), axis=1)
