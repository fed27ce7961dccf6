"""Statistics of a search against hand-made games and a walk over the tree in NumPy."""

import dataclasses
from functools import partial

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
    recurrent_fn,
    root_of,
)

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 6, 5, 60
FINISHED, FAILED_AT_ROOT, FAILED_LATER = 1, 2, 3  # rows of the random games
SEARCHED = [0, 4, 5]
FATAL_STATE = 21  # its value is infinite
LENGTH = 8


@partial(jax.jit, static_argnames=("num_simulations", "policy", "options"))
def _tree(tables, root, illegal, num_simulations, policy, options):
    output = policy(
        tables,
        jax.random.key(0),
        root,
        recurrent_fn,
        num_simulations,
        illegal,
        **dict(options),
    )
    return output.search_tree


def tree_of(
    tables, num_simulations, illegal=None, root=None, *, policy=puct_policy, **options
):
    """The tree of a search, of PUCT without noise by default."""
    if policy is puct_policy:
        options = {"dirichlet_fraction": 0, **options}
    if root is None:
        root = root_of(tables)
    options = tuple(options.items())
    return _tree(tables, root, illegal, num_simulations, policy, options)


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
    tree = tree_of(tables, NUM_SIMULATIONS, illegal, policy=request.param)
    failed = [row in (FAILED_AT_ROOT, FAILED_LATER) for row in range(BATCH_SIZE)]
    np.testing.assert_array_equal(tree.failed, failed)
    assert 0 < tree_sizes(tree).node_counts[FAILED_LATER] - 1 < NUM_SIMULATIONS
    return tree


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
        action_statistics(tree_of(tables, n, **options), **constants) for n in (12, 13)
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
    tree = tree_of(tables, 9, np.array([[True, False]]))
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
    tree = tree_of(tables, 3, c_puct=100.0)
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
    tree = tree_of(make_tables([[0]]), num_simulations)
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
    tree = with_squares(tree_of(tables, 30))
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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"z": 1.0}, 1),
        ({"z": 4.0}, 1),  # 0.5 - 4 * 0.1 / 10 = 0.46, 0.52 - 4 * 0.1 / 7 = 0.463
        ({"z": 6.0}, 0),  # 0.5 - 6 * 0.1 / 10 = 0.44, 0.52 - 6 * 0.1 / 7 = 0.434
        ({"z": 0.0}, 1),
        ({"z": 0.0, "min_visit_share": 0.05}, 2),
        ({"z": 0.0, "min_visit_share": 0.0}, 2),
        ({"z": 10.0, "min_visit_share": 0.0}, 0),
        ({"z": 0.0, "min_visit_share": 1.0}, 0),
    ],
)
def test_lower_bound_weighs_the_mean_against_its_doubt(options, expected):
    action = lcb_action(
        jnp.array([[100, 49, 5, 0]]),
        jnp.array([[0.5, 0.52, 0.9, jnp.nan]]),
        jnp.array([[0.1, 0.1, 0.5, jnp.nan]]),
        **options,
    )
    assert action.dtype == jnp.int32
    np.testing.assert_array_equal(action, [expected])


def test_equal_bounds_go_to_the_more_visited_then_the_lowest():
    visit_counts = jnp.array([[5, 8, 8], [8, 8, 8], [0, 0, 0], [0, 0, 1]])
    actions = lcb_action(visit_counts, jnp.ones((4, 3)), jnp.zeros((4, 3)))
    np.testing.assert_array_equal(actions, [1, 0, NO_ACTION, 2])


@pytest.mark.parametrize(
    "options", [{"z": -1}, {"min_visit_share": 1.5}, {"min_visit_share": -0.1}]
)
def test_lower_bound_refuses_numbers_out_of_range(options):
    ones = jnp.ones((1, 2))
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be a number"):
        lcb_action(ones.astype(int), ones, ones, **options)


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
