"""A search is compiled once; tests/test_train.py starts a program twice."""

import jax
import numpy as np

from jaxsearch import puct_policy, qtransform_fixed_scale
from tests.search.table_model import random_tables, recurrent_fn, root_of


def test_search_is_traced_once_for_all_values_of_its_arguments():
    traces = []

    @jax.jit
    def search(tables, key, temperature, c_puct):
        traces.append(tables.values.shape)
        output = puct_policy(
            tables,
            key,
            root_of(tables),
            recurrent_fn,
            4,
            qtransform=qtransform_fixed_scale,
            dirichlet_fraction=0,
            temperature=temperature,
            c_puct=c_puct,
        )
        return output.action

    random = np.random.default_rng(0)
    for move in range(50):
        search(random_tables(random, 2, 3), jax.random.key(move), 1.0, 1.5)
    assert len(traces) == 1
    tables = random_tables(random, 2, 3)
    search(tables, jax.random.key(99), 0.25, 1.5)
    search(tables, jax.random.key(99), 0.25, 3.0)
    assert len(traces) == 1
    search(random_tables(random, 5, 3), jax.random.key(0), 1.0, 1.5)
    assert len(traces) == 2
    assert search._cache_size() == 2
