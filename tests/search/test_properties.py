"""What holds for every search, of whatever game, mask and options."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsearch import EarlyStop, gumbel_policy, puct_policy
from tests.search.table_model import (
    Tables,
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
)

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 6, 4, 24
OPTIONS = {  # each is compiled once
    "plain": {},
    "all": {
        "max_children": 3,
        "refill_terminals": True,
        "solve": True,
        "early_stop": EarlyStop(interval=4),
        "prior_dtype": jnp.bfloat16,
    },
}
POLICIES = {"puct": puct_policy, "gumbel": gumbel_policy}
SEARCHES = {}


def search(policy, options, tables, illegal, budgets):
    """The output of a search without noise, compiled once for each kind."""
    if (policy, options) not in SEARCHES:
        more = dict(OPTIONS[options])
        if policy == "puct":
            more |= {"dirichlet_fraction": 0.0, "temperature": 0.0}
        else:
            more |= {"gumbel_scale": 0.0}
        SEARCHES[policy, options] = jax.jit(
            lambda tables, illegal, budgets: POLICIES[policy](
                tables,
                jax.random.key(0),
                root_of(tables),
                recurrent_fn,
                NUM_SIMULATIONS,
                illegal,
                budgets=budgets,
                **more,
            )
        )
    return jax.device_get(SEARCHES[policy, options](tables, illegal, budgets))


@st.composite
def games(draw):
    """Tables, a mask and budgets; all from a seed, so that shapes stay the same."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = random_tables(
        random,
        BATCH_SIZE,
        NUM_ACTIONS,
        discounts=draw(st.sampled_from([(-1.0,), (1.0,), (-1.0, 1.0), (0.9,)])),
        terminals=draw(st.sampled_from([0.0, 0.2, 0.6])),
        illegal=draw(st.sampled_from([0.0, 0.4])),
    )
    if draw(st.booleans()):  # outcomes only
        ends = tables.discounts == 0
        tables.rewards[...] = np.where(ends, np.sign(tables.rewards), 0)
    illegal = random_mask(random, BATCH_SIZE, NUM_ACTIONS)
    budgets = np.full(BATCH_SIZE, NUM_SIMULATIONS, np.int32)
    if draw(st.booleans()):
        budgets = random.integers(0, NUM_SIMULATIONS + 1, BATCH_SIZE, np.int32)
    return tables, illegal, budgets


def each_kind(test):
    kinds = [
        pytest.param(
            policy, options, marks=pytest.mark.slow if options == "plain" else ()
        )
        for policy in POLICIES
        for options in OPTIONS
    ]
    return pytest.mark.parametrize(("policy", "options"), kinds)(test)


@each_kind
@settings(max_examples=10, deadline=None)
@given(game=games())
def test_visits_values_and_weights_are_what_they_must_be(policy, options, game):
    _, illegal, budgets = game
    output = search(policy, options, *game)
    tree = output.search_tree
    summary = jax.device_get(tree.summary())
    assert not np.any(tree.failed)
    np.testing.assert_array_equal(summary.visit_counts.sum(axis=1), tree.simulations)
    np.testing.assert_array_equal(tree.visits[:, 0], tree.simulations + 1)
    if not {"early_stop", "solve"} & OPTIONS[options].keys():
        np.testing.assert_array_equal(tree.simulations, budgets)
    assert np.all(tree.simulations <= budgets)
    assert np.all(summary.visit_counts[illegal] == 0)
    assert np.all(output.action_weights[illegal] == 0)
    np.testing.assert_allclose(output.action_weights.sum(axis=1), 1, rtol=1e-5)
    assert not np.any(illegal[np.arange(BATCH_SIZE), output.action])
    most = OPTIONS[options].get("max_children", NUM_ACTIONS)
    assert np.all(np.count_nonzero(summary.visit_counts, axis=1) <= most)
    # Returns are sums of one reward of at most 1 and a value of at most 1.
    assert np.all(np.abs(summary.qvalues) <= 1 + 1e-6)
    assert np.all(np.abs(summary.value) <= 1 + 1e-6)
    if tree.proofs is not None:
        assert np.all(tree.proofs.lower <= tree.proofs.upper)


@each_kind
@settings(max_examples=5, deadline=None)
@given(game=games(), order=st.permutations(range(BATCH_SIZE)))
def test_rows_do_not_depend_on_each_other_or_their_order(policy, options, game, order):
    tables, illegal, budgets = game
    order = np.array(order)
    expected = search(policy, options, *game)
    output = search(policy, options, tables[order], illegal[order], budgets[order])
    for got, of_row in zip(
        (output.action_weights, output.search_tree.visits),
        (expected.action_weights, expected.search_tree.visits),
        strict=True,
    ):
        np.testing.assert_array_equal(got, of_row[order])


@each_kind
@settings(max_examples=5, deadline=None)
@given(game=games(), order=st.permutations(range(NUM_ACTIONS)))
def test_renamed_actions_are_searched_alike(policy, options, game, order):
    tables, illegal, budgets = game
    order = np.array(order)
    renamed = Tables(
        next_states=tables.next_states[..., order],
        rewards=tables.rewards[..., order],
        discounts=tables.discounts[..., order],
        values=tables.values,
        prior_logits=tables.prior_logits[..., order],
    )
    expected = search(policy, options, *game)
    output = search(policy, options, renamed, illegal[:, order], budgets)
    # Equal priors or scores are told apart by the name of the action alone.
    probs = np.sort(expected.search_tree.root_prior_probs, axis=1)
    gaps = np.where(probs[:, 1:] > 0, np.diff(probs, axis=1), 1)
    tied = np.any(gaps < 1e-6, axis=1) | _has_equal_qvalues(expected)
    visits, expected_visits = (
        jax.device_get(o.search_tree.summary().visit_counts) for o in (output, expected)
    )
    same = np.all(visits == expected_visits[:, order], axis=1)
    assert np.all(same | tied)


def _has_equal_qvalues(output):
    """Rows [B] with visited actions of the same Q at the root."""
    summary = jax.device_get(output.search_tree.summary())
    tied = np.zeros(BATCH_SIZE, bool)
    for row in range(BATCH_SIZE):
        visited = summary.visit_counts[row] > 0
        tied[row] = np.any(np.diff(np.sort(summary.qvalues[row][visited])) < 1e-6)
    return tied
