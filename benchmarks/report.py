"""The flags that all benchmarks share, and the lines of JSON that they print."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.measure import environment
from jaxsearch import backend


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure."""

    json: Path | None = None  # also append the lines to this file
    repeats: int | None = None  # runs of each program; by default each size has its own
    device: str = "auto"  # auto, cpu, gpu or tpu
    tiny: bool = False  # sizes for a trial of the program: the numbers mean nothing


class Report:
    """Prints each result as soon as it is there, as one line of JSON."""

    def __init__(self, benchmark: str, options: Options):
        """Starts the backend. A file that cannot be written shows now, not later."""
        backend.protect()
        backend.select(options.device)
        self._file = options.json
        if self._file:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.open("a").close()
        print(backend.describe(), file=sys.stderr)
        self._same = {"benchmark": benchmark}, environment()
        self.results: list[dict[str, Any]] = []

    def add(self, **result: Any) -> None:
        benchmark, about = self._same
        self.results.append({**benchmark, **result, **about})
        line = json.dumps(self.results[-1])
        print(line, flush=True)
        if self._file:
            with self._file.open("a") as file:
                file.write(line + "\n")


def new_table(title: str, names: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    """A table for people: columns of text, then columns of numbers."""
    rows = Table(title=title, box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in names:
        rows.add_column(heading, no_wrap=True)
    for heading in numbers:
        rows.add_column(heading, justify="right", no_wrap=True)
    return rows


def show(table: Table) -> None:
    Console(stderr=True).print(table)
