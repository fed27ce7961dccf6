"""PUCT and Gumbel MuZero in plain Python floats, one simulation after the other.

A slow second implementation with every option, to be read as the specification of the
searches of jaxsearch. Nothing is shared with them, not even JAX. A is the number of
actions; all values are from the view of the player to move.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.search.reference_tree import Node, Tree, logs, softmax, sums

EPSILON = 1e-8  # mctx's smallest range that Q is scaled by
LOWEST_SCORE = -1e9  # mctx's, of an action that is due

Step = Callable[[int, int], tuple[int, float, float, float, list[float]]]
Scores = tuple[dict[int, float], float]  # by action, and the unit of values in them
Actions = list[int]
Move = tuple[list[float], list[int]]  # action weights [A], and what may be played


@dataclass(frozen=True)
class VarianceScaling:
    """KataGo's: c grows with the standard deviation of a node's returns."""

    prior_stdev: float = 0.4
    prior_weight: float = 2.0
    scale: float = 0.85

    def factor(self, node: Node) -> float:
        stdev, weight, n = self.prior_stdev, self.prior_weight, node.visits
        if n > 1:
            squared_mean = node.mean_value**2
            squares = (squared_mean + stdev**2) * weight + node.square_sum
            stdev = math.sqrt(max(0.0, squares / (weight + n - 1) - squared_mean))
        return 1 + self.scale * (stdev / self.prior_stdev - 1)


@dataclass(frozen=True)
class ParentValue:
    """First-play urgency of V(n) - reduction * sqrt(sum of the visited priors)."""

    reduction: float = 0.0


@dataclass(frozen=True)
class Puct:
    """Options of PUCT; mctx's by default."""

    pb_c_init: float = 1.25
    pb_c_base: float = 19652.0
    c_puct: float | None = None  # a constant in place of the log schedule
    variance_scaling: VarianceScaling | None = None
    transform: str = "parent_and_siblings"  # or "fixed_scale" or "tree_range"
    first_play_urgency: float | ParentValue | None = None  # None: 0 once transformed
    root_first_play_urgency: float | ParentValue | None = None  # None: as below it
    root_prior_temperature: float = 1.0
    forced_playouts: float = 0.0
    count_root_evaluation: bool = True
    noise = None  # it is in the priors

    def rule(self, tree: Tree, node: Node) -> tuple[Callable[[int, int], float], float]:
        """The score of an action for a number of visits, and the unit of values."""
        c, base = self.c_puct, self.pb_c_base
        if c is None:
            c = self.pb_c_init + math.log((node.visits + base + 1) / base)
        if self.variance_scaling:
            c *= self.variance_scaling.factor(node)
        lowest, scale, bounds = 0.0, 1.0, (-math.inf, math.inf)
        if self.transform == "parent_and_siblings":
            bounds = 0.0, 1.0
            values = [node.mean_value, *(x.qvalue for x in node.children.values())]
            lowest, scale = min(values), max(max(values) - min(values), EPSILON)
        if self.transform == "tree_range" and tree.highest > tree.lowest:
            lowest, scale, bounds = tree.lowest, tree.highest - tree.lowest, (0.0, 1.0)
        urgency = self.first_play_urgency
        if node is tree.root and self.root_first_play_urgency is not None:
            urgency = self.root_first_play_urgency
        if isinstance(urgency, ParentValue):
            visited = sum(node.priors[action] for action in node.children)
            urgency = node.mean_value - urgency.reduction * math.sqrt(visited)

        def score(action: int, visits: int) -> float:
            child = node.children.get(action)
            value = child.qvalue if child else urgency
            value_score = 0.0
            if value is not None:
                value_score = min(max((value - lowest) / scale, bounds[0]), bounds[1])
            exploration = c * math.sqrt(node.visits) * node.priors[action]
            return value_score + exploration / (1 + visits)

        return score, min(scale, 1.0) if node.children else 1.0

    def forced(self, root: Node, action: int) -> float:
        total = sum(root.visit_counts)
        return math.sqrt(self.forced_playouts * root.priors[action] * total)

    def scores(self, tree: Tree, node: Node, actions: Actions, live: Actions) -> Scores:
        del live  # PUCT scales by the Q of lost moves, too
        (score, unit), visits = self.rule(tree, node), node.visit_counts
        scores = {action: score(action, visits[action]) for action in actions}
        visited = [action for action in actions if visits[action]]
        for action in visited if node is tree.root and self.forced_playouts else ():
            forced = self.forced(node, action)
            tree.gaps.append(abs(forced - visits[action]))
            if visits[action] < forced:
                scores[action] = math.inf
        return scores, unit

    def target(self, tree: Tree) -> list[int]:
        """The visits [A] of the root's edges, without those that were only forced."""
        (score, unit), counts = self.rule(tree, tree.root), tree.root.visit_counts
        visited = [action for action in tree.root.actions if counts[action]]
        best = max(visited, key=lambda action: counts[action], default=-1)
        for action in visited if self.forced_playouts else ():
            if action == best:
                continue
            forced = self.forced(tree.root, action)
            tree.gaps.append(abs(forced - max(1, round(forced))))
            n = max(0, counts[action] - math.floor(forced))
            while n < counts[action]:
                clear = score(best, counts[best]) - score(action, n)
                tree.gaps.append(abs(clear) * unit)
                if clear > 0:
                    break
                n += 1
            counts[action] = n if n > 1 else 0
        return counts

    def move(self, tree: Tree, playable: list[int]) -> Move:
        """By the target, else the priors; the move is drawn by the weights."""
        target, priors = self.target(tree), tree.root.priors
        weights = target if any(target[action] for action in playable) else priors
        total = sum(weights[action] for action in playable)
        played = [action for action in playable if weights[action] > 0]
        return [
            w / total if a in played else 0.0 for a, w in enumerate(weights)
        ], played


