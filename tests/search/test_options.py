"""Options that do not fit are refused before compiling, and what they cost is told."""

import re

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
from tests.search.table_model import make_tables, recurrent_fn, root_of

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
    with pytest.raises(TypeError, match=r"unknown option 'budget': .*budgets"):
        trace(policy, budget=np.ones(3, int))
    with pytest.raises(TypeError, match="early_stop must be an EarlyStop or None"):
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
