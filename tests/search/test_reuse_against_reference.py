"""Searches with budgets or with a tree to go on with equal the plain Python search."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import gumbel_policy, puct_policy
from tests.search.option_cases import (
    BATCH_SIZE,
    Case,
    assert_equal,
    expected_of,
    gumbel_noise,
    method_of,
    search,
    tables_of,
)
from tests.search.table_model import random_mask

CAPACITY = 32  # of the trees that are gone on with: one first search fills it


@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_each_row_has_its_own_budget(policy):
    case = Case("budgets", method=method_of(policy), num_simulations=30)
    with jax.enable_x64(True):
        random = np.random.default_rng(6)
        tables = tables_of(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        budgets = random.integers(0, 31, BATCH_SIZE)
        ours = search(case, tables, illegal, budgets=jnp.array(budgets))
        noise = gumbel_noise(tables)
    np.testing.assert_array_equal(ours[0].simulations, budgets)
    assert_equal(
        case,
        *ours,
        [
            expected_of(case, tables, illegal, noise, row, int(budgets[row]), {})
            for row in range(BATCH_SIZE)
        ],
    )


# A short search, a move, and another search below it that fills the tree; some rows are
# reset, some were never there.
@pytest.mark.parametrize(
    ("policy", "solve"),
    [
        (puct_policy, False),
        (gumbel_policy, True),
        pytest.param(puct_policy, True, marks=pytest.mark.slow),
        pytest.param(gumbel_policy, False, marks=pytest.mark.slow),
    ],
)
def test_search_goes_on_with_the_tree_of_a_move(policy, solve):
    case = Case(
        "reuse",
        {"solve": solve},
        method_of(policy),
        {"solve": solve},
        num_simulations=30,
        outcomes=solve,
        untied=0.6,
    )
    with jax.enable_x64(True):
        random = np.random.default_rng(7)
        tables = tables_of(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        tree, first = search(case, tables, illegal, capacity=CAPACITY)
        reset = random.random(BATCH_SIZE) < 0.2
        advance = jax.jit(lambda tree, action: tree.advance(action, jnp.array(reset)))
        tree = advance(tree, first["action"])
        states = tables.next_states[np.arange(BATCH_SIZE), 0, first["action"]]
        logits = tables.prior_logits[np.arange(BATCH_SIZE), states]
        below = logits == np.finfo(np.float64).min
        tree, second = search(case, tables, below, states, tree=tree)
        noise = gumbel_noise(tables)
    expected, kept = [], 0
    for row in range(BATCH_SIZE):
        result = expected_of(
            case,
            tables,
            illegal,
            noise,
            row,
            case.num_simulations,
            {**case.also, "capacity": CAPACITY},
        )
        old = result.tree.advance(int(first["action"][row]), bool(reset[row]))
        kept += old is not None
        result = expected_of(
            case,
            tables,
            below,
            noise,
            row,
            case.num_simulations,
            {**case.also, "capacity": CAPACITY, "tree": old},
            first=result.gaps,
            root_state=int(states[row]),
        )
        expected.append(result)
    assert kept > BATCH_SIZE / 5
    full = [result.not_stored > 0 for result in expected]
    assert solve or np.mean(full) > 0.2
    assert_equal(case, tree, second, expected)


# Two searches of one root that keep other actions; what was visited stays.
@pytest.mark.parametrize("solve", [False, True])
@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_search_goes_on_with_other_actions_at_the_root(policy, solve):
    options = {"max_children": 2, "solve": solve}
    case = Case(
        "other-actions",
        options,
        method_of(policy),
        options,
        num_simulations=12,
        outcomes=solve,
        untied=0.6,
    )
    with jax.enable_x64(True):
        random = np.random.default_rng(11)
        tables = tables_of(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        tree, _ = search(case, tables, illegal, capacity=CAPACITY)
        other = copy.deepcopy(tables)
        other.prior_logits[:, 0] = random.normal(size=other.prior_logits[:, 0].shape)
        tree, second = search(case, other, illegal, tree=tree)
        noise = gumbel_noise(tables)
    expected = []
    for row in range(BATCH_SIZE):
        also = {**case.also, "capacity": CAPACITY}
        number = case.num_simulations
        first = expected_of(case, tables, illegal, noise, row, number, also)
        also |= {"tree": first.tree}
        expected.append(
            expected_of(case, other, illegal, noise, row, number, also, first.gaps)
        )
    children = [len(result.tree.root.children) for result in expected]
    assert np.mean(np.array(children) > 2) > 0.1
    assert_equal(case, tree, second, expected)
