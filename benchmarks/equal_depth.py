"""Two searches of different length whose simulations go equally deep.

More simulations go deeper, so that the cost of one is hard to compare. Here the
exploration constant of the longer search is chosen so that its simulations end as deep,
on average, as those of the shorter one with the default constant: a higher constant
spreads the visits over more moves, all else being equal.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from benchmarks.models import Model
from jaxsearch import puct_policy

DEFAULT = 1.25  # pb_c_init of `puct_policy`
TOLERANCE = 0.01
MOST_STEPS = 16


class Depths(NamedTuple):
    """Of the leaves that the simulations of a search opened."""

    mean: float
    longest: float  # the mean, over the simulations, of the deepest of a batch


def puct_program(model: Model, num_simulations: int) -> Callable[..., tuple]:
    """`(params, key, states, pb_c_init) -> (action, weights, parents [B, M])`."""

    def search(params, key, states, pb_c_init):
        root, mask = model.root_fn(params, states)
        output = puct_policy(
            params,
            key,
            root,
            model.recurrent_fn,
            num_simulations,
            mask,
            pb_c_init=pb_c_init,
        )
        return output.action, output.action_weights, output.search_tree.parents

    return search


def depths(parents: jax.Array) -> Depths:
    """The depths in a game that never ends: simulation i opened node i of each row."""
    parents_of = np.asarray(parents)
    rows = np.arange(len(parents_of))
    depth = np.zeros_like(parents_of)
    for node in range(1, parents_of.shape[1]):
        depth[:, node] = depth[rows, parents_of[:, node]] + 1
    leaves = depth[:, 1:]
    return Depths(float(leaves.mean()), float(leaves.max(axis=0).mean()))


def constant_for(mean_depth: float, depths_at: Callable[[float], Depths]) -> float:
    """The constant at which the mean depth is the one given, within 1% if it can be.

    By bisection; the depth falls as the constant rises.
    """
    low, high = DEFAULT / 100, DEFAULT * 10_000
    constant = DEFAULT
    for _ in range(MOST_STEPS):
        constant = float(np.sqrt(low * high))
        mean = depths_at(constant).mean
        if abs(mean / mean_depth - 1) < TOLERANCE:
            break
        low, high = (constant, high) if mean > mean_depth else (low, constant)
    return constant
