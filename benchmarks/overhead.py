"""What a search adds to the time of its model: connect four with a residual net.

    python -m benchmarks.overhead [--json FILE]
    python -m benchmarks.overhead --batch 64 --simulations 16 --width 16 --blocks 2

Each line of JSON is a policy: the time of a whole search, `search_seconds`, beside that
of the model alone, `model_seconds`: the evaluation of the roots and N calls of the
model's step and net in one compiled loop. `overhead` is the time that the search takes
on top, as a share of the model's. Times are medians, the programs taking turns.

`kernels_per_simulation` counts the kernels that a run launches, from a profile, divided
by N, with those of the model's own beside them; on a CPU it counts the operations of
the compiled program. Where a profile does not tell, it is null.

The default size is for a GPU, where it takes some minutes with mctx's two policies;
smaller sizes such as the second line run on CPUs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from rich.table import Table

from benchmarks import models
from benchmarks.measure import compile_program, median_seconds
from benchmarks.profile import num_kernels
from benchmarks.report import Options as SharedOptions
from benchmarks.report import Report, new_table, show

MODEL = "model"


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """The sizes of the search and of the net."""

    batch: int = 1024
    simulations: int = 128
    width: int = 64
    blocks: int = 6
    dtype: str = "float32"  # that the net computes in: float32 or bfloat16
    policies: tuple[str, ...] = ("puct", "gumbel", "mctx-puct", "mctx-gumbel")


def main(options: Options) -> None:
    report = Report("overhead", options)
    if options.tiny:
        options = replace(options, batch=4, simulations=4, width=8, blocks=1, repeats=1)
    for result in measure_overhead(options, options.repeats or 5):
        report.add(**result)
    show(table(report.results))


def measure_overhead(options: Options, repeats: int) -> list[dict[str, Any]]:
    """One result for each policy."""
    model = models.connect_four(
        options.batch, width=options.width, depth=options.blocks, dtype=options.dtype
    )
    arguments, number = model.arguments, options.simulations
    programs: dict[str, Callable[..., Any]] = {MODEL: model_program(model, number)}
    for name in options.policies:
        programs[name] = models.search_program(model, name, number)
    compiled = {
        name: compile_program(program, arguments) for name, program in programs.items()
    }
    runs = {name: partial(each.run, *arguments) for name, each in compiled.items()}
    seconds = median_seconds(runs, repeats, warm_up=True)
    kernels = {name: num_kernels(run) for name, run in runs.items()}

    def kernels_per_simulation(name):
        count = kernels[name]
        return None if count is None else round(count / number, 1)

    return [
        {
            "batch": options.batch,
            "simulations": number,
            "width": options.width,
            "blocks": options.blocks,
            "dtype": options.dtype,
            "policy": name,
            "overhead": round(seconds[name] / seconds[MODEL] - 1, 3),
            "search_seconds": round(seconds[name], 5),
            "model_seconds": round(seconds[MODEL], 5),
            "kernels_per_simulation": kernels_per_simulation(name),
            "model_kernels_per_simulation": kernels_per_simulation(MODEL),
            "compile_seconds": round(compiled[name].seconds, 2),
            "memory_bytes": compiled[name].memory_bytes,
            "repeats": repeats,
        }
        for name in options.policies
    ]


def model_program(model: models.Model, num_calls: int) -> Callable[..., jax.Array]:
    """The roots and `num_calls` calls of the model, each after the move it prefers."""

    def run(params, key, states):
        root, _ = model.root_fn(params, states)

        def call(_, carry):
            prior_logits, states, total = carry
            action = jnp.argmax(prior_logits, axis=1).astype(jnp.int32)
            output, states = model.recurrent_fn(params, key, action, states)
            return output.prior_logits, states, total + output.value

        start = root.prior_logits, root.embedding, root.value
        return jax.lax.fori_loop(0, num_calls, call, start)[2]

    return run


def table(results: list[dict[str, Any]]) -> Table:
    """The results for people."""
    rows = new_table(
        "a search and its model alone",
        ("policy",),
        ("search s", "model s", "overhead", "kernels/sim", "model's"),
    )
    for result in results:
        counts = [
            result[name]
            for name in ("kernels_per_simulation", "model_kernels_per_simulation")
        ]
        rows.add_row(
            result["policy"],
            f"{result['search_seconds']:.3f}",
            f"{result['model_seconds']:.3f}",
            f"{result['overhead']:.0%}",
            *("?" if count is None else f"{count:.0f}" for count in counts),
        )
    return rows


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
