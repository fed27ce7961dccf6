"""What a tree holds, found by walking up from each node of one row, in NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch import Tree


def of_row(row, *arrays) -> list[np.ndarray]:
    return [np.asarray(array)[row] for array in arrays]


def paths_of(tree, row) -> dict[int, tuple[int, ...]]:
    """The nodes of one row with their paths, each found by a walk up to the root."""
    parents, actions = of_row(row, tree.parents, tree.actions)
    paths = {0: ()}
    for node in np.flatnonzero(parents != Tree.NO_PARENT).tolist():
        path, above = [], node
        while above != 0:
            path.insert(0, int(actions[above]))
            above = parents[above]
        paths[node] = tuple(path)
    assert len(set(paths.values())) == len(paths)
    return paths


def most_visited_line(tree, row) -> list[int]:
    paths, line = paths_of(tree, row), ()
    visits, qvalues, priors = of_row(row, tree.visits, tree.qvalues, tree.prior_probs)
    while True:
        below = [n for n, p in paths.items() if p and p[:-1] == line]
        if not below:
            return list(line)
        keys = {n: (visits[n], qvalues[n], priors[n], -paths[n][-1]) for n in below}
        line = paths[max(below, key=keys.__getitem__)]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TreeWithSquares(Tree):
    square_sums: jax.Array  # [B, N] float


def with_squares(tree) -> TreeWithSquares:
    """The tree with the sums of the squares of the returns of each node."""
    squares = np.array(
        [
            [np.sum(np.square(returns)) for returns in returns_of(tree, row)]
            for row in range(len(tree.visits))
        ]
    )
    fields = {f.name: getattr(tree, f.name) for f in dataclasses.fields(Tree)}
    fields["square_sums"] = jnp.asarray(squares, tree.value_sums.dtype)
    return TreeWithSquares(**fields)


def returns_of(tree, row) -> list[list[float]]:
    """The returns that the value of each node [N] is the mean of.

    Each evaluation of a node adds one return to it and to every node above it.
    """
    parents, visits, rewards, discounts, raw_values = of_row(
        row, tree.parents, tree.visits, tree.rewards, tree.discounts, tree.raw_values
    )
    nodes = [0, *np.flatnonzero(parents != Tree.NO_PARENT).tolist()]
    returns = [[] for _ in parents]
    for node in nodes:
        evaluations = visits[node] - visits[parents == node].sum()
        value, above = raw_values[node], node
        while above != Tree.NO_PARENT:
            returns[above] += [float(value)] * int(evaluations)
            value = rewards[above] + discounts[above] * value
            above = parents[above]
    return returns
