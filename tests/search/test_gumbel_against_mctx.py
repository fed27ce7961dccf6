"""`gumbel_policy` chooses what `mctx.gumbel_muzero_policy` chooses, to the last visit.

In float64, where scores of random games are as good as never tied. mctx breaks no ties
at random here, so that nothing but rounding tells the two apart.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from mctx._src.seq_halving import get_sequence_of_considered_visits

from jaxsearch import gumbel_policy, qtransform_completed_by_mix_value
from jaxsearch.search.gumbel import considered_visits
from jaxsearch.search.select import NodeStatistics
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    result_of,
    root_of,
    with_finished_value,
)


@dataclass(frozen=True)
class Case:
    batch_size: int
    num_actions: int
    num_simulations: int
    max_depth: int | None = None
    considered: int = 16
    gumbel_scale: float = 1.0
    qtransform: tuple = ()

    def __str__(self):
        shape = f"B{self.batch_size}-A{self.num_actions}-N{self.num_simulations}"
        return f"{shape}-m{self.considered}-depth{self.max_depth}"


CASES = [
    Case(64, 7, 1),
    Case(512, 2, 16),
    Case(512, 7, 40),
    Case(128, 40, 64),
    Case(128, 20, 50, considered=4, gumbel_scale=0.0),
    Case(128, 7, 48, max_depth=3, considered=1),
    Case(
        128,
        7,
        32,
        qtransform=(
            ("value_scale", 0.5),
            ("maxvisit_init", 10.0),
            ("rescale_values", False),
            ("use_mixed_value", False),
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_action_weights_and_visits_equal_those_of_mctx(case):
    seed = CASES.index(case)
    with jax.enable_x64(True):
        random = np.random.default_rng([seed, case.num_actions, case.num_simulations])
        tables = random_tables(
            random,
            case.batch_size,
            case.num_actions,
            discounts=(-1.0, 1.0, 0.9),
            terminals=0.1,
            rewards=0.5,
            illegal=0.3,
            dtype=np.float64,
        )
        # At the root the mask alone says what is illegal.
        tables.prior_logits[:, 0] = random.normal(size=tables.prior_logits[:, 0].shape)
        illegal = random_mask(random, case.batch_size, case.num_actions)
        arguments = tables, jax.random.key(seed), illegal, case
        ours = jax.device_get(_ours(*arguments))
        theirs = jax.device_get(_mctx(*arguments))
    for name in ("action", "visit_counts"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    for name in ("action_weights", "value", "qvalues"):
        np.testing.assert_allclose(
            ours[name], theirs[name], rtol=0, atol=1e-9, err_msg=name
        )


@partial(jax.jit, static_argnames="case")
def _ours(tables, key, illegal, case):
    output = gumbel_policy(
        tables,
        key,
        root_of(tables),
        with_finished_value(float("nan")),
        case.num_simulations,
        illegal,
        case.max_depth,
        max_num_considered_actions=case.considered,
        gumbel_scale=case.gumbel_scale,
        qtransform=partial(qtransform_completed_by_mix_value, **dict(case.qtransform)),
    )
    return result_of(output)


@partial(jax.jit, static_argnames="case")
def _mctx(tables, key, illegal, case):
    output = mctx.gumbel_muzero_policy(
        tables,
        key,
        root_of(tables),
        recurrent_fn,
        case.num_simulations,
        illegal,
        case.max_depth,
        max_num_considered_actions=case.considered,
        gumbel_scale=case.gumbel_scale,
        qtransform=partial(
            mctx.qtransform_completed_by_mix_value, **dict(case.qtransform)
        ),
    )
    return result_of(output)


def test_considered_visits_are_those_of_mctx_for_every_budget():
    counts = np.array([1, 2, 3, 7, 16, 40, 82])
    budgets = np.array([1, 15, 16, 64, 200])
    rows = np.stack(np.meshgrid(counts, budgets), axis=-1).reshape(-1, 2)
    due = considered_visits(jnp.array(rows[:, 0]), jnp.array(rows[:, 1]), 200, 82)
    for row, (num_considered, budget) in zip(due, rows, strict=True):
        np.testing.assert_array_equal(
            row[:budget], get_sequence_of_considered_visits(num_considered, budget)
        )


def test_completed_values_of_an_unvisited_node_are_its_raw_value():
    node = NodeStatistics(
        prior_probs=jnp.array([[0.5, 0.3, 0.2]]),
        visit_counts=jnp.zeros((1, 3), jnp.int32),
        qvalues=jnp.zeros((1, 3)),
        node_value=jnp.array([0.3]),
        raw_value=jnp.array([0.3]),
        node_visits=jnp.array([1]),
        num_actions=3,
        rows=jnp.zeros(1, jnp.int32),
    )
    with jax.debug_nans(True):
        completed = qtransform_completed_by_mix_value(
            node, value_scale=1, maxvisit_init=1, rescale_values=False
        )
    np.testing.assert_allclose(completed, [[0.3, 0.3, 0.3]], rtol=1e-6)


@jax.jit
def search_8(tables, illegal):
    key = jax.random.key(0)
    return gumbel_policy(tables, key, root_of(tables), recurrent_fn, 8, illegal)


def test_finished_root_has_no_action_and_weights_of_zero():
    tables = random_tables(np.random.default_rng(0), 4, 3)
    illegal = np.array([[False] * 3, [True] * 3, [False] * 3, [True] * 3])
    output = search_8(tables, illegal)
    assert output.action[1] == output.action[3] == -1
    np.testing.assert_array_equal(
        np.sum(output.action_weights, axis=1) > 0.5, [1, 0, 1, 0]
    )


def test_row_that_is_not_finite_falls_back_to_its_priors():
    tables = random_tables(np.random.default_rng(0), 4, 3)
    tables.values[2, 1:] = np.nan
    output = search_8(tables, np.zeros((4, 3), bool))
    tree = output.search_tree
    np.testing.assert_array_equal(tree.failed, [False, False, True, False])
    np.testing.assert_array_equal(output.action_weights[2], tree.root_prior_probs[2])
    assert output.action[2] in (0, 1, 2)
    assert np.all(np.isfinite(output.action_weights))
