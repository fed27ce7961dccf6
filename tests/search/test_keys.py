"""With a key for each row, a row draws what it would draw alone."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import gumbel_policy, keys, mctx_puct_policy, puct_policy
from tests.search.table_model import random_tables, recurrent_fn, root_of

BATCH_SIZE = 6
KEYS = jax.random.split(jax.random.key(3), BATCH_SIZE)
OPTIONS = [
    pytest.param(gumbel_policy, {}, id="gumbel"),
    pytest.param(puct_policy, {}, id="puct"),
    pytest.param(puct_policy, {"dirichlet_total": 10.0}, id="puct-total"),
]


def search(policy, rng_key, tables, **options):
    def run(rng_key, tables):
        root = root_of(tables)
        return policy(tables, rng_key, root, recurrent_fn, 12, **options)

    return jax.jit(run)(rng_key, tables)


@pytest.mark.parametrize(("policy", "options"), OPTIONS)
def test_row_draws_the_same_alone_and_in_any_place(policy, options):
    tables = random_tables(np.random.default_rng(0), BATCH_SIZE, 5)
    whole = search(policy, KEYS, tables, **options)
    order = np.array([3, 0, 5, 1, 4, 2])
    moved = search(policy, KEYS[order], tables[order], **options)
    for name in ("action", "action_weights"):
        np.testing.assert_array_equal(getattr(moved, name), getattr(whole, name)[order])
    one = search(policy, KEYS[2:3], tables[2:3], **options)
    np.testing.assert_array_equal(one.action_weights[0], whole.action_weights[2])


@pytest.mark.parametrize(("policy", "options"), OPTIONS)
def test_equal_rows_with_different_keys_draw_differently(policy, options):
    tables = random_tables(np.random.default_rng(1), 1, 5)
    tables = tables[[0] * BATCH_SIZE]

    def different(rng_key):
        tree = search(policy, rng_key, tables, **options).search_tree
        drawn = tree.summary().visit_counts + tree.root_prior_probs  # noise is in both
        return len(np.unique(drawn, axis=0))

    assert different(KEYS) > 1
    assert different(jnp.repeat(KEYS[:1], BATCH_SIZE)) == 1


def test_keys_split_row_by_row():
    pairs = keys.split(KEYS, 2)
    assert pairs.shape == (2, BATCH_SIZE)
    for row, key in enumerate(KEYS):
        expected = jax.random.key_data(jax.random.split(key))
        np.testing.assert_array_equal(jax.random.key_data(pairs[:, row]), expected)


@pytest.mark.parametrize("wrong", [KEYS[:2], KEYS[:, None]])
def test_other_numbers_of_keys_are_refused(wrong):
    tables = random_tables(np.random.default_rng(0), BATCH_SIZE, 5)
    for policy in (puct_policy, gumbel_policy):
        with pytest.raises(TypeError, match=r"or one for each row, \(6,\)"):
            search(policy, wrong, tables)
    with pytest.raises(TypeError, match="expected one key for the whole batch"):
        search(mctx_puct_policy, KEYS, tables)


def test_model_gets_a_key_for_each_row():
    seen = []

    def model(params, key, action, embedding):
        seen.append(key.shape)
        return recurrent_fn(params, key, action, embedding)

    tables = random_tables(np.random.default_rng(0), BATCH_SIZE, 5)
    run = partial(puct_policy, tables, root=root_of(tables), recurrent_fn=model)
    jax.eval_shape(lambda rng_key: run(rng_key, num_simulations=2), KEYS)
    assert set(seen) == {(BATCH_SIZE,)}
