"""The tree of `reference_search`: positions with what was found below them.

A is the number of actions; all values are from the view of the player to move.
"""

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

UNKNOWN = (-1.0, 1.0)  # bounds of an outcome


@dataclass(eq=False)
class Node:
    """A position, and the edge (reward, discount) that leads into it."""

    state: int
    value: float  # the model's; 0 at finished positions
    reward: float = 0.0
    discount: float = 1.0
    visits: int = 0
    value_sum: float = 0.0
    square_sum: float = 0.0  # of the same returns
    children: dict[int, "Node"] = field(default_factory=dict)  # in order of first visit
    num_legal: int = 0
    actions: list[int] = field(default_factory=list)  # legal and kept
    priors: list[float] = field(default_factory=list)  # [A]: 0 elsewhere
    logits: list[float] = field(default_factory=list)  # [A]: with the noise of the root
    bounds: tuple[float, float] = UNKNOWN  # of the exact value
    choice: tuple[int, float] = (-1, 0.0)  # the next action, and its gap

    @property
    def mean_value(self) -> float:
        return self.value_sum / max(self.visits, 1)

    @property
    def qvalue(self) -> float:
        """Mean return of the edge, from the view of the player who moved."""
        return self.reward + self.discount * self.mean_value

    @property
    def visit_counts(self) -> list[int]:  # [A]
        counts = {action: child.visits for action, child in self.children.items()}
        return [counts.get(action, 0) for action in range(len(self.priors))]

    @property
    def proven(self) -> bool:
        return self.bounds[0] == self.bounds[1]

    def edge_bounds(self, action: int) -> tuple[float, float]:
        """Bounds of the outcome of an action, from the view of the player to move."""
        child = self.children.get(action)
        if child and child.discount == 0 and child.reward in (-1, 0, 1):
            return child.reward, child.reward
        if child is None or child.reward != 0 or child.discount not in (-1, 1):
            return UNKNOWN
        lower, upper = child.bounds
        return (lower, upper) if child.discount == 1 else (-upper, -lower)

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children.values())

    def set_priors(
        self,
        priors: Sequence[float],
        legal: list[int],
        max_children: int | None,
        noise: Sequence[float] | None = None,
    ) -> list[float]:
        """Keeps the highest priors, of any noise; returns the gap below, if any.

        It is one of logits. What is not kept counts as illegal, but for a proof.
        """
        noise = noise or [0.0] * len(priors)
        ranking = sums(logs(priors), noise)
        ranked = sorted(legal, key=lambda action: -ranking[action])
        kept = set(ranked[:max_children]) | (set(self.children) & set(legal))
        total = 1.0 if len(kept) == len(legal) else sum(priors[a] for a in kept)
        self.num_legal, self.actions = len(legal), sorted(kept)
        self.priors = [p / total if a in kept else 0.0 for a, p in enumerate(priors)]
        self.logits = sums(logs(self.priors), noise)
        gaps = [ranking[a] - ranking[b] for a, b in itertools.pairwise(ranked)]
        return gaps[len(kept) - 1 : len(kept)]

    def add(self, value: float, solve: bool) -> float:
        """Counts a visit; returns its value: the exact one if the node is proven."""
        self.visits += 1
        self.value_sum += value
        self.square_sum += value**2
        if solve and self.children:
            edges = [self.edge_bounds(action) for action in self.children]
            if len(edges) < self.num_legal:
                edges.append(UNKNOWN)
            self.bounds = max(low for low, _ in edges), max(high for _, high in edges)
        if solve and self.proven:
            value = self.bounds[0]
            self.value_sum = value * self.visits
            self.square_sum = value**2 * self.visits
        return value


@dataclass(eq=False)
class Tree:
    """A root, with what concerns all of the tree, or the present search of it."""

    root: Node
    lowest: float = math.inf  # of all Q that any edge has had
    highest: float = -math.inf
    inherited: list[int] = field(default_factory=list)  # [A]: visits before the search
    budget: int = 0
    over: bool = False
    gaps: list[float] = field(default_factory=list)

    def advance(self, action: int, reset: bool = False) -> "Tree | None":
        """The tree of a child; None, for an empty one, where there is nothing."""
        child = self.root.children.get(action)
        if reset or child is None or child.discount == 0:
            return None
        return Tree(child, self.lowest, self.highest)


def softmax(
    logits: Sequence[float],
    actions: Collection[int] | None = None,
    temperature: float = 1.0,
) -> list[float]:
    """Over some of the actions; 0 elsewhere."""
    actions = range(len(logits)) if actions is None else actions
    highest = max((logits[action] for action in actions), default=0.0)
    weights = [0.0] * len(logits)
    for action in actions:
        weights[action] = math.exp((logits[action] - highest) / temperature)
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]


def logs(probs: Sequence[float]) -> list[float]:
    return [math.log(p) if p > 0 else -math.inf for p in probs]


def sums(left: Sequence[float], right: Sequence[float]) -> list[float]:
    return [x + y for x, y in zip(left, right, strict=True)]
