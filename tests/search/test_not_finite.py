"""A number that is no value stops the search of its row, and of no other."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import gumbel_policy, puct_policy
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
)

BATCH_SIZE, NUM_ACTIONS, BAD_ROW = 8, 7, 2


@pytest.fixture(scope="module")
def game():
    random = np.random.default_rng(0)
    tables = random_tables(random, BATCH_SIZE, NUM_ACTIONS, num_states=8, rewards=0.5)
    illegal = random_mask(random, BATCH_SIZE, NUM_ACTIONS)
    illegal[BAD_ROW] = [True, False, False, False, False, False, True]
    return tables, illegal


LOWEST = np.finfo(np.float32).min


@partial(jax.jit, static_argnames="policy")
def search(tables, root, illegal, policy=puct_policy):
    output = policy(tables, jax.random.key(1), root, recurrent_fn, 32, illegal)
    tree = output.search_tree
    return output.action, output.action_weights, tree.failed, tree.root_prior_probs


def with_bad_row(tables, field, value):
    """The tables with `value` in all entries of one row, but for those of the root."""
    table = np.array(getattr(tables, field))
    table[BAD_ROW, slice(0 if field in ("rewards", "discounts") else 1, None)] = value
    return dataclasses.replace(tables, **{field: table})


def check(game, tables, root, policy=puct_policy):
    """The bad row falls back to its priors; the others are as they were."""
    good, illegal = game
    expected = search(good, root_of(good), illegal, policy)
    action, weights, failed, priors = search(tables, root, illegal, policy)
    others = np.arange(BATCH_SIZE) != BAD_ROW
    np.testing.assert_array_equal(failed, ~others)
    np.testing.assert_array_equal(action[others], expected[0][others])
    np.testing.assert_array_equal(weights[others], expected[1][others])
    np.testing.assert_array_equal(weights[BAD_ROW], priors[BAD_ROW])
    np.testing.assert_allclose(weights[BAD_ROW].sum(), 1, rtol=1e-5)
    assert np.all(np.asarray(weights)[BAD_ROW][illegal[BAD_ROW]] == 0)
    assert not illegal[BAD_ROW, action[BAD_ROW]]
    return np.asarray(weights)[BAD_ROW]


# Values whose sum would not be finite are none either. The lowest logit means illegal,
# so that a row of them leaves a position that goes on without a legal action.
@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        (field, value)
        for field in ("values", "rewards", "discounts", "prior_logits")
        for value in (np.nan, np.inf, -np.inf)
    ]
    + [("values", 3e38), ("rewards", -3e38), ("prior_logits", LOWEST)],
)
def test_model_output(game, field, value, policy):
    good, _ = game
    check(game, with_bad_row(good, field, value), root_of(good), policy)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_root_value(game, value):
    good, _ = game
    root = root_of(good)
    check(game, good, root.replace(value=root.value.at[BAD_ROW].set(value)))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_root_logit_makes_the_priors_even(game, value):
    good, illegal = game
    root = root_of(good)
    logits = root.prior_logits.at[BAD_ROW, 1].set(value)
    weights = check(game, good, root.replace(prior_logits=logits))
    np.testing.assert_allclose(weights[~illegal[BAD_ROW]], 1 / 5, rtol=1e-6)


# In a mask of one action the others' logits may be anything.
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logit_of_an_illegal_action_does_not_matter(game, value):
    good, illegal = game
    root = root_of(good)
    logits = jnp.where(illegal, value, root.prior_logits)
    expected = search(good, root_of(good), illegal)
    result = search(good, root.replace(prior_logits=logits), illegal)
    assert not np.any(result[2])
    np.testing.assert_array_equal(result[0].shape, expected[0].shape)
    assert np.all(np.asarray(result[1])[illegal] == 0)
    np.testing.assert_allclose(np.sum(result[1], axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_legal_action_with_the_lowest_logit_comes_before_the_illegal_ones(policy):
    tables = random_tables(np.random.default_rng(1), 1, 4)
    illegal = np.array([[True, False, False, True]])
    root = root_of(tables)
    root = root.replace(prior_logits=jnp.array([[0.0, -jnp.inf, 0.0, 0.0]]))

    @jax.jit
    def search_12(root):
        key = jax.random.key(0)
        tree = policy(tables, key, root, recurrent_fn, 12, illegal).search_tree
        return tree.failed[0], tree.summary().visit_counts[0]

    failed, visits = search_12(root)
    assert not failed
    assert visits[0] == visits[3] == 0
    assert visits.sum() == 12


def test_negative_root_priors_fail_their_row():
    tables = random_tables(np.random.default_rng(1), 2, 3)
    probs = np.array([[0.5, 0.25, 0.25], [0.9, -0.2, 0.3]], np.float32)

    @jax.jit
    def failed(root, probs):
        return puct_policy(
            tables,
            jax.random.key(0),
            root,
            recurrent_fn,
            8,
            dirichlet_fraction=0,
            root_prior_probs=probs,
        ).search_tree.failed

    result = failed(root_of(tables), probs)
    np.testing.assert_array_equal(result, [False, True])


@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_row_that_failed_starts_anew_on_its_old_tree(game, policy):
    good, _ = game
    run = jax.jit(
        lambda tables, tree: policy(
            tables, jax.random.key(0), root_of(tables), recurrent_fn, 16, tree=tree
        )
    )
    bad = with_bad_row(good, "values", np.nan)
    bad.values[BAD_ROW, 1:4] = 0.5  # fails only after some simulations
    failed = run(bad, None).search_tree
    assert failed.failed[BAD_ROW]
    again, expected = run(good, failed), run(good, None)
    assert not np.any(again.search_tree.failed)
    for of_both in zip(
        (again.action, again.search_tree.visits),
        (expected.action, expected.search_tree.visits),
        strict=True,
    ):
        np.testing.assert_array_equal(*(np.asarray(x)[BAD_ROW] for x in of_both))
