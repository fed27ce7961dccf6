# pyright: reportCallIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""A record of sequential PUCT on one tic-tac-toe position, reproduced.

data/tictactoe_puct.json holds root statistics for 3 priors, 20 seeds and 7 budgets. A
simulation of the record is an evaluation, the root's own included, so that a budget of
n is a search of n - 1 simulations.

The record's values go from 0 to 1, and a value v is 1 - v to the other side. As a model
every edge therefore has the reward 1 and the discount -1, and the edge into a finished
position the discount 0 and the reward 1 for a win or 1/2 for a draw.
"""

import importlib.resources
import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jax.experimental import io_callback

from jaxsearch.arena.hashed_evaluation import hash_rows
from jaxsearch.arena.splitmix_games import SplitMixGames
from jaxsearch.search.mctx_policies import mctx_puct_policy
from jaxsearch.search.puct import PuctRule, puct_policy
from jaxsearch.search.qtransforms import ConstantUrgency, qtransform_fixed_scale
from jaxsearch.search.select import NodeStatistics

GAME = "tic_tac_toe"
"""The game of the record."""

_POSITION = "..O/X../..."
_MCTX_SIMULATIONS = 200


@dataclass(frozen=True, kw_only=True)
class BudgetCount:
    """How many of the records with one budget came out exactly."""

    budget: int
    records: int
    equal: int  # float64: visits, value sums and choice
    equal_float32: int  # float32: visits


@dataclass(frozen=True, kw_only=True)
class WorkedScore:
    """A score computed by hand, and whether puct_policy computes it too."""

    prior: float
    visits: int
    score: float
    equal: bool  # to within 1e-9


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """At the largest budget: the winning cell's visit share, how often it is chosen."""

    priors: str
    recorded_share: float
    share_float64: float
    share_float32: float
    recorded_plays: int
    plays_float64: int
    plays_float32: int


@dataclass(frozen=True, kw_only=True)
class FixturesResult:
    """Everything in the record beside what `puct_policy` gives, and mctx beside it."""

    budgets: tuple[BudgetCount, ...]
    worked_example: tuple[WorkedScore, ...]
    summary: tuple[SummaryRow, ...]
    mctx_simulations: int
    mctx_roots: int
    mctx_equal: int  # roots where mctx visited every action as often as puct_policy

    @property
    def records(self) -> int:
        return sum(row.records for row in self.budgets)

    @property
    def equal(self) -> int:
        return sum(row.equal for row in self.budgets)

    @property
    def equal_float32(self) -> int:
        return sum(row.equal_float32 for row in self.budgets)


def load_record() -> dict[str, Any]:
    """The record as it stands in the file."""
    data = importlib.resources.files("jaxsearch.arena") / "data"
    return json.loads((data / "tictactoe_puct.json").read_text())


def reproduce_fixtures(env: Any) -> FixturesResult:
    """Runs the whole record, in float64 and in float32.

    Raises:
      ValueError: another game than tic-tac-toe.
    """
    if env.id != GAME:
        raise ValueError(f"the record is of {GAME}, got the game {env.id}")
    record = load_record()
    largest = record["budgets"][-1]
    with jax.enable_x64(True):
        statistics = root_statistics(env, record)
        worked = tuple(map(_check_worked_score, record["worked_example"]))
        mctx_roots, mctx_equal = _compare_with_mctx(env, record)
    with jax.enable_x64(False):
        rounded = {
            budget: visits
            for budget, (visits, _) in root_statistics(env, record).items()
        }
    budgets = tuple(
        _count_equal(record, number, *statistics[budget], rounded[budget])
        for number, budget in enumerate(record["budgets"])
    )
    return FixturesResult(
        budgets=budgets,
        worked_example=worked,
        summary=_summaries(record, statistics[largest][0], rounded[largest]),
        mctx_simulations=_MCTX_SIMULATIONS,
        mctx_roots=mctx_roots,
        mctx_equal=mctx_equal,
    )