@dataclass(frozen=True)
class Gumbel:
    """Options of Gumbel MuZero; mctx's by default."""

    noise: Sequence[float] | None = None  # [A]: scaled; None is 0
    max_num_considered_actions: int = 16
    value_scale: float = 0.1
    maxvisit_init: float = 50.0
    rescale_values: bool = True
    use_mixed_value: bool = True
    root_prior_temperature, count_root_evaluation = 1.0, True

    def completed_qvalues(
        self, node: Node, live: list[int]
    ) -> tuple[list[float], float]:
        """Scaled Q [A], with a mixed value where unvisited, and the unit of values.

        Moves that are not live count as unvisited.
        """
        value, visits = node.value, of_actions(node.visit_counts, live)
        qvalues = {a: child.qvalue for a, child in node.children.items() if a in live}
        if self.use_mixed_value and qvalues:
            weights = {a: max(node.priors[a], sys.float_info.min) for a in qvalues}
            total = sum(weights.values())
            mean = sum(weights[action] / total * q for action, q in qvalues.items())
            value = (value + sum(visits) * mean) / (sum(visits) + 1)
        completed = [qvalues.get(action, value) for action in range(len(visits))]
        lowest, scale = 0.0, 1.0
        if self.rescale_values:
            lowest = min(completed)
            scale = max(max(completed) - lowest, EPSILON)
        factor = (self.maxvisit_init + max(visits)) * self.value_scale
        unit = min(scale / factor, 1.0) if qvalues else 1.0
        return [factor * (q - lowest) / scale for q in completed], unit

    def scores(self, tree: Tree, node: Node, actions: Actions, live: Actions) -> Scores:
        """Only of those that are due, at the root."""
        completed, unit = self.completed_qvalues(node, live)
        scores, visits = sums(node.logits, completed), node.visit_counts
        if node is not tree.root:
            visits = of_actions(visits, live)
            improved, total = softmax(scores, live), sum(visits)
            shares = {a: improved[a] - visits[a] / (1 + total) for a in actions}
            return shares, unit
        visits = [n - old for n, old in zip(visits, tree.inherited, strict=True)]
        considered = min(self.max_num_considered_actions, len(node.actions))
        drawn = sorted(node.actions, key=lambda action: -node.logits[action])
        actions = [a for a in actions if a in drawn[:considered]] or actions
        sequence = considered_visits(considered, tree.budget)
        most = max((visits[action] for action in actions), default=0)
        due = most if tree.over else sequence[sum(visits)]
        actions = [action for action in actions if visits[action] == due] or actions
        highest = max(logs(node.priors))
        return {a: max(LOWEST_SCORE, scores[a] - highest) for a in actions}, unit

    def move(self, tree: Tree, playable: list[int]) -> Move:
        """The best of the most visited actions is played."""
        completed, _ = self.completed_qvalues(tree.root, playable)
        weights = softmax(sums(logs(tree.root.priors), completed), playable)
        scores, unit = self.scores(tree, tree.root, playable, playable)
        tree.gaps.append(gap_of(scores, unit))
        return weights, sorted(scores, key=lambda action: -scores[action])[:1]


