"""A search is compiled once; tests/test_train.py starts a program twice."""

import jax
import numpy as np
import pytest

from jaxsearch import gumbel_policy, puct_policy, qtransform_fixed_scale
from tests.search.table_model import random_tables, recurrent_fn, root_of


def puct(*arguments, temperature, c_puct):
    return puct_policy(
        *arguments,
        qtransform=qtransform_fixed_scale,
        dirichlet_fraction=0,
        temperature=temperature,
        c_puct=c_puct,
    )


@pytest.mark.parametrize(
    ("policy", "options", "others"),
    [
        (puct, {"temperature": 1.0, "c_puct": 1.5}, {"temperature": 0.25}),
        (puct, {"temperature": 1.0, "c_puct": 1.5}, {"c_puct": 3.0}),
        (gumbel_policy, {"gumbel_scale": 1.0}, {"gumbel_scale": 0.0}),
    ],
    ids=["temperature", "c_puct", "gumbel_scale"],
)
def test_search_is_traced_once_for_all_values_of_its_arguments(policy, options, others):
    traces = []

    @jax.jit
    def search(tables, key, options):
        traces.append(tables.values.shape)
        root = root_of(tables)
        return policy(tables, key, root, recurrent_fn, 4, **options).action

    random = np.random.default_rng(0)
    for move in range(50):
        search(random_tables(random, 2, 3), jax.random.key(move), options)
    assert len(traces) == 1
    search(random_tables(random, 2, 3), jax.random.key(99), {**options, **others})
    assert len(traces) == 1
    search(random_tables(random, 5, 3), jax.random.key(0), options)
    assert len(traces) == 2
    assert search._cache_size() == 2
