"""An option as both policies and the plain Python search take it, on random games."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch import gumbel_policy, puct_policy
from tests.search import reference_search as reference
from tests.search.table_model import (
    random_tables,
    recurrent_fn,
    reference_search,
    result_of,
    root_of,
)

BATCH_SIZE, MIN_GAP = 48, 1e-9
Puct, Gumbel = reference.Puct, reference.Gumbel
MCTX_PUCT, MCTX_GUMBEL = Puct(), Gumbel()


@dataclass(frozen=True)
class Case:
    """The same options, in the words of jaxsearch and of the reference."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    method: Puct | Gumbel = MCTX_PUCT
    also: dict[str, Any] = field(default_factory=dict)  # for the reference
    num_simulations: int = 40
    num_actions: int = 4
    outcomes: bool = False  # a game of wins, draws and losses that ends soon
    untied: float = 0.6  # share of the rows that must count

    def __str__(self):
        return self.name


def method_of(policy):
    return MCTX_PUCT if policy is puct_policy else MCTX_GUMBEL


def tables_of(case, random):
    if not case.outcomes:
        return random_tables(
            random,
            BATCH_SIZE,
            case.num_actions,
            discounts=(-1.0, 1.0),
            terminals=0.1,
            illegal=0.2,
            dtype=np.float64,
        )
    tables = random_tables(
        random,
        BATCH_SIZE,
        case.num_actions,
        discounts=(-1.0, -1.0, 1.0),
        terminals=0.5,
        illegal=0.3,
        dtype=np.float64,
    )
    # The mask alone says what is legal at the root.
    tables.prior_logits[:, 0] = random.normal(size=tables.prior_logits[:, 0].shape)
    ends = tables.discounts == 0
    outcomes = random.choice([-1.0, 0.0, 1.0], ends.shape, p=[0.4, 0.3, 0.3])
    tables.rewards[...] = np.where(ends, outcomes, 0)
    # Some rewards are no outcomes: they prove nothing.
    tables.rewards[ends & (random.random(ends.shape) < 0.1)] = 0.25
    return tables


def search(case, tables, illegal, states=None, **more):
    policy: Callable = puct_policy
    options = {**case.options, **more}
    if isinstance(case.method, Gumbel):
        policy = gumbel_policy
    else:
        options |= {"dirichlet_fraction": 0.0, "temperature": 0.0}
    root = root_of(tables)
    if states is not None:
        values = tables.values[np.arange(BATCH_SIZE), states]
        logits = tables.prior_logits[np.arange(BATCH_SIZE), states]
        root = root.replace(
            embedding=jnp.asarray(states), value=values, prior_logits=logits
        )
    traced = {k: options.pop(k) for k in ("tree", "budgets") if k in options}
    run = partial(
        policy,
        recurrent_fn=recurrent_fn,
        num_simulations=case.num_simulations,
        **options,
    )

    @jax.jit
    def search(tables, root, illegal, traced):
        output = run(tables, jax.random.key(1), root, invalid_actions=illegal, **traced)
        return output.search_tree, result_of(output)

    return jax.device_get(search(tables, root, illegal, traced))


def gumbel_noise(tables):
    """What the policy draws: the second half of its key."""
    key = jax.random.split(jax.random.key(1))[1]
    return jax.random.gumbel(key, tables.prior_logits[:, 0].shape, np.float64).tolist()


def expected_of(
    case, tables, illegal, noise, row, num_simulations, options, first=(), root_state=0
):
    method = case.method
    if isinstance(method, Gumbel):
        method = Gumbel(noise=noise[row])
    result = reference_search(
        tables[row],
        num_simulations,
        illegal[row],
        root_state=root_state,
        method=method,
        **options,
    )
    result.gaps.extend(first)
    return result


def assert_equal(case, tree, ours, expected):
    untied = np.array([min(r.gaps, default=1) > MIN_GAP for r in expected])
    assert untied.mean() >= case.untied
    for name, values in (
        ("visit_counts", [r.visit_counts for r in expected]),
        ("simulations", [r.num_simulations for r in expected]),
        ("not_stored", [r.not_stored for r in expected]),
    ):
        got = ours[name] if name in ours else getattr(tree, name)
        np.testing.assert_array_equal(
            np.asarray(got)[untied], np.array(values)[untied], err_msg=name
        )
    for name in ("qvalues", "value", "action_weights"):
        np.testing.assert_allclose(
            np.asarray(ours[name])[untied],
            np.array([getattr(r, name) for r in expected])[untied],
            atol=1e-9,
            err_msg=name,
        )
    for row in np.flatnonzero(untied):
        candidates = expected[row].candidates
        assert not candidates or ours["action"][row] in candidates