def root_statistics(
    env: Any, record: dict[str, Any]
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Searches from all the record's priors and seeds, side by side.

    Args:
      env: tic-tac-toe.
      record: see `load_record`.

    Returns:
      For each of the record's budgets, the evaluations in a search: visits [R, 7] int
      and value sums [R, 7] float, in the order of the record's runs and cells.
    """
    runs, cells = record["runs"], np.array(record["cells"])
    games = SplitMixGames([run["seed"] for run in runs])

    def evaluate(states, seeds):
        del seeds
        planes = jax.vmap(env.observe)(states).reshape(-1, 9, 2)
        # Whole numbers: a callback's thread does not know that float64 is on.
        half_points = io_callback(
            games.play,
            jax.ShapeDtypeStruct(planes.shape[:1], jnp.int32),
            planes,
            ~states.terminated,
            ordered=True,
        )
        dtype = jnp.result_type(float)
        prior_logits = jnp.zeros_like(states.legal_action_mask, dtype)
        return prior_logits, half_points.astype(dtype) / 2

    priors = np.array([record["priors"][run["priors"]] for run in runs])

    @jax.jit  # once for all budgets
    def search(root, prior_probs, simulations):
        tree: Any = puct_policy(
            None,
            jax.random.key(0),
            root,
            _recurrent_fn(env, evaluate),
            record["budgets"][-1] - 1,
            ~root.embedding[0].legal_action_mask,
            qtransform=qtransform_fixed_scale,
            first_play_urgency=ConstantUrgency(0.5),
            c_puct=record["search"]["c_puct"],
            dirichlet_fraction=0.0,
            root_prior_probs=prior_probs,
            budgets=jnp.full(len(runs), simulations),
        ).search_tree
        # No move from this position ends the game, so that every child is a node.
        child_sums = jax.vmap(lambda sums, child: sums[child])(
            tree.value_sums, tree.root_children
        )
        return tree.summary().visit_counts, child_sums

    statistics = {}
    for budget in record["budgets"]:
        games.restart()
        root = _root(env, priors, cells, np.zeros(len(runs), np.int32), evaluate)
        # As probabilities: the softmax of their logarithms is off in the last bit,
        # enough to change a near tie and with it all that follows.
        prior_probs = np.zeros(root.prior_logits.shape, root.prior_logits.dtype)
        prior_probs[:, cells] = priors
        visits, sums = jax.device_get(search(root, prior_probs, budget - 1))
        visits, sums = visits[:, cells].astype(int), sums[:, cells]
        statistics[budget] = visits, np.where(visits > 0, visits - sums, 0)
    return statistics


def _root(env, priors, cells, seeds, evaluate) -> mctx.RootFnOutput:
    """The record's position with the priors [R, 7] of its free cells."""
    rows = len(priors)
    states = jax.tree.map(
        lambda leaf: jnp.stack([leaf] * rows), env.from_text(_POSITION)
    )
    prior_logits, value = jax.jit(evaluate)(states, seeds)
    logits = np.full((rows, env.num_actions), -np.inf, prior_logits.dtype)
    logits[:, cells] = np.log(priors)
    return mctx.RootFnOutput(
        prior_logits=prior_logits + logits,
        value=value,
        embedding=(states, seeds),
    )


def _recurrent_fn(env, evaluate):
    """The game on the record's scale of values, see the top of the file."""

    def recurrent_fn(params, key, action, embedding):
        del params, key
        states, seeds = embedding
        mover = states.current_player
        states = jax.vmap(env.step)(states, action)
        prior_logits, value = evaluate(states, seeds)
        gain = jax.vmap(lambda rewards, player: rewards[player])(states.rewards, mover)
        gain, one = gain.astype(value.dtype), jnp.ones_like(value)
        lowest = jnp.finfo(prior_logits.dtype).min
        output = mctx.RecurrentFnOutput(
            reward=jnp.where(states.terminated, (1 + gain) / 2, one),
            discount=jnp.where(states.terminated, 0, -one),
            prior_logits=jnp.where(states.legal_action_mask, prior_logits, lowest),
            value=value,
        )
        reached: Any = (states, seeds)
        return output, reached

    return recurrent_fn


def _count_equal(record, number, visits, value_sums, rounded_visits) -> BudgetCount:
    equal = equal_float32 = 0
    for run, row, sums, rounded in zip(
        record["runs"], visits, value_sums, rounded_visits, strict=True
    ):
        equal_float32 += rounded.tolist() == run["visits"][number]
        equal += (
            row.tolist() == run["visits"][number]
            and sums.tolist() == run["value_sums"][number]
            and record["cells"][row.argmax()] == run["best"][number]
        )
    return BudgetCount(
        budget=record["budgets"][number],
        records=len(record["runs"]),
        equal=equal,
        equal_float32=equal_float32,
    )


def _summaries(record, exact, rounded) -> tuple[SummaryRow, ...]:
    """One row for each of the priors, from visits [R, 7] in two precisions."""
    priors = np.array([run["priors"] for run in record["runs"]])
    winning = record["cells"].index(record["position"]["only_winning_cell"])
    rows = []
    for name, recorded in record["summary_at_800"].items():
        share, plays = {}, {}
        for precision, visits in (("float64", exact), ("float32", rounded)):
            of_priors = visits[priors == name]
            share[f"share_{precision}"] = float(
                of_priors[:, winning].sum() / of_priors.sum()
            )
            plays[f"plays_{precision}"] = int(
                (of_priors.argmax(axis=1) == winning).sum()
            )
        rows.append(
            SummaryRow(
                priors=name,
                recorded_share=float(recorded["visit_share_cell_0"][:-1]) / 100,
                recorded_plays=int(recorded["plays_cell_0"].split()[0]),
                **share,
                **plays,
            )
        )
    return tuple(rows)


def _check_worked_score(example: dict[str, Any]) -> WorkedScore:
    """The score by which puct_policy chooses, of a node with the example's numbers."""
    prior, visits = example["prior"], example["visits"]
    node = NodeStatistics(
        prior_probs=jnp.array([[prior]]),
        visit_counts=jnp.array([[visits]]),
        qvalues=jnp.array([[example["value_sum"] / visits if visits else 0.0]]),
        node_value=jnp.zeros(1),
        raw_value=jnp.zeros(1),
        node_visits=jnp.array([example["parent_visits"]]),
        num_actions=1,
        rows=jnp.zeros(1, jnp.int32),
        row_parameters=jnp.array([example["c_puct"]]),
    )
    urgency = ConstantUrgency(example.get("unvisited_value", 0.0))
    scores = PuctRule(qtransform_fixed_scale, urgency).scores(node)
    return WorkedScore(
        prior=prior,
        visits=visits,
        score=example["score"],
        equal=abs(float(scores[0, 0]) - example["score"]) < 1e-9,
    )


def _compare_with_mctx(env, record) -> tuple[int, int]:
    """Roots searched by puct_policy and mctx, and those with equal visits.

    Values and slightly uneven priors are hashed from the position and the seed, so that
    no scores are tied. mctx scores an unvisited action as 0, so ours does here too.
    """
    runs, cells = record["runs"], np.array(record["cells"])

    def evaluate(states, seeds):
        planes = jax.vmap(env.observe)(states).reshape(-1, 18)
        rows = jnp.concatenate([planes.astype(int), seeds[:, None]], axis=1)
        hashes = hash_rows(rows, env.num_actions + 1)
        hashes = hashes.astype(jnp.result_type(float))
        return 0.01 * hashes[:, :-1], hashes[:, -1]

    priors = np.array([record["priors"][run["priors"]] for run in runs])
    seeds = np.array([run["seed"] for run in runs], np.int32)
    root = _root(env, priors, cells, jnp.asarray(seeds), evaluate)

    def visits(policy, **settings):
        return jax.jit(
            lambda root: (
                policy(
                    None,
                    jax.random.key(0),
                    root,
                    _recurrent_fn(env, evaluate),
                    _MCTX_SIMULATIONS,
                    ~root.embedding[0].legal_action_mask,
                    dirichlet_fraction=0.0,
                    **settings,
                )
                .search_tree.summary()
                .visit_counts
            )
        )(root)

    ours = visits(puct_policy, qtransform=qtransform_fixed_scale, c_puct=1.0)
    theirs = visits(
        mctx_puct_policy,
        qtransform=partial(mctx.qtransform_by_min_max, min_value=0.0, max_value=1.0),
        # So large a base leaves c = pb_c_init at any number of visits.
        pb_c_init=1.0,
        pb_c_base=1e18,
    )
    return len(runs), int(np.all(np.asarray(ours) == np.asarray(theirs), axis=1).sum())
