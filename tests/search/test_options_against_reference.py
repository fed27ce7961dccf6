"""Every option of both policies does what the plain Python search does with it.

In float64 on random games. Rows in which a choice was all but tied are left out: there
rounding decides.
"""

import jax
import numpy as np
import pytest

from jaxsearch import (
    ConstantUrgency,
    EarlyStop,
    ParentUrgency,
    VarianceScaling,
    qtransform_by_tree_range,
    qtransform_fixed_scale,
)
from tests.search import reference_search as reference
from tests.search.option_cases import (
    BATCH_SIZE,
    MCTX_GUMBEL,
    MCTX_PUCT,
    Case,
    Puct,
    assert_equal,
    expected_of,
    gumbel_noise,
    search,
    tables_of,
)
from tests.search.table_model import random_mask

SCALING = {"prior_stdev": 0.5, "prior_weight": 3.0, "scale": 0.7}
FIXED = {"qtransform": qtransform_fixed_scale}


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
        tables = tables_of(case, random)
        illegal = random_mask(random, BATCH_SIZE, case.num_actions)
        ours = search(case, tables, illegal, refill_terminals=refill_terminals)
        noise = gumbel_noise(tables)
    also = {**case.also}
    if early_stop := also.get("early_stop"):
        also["early_stop"] = reference.EarlyStop(**vars(early_stop))
    assert_equal(
        case,
        *ours,
        [
            expected_of(case, tables, illegal, noise, row, case.num_simulations, also)
            for row in range(BATCH_SIZE)
        ],
    )
