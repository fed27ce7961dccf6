"""A search spread over devices visits what it visits on one."""

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding

from jaxsearch import puct_policy
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
)

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 8, 6, 20


def search(tables, illegal):
    output = puct_policy(
        tables,
        jax.random.key(0),
        root_of(tables),
        recurrent_fn,
        NUM_SIMULATIONS,
        illegal,
        dirichlet_fraction=0,
        temperature=0,
    )
    return output.search_tree.summary().visit_counts, output.action_weights


@pytest.fixture(scope="module")
def arguments():
    """The games, one of them finished, and what one device makes of them."""
    random = np.random.default_rng(0)
    tables = random_tables(random, BATCH_SIZE, NUM_ACTIONS, terminals=0.1)
    illegal = random_mask(random, BATCH_SIZE, NUM_ACTIONS)
    illegal[3] = True
    return (tables, illegal), jax.jit(search)(tables, illegal)


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_jit_over_a_mesh_visits_the_same(arguments, axis_type):
    inputs, expected = arguments
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(axis_type,))
    with jax.set_mesh(mesh):
        inputs = jax.device_put(inputs, NamedSharding(mesh, jax.P("batch")))
        result = jax.jit(search)(*inputs)
    for got, of_one_device in zip(result, expected, strict=True):
        np.testing.assert_array_equal(got, of_one_device)


def test_shard_map_visits_the_same_on_every_device(arguments):
    inputs, expected = arguments
    mesh = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Auto,))
    spread = jax.shard_map(
        search, mesh=mesh, in_specs=jax.P("batch"), out_specs=jax.P("batch")
    )
    result = jax.jit(spread)(*inputs)
    for got, of_one_device in zip(result, expected, strict=True):
        assert len(got.sharding.device_set) == 4
        np.testing.assert_array_equal(got, of_one_device)
