"""Options that do not fit are refused before compiling, and what they cost is told."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import (
    EarlyStop,
    VarianceScaling,
    gumbel_policy,
    memory_estimate,
    puct_policy,
)
from jaxsearch.search.memory import TreeTooLargeError
from tests.search.table_model import make_tables, random_tables, recurrent_fn, root_of

TABLES = make_tables(np.zeros((2, 4), int), batch_size=3)  # B = 3, A = 4
KEY = jax.random.key(0)
POLICIES = pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])


def trace(policy, num_simulations=8, **options):
    root = root_of(TABLES)
    return jax.eval_shape(
        lambda: policy(TABLES, KEY, root, recurrent_fn, num_simulations, **options)
    )


def tree_of(**options):
    root = root_of(TABLES)
    search = jax.jit(
        lambda: puct_policy(TABLES, KEY, root, recurrent_fn, 8, **options).search_tree
    )
    return search()


@POLICIES
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_children": 0}, "max_children must be a whole number of at least 1"),
        ({"max_children": 2.0}, "max_children must be a whole number"),
        ({"capacity": 8}, "capacity is 8, too small for 8 simulations, .* 9 nodes"),
        ({"capacity": 0}, "capacity must be a whole number of at least 1"),
        ({"budgets": np.ones((3, 1), int)}, r"budgets has shape \(3, 1\), .*\(3,\)"),
        ({"budgets": np.ones(3)}, "budgets has the dtype float.*, expected whole"),
        ({"prior_dtype": np.int32}, "prior_dtype is .*int32.*, expected a floating"),
    ],
)
def test_options_that_cannot_be_are_refused(policy, options, message):
    with pytest.raises(ValueError, match=message):
        trace(policy, **options)


@POLICIES
def test_options_of_the_wrong_kind_are_type_errors(policy):
    with pytest.raises(TypeError, match=r"has no option 'budget': .*budgets"):
        trace(policy, budget=np.ones(3, int))
    with pytest.raises(TypeError, match="early_stop must be EarlyStop or None"):
        trace(policy, early_stop=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EarlyStop(interval=0), "EarlyStop.interval must be a whole number"),
        (lambda: EarlyStop(policy_change=-1.0), "EarlyStop.policy_change must be"),
        (lambda: VarianceScaling(prior_stdev=0.0), "VarianceScaling.prior_stdev must"),
        (lambda: VarianceScaling(scale=2.0), "VarianceScaling.scale must be"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dirichlet_fraction", np.full(4, 0.25)),
        ("dirichlet_alpha", np.ones((3, 4))),
        ("pb_c_init", np.ones(3)),
        ("forced_playouts", np.ones(3)),
        ("c_puct", np.ones(2)),
    ],
)
def test_options_of_another_shape_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"{name} has shape \({len(value)},"):
        trace(puct_policy, **{name: value})


def test_gumbel_scale_is_a_number_or_one_for_each_row():
    with pytest.raises(ValueError, match=r"gumbel_scale has shape \(4,\)"):
        trace(gumbel_policy, gumbel_scale=np.ones(4))
    scales = np.array([0.0, 0.0, 1e6], np.float32)
    root = root_of(TABLES)
    action = jax.jit(
        lambda: (
            gumbel_policy(
                TABLES, KEY, root, recurrent_fn, 1, gumbel_scale=scales
            ).action
        )
    )()
    noise = jax.random.gumbel(jax.random.split(KEY)[1], (3, 4))
    np.testing.assert_array_equal(action, [0, 0, jnp.argmax(noise[2])])


def test_tree_of_another_search_is_refused():
    tree = tree_of(solve=True)
    with pytest.raises(
        ValueError, match=r"tree\.proofs.*is .*, this search needs none"
    ):
        trace(puct_policy, tree=tree)
    with pytest.raises(ValueError, match=r"tree\.slot_actions is absent"):
        trace(puct_policy, tree=tree, max_children=2, solve=True)
    with pytest.raises(ValueError, match="capacity is 20, but the given tree has room"):
        trace(puct_policy, tree=tree, capacity=20, solve=True)
    one_row = jax.tree.map(lambda x: x[:1], tree)
    with pytest.raises(ValueError, match="tree is of 1 searches with 4 actions"):
        trace(puct_policy, tree=one_row, solve=True)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_children": 2},
        {"max_children": 2, "prior_dtype": jnp.bfloat16},
        {"solve": True, "capacity": 30},
        {"keep_squares": True},
    ],
    ids=str,
)
def test_memory_estimate_is_the_size_of_the_tree(options):
    estimate = memory_estimate(root_of(TABLES), 8, **options)
    leaves = jax.tree.leaves(trace(puct_policy, **options).search_tree)
    assert estimate.tree_bytes == sum(x.size * x.dtype.itemsize for x in leaves)
    rows_and_nodes = 3 * options.get("capacity", 9)
    of_nodes = estimate.bytes_per_node * rows_and_nodes
    assert 0.7 * estimate.tree_bytes < of_nodes < estimate.tree_bytes


def test_node_of_chess_is_small():
    root = jax.eval_shape(
        lambda: root_of(make_tables(np.zeros((2, 4672), int), batch_size=64))
    )
    # mctx: six numbers of four bytes for each action of each node, and a few more.
    of_mctx = 6 * 4 * 4672
    assert memory_estimate(root, 100, max_children=218).bytes_per_node < of_mctx / 60


@POLICIES
def test_search_larger_than_the_memory_is_refused_with_the_number(policy):
    count = 500_000_000
    gigabytes = f"{memory_estimate(root_of(TABLES), count - 1).tree_bytes / 1e9:.1f} GB"
    with pytest.raises(
        TreeTooLargeError, match=rf"takes {gigabytes} \(3 rows x {count}"
    ):
        trace(policy, num_simulations=count - 1)
    with pytest.raises(TreeTooLargeError, match="more than the 2147483648 nodes"):
        trace(policy, num_simulations=2**30)


@pytest.mark.parametrize(
    ("actions", "reset", "message"),
    [
        (
            np.zeros(4, int),
            None,
            r"actions is an array of int.* shape \(4,\), .*\(3,\)",
        ),
        (np.zeros((3, 1), int), None, "actions is an array"),
        (np.zeros(3), None, "actions is an array of float.*, expected one integer"),
        (0, None, "actions is an array"),
        (np.zeros(3, int), True, r"reset is an array of bool of shape \(\)"),
        (np.zeros(3, int), [0, 1, 0], "reset is an array of int.*, expected one bool"),
    ],
)
def test_moves_to_go_on_after_are_looked_at(actions, reset, message):
    tree = trace(puct_policy).search_tree
    with pytest.raises(ValueError, match=message):
        tree.advance(actions, reset)


# The noise of each search lets another pair of actions in, at the root and below it.
@POLICIES
def test_reused_root_keeps_other_actions_than_before(policy):
    tables = make_tables([[0, 1, 1, 1], [1, 1, 1, 1]])
    quiet = {"puct_policy": {"dirichlet_fraction": 0}, "gumbel_policy": {}}

    @jax.jit
    def search(logits, tree):
        root = root_of(tables).replace(prior_logits=logits)
        options = quiet[policy.__name__]
        return policy(
            tables, KEY, root, recurrent_fn, 16, max_children=2, tree=tree, **options
        ).search_tree

    root = root_of(tables)
    tree = jax.eval_shape(
        lambda: (
            policy(
                tables, KEY, root, recurrent_fn, 16, max_children=2, capacity=200
            ).search_tree
        )
    )
    tree = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), tree)
    for number, logits in enumerate(
        ([3, 2, 0, -1], [3, 0, 2, -1], [3, 0, -1, 2], [3, 2, 0, -1]), 1
    ):
        tree = search(jnp.array([logits], jnp.float32), tree)
        actions = tree.actions[0][tree.parents[0] == tree.ROOT]
        assert len(np.unique(actions)) == len(actions)
        assert tree.summary().visit_counts.sum() == 16 * number


# The move of Gumbel is chosen by the visits of the last search alone.
def test_early_stop_of_gumbel_does_not_change_the_move_of_a_reused_tree():
    tables = random_tables(np.random.default_rng(0), 64, 6)

    @partial(jax.jit, static_argnames="early_stop")
    def search(tree, early_stop=None):
        options = {"capacity": 200} if tree is None else {"tree": tree}
        return gumbel_policy(
            tables,
            KEY,
            root_of(tables),
            recurrent_fn,
            64,
            gumbel_scale=0,
            early_stop=early_stop,
            **options,
        )

    tree = search(None).search_tree
    whole = search(tree)
    stopped = search(tree, early_stop=EarlyStop(interval=4))
    np.testing.assert_array_equal(stopped.action, whole.action)


# Action 3 wins and action 0 loses at once; the second search would leave 3 out.
@POLICIES
def test_proven_win_is_played_though_its_prior_has_gone(policy):
    tables = make_tables(
        [[1, 1, 2, 2], [1] * 4, [2] * 4],
        rewards=[[-1, 0, 0, 1], [0] * 4, [0] * 4],
        discounts=[[0, -1, -1, 0], [-1] * 4, [-1] * 4],
    )

    def search(logits, **options):
        root = root_of(tables).replace(prior_logits=jnp.array([logits]))
        quiet = {"dirichlet_fraction": 0} if policy is puct_policy else {}
        return jax.jit(
            lambda: policy(
                tables,
                KEY,
                root,
                recurrent_fn,
                16,
                max_children=2,
                solve=True,
                **quiet,
                **options,
            )
        )()

    tree = search([0.0, -3.0, -3.0, 20.0], capacity=200).search_tree
    assert tree.proofs.proven[0, 0]
    output = search([3.0, 2.0, 0.0, -1.0], tree=tree)
    np.testing.assert_array_equal(output.action, [3])
    np.testing.assert_array_equal(output.action_weights, [[0, 0, 0, 1]])


def test_move_out_of_range_starts_its_row_empty():
    tree = tree_of()
    for action in (4, 99, -1):
        advanced = jax.jit(tree.advance)(jnp.full(3, action))
        np.testing.assert_array_equal(advanced.num_nodes, 0)
