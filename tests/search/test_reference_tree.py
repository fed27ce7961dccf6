"""The plain reference over several searches, full trees and proofs, by hand."""

import math

import numpy as np
import pytest

from tests.search.reference_search import EarlyStop, Gumbel, Puct, search
from tests.search.reference_tree import Node, Tree
from tests.search.table_model import make_tables, random_tables, reference_search

METHODS = [Puct(), Gumbel()]


def run(tables, num_simulations, **options):
    legal = np.zeros(tables.prior_logits.shape[2], bool)
    return reference_search(tables[0], num_simulations, legal, **options)


# With one action all visits are its own: as many as were made.
@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    ("budget", "early_stop", "made"),
    [
        (10, EarlyStop(4), 8),  # 4 > 6 is not, 8 > 2
        (8, EarlyStop(4), 8),  # 4 > 4 is not
        (7, EarlyStop(4), 4),
        (10, EarlyStop(), 10),
        (10, EarlyStop(4, most_visited=False), 10),
        (99, EarlyStop(4, most_visited=False, policy_change=1e-9), 8),
    ],
)
def test_early_stop(method, budget, early_stop, made):
    tables = make_tables([[0]], dtype=np.float64)
    result = run(tables, budget, early_stop=early_stop, method=method)
    assert result.num_simulations == made
    assert result.visit_counts == [made]


# From 1/2, 1/2 to 3/8, 5/8: a divergence of 0.03227, or 0.00807 a simulation.
@pytest.mark.parametrize(
    ("before", "change", "stops"),
    [
        ([2, 2], 0.0081, True),
        ([2, 2], 0.0080, False),
        ([2, 2], 0.0, False),
        ([], 0.0081, False),
    ],
)
def test_early_stop_of_a_settled_policy(before, change, stops):
    children = {action: Node(0, 0.0, visits=n) for action, n in enumerate([3, 5])}
    root = Node(0, 0.0, children=children)
    root.set_priors([0.5, 0.5], [0, 1], None)
    early_stop = EarlyStop(4, most_visited=False, policy_change=change)
    assert early_stop.stops(Tree(root), before, root.visit_counts, [0, 1], 9) == stops


# Visits of 1, 1; 3, 1; 5, 1: changes of 0.0719 and 0.0112 a simulation.
def test_early_stop_compares_with_the_check_before():
    tables = make_tables([[1] * 2] * 2, rewards=[1, -1], discounts=0)
    method = Puct(c_puct=1.0, transform="fixed_scale", first_play_urgency=5.0)
    early_stop = EarlyStop(2, most_visited=False, policy_change=0.02)
    result = run(tables, 20, method=method, early_stop=early_stop)
    assert result.visit_counts == [5, 1]


@pytest.mark.parametrize(
    "transform", ["parent_and_siblings", "fixed_scale", "tree_range"]
)
def test_search_in_two_parts_is_that_in_one(transform):
    tables = random_tables(np.random.default_rng(0), 20, 5, terminals=0.1)
    for row in range(20):
        options = {"method": Puct(transform=transform)}
        whole = run(tables[[row]], 40, **options)
        part = run(tables[[row]], 15, **options)
        both = run(tables[[row]], 25, tree=part.tree, **options)
        for name in ("visit_counts", "qvalues", "value", "action_weights"):
            assert getattr(both, name) == getattr(whole, name)
        assert both.num_simulations == 25


def test_subtree_keeps_its_statistics_and_gets_new_priors():
    tables = random_tables(np.random.default_rng(1), 1, 4)
    first = run(tables, 40)
    action = first.visit_counts.index(max(first.visit_counts))
    child = first.tree.root.children[action]
    visits, value_sum, counts = child.visits, child.value_sum, child.visit_counts
    assert visits == max(first.visit_counts) == 1 + sum(counts)

    tree = first.tree.advance(action)
    alone = run(tables, 0, tree=tree, root_state=child.state)
    assert alone.visit_counts == counts
    assert alone.value == value_sum / visits
    assert alone.action_weights == [n / sum(counts) for n in counts]

    tables.values[0, child.state] = math.nan  # the root keeps its own
    result = run(
        tables, 10, tree=tree, root_state=child.state, root_priors=[0, 0, 0, 1]
    )
    assert tree.root.visits == visits + 10
    assert sum(result.visit_counts) == sum(counts) + 10
    assert math.isfinite(result.value)
    assert tree.root.priors == [0, 0, 0, 1]