@dataclass(frozen=True)
class EarlyStop:
    """When a search is over before its budget; looked at once an interval."""

    interval: int = 16
    most_visited: bool = True
    policy_change: float = 0.0

    def stops(
        self, tree: Tree, before: list[int], visits: list[int], live: list[int], left
    ) -> bool:
        """By the visits [A] of the root's edges at the check before, and now."""
        second, first = sorted([0, 0, *(visits[action] for action in live)])[-2:]
        if self.most_visited and first - second > left:
            return True
        if not self.policy_change or not sum(before):
            return False
        change = 0.0
        for count_before, count in zip(before, visits, strict=True):
            if count_before:
                old, new = count_before / sum(before), count / sum(visits)
                change += old * math.log(old / new)
        tree.gaps.append(abs(change - self.policy_change * self.interval))
        return change / self.interval < self.policy_change


@dataclass
class Result:
    visit_counts: list[int]  # [A]
    qvalues: list[float]  # [A]: 0 where unvisited
    value: float  # mean value of the root
    action_weights: list[float]  # [A]
    candidates: list[int]  # actions that may be played
    num_simulations: int  # that were made
    not_stored: int  # of them, those that found the tree full
    gaps: list[float]  # of every choice, in order: see `gap_of`
    tree: Tree


def search(
    step: Step,
    root_value: float,
    root_logits: list[float],
    num_simulations: int,
    *,
    legal: list[bool],
    method: Puct | Gumbel = Puct(),
    root_state: int = 0,
    root_priors: list[float] | None = None,
    max_depth: int | None = None,
    max_children: int | None = None,
    capacity: float = math.inf,
    early_stop: EarlyStop | None = None,
    solve: bool = False,
    tree: Tree | None = None,
) -> Result:
    """Searches a position for a budget of simulations.

    Args:
      step: `(state, action) -> (next state, reward, discount, value, prior logits)`.
      legal: the mask of the root; below it a prior of 0 is illegal.
      root_priors: final ones, noise included, in place of those by the logits.
      capacity: nodes that the tree may have, the root and finished ones included.
      tree: one to go on with, in place; its root keeps its value and statistics.
    """
    if tree is None:
        tree = Tree(Node(root_state, root_value))
        if method.count_root_evaluation:
            tree.root.add(root_value, solve)
    root, possible = tree.root, [a for a, is_legal in enumerate(legal) if is_legal]
    temperature = method.root_prior_temperature
    priors = root_priors or softmax(root_logits, possible, temperature)
    kept = max_children
    if isinstance(method, Gumbel):  # the root considers no more actions than that
        kept = None
        most = min(method.max_num_considered_actions, max_children or len(priors))
        method = replace(method, max_num_considered_actions=most)
    gaps = tree.gaps = root.set_priors(priors, possible, kept, method.noise)
    tree.inherited, tree.budget, tree.over = root.visit_counts, num_simulations, False
    of_tree_range = isinstance(method, Puct) and method.transform == "tree_range"
    size, not_stored, done, before = root.size(), 0, 0, []

    def choose(node: Node) -> tuple[int, float]:
        """The action of the highest score, and its gap."""
        actions = node.actions
        if size >= capacity:  # what was visited, unless that is nothing
            actions = [a for a in actions if a in node.children] or actions
        live = node.actions
        if solve:  # what is not lost, unless that is nothing
            live = [a for a in live if node.edge_bounds(a)[1] > -1] or live
        scores, unit = method.scores(tree, node, actions, live)
        scores = {a: s for a, s in scores.items() if a in live} or scores
        # Of equal scores the highest prior, and so the child visited first; at a root
        # with children the lowest action.
        order = sorted(scores, key=lambda action: -node.priors[action])
        if node is root and node.children:
            order.sort()
        return max(order, key=lambda action: scores[action]), gap_of(scores, unit)

    def evaluate(state: int, action: int) -> Node:
        state, reward, discount, value, logits = step(state, action)
        if discount == 0:
            return Node(state, 0.0, reward, discount)
        node, priors = Node(state, value, reward, discount), softmax(logits)
        possible = [action for action, prior in enumerate(priors) if prior > 0]
        gaps.extend(node.set_priors(priors, possible, max_children))
        return node

    while done < num_simulations and root.actions and not (solve and root.proven):
        root.choice = choose(root)
        path, leaf = [root], None
        while leaf is None:
            node = path[-1]
            if of_tree_range:  # which any simulation may have changed
                node.choice = choose(node)
            action, gap = node.choice
            gaps.append(gap)
            child = node.children.get(action)
            if child is None:
                leaf = evaluate(node.state, action)
                if size >= capacity:
                    break
                child = node.children[action] = leaf
                size += 1
            path.append(child)
            ends = child.discount == 0 or (solve and child.proven)
            if ends or len(path) - 1 == max_depth:
                leaf = child
        value = leaf.value
        if leaf is not path[-1]:
            not_stored += 1
            value = leaf.reward + leaf.discount * value
        for node in reversed(path):
            value = node.reward + node.discount * node.add(value, solve)
            if node is not root:
                tree.lowest = min(tree.lowest, node.qvalue)
                tree.highest = max(tree.highest, node.qvalue)
        for node in path[1:]:  # which keep the choice until the next one that passes
            node.choice = choose(node) if node.actions else node.choice
        done += 1
        if early_stop and done % early_stop.interval == 0:
            visits, left = root.visit_counts, num_simulations - done
            if isinstance(method, Gumbel):  # whose move is by those of this search
                visits = [n - o for n, o in zip(visits, tree.inherited, strict=True)]
            live = playable(root) if solve else root.actions
            if early_stop.stops(tree, before, visits, live, left):
                break
            before = visits

    tree.over = True
    weights, candidates = method.move(tree, playable(root) if solve else root.actions)
    children = [root.children.get(action) for action in range(len(legal))]
    qvalues = [child.qvalue if child else 0.0 for child in children]
    results = root.visit_counts, qvalues, root.mean_value, weights, candidates
    return Result(*results, done, not_stored, gaps, tree)


