"""Self-play beside its net alone: what everything but the net takes.

    python -m benchmarks.self_play [--json FILE]
    python -m benchmarks.self_play --env othello --games 512 --simulations 64

One line of JSON: `evaluations_per_second` of self-play as train.py plays it, and those
of the net alone on as many boards, called again and again. Both count what self-play
asks of the net: its roots and simulations. `share` is the first over the second: 1 is a
search that costs nothing. Times are medians, the two taking turns.
"""

import time
from dataclasses import dataclass
from typing import Any

import jax
import tyro

import train
from benchmarks.measure import median_seconds
from benchmarks.report import Options as SharedOptions
from benchmarks.report import Report, new_table, show
from jaxsearch.learn.programs import make_programs


@dataclass(frozen=True, kw_only=True)
class Options(SharedOptions):
    """The sizes of the run; all else is train.py's default."""

    env: str = "connect_four"
    games: int = 128
    plies: int = 8
    simulations: int = 32
    width: int = 32
    depth: int = 3
    search: str = "gumbel"


def main(options: Options) -> None:
    report = Report("self_play", options)
    sizes = {
        name: getattr(options, name)
        for name in ("env", "games", "plies", "simulations", "width", "depth", "search")
    }
    if options.tiny:
        sizes |= {"games": 4, "plies": 2, "simulations": 4, "width": 8, "depth": 1}
    report.add(
        **measure_self_play(sizes, options.repeats or (1 if options.tiny else 9))
    )
    rows = new_table(
        "self-play and its net alone, evaluations per second",
        ("game", "search"),
        ("self-play", "net alone", "share"),
    )
    for result in report.results:
        rows.add_row(
            result["env"],
            result["search"],
            f"{result['evaluations_per_second']:,}",
            f"{result['net_evaluations_per_second']:,}",
            f"{result['share']:.0%}",
        )
    show(rows)


def measure_self_play(sizes: dict[str, Any], repeats: int) -> dict[str, Any]:
    config = train.Config(**sizes)
    agent = train.make_agent(config)
    programs = make_programs(config, agent.env, agent.net, agent.evaluate)
    state = programs.start(agent.params)
    began = time.perf_counter()
    play = programs.play.lower(agent.params, state).compile()
    compile_seconds = time.perf_counter() - began

    # The calls of the net that a call of `play` makes, on the same boards.
    calls = config.plies * (config.simulations + 1)
    observations = jax.vmap(agent.env.observe)(state.games.states)
    net = jax.jit(agent.net)

    def play_on():
        nonlocal state  # given away to `play`
        state, *played = play(agent.params, state)
        return played

    def evaluate():
        told = [net(agent.params, observations).value for _ in range(calls)]
        return told[-1]

    runs = {"play": play_on, "net": evaluate}
    seconds = median_seconds(runs, repeats, warm_up=True)
    evaluations = calls * config.games
    return {
        **sizes,
        "evaluations_per_second": round(evaluations / seconds["play"]),
        "net_evaluations_per_second": round(evaluations / seconds["net"]),
        "share": round(seconds["net"] / seconds["play"], 3),
        "positions_per_second": round(config.games * config.plies / seconds["play"]),
        "compile_seconds": round(compile_seconds, 2),
        "repeats": repeats,
    }


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