#   0 --a0--> 1 --> itself;  0 --a1--> the end
def test_nothing_is_left_of_what_is_finished_unvisited_or_reset():
    tables = make_tables([[1, 2], [1, 1], [2, 2]], discounts=[[1, 0], [1, 1], [0, 0]])
    tree = run(tables, 1).tree
    assert tree.advance(0).root is tree.root.children[0]
    assert tree.advance(0, reset=True) is None
    assert tree.advance(1) is None
    tree = run(tables, 2).tree
    assert tree.root.visit_counts == [1, 1]
    assert tree.advance(1) is None


def test_gumbel_counts_the_visits_of_its_own_search():
    tables = random_tables(np.random.default_rng(2), 1, 5)
    first = run(tables, 20, method=Gumbel([0, 0, 90, 0, 0]))
    method = Gumbel([99, 0, 0, 0, 88], max_num_considered_actions=2)
    second = run(tables, 2, method=method, tree=first.tree)
    pairs = zip(second.visit_counts, first.visit_counts, strict=True)
    assert [new - old for new, old in pairs] == [1, 0, 0, 0, 1]
    assert second.candidates == [0]


def test_tree_of_one_node_stores_nothing():
    tables = make_tables(
        [[1, 1], [1, 1]],
        rewards=[[0.5, 1], [0, 0]],
        discounts=0,
        values=[0.2, 0.0],
        prior_logits=np.log([0.75, 0.25]),
        dtype=np.float64,
    )
    result = run(tables, 3, capacity=1)
    assert (result.num_simulations, result.not_stored) == (3, 3)
    assert result.visit_counts == [0, 0]
    assert result.value == pytest.approx((0.2 + 3 * 0.5) / 4)
    assert result.action_weights == pytest.approx([0.75, 0.25])
    result = run(tables, 3, capacity=2)  # now a0 is all there is
    assert (result.visit_counts, result.not_stored) == ([3, 0], 0)


# All scores are exploration: every node takes its two actions in turn. The fourth
# simulation fills the tree. By then the first child has chosen to open its second
# action, which the fifth does; the seventh visits its first action again.
@pytest.mark.parametrize(
    ("num_simulations", "root", "first", "second", "not_stored"),
    [
        (4, [2, 2], (2, [1, 0]), (2, [1, 0]), 0),
        (5, [3, 2], (3, [1, 0]), (2, [1, 0]), 1),
        (6, [3, 3], (3, [1, 0]), (3, [2, 0]), 2),
        (7, [4, 3], (4, [2, 0]), (3, [2, 0]), 3),
    ],
)
def test_choice_to_open_is_kept(num_simulations, root, first, second, not_stored):
    method = Puct(c_puct=1.0, transform="fixed_scale")
    result = run(make_tables([[0, 0]]), num_simulations, method=method, capacity=5)
    children = result.tree.root.children
    assert result.visit_counts == root
    assert (children[0].visits, children[0].visit_counts) == first
    assert (children[1].visits, children[1].visit_counts) == second
    assert result.not_stored == not_stored
    assert result.tree.root.size() == 5
    assert result.tree.root.visits == 1 + num_simulations


# Where the tree has no action that is due, the best of those visited is searched:
# a0, a1, then by what is due  0: a0   0: a0   1: a1   1: a0   2: a1   2: a0
def test_gumbel_search_of_a_full_tree():
    tables = make_tables([[1] * 4] * 2, discounts=0)
    result = run(tables, 8, method=Gumbel([9, 5, 1, 0]), capacity=3)
    assert result.visit_counts == [5, 3, 0, 0]
    assert result.candidates == [0]