def playable(root: Node) -> list[int]:
    """The moves of the proven value, or those not lost; all if there are none."""
    if root.proven:
        good = [a for a in root.actions if root.edge_bounds(a)[0] == root.bounds[0]]
    else:
        good = [a for a in root.actions if root.edge_bounds(a)[1] > -1]
    return good or root.actions


def of_actions(counts: list[int], actions: list[int]) -> list[int]:
    """The counts [A] of some actions, 0 elsewhere."""
    return [n if action in actions else 0 for action, n in enumerate(counts)]


def gap_of(scores: dict[int, float], unit: float) -> float:
    """How clear a choice is: infinite where there is one action, or one is forced.

    It is the difference to the second-best score, times the unit of values where that
    is below 1: an error of e in a value is one of e / unit in the score.
    """
    if len(scores) < 2 or max(scores.values()) == math.inf:
        return math.inf
    second, best = sorted(scores.values())[-2:]
    return (best - second) * unit


def considered_visits(num_considered: int, num_simulations: int) -> list[int]:
    """Sequential halving: the visits of the actions that are due, by simulation."""
    if num_considered <= 1:
        return list(range(num_simulations))
    phases, sequence, visits = math.ceil(math.log2(num_considered)), [], 0
    while len(sequence) < num_simulations:
        for _ in range(max(1, num_simulations // (phases * num_considered))):
            sequence += [visits] * num_considered
            visits += 1
        num_considered = max(2, num_considered // 2)
    return sequence[:num_simulations]
