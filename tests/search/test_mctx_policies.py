"""mctx's policies as we offer them: what differs from mctx, and what does not."""

from functools import partial

import jax
import mctx
import numpy as np
import pytest

from jaxsearch import mctx_gumbel_policy, mctx_puct_policy, puct_policy
from tests.search.table_model import (
    make_tables,
    random_mask,
    random_tables,
    recurrent_fn,
    root_of,
    search,
)

ROWS = 1000


@partial(jax.jit, static_argnames="policy")
def search_at(temperature, tables, illegal, *, policy):
    root = root_of(tables)
    return policy(
        tables,
        jax.random.key(3),
        root,
        recurrent_fn,
        12,
        illegal.astype(root.value.dtype),
        temperature=temperature,
    )


def play_at(temperature):
    """The actions of ours and of mctx with the same key, the visits and the mask."""
    random = np.random.default_rng(17)
    tables = random_tables(random, ROWS, 4, terminals=0.1)
    illegal = random_mask(random, ROWS, 4)
    ours, theirs = (
        jax.device_get(search_at(temperature, tables, illegal, policy=policy))
        for policy in (mctx_puct_policy, mctx.muzero_policy)
    )
    np.testing.assert_array_equal(ours.action_weights, theirs.action_weights)
    assert ours.action.dtype == theirs.action.dtype
    return ours.action, theirs.action, ours.action_weights > 0, illegal


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_action_is_that_of_mctx(temperature):
    ours, theirs, _, _ = play_at(temperature)
    np.testing.assert_array_equal(ours, theirs)


# Here mctx plays illegal actions, and legal ones that it never visited.
@pytest.mark.parametrize("temperature", [30.0, 1e9, np.inf])
def test_no_temperature_makes_an_illegal_action_playable(temperature):
    ours, theirs, visited, illegal = play_at(temperature)
    rows = np.arange(ROWS)
    assert illegal[rows, theirs].any()
    assert not illegal[rows, ours].any()
    assert visited[rows, ours].all()
    same = visited[rows, theirs]
    assert same.mean() > 0.3
    np.testing.assert_array_equal(ours[same], theirs[same])


# Mctx multiplies the value of a finished position by 0, which NaN survives.
@pytest.mark.parametrize(
    ("policy", "spreads"),
    [(mctx_puct_policy, True), (mctx_gumbel_policy, True), (puct_policy, False)],
)
def test_nan_at_a_finished_position_spreads_in_mctx_only(policy, spreads):
    tables = make_tables([[1] * 2] * 2, rewards=1, discounts=0, values=[0, np.nan])
    result = search(tables, 4, policy=policy)
    assert np.isnan(result["value"]).any() == spreads
