"""Q of a node's actions on the scale of PUCT's scores, and Q of the unvisited ones."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from jaxsearch.search.arguments import LARGEST, TINY, check_numbers
from jaxsearch.search.select import NodeStatistics

QTransform = Callable[[NodeStatistics], jax.Array]
"""The values [M, C] of all Q of M nodes, those of the unvisited columns included."""

FirstPlayUrgency = Callable[[NodeStatistics], jax.Array]
"""The Q [M] that the unvisited actions of M nodes are taken to have, mover's view."""


def qtransform_by_parent_and_siblings(
    node: NodeStatistics, *, epsilon: float = 1e-8
) -> jax.Array:
    """Q scaled by the range of V(node) and the visited Q, which is from 0 to 1 then.

    A first-play urgency beyond the range counts as the end of it: the range is narrow
    after few visits, so that nothing else would ever be looked at.
    """
    visited = node.visit_counts > 0
    node_value = node.node_value[:, None]
    known = jnp.where(visited, node.qvalues, node_value)
    lowest = jnp.minimum(jnp.min(known, axis=1, keepdims=True), node_value)
    highest = jnp.maximum(jnp.max(known, axis=1, keepdims=True), node_value)
    scaled = (node.qvalues - lowest) / jnp.maximum(highest - lowest, epsilon)
    return jnp.clip(scaled, 0, 1)


def qtransform_fixed_scale(node: NodeStatistics) -> jax.Array:
    """Q as it is, on the scale of the model's values."""
    return node.qvalues


def qtransform_by_tree_range(node: NodeStatistics) -> jax.Array:
    """Q scaled by the lowest and the highest Q that the tree has seen, as in MuZero.

    Each row has its own range, of all the means that any edge has had. Choices depend
    on the whole tree then and are made on the descent, which is slower. A first-play
    urgency beyond the range counts as the end of it.
    """
    lowest, highest = jnp.moveaxis(jnp.asarray(node.qvalue_range), 1, 0)
    known = (highest > lowest)[:, None]
    lowest = jnp.where(known, lowest[:, None], 0)
    width = jnp.where(known, highest[:, None] - lowest, 1)
    scaled = (node.qvalues - lowest) / width
    # As long as there is no range Q is as it is.
    return jnp.where(known, jnp.clip(scaled, 0, 1), scaled)


@dataclass(frozen=True)
class ConstantUrgency:
    """The same Q for every unvisited action."""

    value: float

    def __call__(self, node: NodeStatistics) -> jax.Array:
        return jnp.full_like(node.node_value, self.value)


@dataclass(frozen=True)
class ParentUrgency:
    """V(node) - reduction * sqrt(sum of the priors of the visited actions).

    With a reduction of 0 it is the mean value of the node. The root of the priors is
    the form of Leela Chess Zero and KataGo.
    """

    reduction: float = 0.0

    def __call__(self, node: NodeStatistics) -> jax.Array:
        visited = node.visit_counts > 0
        explored = jnp.sum(jnp.where(visited, node.prior_probs, 0), axis=1)
        return node.node_value - self.reduction * jnp.sqrt(explored)


@dataclass(frozen=True, kw_only=True)
class VarianceScaling:
    """Explores more where the returns of a node vary more, as KataGo does.

    c is multiplied by 1 + scale * (stdev / prior_stdev - 1), where stdev is that of the
    node's returns, pulled towards `prior_stdev` as by `prior_weight` visits. KataGo's
    values are for utilities from -1 to 1.
    """

    prior_stdev: float = 0.4
    prior_weight: float = 2.0
    scale: float = 0.85

    def __post_init__(self):
        check_numbers(
            **{
                "VarianceScaling.prior_stdev": (self.prior_stdev, TINY, LARGEST),
                "VarianceScaling.prior_weight": (self.prior_weight, TINY, LARGEST),
                "VarianceScaling.scale": (self.scale, 0, 1),
            }
        )

    def factor(self, node: NodeStatistics) -> jax.Array:
        """The factors [M] of c."""
        visits = node.node_visits.astype(node.node_value.dtype)
        square = node.node_value**2
        prior = square + self.prior_stdev**2
        total = prior * self.prior_weight + jnp.asarray(node.mean_square) * visits
        weight = jnp.maximum(self.prior_weight + visits - 1, TINY)
        stdev = jnp.sqrt(jnp.maximum(total / weight - square, 0))
        stdev = jnp.where(visits > 1, stdev, self.prior_stdev)
        return 1 + self.scale * (stdev / self.prior_stdev - 1)
