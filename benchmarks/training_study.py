"""What the settings of training are worth: the same time, and one change at a time.

    python -m benchmarks.training_study [VARIANT ...] [--json FILE] [--minutes 5]

Each variant trains connect four by the preset, but for what its name stands for below,
and is measured on the solved positions. So that other work on the machine counts for
little, the minutes are those of the processor, divided by its cores. A line of JSON for
each: `raw`, `with_32` and `with_128` are the shares of positions whose outcome the net
keeps alone and with 32 and 128 simulations, `value_error` is the mean square by which
its value is off the outcome, which is -1, 0 or 1, `curve` has the minutes, `raw` and
`with_32` in between. The runs stay in the folder --runs, for evaluate.py to play.
"""

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import jax
import numpy as np
import tyro
from tyro.conf import Positional, arg

import train
from benchmarks.report import Options as SharedOptions
from benchmarks.report import Report, new_table, show
from jaxsearch.arena import positions
from jaxsearch.learn import trainer
from jaxsearch.learn.files import read_object
from jaxsearch.learn.run_folder import RunFolder

VARIANTS = {
    "preset": "",
    "another_seed": "--seed 1",
    "short_openings": "--opening-plies 8",
    "little_noise": "--temperature 0.3",
    "no_noise": "--temperature 0",
    "more_simulations": "--simulations 16",
    "playout_cap": "--simulations 16 --fast-simulations 4 --full-share 0.25",
    "growing_window": "--positions 400000 --first-positions 60000",
    "large_window": "--positions 180000",
    "wdl_head": "--value-head wdl",
    "search_values": "--search-value-share 0.75",
    "surprise": "--surprise-share 0.5",
    "no_proofs": "--no-solve",
    "tree_reuse": "--reuse-tree",
    "narrow_net": "--width 24",
    "shallow_net": "--depth 2",
    "half_the_steps": "--updates 4",
    "small_batch": "--batch 256 --learning-rate 2e-3",
}

TINY = (
    *("--games", "8", "--plies", "2", "--batch", "8", "--positions", "64"),
    *("--width", "8", "--depth", "1", "--simulations", "2", "--iterations", "2"),
)


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """What to train, and for how long."""

    variants: Annotated[Positional[tuple[str, ...]], arg(metavar="VARIANT")] = tuple(
        VARIANTS
    )
    minutes: float = 5.0  # of processor time for each core
    runs: Path = Path("runs/study")


def main(options: Options) -> None:
    if unknown := sorted(set(options.variants) - set(VARIANTS)):
        raise SystemExit(
            f"there is no variant {unknown[0]}: take some of {', '.join(VARIANTS)}"
        )
    report = Report("training_study", options)
    for name in options.variants:
        report.add(**measure_variant(name, options))
    percent = ("raw", "with_32", "with_128")
    numbers = ("positions", *percent, "value error")
    rows = new_table(
        f"solved outcomes kept after {options.minutes:g} minutes, %",
        ("variant",),
        numbers,
    )
    for result in report.results:
        shares = (f"{100 * result[column]:.1f}" for column in percent)
        error = f"{result['value_error']:.3f}"
        rows.add_row(result["variant"], f"{result['positions']:,}", *shares, error)
    show(rows)


def measure_variant(name: str, options: Options) -> dict[str, Any]:
    folder = RunFolder(options.runs / name)
    flags = ["--preset", "connect_four", *VARIANTS[name].split()]
    flags += ["--run", str(folder), "--minutes", str(options.minutes)]
    flags += ["--evaluate-every", "40", "--evaluate-games", "2", "--sample-every", "0"]
    flags += TINY if options.tiny else ()
    clock, trainer.time = trainer.time, SimpleNamespace(monotonic=processor_seconds)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if code := train.main(flags):
                raise SystemExit(code)
    finally:
        trainer.time = clock
    metrics = folder.read_metrics()
    raw, with_32, with_128 = (
        result["share"]
        for result in read_object(folder.measured.read_bytes())["positions"]
    )
    return {
        "variant": name,
        "flags": VARIANTS[name],
        "minutes": options.minutes,
        "iterations": metrics[-1]["iteration"],
        "positions": metrics[-1]["positions"],
        "learning_share": round(
            sum(m["learning_share"] for m in metrics) / len(metrics), 3
        ),
        "raw": raw,
        "with_32": with_32,
        "with_128": with_128,
        "value_error": round(value_error(train.load_agent(folder.path)), 4),
        "curve": [
            (round(m["seconds"] / 60, 2), m["accuracy_raw"], m["accuracy_search"])
            for m in metrics
            if "accuracy_raw" in m
        ],
    }


def value_error(agent: Any) -> float:
    solved = positions.solved_positions(agent.env)
    _, value = agent.evaluate(agent.params, jax.random.key(0), solved.states)
    return float(np.mean((np.asarray(value) - solved.outcome) ** 2))


def processor_seconds() -> float:
    """Seconds in which this process had all cores for itself, so to say."""
    return time.process_time() / len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
