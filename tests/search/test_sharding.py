"""A search spread over devices visits what it visits on one, with every option."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding

from jaxsearch import (
    EarlyStop,
    ParentUrgency,
    VarianceScaling,
    gumbel_policy,
    puct_policy,
)
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
)

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 16, 4, 20
QUIET = {"dirichlet_fraction": 0, "temperature": 0}
EVERY_OPTION = {
    "max_children": 3,
    "early_stop": EarlyStop(interval=4),
    "refill_terminals": True,
    "solve": True,
    "capacity": 30,
}


def search_with(policy, tables, illegal, **options):
    key = jax.random.key(0)
    root = root_of(tables)
    return policy(tables, key, root, recurrent_fn, NUM_SIMULATIONS, illegal, **options)


def plain(tables, illegal, budgets):
    del budgets
    return search_with(puct_policy, tables, illegal, **QUIET)


def puct_with_every_option(tables, illegal, budgets):
    def search(**more):
        return search_with(
            puct_policy,
            tables,
            illegal,
            **QUIET,
            first_play_urgency=ParentUrgency(0.2),
            variance_scaling=VarianceScaling(),
            forced_playouts=2.0,
            c_puct=1.5,
            budgets=budgets,
            **more,
        )

    first = search(**EVERY_OPTION)
    # Where the game went on: the same game once more, on what the tree has of it.
    tree = first.search_tree.advance(jnp.argmax(first.action_weights, axis=1))
    return search(**{**EVERY_OPTION, "capacity": None}, tree=tree)


def gumbel_with_options(tables, illegal, budgets):
    return search_with(
        gumbel_policy,
        tables,
        illegal,
        gumbel_scale=0.0,
        budgets=budgets,
        **EVERY_OPTION,
    )


def result_of(search):
    def run(*arguments):
        output = search(*arguments)
        tree = output.search_tree
        return tree.visits, tree.parents, tree.simulations, output.action_weights

    return run


SEARCHES = [  # compiling for eight devices takes long
    puct_with_every_option,
    pytest.param(gumbel_with_options, marks=pytest.mark.slow),
    pytest.param(plain, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def arguments():
    """The games, one of them finished."""
    random = np.random.default_rng(0)
    tables = random_tables(random, BATCH_SIZE, NUM_ACTIONS, terminals=0.2)
    illegal = random_mask(random, BATCH_SIZE, NUM_ACTIONS)
    illegal[3] = True
    budgets = random.integers(1, NUM_SIMULATIONS + 1, BATCH_SIZE, np.int32)
    return tables, illegal, budgets


@pytest.fixture(scope="module", params=SEARCHES, ids=lambda search: search.__name__)
def search_and_expected(request, arguments):
    """A search, and what one device makes of it."""
    search = result_of(request.param)
    return search, jax.device_get(jax.jit(search)(*arguments))


@pytest.mark.parametrize(
    "axis_type",
    [pytest.param(AxisType.Auto, marks=pytest.mark.slow), AxisType.Explicit],
    ids=str,
)
def test_jit_over_a_mesh_visits_the_same(arguments, search_and_expected, axis_type):
    search, expected = search_and_expected
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(axis_type,))
    with jax.set_mesh(mesh):
        inputs = jax.device_put(arguments, NamedSharding(mesh, jax.P("batch")))
        result = jax.jit(search)(*inputs)
    for got, of_one_device in zip(result, expected, strict=True):
        np.testing.assert_array_equal(got, of_one_device)


def test_shard_map_visits_the_same_on_every_device(arguments, search_and_expected):
    search, expected = search_and_expected
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))
    spread = jax.shard_map(
        search, mesh=mesh, in_specs=jax.P("batch"), out_specs=jax.P("batch")
    )
    result = jax.jit(spread)(*arguments)
    for got, of_one_device in zip(result, expected, strict=True):
        assert len(got.sharding.device_set) == 8
        np.testing.assert_array_equal(got, of_one_device)


def test_arguments_that_are_not_spread_are_spread_like_the_root(arguments):
    tables, illegal, budgets = arguments
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
    ones = np.ones(BATCH_SIZE, np.int32)

    def search(tables):
        tree = search_with(
            puct_policy, tables, illegal, **QUIET, budgets=budgets, c_puct=ones
        ).search_tree
        return tree.advance(ones, reset=ones > 0).num_nodes

    with jax.set_mesh(mesh):
        spread = jax.device_put(tables, NamedSharding(mesh, jax.P("batch")))
        result = jax.eval_shape(search, spread)
    assert result.shape == (BATCH_SIZE,)
    assert result.sharding.spec == jax.P("batch")
