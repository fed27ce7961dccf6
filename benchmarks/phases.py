"""Where the time of a search goes: what it takes longer if a part is made twice.

    python -m benchmarks.phases [--json FILE]

Each line of JSON is a policy on the synthetic game: microseconds of one simulation of
the whole batch, `search`; what a second descent, backup, choice at the roots and choice
below them add to it; and `once`, a search of one simulation divided among all of them,
which is mostly what is not repeated. Opening nodes, and the model, are the rest.
Medians, the programs taking turns. Takes about three minutes on two CPU cores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import tyro
from rich.table import Table

from benchmarks import models
from benchmarks.measure import measure
from benchmarks.report import Options, Report, new_table, show
from jaxsearch.search import loop

PARTS = ("descend", "back_up", "select_at_roots", "select_below")
COLUMNS = ("search", *PARTS, "once")


@dataclass(frozen=True)
class Size:
    batch: int
    simulations: int
    actions: int


SIZES = (Size(256, 32, 9), Size(256, 128, 82), Size(256, 64, 362))
TINY = (Size(2, 4, 3),)


def main(options: Options) -> None:
    report = Report("phases", options)
    for size in TINY if options.tiny else SIZES:
        for policy in ("puct", "gumbel"):
            report.add(**phases(size, policy, options.repeats or 15))
    show(table(report.results))


def phases(size: Size, policy: str, repeats: int) -> dict[str, Any]:
    """The result for one size and policy."""
    model = models.synthetic(size.batch, size.actions)
    search = models.search_program(model, policy, size.simulations)
    programs = {
        "search": search,
        **{part: _with_part_twice(search, part) for part in PARTS},
        "once": models.search_program(model, policy, 1),
    }
    measured = measure(programs, model.arguments, repeats, warm_up=True)
    micros = {
        name: each.seconds / size.simulations * 1e6 for name, each in measured.items()
    }
    added = {part: round(micros[part] - micros["search"], 1) for part in PARTS}
    return {
        "size": f"{size.batch}x{size.simulations}x{size.actions}",
        "policy": policy,
        "search": round(micros["search"], 1),
        **added,
        "once": round(micros["once"], 1),
        "compile_seconds": round(measured["search"].compile_seconds, 2),
        "repeats": repeats,
    }


def _with_part_twice(search: Callable[..., Any], part: str) -> Callable[..., Any]:
    """The search that makes one of its parts once more on what came out of it.

    A second backup counts visits twice, so that another tree comes of it: for PUCT one
    of about the same shape, for Gumbel one that takes longer than the backup itself.
    """
    once: Callable[..., Any] = getattr(loop, part)

    def twice(tree, *arguments):
        result = once(tree, *arguments)
        if part == "descend":
            searched, _, *rest = arguments
            return once(tree, searched, result.path, *rest)
        if part == "back_up":
            tree, below = result
            return once(tree, *arguments[:-1], below)
        return once(result, *arguments)

    def program(*arguments):
        with mock.patch.object(loop, part, twice):
            return search(*arguments)

    return program


def table(results: list[dict[str, Any]]) -> Table:
    """The figures for people."""
    rows = new_table(
        "microseconds of a simulation, and what parts of it add when made twice",
        ("BxNxA", "policy"),
        COLUMNS,
    )
    for result in results:
        figures = (f"{result[column]:.1f}" for column in COLUMNS)
        rows.add_row(result["size"], result["policy"], *figures)
    return rows


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
