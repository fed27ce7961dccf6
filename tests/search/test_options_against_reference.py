"""Every option of both policies does what the plain Python search does with it.

In float64 on random games. Rows in which a choice was all but tied are left out: there
rounding decides.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import (
    ConstantUrgency,
    EarlyStop,
    ParentUrgency,
    VarianceScaling,
    gumbel_policy,
    puct_policy,
    qtransform_by_tree_range,
    qtransform_fixed_scale,
)
from tests.search import reference_search as reference
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    reference_search,
    result_of,
    root_of,
)

BATCH_SIZE, MIN_GAP = 48, 1e-9
CAPACITY = 32  # of the trees that are gone on with: one first search fills it
SCALING = {"prior_stdev": 0.5, "prior_weight": 3.0, "scale": 0.7}
FIXED = {"qtransform": qtransform_fixed_scale}
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


def both(name, shared, **more) -> list[Case]:
    """The case of PUCT and the one of Gumbel."""
    return [
        Case(f"puct-{name}", shared, MCTX_PUCT, shared, **more),
        Case(f"gumbel-{name}", shared, MCTX_GUMBEL, shared, **more),
    ]


CASES = [
    *both("plain", {}),
    *both("max_children", {"max_children": 2}),
    *both("max_children-of-all", {"max_children": 4}),
    *both("solve", {"solve": True}, outcomes=True, num_simulations=80),
    *both("early_stop", {"early_stop": EarlyStop(interval=5)}),
    *both(
        "policy_change",
        {"early_stop": EarlyStop(interval=4, most_visited=False, policy_change=0.004)},
    ),
    Case(
        "puct-solve-fixed-scale",
        {**FIXED, "c_puct": 1.5, "solve": True},
        Puct(transform="fixed_scale", c_puct=1.5),
        {"solve": True},
        outcomes=True,
        num_simulations=80,
        untied=0.5,
    ),
    Case(
        "puct-variance",
        {**FIXED, "c_puct": 2.0, "variance_scaling": VarianceScaling(**SCALING)},
        Puct(
            transform="fixed_scale",
            c_puct=2.0,
            variance_scaling=reference.VarianceScaling(**SCALING),
        ),
    ),
    Case(
        "puct-variance-and-schedule",
        {"variance_scaling": VarianceScaling()},
        Puct(variance_scaling=reference.VarianceScaling()),
    ),
    Case(
        "puct-constant-urgency",
        {**FIXED, "first_play_urgency": ConstantUrgency(-0.3)},
        Puct(transform="fixed_scale", first_play_urgency=-0.3),
    ),
    Case(
        "puct-urgency-of-parent",
        {"first_play_urgency": ParentUrgency()},
        Puct(first_play_urgency=reference.ParentValue()),
    ),
    Case(
        "puct-urgency-below-parent",
        {
            **FIXED,
            "first_play_urgency": ParentUrgency(0.4),
            "root_first_play_urgency": ConstantUrgency(1.0),
        },
        Puct(
            transform="fixed_scale",
            first_play_urgency=reference.ParentValue(0.4),
            root_first_play_urgency=1.0,
        ),
    ),
    Case(
        "puct-tree-range",
        {"qtransform": qtransform_by_tree_range},
        Puct(transform="tree_range"),
    ),
    Case(
        "puct-tree-range-solve",
        {"qtransform": qtransform_by_tree_range, "solve": True},
        Puct(transform="tree_range"),
        {"solve": True},
        outcomes=True,
        untied=0.2,
    ),
    Case(
        "puct-root-temperature",
        {"root_prior_temperature": 1.7},
        Puct(root_prior_temperature=1.7),
    ),
    Case(
        "puct-forced-playouts",
        {**FIXED, "c_puct": 1.2, "forced_playouts": 2.0},
        Puct(transform="fixed_scale", c_puct=1.2, forced_playouts=2.0),
        num_simulations=80,
    ),
    Case(
        "puct-forced-playouts-and-schedule",
        {"forced_playouts": 3.0},
        Puct(forced_playouts=3.0),
        num_simulations=80,
        untied=0.4,
    ),
]


REFILLED = [case for case in CASES if case.name.endswith(("plain", "-solve"))]
# Each is compiled for itself, which takes minutes in all.
QUICK = ("gumbel-solve", "puct-max_children", "puct-variance", "puct-tree-range-solve")


@pytest.mark.parametrize(
    ("case", "refill_terminals"),
    [
        pytest.param(
            case,
            refill,
            marks=() if case.name in QUICK else pytest.mark.slow,
            id=f"{case}-refill" if refill else str(case),
        )
        for cases, refill in ((CASES, False), (REFILLED, True))
        for case in cases
    ],
)
def test_search_equals_the_reference(case, refill_terminals):
    with jax.enable_x64(True):
        random = np.random.default_rng(5)
        tables = _tables(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        ours = _search(case, tables, illegal, refill_terminals=refill_terminals)
        noise = _gumbel_noise(tables)
    also = {**case.also}
    if early_stop := also.get("early_stop"):
        also["early_stop"] = reference.EarlyStop(**vars(early_stop))
    _assert_equal(
        case,
        *ours,
        [
            _reference(case, tables, illegal, noise, row, case.num_simulations, also)
            for row in range(BATCH_SIZE)
        ],
    )


@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_each_row_has_its_own_budget(policy):
    case = Case("budgets", method=_method_of(policy), num_simulations=30)
    with jax.enable_x64(True):
        random = np.random.default_rng(6)
        tables = _tables(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        budgets = random.integers(0, 31, BATCH_SIZE)
        ours = _search(case, tables, illegal, budgets=jnp.array(budgets))
        noise = _gumbel_noise(tables)
    np.testing.assert_array_equal(ours[0].simulations, budgets)
    _assert_equal(
        case,
        *ours,
        [
            _reference(case, tables, illegal, noise, row, int(budgets[row]), {})
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
        _method_of(policy),
        {"solve": solve},
        num_simulations=30,
        outcomes=solve,
        untied=0.6,
    )
    with jax.enable_x64(True):
        random = np.random.default_rng(7)
        tables = _tables(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        tree, first = _search(case, tables, illegal, capacity=CAPACITY)
        reset = random.random(BATCH_SIZE) < 0.2
        advance = jax.jit(lambda tree, action: tree.advance(action, jnp.array(reset)))
        tree = advance(tree, first["action"])
        states = tables.next_states[np.arange(BATCH_SIZE), 0, first["action"]]
        logits = tables.prior_logits[np.arange(BATCH_SIZE), states]
        below = logits == np.finfo(np.float64).min
        tree, second = _search(case, tables, below, states, tree=tree)
        noise = _gumbel_noise(tables)
    expected, kept = [], 0
    for row in range(BATCH_SIZE):
        result = _reference(
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
        result = _reference(
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
    _assert_equal(case, tree, second, expected)


# Two searches of one root that keep other actions; what was visited stays.
@pytest.mark.parametrize("solve", [False, True])
@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_search_goes_on_with_other_actions_at_the_root(policy, solve):
    options = {"max_children": 2, "solve": solve}
    case = Case(
        "other-actions",
        options,
        _method_of(policy),
        options,
        num_simulations=12,
        outcomes=solve,
        untied=0.6,
    )
    with jax.enable_x64(True):
        random = np.random.default_rng(11)
        tables = _tables(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        tree, _ = _search(case, tables, illegal, capacity=CAPACITY)
        other = copy.deepcopy(tables)
        other.prior_logits[:, 0] = random.normal(size=other.prior_logits[:, 0].shape)
        tree, second = _search(case, other, illegal, tree=tree)
        noise = _gumbel_noise(tables)
    expected = []
    for row in range(BATCH_SIZE):
        also = {**case.also, "capacity": CAPACITY}
        number = case.num_simulations
        first = _reference(case, tables, illegal, noise, row, number, also)
        also |= {"tree": first.tree}
        expected.append(
            _reference(case, other, illegal, noise, row, number, also, first.gaps)
        )
    children = [len(result.tree.root.children) for result in expected]
    assert np.mean(np.array(children) > 2) > 0.1
    _assert_equal(case, tree, second, expected)


def _method_of(policy):
    return MCTX_PUCT if policy is puct_policy else MCTX_GUMBEL


def _tables(case, random):
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


def _search(case, tables, illegal, states=None, **more):
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


def _gumbel_noise(tables):
    """What the policy draws: the second half of its key."""
    key = jax.random.split(jax.random.key(1))[1]
    return jax.random.gumbel(key, tables.prior_logits[:, 0].shape, np.float64).tolist()


def _reference(
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


def _assert_equal(case, tree, ours, expected):
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
