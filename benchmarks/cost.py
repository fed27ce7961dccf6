"""What a search costs: a simulation in a large tree, spare capacity, memory.

    python -m benchmarks.cost [--json FILE]

Each line of JSON is one figure, `value`, with the most that is asked of it, `at_most`,
where something is. A table follows at the end. Takes about two minutes on two CPU
cores.

- simulation: the time of one simulation of a long search over that of a short one,
  where both go equally deep (see benchmarks.equal_depth; the depths are printed).
- capacity: the time of a search in a tree with more room than it needs, over that
  without. A tree is filled once with what empty nodes hold, which takes time in
  proportion to its capacity. So the ratio of the whole search grows, and the one asked
  for is that of all simulations but the first (the time of the search less that of a
  search of one simulation with the same capacity). A few rows fit a CPU's cache at any
  of these capacities; of many rows the larger trees do not, and each read waits longer.
- node bytes: the memory of a node in a game with as many moves as chess, of which at
  most 218 are legal, over that of a node in mctx's tree.
- chess speed: thousand simulations per second in such a game, with and without
  `max_children`, and mctx's, of which there is one run.
- program bytes: what the compiled search holds besides its arguments, over what
  `memory_estimate` says of its tree.
- creep: memory after many searches in one process over that after some.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from rich.table import Table

from benchmarks import equal_depth, models, tree_memory
from benchmarks.measure import compile_program, measure, median_seconds
from benchmarks.report import Options, Report, new_table, show
from jaxsearch import memory_estimate

Figure = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What is measured at which size."""

    batch: int = 64
    actions: int = 82
    simulations: tuple[int, int] = (32, 1024)
    capacity_batches: tuple[int, ...] = (16, 256)
    capacities: tuple[int, ...] = (33, 64, 256, 1024)  # of 32 simulations
    chess_batch: int = 64
    chess_simulations: int = 128
    chess_actions: int = 4672
    chess_legal: int = 218
    programs: tuple[tuple[int, int, int], ...] = ((256, 128, 82), (64, 800, 82))
    calls: tuple[int, int] = (50, 300)
    repeats: int = 9  # runs of each program
    mctx_chess_repeats: int = 1  # takes half a minute on two CPU cores


TINY = Sizes(
    batch=2,
    actions=5,
    simulations=(4, 8),
    capacity_batches=(2,),
    capacities=(33, 40),
    chess_batch=2,
    chess_simulations=4,
    chess_actions=40,
    chess_legal=5,
    programs=((4, 8, 5),),
    calls=(5, 10),
    repeats=1,
)


def main(options: Options) -> None:
    report = Report("cost", options)
    sizes = TINY if options.tiny else Sizes()
    repeats = options.repeats or sizes.repeats
    parts = (
        simulation(sizes, repeats),
        *(capacity(sizes, batch, repeats) for batch in sizes.capacity_batches),
        node_bytes(sizes),
        chess_speed(sizes, repeats),
        program_bytes(sizes),
        creep(sizes),
    )
    for part in parts:
        for figure in part:
            report.add(**figure)
    show(table(report.results))


def simulation(sizes: Sizes, repeats: int) -> Iterator[Figure]:
    """One simulation of a long search over one of a short search, equally deep."""
    model = models.synthetic(sizes.batch, sizes.actions)
    arguments = model.arguments
    runs: dict[str, Any] = {}
    depths, constants = {}, {}
    for number in sizes.simulations:
        program = equal_depth.puct_program(model, number)
        constant = jnp.float32(equal_depth.DEFAULT)
        compiled = compile_program(program, (*arguments, constant))

        def depths_at(constant, run=compiled.run):
            *_, parents = run(*arguments, jnp.float32(constant))
            return equal_depth.depths(parents)

        constants[number] = equal_depth.DEFAULT
        if depths:
            shorter = depths[sizes.simulations[0]].mean
            constants[number] = equal_depth.constant_for(shorter, depths_at)
        depths[number] = depths_at(constants[number])
        runs[str(number)] = partial(
            compiled.run, *arguments, jnp.float32(constants[number])
        )
    seconds = median_seconds(runs, repeats, warm_up=True)
    each = {number: seconds[str(number)] / number for number in sizes.simulations}
    short, long = sizes.simulations
    yield {
        "figure": "simulation",
        "case": f"{sizes.batch}x{long}x{sizes.actions} over N {short}",
        "value": round(each[long] / each[short], 2),
        "at_most": 1.5,
        "microseconds": [round(each[number] * 1e6, 1) for number in (short, long)],
        "mean_depths": [round(depths[number].mean, 2) for number in (short, long)],
        "longest": [round(depths[number].longest, 2) for number in (short, long)],
        "pb_c_init": [round(constants[number], 3) for number in (short, long)],
        "repeats": repeats,
    }


