"""Search alone: our policies against mctx's, on a synthetic game.

    python -m benchmarks.search [--json FILE]

Each line of JSON compares one of our policies with a rival, on the same roots and all
with their default options: simulations per second (of the whole batch; median
of five runs after compilation, the policies taking turns), their ratio, compile time
and memory. A table follows at the end. Takes about four minutes on two CPU cores, most
of which mctx needs.
"""

import json
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks import synthetic_game
from benchmarks.measure import Measurement, environment, measure
from jaxsearch import backend
from jaxsearch.search.policy_names import policy_named

GUMBEL = ("gumbel", "mctx-gumbel")
PUCT_OVER_GUMBEL = ("puct", "gumbel")


@dataclass(frozen=True, kw_only=True)
class Work:
    """One size of search, and the pairs of a policy of ours and its rival."""

    batch: int
    simulations: int
    actions: int
    pairs: tuple[tuple[str, str], ...] = (
        ("puct", "mctx-puct"),
        GUMBEL,
        PUCT_OVER_GUMBEL,
    )


# mctx's PUCT is left out where five runs of it would take many minutes.
WORK = (
    Work(batch=256, simulations=32, actions=9),
    Work(batch=256, simulations=128, actions=82),
    Work(batch=256, simulations=64, actions=362, pairs=(GUMBEL, PUCT_OVER_GUMBEL)),
    Work(batch=64, simulations=800, actions=82, pairs=(GUMBEL, PUCT_OVER_GUMBEL)),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure."""

    json: Path | None = None  # also write the lines to this file
    repeats: int = 5  # runs of each policy, of which the median counts
    device: str = "auto"  # auto, cpu, gpu or tpu


def main(options: Options) -> None:
    backend.protect()
    backend.select(options.device)
    if options.json:  # a folder that cannot be made shows now, not minutes later
        options.json.parent.mkdir(parents=True, exist_ok=True)
    print(backend.describe(), file=sys.stderr)
    about = environment()
    results = []
    for work in WORK:
        for result in compare(work, options.repeats):
            results.append({"benchmark": "search", **result, **about})
            print(json.dumps(results[-1]), flush=True)
    if options.json:
        options.json.write_text("".join(json.dumps(line) + "\n" for line in results))
    Console(stderr=True).print(table(results))


def compare(work: Work, repeats: int) -> list[dict[str, Any]]:
    """Measures one size of search; one result for each pair."""
    arguments = (
        synthetic_game.make_tables(work.actions),
        jax.random.key(0),
        synthetic_game.root_states(work.batch),
    )
    names = dict.fromkeys(name for pair in work.pairs for name in pair)
    programs = {name: partial(_search, name, work.simulations) for name in names}
    measured = measure(programs, jax.device_put(arguments), repeats)
    sizes = {k: v for k, v in asdict(work).items() if k != "pairs"}
    figures = {name: _figures(work, measured[name]) for name in names}
    results = []
    for policy, rival in work.pairs:
        ours, theirs = figures[policy], figures[rival]
        speed = "simulations_per_second"
        results.append(
            {
                **sizes,
                "policy": policy,
                "rival": rival,
                "ratio": round(ours[speed] / theirs[speed], 2),
                **ours,
                **{f"rival_{name}": figure for name, figure in theirs.items()},
            }
        )
    return results


def table(results: list[dict[str, Any]]) -> Table:
    """The results for people: B searches side by side, N simulations, A actions."""
    rows = Table(
        title="thousand simulations per second, ours and the rival's",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    rows.add_column("BxNxA", no_wrap=True)
    rows.add_column("policy", no_wrap=True)
    rows.add_column("rival", no_wrap=True)
    for heading in ("ours", "rival's", "ratio", "compile s", "MB"):
        rows.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        both = {
            name: (result[name], result[f"rival_{name}"])
            for name in ("simulations_per_second", "compile_seconds", "memory_bytes")
        }
        rows.add_row(
            "x".join(str(result[k]) for k in ("batch", "simulations", "actions")),
            result["policy"],
            result["rival"],
            *(f"{speed / 1e3:.1f}" for speed in both["simulations_per_second"]),
            f"{result['ratio']:.1f}",
            " / ".join(f"{seconds:.1f}" for seconds in both["compile_seconds"]),
            " / ".join(f"{size / 1e6:.0f}" for size in both["memory_bytes"]),
        )
    return rows


def _search(policy_name, num_simulations, tables, key, states):
    output = policy_named(policy_name)(
        tables,
        key,
        synthetic_game.root_of(tables, states),
        synthetic_game.recurrent_fn,
        num_simulations,
    )
    return output.action, output.action_weights


def _figures(work: Work, measurement: Measurement) -> dict[str, int | float]:
    simulations = work.batch * work.simulations
    return {
        "simulations_per_second": round(simulations / measurement.seconds),
        "compile_seconds": round(measurement.compile_seconds, 2),
        "memory_bytes": measurement.memory_bytes,
    }


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
