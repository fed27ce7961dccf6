"""The sizes of the loops on an accelerator give the trees of those on a CPU."""

import chex
import jax
import numpy as np
import pytest

from jaxsearch import gumbel_policy, puct_policy, qtransform_by_tree_range
from jaxsearch.search import loop_sizes, paths, select
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
)

BATCH_SIZE, NUM_ACTIONS = 24, 5


def test_an_accelerator_takes_few_turns(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    sizes = loop_sizes.loop_sizes(BATCH_SIZE)
    assert sizes.descent_levels == sizes.backup_levels == 8
    assert sizes.choices == 8 * BATCH_SIZE


# 3 levels a turn fit the paths badly, 8 are more than most paths have.
@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (puct_policy, {"dirichlet_fraction": 0, "keep_squares": True, "solve": True}),
        (puct_policy, {"dirichlet_fraction": 0, "max_depth": 4}),
        (puct_policy, {"qtransform": qtransform_by_tree_range}),
        (gumbel_policy, {"refill_terminals": True, "capacity": 60}),
    ],
    ids=["solve", "max_depth", "tree_range", "gumbel"],
)
@pytest.mark.parametrize("sizes", [(3, 3, 7), (8, 8, 8 * BATCH_SIZE)], ids=str)
def test_tree_is_the_same(policy, options, sizes, monkeypatch):
    random = np.random.default_rng(8)
    tables = random_tables(random, BATCH_SIZE, NUM_ACTIONS, terminals=0.2)
    illegal = random_mask(random, BATCH_SIZE, NUM_ACTIONS)

    def search():
        return jax.jit(
            lambda tables: (
                policy(
                    tables,
                    jax.random.key(0),
                    root_of(tables),
                    recurrent_fn,
                    40,
                    illegal,
                    **options,
                ).search_tree
            )
        )(tables)

    expected = search()
    assert np.max(expected.visits[:, 0]) > 20
    sizes = loop_sizes.LoopSizes(*sizes)
    for module in (paths, select):
        monkeypatch.setattr(module, "loop_sizes", lambda batch_size: sizes)
    tree = search()
    chex.assert_trees_all_equal(tree.visits, expected.visits)
    chex.assert_trees_all_close(tree, expected, rtol=1e-6, atol=1e-6)