def capacity(sizes: Sizes, batch: int, repeats: int) -> Iterator[Figure]:
    """A search of 32 simulations in trees with room for more and more nodes."""
    model = models.synthetic(batch, sizes.actions)
    simulations = 32
    programs = {
        f"{number} {capacity}": models.search_program(
            model, "puct", number, capacity=capacity
        )
        for capacity in sizes.capacities
        for number in (1, simulations)
    }
    measured = measure(programs, model.arguments, repeats, warm_up=True)

    def seconds(number, capacity):
        return measured[f"{number} {capacity}"].seconds

    def after_the_first(capacity):
        return seconds(simulations, capacity) - seconds(1, capacity)

    least = sizes.capacities[0]
    for capacity in sizes.capacities[1:]:
        whole = seconds(simulations, capacity) / seconds(simulations, least)
        yield {
            "figure": "capacity",
            "case": f"{batch}x{simulations}x{sizes.actions}, "
            f"capacity {capacity} over {least}",
            "value": round(after_the_first(capacity) / after_the_first(least), 2),
            "at_most": 1.2,
            "whole_search": round(whole, 2),
            "milliseconds": _milliseconds(seconds, simulations, least, capacity),
            "first_milliseconds": _milliseconds(seconds, 1, least, capacity),
            "repeats": repeats,
        }


def node_bytes(sizes: Sizes) -> Iterator[Figure]:
    """The bytes of a node of a game like chess, over those of mctx."""
    model = _chess(sizes)
    number = sizes.chess_simulations
    theirs = tree_memory.mctx_bytes_per_node(model, number)
    for dtype in (jnp.float32, jnp.bfloat16):
        ours = tree_memory.bytes_per_node(
            model, number, max_children=sizes.chess_legal, prior_dtype=dtype
        )
        name = jnp.dtype(dtype).name
        yield {
            "figure": "node bytes",
            "case": f"{sizes.chess_legal} of {sizes.chess_actions} legal, {name}",
            "value": round(ours / theirs, 4),
            "at_most": round(1 / 15, 4),
            "bytes": ours,
            "mctx_bytes": round(theirs),
        }


def chess_speed(sizes: Sizes, repeats: int) -> Iterator[Figure]:
    """Thousand simulations per second in a game like chess."""
    model = _chess(sizes)
    number = sizes.chess_simulations
    ours = {
        f"puct, max_children={sizes.chess_legal}": models.search_program(
            model, "puct", number, max_children=sizes.chess_legal
        ),
        "puct": models.search_program(model, "puct", number),
    }
    theirs = {"mctx-gumbel": models.search_program(model, "mctx-gumbel", number)}
    for programs, runs in ((ours, repeats), (theirs, sizes.mctx_chess_repeats)):
        warm_up = programs is ours
        results = measure(programs, model.arguments, runs, warm_up=warm_up)
        for name, measured in results.items():
            speed = sizes.chess_batch * number / measured.seconds
            yield {
                "figure": "chess speed",
                "case": f"{sizes.chess_batch}x{number}x{sizes.chess_actions} {name}",
                "value": round(speed / 1e3, 3),
                "at_most": None,
                "compile_seconds": round(measured.compile_seconds, 2),
                "memory_bytes": measured.memory_bytes,
                "repeats": runs,
            }


def program_bytes(sizes: Sizes) -> Iterator[Figure]:
    """What a compiled search holds, over the estimate of its tree."""
    for batch, number, actions in sizes.programs:
        model = models.synthetic(batch, actions)
        root, _ = jax.eval_shape(model.root_fn, model.params, model.states)
        estimate = memory_estimate(root, number)
        program = models.search_program(model, "puct", number)
        held = compile_program(program, model.arguments).memory_bytes
        yield {
            "figure": "program bytes",
            "case": f"{batch}x{number}x{actions} puct",
            "value": round(held / estimate.tree_bytes, 2),
            "at_most": None,
            "bytes_per_node": estimate.bytes_per_node,
            "program_bytes_per_node": round(held / (batch * (number + 1))),
        }


def creep(sizes: Sizes) -> Iterator[Figure]:
    """Memory after the last of many searches, with new keys, over that after some."""
    model = models.synthetic(sizes.batch, sizes.actions)
    params, key, states = model.arguments
    search = jax.jit(models.search_program(model, "puct", sizes.simulations[0]))
    held: dict[str, list[int]] = {"arrays": [], "process": []}
    for call in range(1, sizes.calls[1] + 1):
        output = search(params, jax.random.fold_in(key, call), states)
        jax.block_until_ready(output)
        if call in sizes.calls:
            held["arrays"].append(tree_memory.live_bytes())
            if (resident := tree_memory.resident_bytes()) is not None:
                held["process"].append(resident)
    for name, sizes_held in held.items():
        if sizes_held:
            yield {
                "figure": "creep",
                "case": f"{name}, call {sizes.calls[1]} over {sizes.calls[0]}",
                "value": round(sizes_held[1] / sizes_held[0], 4),
                "at_most": 1.02,
                "bytes": sizes_held,
            }


def table(results: list[Figure]) -> Table:
    """The figures for people."""
    rows = new_table("what a search costs", ("figure", "case"), ("value", "at most"))
    for result in results:
        asked = result["at_most"]
        rows.add_row(
            result["figure"],
            result["case"],
            f"{result['value']:.4g}",
            "" if asked is None else f"{asked:.4g}",
        )
    return rows


def _chess(sizes: Sizes) -> models.Model:
    return models.synthetic(
        sizes.chess_batch, sizes.chess_actions, num_legal=sizes.chess_legal
    )


def _milliseconds(seconds, simulations, *capacities) -> list[float]:
    return [round(seconds(simulations, each) * 1e3, 2) for each in capacities]


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
