"""Search alone: our policies against mctx's, on games that cost next to nothing.

    python -m benchmarks.search [--json FILE]

Each line of JSON compares one of our policies with a rival, on the same roots and all
with their default options: simulations per second (of the whole batch; median of the
runs after compilation, the policies taking turns), their ratio, compile time and
memory. A table follows at the end. Takes about eight minutes on two CPU cores, nearly
all of which mctx needs.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import tyro
from rich.table import Table

from benchmarks import models
from benchmarks.measure import Measurement, measure
from benchmarks.report import Options, Report, new_table, show

PUCT = ("puct", "mctx-puct")
GUMBEL = ("gumbel", "mctx-gumbel")
PUCT_OVER_GUMBEL = ("puct", "gumbel")


@dataclass(frozen=True, kw_only=True)
class Work:
    """One size of search, and the pairs of a policy of ours and its rival."""

    batch: int
    simulations: int
    actions: int
    game: str = "synthetic"  # or tic-tac-toe, the real game from its start
    pairs: tuple[tuple[str, str], ...] = (PUCT, GUMBEL, PUCT_OVER_GUMBEL)
    repeats: int = 5  # runs of each policy


# mctx's PUCT is left out where some runs of it would take many minutes, and runs once
# on tic-tac-toe, where it takes four minutes.
WORK = (
    Work(batch=256, simulations=128, actions=82),
    Work(
        batch=64,
        simulations=800,
        actions=82,
        pairs=(GUMBEL, PUCT_OVER_GUMBEL),
        repeats=3,
    ),
    Work(batch=256, simulations=32, actions=9),
    Work(batch=256, simulations=64, actions=362, pairs=(GUMBEL, PUCT_OVER_GUMBEL)),
    Work(
        game="tic-tac-toe",
        batch=1024,
        simulations=800,
        actions=9,
        pairs=(PUCT,),
        repeats=1,
    ),
)
TINY = (
    Work(batch=4, simulations=8, actions=5, repeats=2),
    Work(
        game="tic-tac-toe",
        batch=4,
        simulations=8,
        actions=9,
        pairs=(PUCT,),
        repeats=1,
    ),
)


def main(options: Options) -> None:
    report = Report("search", options)
    for work in TINY if options.tiny else WORK:
        work = replace(work, repeats=options.repeats or work.repeats)
        for result in compare(work):
            report.add(**result)
    show(table(report.results))


def compare(work: Work) -> list[dict[str, Any]]:
    """Measures one size of search; one result for each pair."""
    if work.game == "tic-tac-toe":
        model = models.tic_tac_toe(work.batch)
    else:
        model = models.synthetic(work.batch, work.actions)
    names = dict.fromkeys(name for pair in work.pairs for name in pair)
    programs = {
        name: models.search_program(model, name, work.simulations) for name in names
    }
    measured = measure(programs, model.arguments, work.repeats)
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
    rows = new_table(
        "thousand simulations per second, ours and the rival's",
        ("BxNxA", "policy", "rival"),
        ("ours", "rival's", "ratio", "compile s", "MB"),
    )
    for result in results:
        both = {
            name: (result[name], result[f"rival_{name}"])
            for name in ("simulations_per_second", "compile_seconds", "memory_bytes")
        }
        sizes = "x".join(str(result[k]) for k in ("batch", "simulations", "actions"))
        rows.add_row(
            sizes if result["game"] == "synthetic" else f"{sizes} {result['game']}",
            result["policy"],
            result["rival"],
            *(f"{speed / 1e3:.1f}" for speed in both["simulations_per_second"]),
            f"{result['ratio']:.1f}",
            " / ".join(f"{seconds:.1f}" for seconds in both["compile_seconds"]),
            " / ".join(f"{size / 1e6:.0f}" for size in both["memory_bytes"]),
        )
    return rows


def _figures(work: Work, measurement: Measurement) -> dict[str, int | float]:
    simulations = work.batch * work.simulations
    return {
        "simulations_per_second": round(simulations / measurement.seconds),
        "compile_seconds": round(measurement.compile_seconds, 2),
        "memory_bytes": measurement.memory_bytes,
    }


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
