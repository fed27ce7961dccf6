"""Searches with known answers, most of them worked out by hand."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxsearch import EarlyStop, gumbel_policy, puct_policy, qtransform_fixed_scale
from tests.search.table_model import (
    make_tables,
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
    search,
    search_tree,
)

END = 3  # the last state, in games whose other states are numbered from 0
LOWEST = np.finfo(np.float32).min  # the logit of an illegal action
ONLY_FIRST_OF_3 = np.array([[False, True, True]])
POLICIES = pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])


# One legal action a state, rewards from the view of each mover.
#
#   0 --(+0.5)--> 1 --(+0.25)--> 2 --(+1, end)--> 3
@pytest.mark.parametrize(
    ("num_simulations", "value", "qvalue"),
    [
        (1, 0.25, 0.5),
        (2, 0.25, 0.375),
        (3, 0.5, 2 / 3),
        (4, 0.65, 0.8125),
        (8, 0.91667, 1.03125),
    ],
)
def test_rewards_along_a_line_alternate_in_sign(num_simulations, value, qvalue):
    tables = line_of_moves(opponent_moves_next=-1)
    result = search(tables, num_simulations, ONLY_FIRST_OF_3)
    np.testing.assert_allclose(result["value"], [value], atol=1e-5)
    np.testing.assert_allclose(result["qvalues"], [[qvalue, 0, 0]], atol=1e-5)


def test_rewards_along_a_line_of_one_player_add_up():
    result = search(line_of_moves(opponent_moves_next=1), 3, ONLY_FIRST_OF_3)
    np.testing.assert_allclose(result["value"], [0.75])
    np.testing.assert_allclose(result["qvalues"], [[1.0, 0, 0]])


def line_of_moves(opponent_moves_next):
    discount = opponent_moves_next
    return make_tables(
        [[1] * 3, [2] * 3, [END] * 3, [END] * 3],
        rewards=[[0.5] * 3, [0.25] * 3, [1.0] * 3, [0.0] * 3],
        discounts=[[discount] * 3, [discount] * 3, [0] * 3, [0] * 3],
        prior_logits=[0, LOWEST, LOWEST],
    )


# 0 --a0 (+1, end)--> 1, whose value must not matter
# 0 --a1-----------> 2 (value 0.1), which goes on to itself
def test_value_of_a_finished_position_is_not_used():
    wrong_values = [7.0, -7.0, 1e6, np.nan]
    tables = [
        make_tables(
            [[1, 2], [1, 1], [2, 2], [END, END]],
            rewards=[[1, 0], [0, 0], [0, 0], [0, 0]],
            discounts=[[0, -1], [0, 0], [-1, -1], [0, 0]],
            values=[0, value, 0.1, 0],
        )
        for value in wrong_values
    ]
    for result in [search(table, 16) for table in tables]:
        np.testing.assert_array_equal(result["visit_counts"], [[14, 2]])
        assert result["qvalues"][0, 0] == 1.0
        np.testing.assert_allclose(result["value"], [0.82353], atol=1e-5)


# 3 * 0.9 / 3 is not 0.9 in float32.
def test_end_visited_again_keeps_its_reward_to_the_last_bit():
    tables = make_tables([[END] * 3] * 4, rewards=0.9, discounts=0)
    result = search(tables, 3, ONLY_FIRST_OF_3)
    np.testing.assert_array_equal(result["qvalues"], np.float32([[0.9, 0, 0]]))


# One action from 0 to 1. There action 0 is illegal and leads to NaN; action 1 ends.
def test_revisited_end_is_not_evaluated_by_another_action():
    tables = make_tables(
        [[1, 1], [2, END], [2, 2], [END, END]],
        rewards=[[0, 0], [0, 1], [0, 0], [0, 0]],
        discounts=[[-1, -1], [-1, 0], [-1, -1], [0, 0]],
        values=[0, 0, np.nan, 0],
        prior_logits=[[0, 0], [LOWEST, 0], [0, 0], [0, 0]],
    )
    result = search(tables, 16, np.array([[False, True]]))
    np.testing.assert_array_equal(result["visit_counts"], [[16, 0]])
    np.testing.assert_allclose(result["qvalues"], [[-15 / 16, 0]])


# Nearly all of the prior is on the illegal action.
@POLICIES
def test_prior_on_an_illegal_action_goes_to_the_legal_ones(policy):
    tables = make_tables([[END] * 3] * 4, discounts=0, prior_logits=[1000, 0, 0])
    result = search(tables, 16, np.array([[True, False, False]]), policy=policy)
    np.testing.assert_array_equal(result["visit_counts"], [[0, 8, 8]])
    np.testing.assert_array_equal(result["action_weights"], [[0, 0.5, 0.5]])
    assert result["action"][0] in (1, 2)


@POLICIES
def test_only_legal_action_is_played_whatever_its_prior(policy):
    tables = make_tables([[0] * 5], prior_logits=[1e9, 1e9, 1e9, 1e9, -1e9])
    illegal = np.array([[True, True, True, True, False]])
    result = search(tables, 8, illegal, policy=policy)
    np.testing.assert_array_equal(result["visit_counts"], [[0, 0, 0, 0, 8]])
    np.testing.assert_array_equal(result["action_weights"], [[0, 0, 0, 0, 1]])
    assert result["action"] == [4]


# Every legal move loses. On a fixed scale an unvisited illegal action, at 0, looks
# better than all of them; by parent and siblings it looks like the worst of them.
@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (puct_policy, {"temperature": 1}),
        (puct_policy, {"temperature": 1, "qtransform": qtransform_fixed_scale}),
        (gumbel_policy, {}),
    ],
    ids=["by_parent_and_siblings", "fixed_scale", "gumbel"],
)
def test_illegal_actions_are_never_visited_when_all_moves_lose(policy, options):
    random = np.random.default_rng(5)
    tables = random_tables(random, 1000, 7, num_states=2)
    tables.rewards[:] = -1
    tables.discounts[:] = 0
    illegal = random_mask(random, 1000, 7)
    result = search(tables, 32, illegal, policy=policy, **options)
    assert np.all(result["visit_counts"][illegal] == 0)
    assert np.all(result["action_weights"][illegal] == 0)
    assert np.all(result["visit_counts"].sum(axis=1) == 32)
    assert not illegal[np.arange(1000), result["action"]].any()


# A bandit, rewards 0, 1, -1.
@pytest.mark.parametrize(
    ("num_simulations", "visit_counts"),
    [
        (1, [1, 0, 0]),
        (2, [1, 1, 0]),
        (4, [1, 3, 0]),
        (8, [1, 7, 0]),
        (16, [2, 14, 0]),
        (64, [9, 54, 1]),
    ],
)
def test_bandit_visits_are_those_worked_out(num_simulations, visit_counts):
    tables = make_tables(
        [[END] * 3] * 4,
        rewards=[0, 1, -1],
        discounts=0,
        prior_logits=np.log([0.5, 0.3, 0.2]),
    )
    search_once = jax.jit(puct_policy, static_argnums=(3, 4))
    tree = search_once(
        tables,
        jax.random.key(0),
        root_of(tables),
        recurrent_fn,
        num_simulations,
        dirichlet_fraction=0,
    ).search_tree
    np.testing.assert_array_equal(tree.summary().visit_counts, [visit_counts])
    np.testing.assert_array_equal(tree.visits[:, tree.ROOT], [num_simulations + 1])


# Gumbel's weights are the policy improved by what was seen, here nothing.
@pytest.mark.parametrize(
    ("policy", "action_weights"),
    [(puct_policy, [0, 0, 1]), (gumbel_policy, [0.2, 0.1, 0.7])],
)
def test_one_simulation_takes_the_highest_prior(policy, action_weights):
    tables = make_tables(
        [[END] * 3] * 4, discounts=0, prior_logits=np.log([0.2, 0.1, 0.7])
    )
    result = search(tables, 1, policy=policy)
    np.testing.assert_array_equal(result["visit_counts"], [[0, 0, 1]])
    np.testing.assert_allclose(result["action_weights"], [action_weights], rtol=1e-6)
    assert result["action"] == [2]


@POLICIES
def test_zero_simulations_are_refused(policy):
    tables = make_tables([[0, 0]])
    with pytest.raises(ValueError, match=r"num_simulations .* at least 1, got 0"):
        policy(tables, jax.random.key(0), root_of(tables), recurrent_fn, 0)


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (puct_policy, {}),
        (gumbel_policy, {}),
        (puct_policy, {"early_stop": EarlyStop(interval=4)}),
    ],
    ids=["puct", "gumbel", "early_stop"],
)
def test_rows_of_a_batch_do_not_touch_each_other(policy, options):
    random = np.random.default_rng(10)
    tables = random_tables(random, 8, 5, terminals=0.1, rewards=0.3, illegal=0.2)
    illegal = random_mask(random, 8, 5)
    searched = partial(search, policy=policy, **options)
    together = searched(tables, 24, illegal)
    reversed_rows = searched(tables[::-1], 24, illegal[::-1])
    alone = [searched(tables[[row]], 24, illegal[[row]]) for row in range(8)]

    tables.values[3] *= 1000
    tables.rewards[3] *= 1000
    beside_large_values = searched(tables, 24, illegal)
    others = np.arange(8) != 3
    for name, tolerance in {"visit_counts": 0, "action": 0, "qvalues": 1e-6}.items():
        expected = together[name]
        for got, rows in (
            (reversed_rows[name][::-1], slice(None)),
            (np.concatenate([row[name] for row in alone]), slice(None)),
            (beside_large_values[name], others),
        ):
            np.testing.assert_allclose(
                got[rows], expected[rows], rtol=0, atol=tolerance, err_msg=name
            )
    assert np.abs(beside_large_values["qvalues"][3]).max() > 100


# Of equal actions the lowest comes first at the root, the oldest child below it, here
# below the only legal action.
@pytest.mark.parametrize(
    ("num_simulations", "expected"),
    [(4, [1, 1, 1, 1]), (40, [10, 10, 10, 10]), (6, [2, 2, 1, 1])],
)
def test_flat_game_is_searched_evenly(num_simulations, expected):
    tables = make_tables([[1] * 4, [1] * 4], discounts=0)
    visit_counts = search(tables, num_simulations)["visit_counts"]
    np.testing.assert_array_equal(visit_counts, [expected])

    tables = make_tables([[1] * 4] * 3, discounts=[[-1] * 4, [0] * 4, [0] * 4])
    tree = search_tree(tables, num_simulations + 1, np.array([[False] + [True] * 3]))
    nodes = np.flatnonzero(tree.parents[0] == 1)
    np.testing.assert_array_equal(tree.actions[0][nodes], np.arange(4))
    np.testing.assert_array_equal(tree.visits[0][nodes], expected)


# What the documentation says of ties, and the same key gives the same result.
def test_first_of_equal_actions_is_searched_first():
    tables = make_tables([[1] * 4, [1] * 4], discounts=0)
    for seed in range(20):
        np.testing.assert_array_equal(
            search(tables, 1, seed=seed)["visit_counts"], [[1, 0, 0, 0]]
        )
    moves = [search(tables, 4, seed=seed)["action"][0] for seed in range(40)]
    assert set(moves) == {0, 1, 2, 3}  # the key decides between equal visits
    assert moves == [search(tables, 4, seed=seed)["action"][0] for seed in range(40)]
