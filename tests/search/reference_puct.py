"""PUCT in plain Python floats, one simulation after the other: a slow second opinion.

It can be read as the specification of `jaxsearch.puct_policy`. Nothing is shared with
it, not even JAX.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

EPSILON = 1e-8  # mctx's smallest range that Q is scaled by


@dataclass
class Node:
    """A position, and the edge (reward, discount, prior) that leads into it."""

    state: int
    value: float  # the model's, from the view of the player to move
    priors: list[float]  # [A]: 0 is illegal
    prior: float = 1.0
    reward: float = 0.0
    discount: float = 1.0
    visits: int = 0
    value_sum: float = 0.0
    children: dict[int, "Node"] = field(default_factory=dict)  # in order of first visit

    @property
    def mean_value(self) -> float:
        return self.value_sum / max(self.visits, 1)

    @property
    def qvalue(self) -> float:
        """Mean return of the edge, from the view of the player who moved."""
        if self.discount == 0:
            return self.reward
        return self.reward + self.discount * self.mean_value


@dataclass
class Result:
    visit_counts: list[int]  # [A]
    qvalues: list[float]  # [A]: 0 where unvisited
    value: float  # mean value of the root
    gaps: list[float]  # of every choice among several actions, in order: see `choose`


def search(
    step: Callable[[int, int], tuple[int, float, float, float, list[float]]],
    root_value: float,
    root_logits: list[float],
    num_simulations: int,
    *,
    legal: list[bool],
    max_depth: int | None = None,
    pb_c_init: float = 1.25,
    pb_c_base: float = 19652.0,
    c_puct: float | None = None,
    first_play_urgency: float = 0.0,
    count_root_evaluation: bool = True,
) -> Result:
    """Searches from state 0.

    Args:
      step: `(state, action) -> (next state, reward, discount, value, prior logits)`.
      legal: the mask of the root; below it a prior of 0 is illegal.
      c_puct: a constant in place of mctx's log schedule; Q then stays on its own scale,
        `first_play_urgency` standing for the unvisited.
    """
    root = Node(0, root_value, softmax(root_logits, legal))
    if count_root_evaluation:
        root.visits, root.value_sum = 1, root_value
    gaps = []

    def choose(node: Node) -> int:
        """The action of the highest score; appends how clear the choice was.

        The gap is the difference to the second-best score, times the range that Q was
        scaled by where that is below 1: an error of e in a value is one of e / range in
        the score.
        """
        if c_puct is None:
            c = pb_c_init + math.log((node.visits + pb_c_base + 1) / pb_c_base)
        else:
            c = c_puct
        qvalues = {action: child.qvalue for action, child in node.children.items()}
        lowest = min([node.mean_value, *qvalues.values()])
        scale = max([node.mean_value, *qvalues.values()]) - lowest

        def score(action: int) -> float:
            visits = node.children[action].visits if action in qvalues else 0
            exploration = c * math.sqrt(node.visits) * node.priors[action]
            if c_puct is not None:
                value_score = qvalues.get(action, first_play_urgency)
            elif action in qvalues:
                value_score = (qvalues[action] - lowest) / max(scale, EPSILON)
            else:
                value_score = 0.0
            return value_score + exploration / (1 + visits)

        if node is root:  # where the mask alone decides
            legal_actions = [a for a, is_legal in enumerate(legal) if is_legal]
        else:
            legal_actions = [a for a, prior in enumerate(node.priors) if prior > 0]
        scores = {action: score(action) for action in legal_actions}
        if len(scores) > 1:
            second, best = sorted(scores.values())[-2:]
            known = scale if c_puct is None and qvalues else 1.0
            gaps.append((best - second) * min(known, 1.0))
        # Of equal scores the highest prior of those unvisited; then the lowest action
        # at the root, and the child visited first below it.
        rest = [action for action in legal_actions if action not in qvalues]
        candidates = [*qvalues, *sorted(rest, key=lambda a: -node.priors[a])[:1]]
        if node is root:
            candidates.sort()
        return max(candidates, key=lambda action: scores[action])

    for _ in range(num_simulations):
        path = [root]
        while True:
            node = path[-1]
            action = choose(node)
            child = node.children.get(action)
            new = child is None
            if child is None:
                state, reward, discount, value, logits = step(node.state, action)
                child = Node(
                    state,
                    0.0 if discount == 0 else value,
                    [] if discount == 0 else softmax(logits, [True] * len(logits)),
                    node.priors[action],
                    reward,
                    discount,
                )
                node.children[action] = child
            path.append(child)
            if new or child.discount == 0 or len(path) - 1 == max_depth:
                break
        leaf_value = path[-1].value
        for node in reversed(path):
            node.visits += 1
            node.value_sum += leaf_value
            leaf_value = node.reward + node.discount * leaf_value

    actions = range(len(root_logits))
    children = [root.children.get(action) for action in actions]
    return Result(
        visit_counts=[child.visits if child else 0 for child in children],
        qvalues=[child.qvalue if child else 0.0 for child in children],
        value=root.mean_value,
        gaps=gaps,
    )


def softmax(logits: list[float], legal: list[bool]) -> list[float]:
    highest = max(x for x, is_legal in zip(logits, legal, strict=True) if is_legal)
    weights = [
        math.exp(x - highest) if is_legal else 0.0
        for x, is_legal in zip(logits, legal, strict=True)
    ]
    total = sum(weights)
    return [weight / total for weight in weights]
