"""The visit counts of `puct_policy` equal those of `mctx.muzero_policy`.

Over 10,000 random roots are searched by both, and by the plain Python reference. The
programs round differently and mctx adds noise of up to 1e-7 to its scores, so they may
part where two actions are nearly equal. Which rows may do so is decided by the
reference alone, from the gaps between the best and the second-best score that it met.
"""

from dataclasses import dataclass
from functools import partial

import jax
import mctx
import numpy as np
import pytest

from jaxsearch import puct_policy
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    reference_search,
    result_of,
    root_of,
    with_finished_value,
)

# A row is untied where all gaps of the reference are wider than this.
MIN_GAP = {np.float32: 1e-5, np.float64: 3e-7}
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-10}
MIN_UNTIED_SHARE = 0.8


@dataclass(frozen=True)
class Game:
    """Options of `random_tables`, and how its roots are searched."""

    options: tuple = ()
    root_mask: bool = False
    temperature: float = 1.0


ZERO_SUM = Game()
MASKED = Game((("illegal", 0.4),), root_mask=True, temperature=0.0)
FINISHING = Game((("terminals", 0.2), ("illegal", 0.3)), root_mask=True)
MIXED = Game(
    (("discounts", (-1.0, 1.0, 0.9)), ("terminals", 0.1), ("rewards", 0.5)),
    root_mask=True,
    temperature=0.5,
)
ALL = (ZERO_SUM, MASKED, FINISHING, MIXED)


@dataclass(frozen=True)
class Case:
    batch_size: int
    num_actions: int
    num_simulations: int
    dtype: type = np.float32
    max_depth: int | None = None
    dirichlet_fraction: float = 0.0
    games: tuple[Game, ...] = ALL

    def __str__(self):
        shape = f"B{self.batch_size}-A{self.num_actions}-N{self.num_simulations}"
        depth = f"-depth{self.max_depth}" if self.max_depth else ""
        return f"{shape}{depth}-{self.dtype.__name__}"


CASES = [
    Case(3, 7, 1),
    Case(1, 7, 2),
    Case(3072, 2, 8),
    Case(1024, 7, 32, dirichlet_fraction=0.25, games=(MASKED, MIXED)),
    Case(128, 7, 64, np.float64, max_depth=3, games=(MASKED, MIXED)),
    Case(128, 82, 32, np.float64, games=(ZERO_SUM, MASKED, FINISHING)),
]


def test_cases_hold_ten_thousand_untied_roots():
    roots = sum(case.batch_size * len(case.games) for case in CASES)
    assert roots * MIN_UNTIED_SHARE >= 10_000


@pytest.mark.parametrize("case", CASES, ids=str)
def test_visits_equal_those_of_mctx_and_of_the_reference(case):
    for seed, game in enumerate(case.games):
        with jax.enable_x64(case.dtype == np.float64):
            _check(case, game, seed)


def _check(case: Case, game: Game, seed: int) -> None:
    random = np.random.default_rng([seed, case.batch_size, case.num_simulations])
    tables = random_tables(
        random,
        case.batch_size,
        case.num_actions,
        dtype=case.dtype,
        **dict(game.options),
    )
    illegal = np.zeros((case.batch_size, case.num_actions), bool)
    if game.root_mask:
        illegal = random_mask(random, case.batch_size, case.num_actions)
    arguments = (
        tables,
        jax.random.key(seed),
        illegal,
        case.dtype(game.temperature),
        case,
    )
    ours = jax.device_get(_search_with_ours(*arguments))
    theirs = jax.device_get(_search_with_mctx(*arguments))
    reference = [
        # The root's logits hold the noise that mctx drew.
        reference_search(
            tables[row],
            case.num_simulations,
            illegal[row],
            root_logits=theirs["root_logits"][row],
            max_depth=case.max_depth,
        )
        for row in range(case.batch_size)
    ]

    untied = np.array([min(r.gaps, default=1) for r in reference]) > MIN_GAP[case.dtype]
    assert untied.mean() >= min(MIN_UNTIED_SHARE, 1 - 1 / case.batch_size)

    assert ours["visit_counts"].dtype == case.dtype
    assert np.all(ours["visit_counts"].sum(axis=1) == case.num_simulations)
    assert np.all(ours["visit_counts"][illegal] == 0)
    same = ["visit_counts", "action", "action_weights"]
    # mctx goes on below finished positions and leaves slots free where simulations open
    # no node; elsewhere the trees are the same.
    if case.max_depth is None and not np.any(tables.discounts == 0):
        same += ["parents", "actions", "visits"]
    for name in same:
        np.testing.assert_array_equal(
            ours[name][untied], theirs[name][untied], err_msg=name
        )
    np.testing.assert_array_equal(
        ours["visit_counts"][untied],
        np.array([r.visit_counts for r in reference])[untied],
    )
    for name, of_reference in (
        ("value", [r.value for r in reference]),
        ("qvalues", [r.qvalues for r in reference]),
    ):
        for expected in (theirs[name], np.array(of_reference)):
            np.testing.assert_allclose(
                ours[name][untied],
                expected[untied],
                rtol=0,
                atol=TOLERANCE[case.dtype],
                err_msg=name,
            )


@partial(jax.jit, static_argnames="case")
def _search_with_ours(tables, key, illegal, temperature, case):
    # What the model says of finished positions must not matter to us: it is NaN.
    output = puct_policy(
        tables,
        key,
        root_of(tables),
        with_finished_value(float("nan")),
        case.num_simulations,
        illegal,
        case.max_depth,
        dirichlet_fraction=case.dirichlet_fraction,
        temperature=temperature,
    )
    tree = output.search_tree
    return _result(output, tree.visits, tree.parents, tree.actions)


@partial(jax.jit, static_argnames="case")
def _search_with_mctx(tables, key, illegal, temperature, case):
    output = mctx.muzero_policy(
        tables,
        key,
        root_of(tables),
        recurrent_fn,
        case.num_simulations,
        illegal,
        case.max_depth,
        dirichlet_fraction=case.dirichlet_fraction,
        temperature=temperature,
    )
    tree = output.search_tree
    result = _result(output, tree.node_visits, tree.parents, tree.action_from_parent)
    return result | {"root_logits": tree.children_prior_logits[:, 0]}


def _result(output, visits, parents, actions):
    return result_of(output) | {
        "visits": visits,
        "parents": parents,
        "actions": actions,
    }
