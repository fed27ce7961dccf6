"""Statistics of a search against hand-made games and a walk over the tree in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding

from jaxsearch import (
    NO_ACTION,
    Tree,
    action_statistics,
    gumbel_policy,
    lcb_action,
    principal_variation,
    puct_policy,
    qtransform_fixed_scale,
    return_stdevs,
    root_lcb_action,
    tree_sizes,
)
from tests.search.table_model import (
    make_tables,
    random_mask,
    random_tables,
    search_tree,
)
from tests.search.tree_walk import (
    most_visited_line,
    of_row,
    paths_of,
    returns_of,
    with_squares,
)

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 6, 5, 60
FINISHED, FAILED_AT_ROOT, FAILED_LATER = 1, 2, 3  # rows of the random games
SEARCHED = [0, 4, 5]
FATAL_STATE = 21  # its value is infinite
LENGTH = 8


@pytest.fixture(scope="module")
def game():
    """Random games: one row is finished, one fails at its root and one in the midst."""
    random = np.random.default_rng(0)
    tables = random_tables(
        random,
        BATCH_SIZE,
        NUM_ACTIONS,
        terminals=0.05,
        rewards=0.3,
        discounts=(-1.0, 1.0, 0.5),
    )
    illegal = random_mask(random, BATCH_SIZE, NUM_ACTIONS)
    illegal[FINISHED] = True
    illegal[FAILED_LATER] = False
    tables.values[FAILED_AT_ROOT, 0] = np.nan
    tables.values[FAILED_LATER, FATAL_STATE] = np.inf
    return tables, illegal


@pytest.fixture(scope="module", params=[puct_policy, gumbel_policy])
def tree(game, request):
    tables, illegal = game
    tree = search_tree(tables, NUM_SIMULATIONS, illegal, policy=request.param)
    failed = [row in (FAILED_AT_ROOT, FAILED_LATER) for row in range(BATCH_SIZE)]
    np.testing.assert_array_equal(tree.failed, failed)
    assert 0 < tree_sizes(tree).node_counts[FAILED_LATER] - 1 < NUM_SIMULATIONS
    return tree


def test_root_statistics_are_those_of_the_nodes_below_it(tree):
    statistics = action_statistics(tree)
    assert statistics.visit_counts.dtype == jnp.int32
    visits, qvalues = np.asarray(tree.visits), np.asarray(tree.qvalues)
    for row in range(BATCH_SIZE):
        counts, means = np.zeros(NUM_ACTIONS, int), np.zeros(NUM_ACTIONS)
        for node, path in paths_of(tree, row).items():
            if len(path) == 1:
                counts[path[0]] = visits[row, node]
                means[path[0]] = qvalues[row, node]
        np.testing.assert_array_equal(statistics.visit_counts[row], counts)
        np.testing.assert_array_equal(statistics.qvalues[row], means)
    np.testing.assert_array_equal(statistics.prior_probs, tree.root_prior_probs)


def test_visits_sum_to_the_simulations_that_were_made(tree, game):
    statistics = action_statistics(tree)
    totals = np.asarray(statistics.visit_counts).sum(axis=1)
    assert np.all(totals[SEARCHED] == NUM_SIMULATIONS)
    assert totals[FINISHED] == totals[FAILED_AT_ROOT] == 0
    assert 0 < totals[FAILED_LATER] < NUM_SIMULATIONS
    np.testing.assert_array_equal(totals, tree.visits[:, Tree.ROOT] - 1)
    illegal = game[1]
    for field in (statistics.visit_counts, statistics.exploration):
        assert np.all(np.asarray(field)[illegal] == 0)
    for leaf in jax.tree.leaves(statistics):
        assert np.all(np.isfinite(leaf))


# What PUCT looks at: one more simulation goes where Q + U is highest.
@pytest.mark.parametrize(
    "constants",
    [{}, {"pb_c_init": 0.6, "pb_c_base": 20.0}, {"c_puct": 2.5}],
    ids=["default", "schedule", "constant"],
)
def test_next_simulation_goes_where_value_and_exploration_are_highest(constants):
    tables = random_tables(np.random.default_rng(1), 64, 6, terminals=0.1)
    options = {"qtransform": qtransform_fixed_scale, **constants}
    before, after = (
        action_statistics(search_tree(tables, n, **options), **constants)
        for n in (12, 13)
    )
    expected = np.argmax(before.qvalues + before.exploration, axis=1)
    opened = after.visit_counts - before.visit_counts
    np.testing.assert_array_equal(np.argmax(opened, axis=1), expected)


def test_exploration_takes_a_constant_for_each_row(tree):
    constants = np.linspace(0.5, 3, BATCH_SIZE, dtype=np.float32)
    statistics = action_statistics(tree, c_puct=jnp.asarray(constants))
    visits = np.asarray(tree.visits)[:, :1]
    expected = (
        constants[:, None]
        * np.asarray(tree.root_prior_probs)
        * np.sqrt(visits)
        / (1 + np.asarray(statistics.visit_counts))
    )
    np.testing.assert_allclose(statistics.exploration, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"c_puct must be a number .* got -1"):
        action_statistics(tree, c_puct=-1)


@pytest.mark.parametrize("length", [1, LENGTH, NUM_SIMULATIONS + 5])
def test_principal_variation_follows_the_most_visited(tree, length):
    lines = principal_variation(tree, length)
    assert lines.shape == (BATCH_SIZE, length)
    assert lines.dtype == jnp.int32
    for row in range(BATCH_SIZE):
        expected = most_visited_line(tree, row)[:length]
        expected += [NO_ACTION] * (length - len(expected))
        np.testing.assert_array_equal(lines[row], expected)
    assert np.all(lines[FINISHED] == NO_ACTION)


# 0 --a1--> 1 --a0--> 2 --a1, end--> 3, and no other action is legal.
def test_principal_variation_of_a_single_line():
    lowest = np.finfo(np.float32).min
    tables = make_tables(
        [[3, 1], [2, 3], [3, 3], [3, 3]],
        discounts=[[0, -1], [-1, 0], [0, 0], [0, 0]],
        prior_logits=[[lowest, 0], [0, lowest], [lowest, 0], [0, 0]],
    )
    tree = search_tree(tables, 9, np.array([[True, False]]))
    np.testing.assert_array_equal(principal_variation(tree, 5), [[1, 0, 1, -1, -1]])
    sizes = tree_sizes(tree)
    np.testing.assert_array_equal(sizes.node_counts, [4])
    np.testing.assert_array_equal(sizes.max_depths, [3])
    np.testing.assert_array_equal(sizes.mean_depths, [1.5])


# Every action ends the game; three visits, one for each action.
@pytest.mark.parametrize(
    ("rewards", "prior_probs", "first"),
    [
        ([0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], 0),
        ([0.0, 0.0, 0.0], [0.3, 0.3, 0.4], 2),
        ([0.0, 0.1, 0.0], [0.3, 0.3, 0.4], 1),
    ],
    ids=["lowest action", "higher prior", "higher Q"],
)
def test_principal_variation_between_equal_visits(rewards, prior_probs, first):
    tables = make_tables(
        [[1] * 3] * 2, rewards=rewards, discounts=0, prior_logits=np.log(prior_probs)
    )
    tree = search_tree(tables, 3, c_puct=100.0)
    np.testing.assert_array_equal(action_statistics(tree).visit_counts, [[1, 1, 1]])
    np.testing.assert_array_equal(principal_variation(tree, 2), [[first, NO_ACTION]])


def test_sizes_are_those_of_a_walk(tree):
    sizes = tree_sizes(tree)
    assert sizes.node_counts.dtype == sizes.max_depths.dtype == jnp.int32
    for row in range(BATCH_SIZE):
        depths = [len(path) for path in paths_of(tree, row).values()]
        assert sizes.node_counts[row] == len(depths)
        assert sizes.max_depths[row] == max(depths)
        np.testing.assert_allclose(sizes.mean_depths[row], np.mean(depths), rtol=1e-6)


@pytest.mark.parametrize("num_simulations", [1, 2, 3, 4, 15, 16, 17])
def test_depth_of_a_line_is_the_number_of_simulations(num_simulations):
    tree = search_tree(make_tables([[0]]), num_simulations)
    sizes = tree_sizes(tree)
    np.testing.assert_array_equal(sizes.max_depths, [num_simulations])
    np.testing.assert_allclose(sizes.mean_depths, [num_simulations / 2])


def all_statistics(tree):
    return (
        action_statistics(tree),
        principal_variation(tree, LENGTH),
        tree_sizes(tree),
        return_stdevs(tree),
        root_lcb_action(tree),
    )


def test_rows_do_not_touch_each_other(tree):
    tree = with_squares(tree)
    together = all_statistics(tree)
    for row in range(BATCH_SIZE):
        alone = all_statistics(jax.tree.map(lambda x, row=row: x[row : row + 1], tree))
        for got, expected in zip(*map(jax.tree.leaves, (alone, together)), strict=True):
            np.testing.assert_array_equal(got[0], expected[row])


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_spread_over_devices_they_are_the_same(axis_type):
    tables = random_tables(np.random.default_rng(2), 8, NUM_ACTIONS, terminals=0.1)
    tree = with_squares(search_tree(tables, 30))
    expected = jax.device_get(jax.jit(all_statistics)(tree))
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(axis_type,))
    with jax.set_mesh(mesh):
        tree = jax.device_put(tree, NamedSharding(mesh, jax.P("batch")))
        result = jax.device_get(jax.jit(all_statistics)(tree))
    jax.tree.map(np.testing.assert_array_equal, result, expected)


def test_jit_traces_once_and_gives_the_same(tree):
    traces = []

    @jax.jit
    def traced(tree):
        traces.append(tree)
        return all_statistics(tree)

    tree = with_squares(tree)
    other = jax.tree.map(lambda x: x[::-1], tree)
    for given in (tree, other):
        for got, expected in zip(
            *map(jax.tree.leaves, (traced(given), all_statistics(given))), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    assert len(traces) == 1


@pytest.mark.parametrize("length", [0, -1, 2.0])
def test_length_of_no_line_is_refused(tree, length):
    with pytest.raises(ValueError, match=r"length must be a whole number of at least"):
        principal_variation(tree, length)


def test_deviations_are_those_of_the_returns(tree):
    stdevs = return_stdevs(with_squares(tree), prior_stdev=0.7)
    assert stdevs.shape == (BATCH_SIZE, NUM_ACTIONS)
    for row in range(BATCH_SIZE):
        children, rewards, discounts, qvalues, value_sums, got = of_row(
            row,
            tree.root_children,
            tree.rewards,
            tree.discounts,
            tree.qvalues,
            tree.value_sums,
            stdevs,
        )
        returns = returns_of(tree, row)
        # The walk agrees with the search.
        np.testing.assert_allclose([sum(r) for r in returns], value_sums, atol=1e-4)
        for action, child in enumerate(children):
            expected = 0.7
            if child != Tree.NO_CHILD:
                of_edge = rewards[child] + discounts[child] * np.array(returns[child])
                np.testing.assert_allclose(qvalues[child], of_edge.mean(), atol=1e-5)
                if discounts[child] == 0:
                    expected = 0.0
                elif len(of_edge) > 1:
                    expected = np.std(of_edge, ddof=1)
            np.testing.assert_allclose(got[action], expected, atol=2e-3)


def test_lower_bound_of_a_tree_is_that_of_its_arrays(tree):
    tree = with_squares(tree)
    options = {"z": 2.0, "min_visit_share": 0.3}
    actions = root_lcb_action(tree, prior_stdev=0.4, **options)
    statistics = action_statistics(tree)
    expected = lcb_action(
        statistics.visit_counts,
        statistics.qvalues,
        return_stdevs(tree, prior_stdev=0.4),
        **options,
    )
    np.testing.assert_array_equal(
        np.asarray(actions)[SEARCHED], np.asarray(expected)[SEARCHED]
    )
    assert actions[FINISHED] == NO_ACTION
    for row in (FAILED_AT_ROOT, FAILED_LATER):
        assert actions[row] == np.argmax(tree.root_prior_probs[row])


def test_tree_without_squares_names_the_option_to_search_with(tree):
    for function in (return_stdevs, root_lcb_action):
        with pytest.raises(ValueError, match=r"puct_policy\(..., keep_squares=True\)"):
            function(tree)
