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


def watch(tree: Tree) -> Watch:
    """The state before the first simulation."""
    zeros = jnp.zeros_like(tree.root_prior_probs)
    return Watch(jnp.zeros_like(tree.failed), zeros)


def look(
    rule: EarlyStop, watch: Watch, tree: Tree, moved: jax.Array, budgets: jax.Array
) -> Watch:
    """Stops rows of those that have just `moved` [B], if their time has come."""
    due = moved & (tree.simulations % rule.interval == 0)

    def look_now():
        counts = tree.summary().visit_counts
        stop = jnp.zeros_like(due)
        if rule.most_visited:
            stop = stop | (_lead(counts) > budgets - tree.simulations)
        if rule.policy_change > 0:
            change = _divergence(watch.visit_counts, counts) / rule.interval
            seen = jnp.any(watch.visit_counts > 0, axis=1)
            stop = stop | (seen & (change < rule.policy_change))
        return Watch(
            watch.stopped | (due & stop),
            jnp.where(due[:, None], counts, watch.visit_counts),
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