#   0 --a0--> 1, where both replies lose;  0 --a1--> 2, where a0 wins and a1 draws
def two_plies(reply=-1.0, reward=0.0):
    return make_tables(
        [[1, 2], [3, 3], [3, 3], [3, 3]],
        rewards=[[reward, 0], [-1, reply], [1, 0], [0, 0]],
        discounts=[[-1, -1], [0, 0], [0, 0], [0, 0]],
        prior_logits=np.log([[0.4, 0.6], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
        dtype=np.float64,
    )


# Simulations: a1; a0; a1 and its win, so that a1 is lost; a0 and each of its replies.
def test_solver_proves_a_win():
    before = run(two_plies(), 3, solve=True)
    assert before.tree.root.bounds == (-1, 1)
    assert before.visit_counts == [1, 2]
    assert before.qvalues == [0, -1]  # exact: the mean of 0 and 1 at once
    assert before.value == pytest.approx(-1 / 4)
    assert (before.action_weights, before.candidates) == ([1, 0], [0])

    result = run(two_plies(), 100, solve=True)
    assert result.num_simulations == 5
    assert result.tree.root.bounds == (1, 1)
    assert result.visit_counts == [3, 2]
    assert (result.qvalues, result.value) == ([1, -1], 1)
    assert (result.action_weights, result.candidates) == ([1, 0], [0])
    assert run(two_plies(), 100).tree.root.bounds == (-1, 1)
    again = run(two_plies(), 9, tree=result.tree, solve=True)
    assert (again.num_simulations, again.candidates) == (0, [0])


def test_lost_action_is_not_visited_whatever_its_prior():
    options = {"root_priors": [0.01, 0.99]}
    assert run(two_plies(), 5, solve=True, **options).visit_counts == [3, 2]
    assert run(two_plies(), 5, **options).visit_counts == [0, 5]


def test_solver_of_draws_and_losses():
    draw = run(two_plies(reply=0.0), 100, solve=True)
    assert (draw.tree.root.bounds, draw.value) == ((0, 0), 0)
    assert draw.candidates == [0]
    loss = run(two_plies(reply=1.0), 100, solve=True)
    assert (loss.tree.root.bounds, loss.value) == ((-1, -1), -1)
    assert loss.candidates == [0, 1]  # all are as bad
    assert loss.visit_counts == [3, 2]
    assert loss.action_weights == [0.6, 0.4]


# A draw of one half, a reward on the way, and an action that was cut.
@pytest.mark.parametrize(
    ("tables", "options", "bounds"),
    [
        (two_plies(reply=-0.5), {}, (-1, 1)),
        (two_plies(reward=0.5), {}, (-1, 1)),
        (two_plies(), {"max_children": 1, "root_priors": [0.6, 0.4]}, (-1, 1)),
    ],
)
def test_nothing_is_proven_by_what_is_not_exact(tables, options, bounds):
    result = run(tables, 50, solve=True, **options)
    assert result.num_simulations == 50
    assert result.tree.root.bounds == bounds
    assert result.candidates[0] == 0


# The win at 2 is its first reply, so that one action is enough for it.
def test_cut_actions_do_not_hide_a_win():
    options = {"max_children": 1, "root_priors": [0.4, 0.6]}
    result = run(two_plies(), 50, solve=True, **options)
    assert result.tree.root.children[1].bounds == (1, 1)
    assert result.qvalues == [0, -1]
    assert result.num_simulations == 50
    assert result.candidates == [1]  # there is no other


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_proofs_are_those_of_minimax(method):
    random = np.random.default_rng(3)
    rows, states, shape = 40, 8, (40, 8, 2)
    tables = random_tables(random, rows, 2, num_states=states, discounts=(-1.0, 1.0))
    later = np.arange(states)[:, None] + random.integers(1, 4, shape)
    tables.next_states[:] = np.minimum(later, states - 1)
    ends = (later >= states) | (random.random(shape) < 0.2)
    tables.discounts[ends] = 0
    wins_are_rare = random.choice([-1, 0, 1], shape, p=[0.8, 0.15, 0.05])
    tables.rewards[:] = np.where(ends, wins_are_rare, 0)
    proven = []
    for row in range(rows):
        rewards, discounts = tables.rewards[row], tables.discounts[row]
        outcomes, exact = np.zeros((states, 2)), np.zeros(states)
        for state in reversed(range(states)):
            below = exact[tables.next_states[row, state]]
            outcomes[state] = rewards[state] + discounts[state] * below
            exact[state] = max(outcomes[state])
        result = run(tables[[row]], 300, method=method, solve=True)
        nodes = [result.tree.root]
        while nodes:
            node = nodes.pop()
            nodes += node.children.values()
            if node.discount:
                assert node.bounds[0] <= exact[node.state] <= node.bounds[1]
                assert not node.proven or node.mean_value == exact[node.state]
        if result.tree.root.proven:
            assert all(outcomes[0, result.candidates] == exact[0])
            proven.append(result.value)
        else:
            assert result.num_simulations == 300
    assert len(proven) > rows / 2
    assert set(proven) == {-1, 0, 1}


def test_finished_edge_is_evaluated_once_and_a_finished_root_never():
    calls = []

    def step(state, action):
        calls.append((state, action))
        return 1, 1.0, 0.0, math.nan, [math.nan] * 2

    logits = [0.0, -1.0]
    assert search(step, 0.0, logits, 20, legal=[True, False]).qvalues == [1, 0]
    assert calls == [(0, 0)]
    for method in METHODS:
        result = search(step, 0.5, logits, 20, legal=[False] * 2, method=method)
        assert (result.value, result.num_simulations) == (0.5, 0)
        assert (result.action_weights, result.candidates) == ([0, 0], [])
    assert calls == [(0, 0)]
