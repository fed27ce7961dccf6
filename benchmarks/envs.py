"""Games alone: steps per second of random play, ours and pgx's.

    python -m benchmarks.envs [--games go_9x9 chess] [--json FILE]

Both sides play the same way in one run: B boards side by side, a random legal action
on each from the mask of the last step, the step with the next player's mask, and a new
game where one has ended. Games are played into their middle before the clock starts.
Each line of JSON has the steps per second (all boards; median of the runs, which take
turns), the ratio, compile times, and the bytes of a state. A table follows at the end.
Without pgx our games are measured alone.

Before that, the same moves are played on the CPU. A game that comes to other states
there is not measured: its line has "right": false, and the exit code is 1.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.table import Table

import envs
from benchmarks.measure import compile_program, median_seconds
from benchmarks.report import Options, Report, new_table, show
from jaxsearch.vector import auto_reset, random_actions, start_all


@dataclass(frozen=True, kw_only=True)
class Work:
    """A game, the one of pgx to compare it with, and the size of the run."""

    game: str
    rival: str | None
    batch: int
    steps: int
    options: tuple[tuple[str, Any], ...] = ()  # of our game


PGX_KO = (("ko", "simple"),)  # the rule of pgx's masks; our default is superko
WORK = (
    Work(game="tic_tac_toe", rival="tic_tac_toe", batch=4096, steps=100),
    Work(game="connect_four", rival="connect_four", batch=4096, steps=100),
    Work(game="othello", rival="othello", batch=4096, steps=200),
    Work(game="hex_11x11", rival="hex", batch=4096, steps=100),
    Work(game="ultimate_tic_tac_toe", rival=None, batch=4096, steps=50),
    Work(game="oware", rival=None, batch=4096, steps=100),
    Work(game="gomoku_15x15", rival=None, batch=4096, steps=50),
    Work(game="goofspiel_5", rival=None, batch=4096, steps=100),
    Work(game="tron_10x10", rival=None, batch=4096, steps=100),
    Work(game="go_9x9", rival="go_9x9", batch=512, steps=200),
    Work(game="go_9x9", rival="go_9x9", batch=512, steps=200, options=PGX_KO),
    Work(game="go_19x19", rival="go_19x19", batch=256, steps=50),
    Work(game="go_19x19", rival="go_19x19", batch=256, steps=50, options=PGX_KO),
    Work(game="chess", rival="chess", batch=512, steps=100),
    Work(game="gardner_chess", rival="gardner_chess", batch=512, steps=200),
)
WARM_UP_RUNS = 3


@dataclass(frozen=True, kw_only=True)
class GameOptions(Options):
    games: tuple[str, ...] = ()  # names of games; all by default
    batch: int | None = None  # boards side by side; by default each game has its own


def main(options: GameOptions) -> int:
    """Returns the exit code."""
    known = {work.game for work in WORK}
    if unknown := [game for game in options.games if game not in known]:
        raise SystemExit(
            f"no game {unknown[0]!r} here: choose among {', '.join(sorted(known))}"
        )
    report = Report("envs", options)
    for work in WORK:
        if options.games and work.game not in options.games:
            continue
        if options.tiny:
            work = replace(work, batch=8, steps=2)
        elif options.batch:
            work = replace(work, batch=options.batch)
        report.add(**compare(work, options.repeats or 5))
    measured = [result for result in report.results if result["right"]]
    show(table(measured))
    return int(len(measured) < len(report.results))


def compare(work: Work, repeats: int) -> dict[str, Any]:
    """Measures one game, and the rival's where there is one."""
    games = {"ours": envs.make(work.game, **dict(work.options))}
    if work.rival and importlib.util.find_spec("pgx"):
        games["rival"] = _pgx(work.rival)
    result: dict[str, Any] = {
        "game": work.game,
        "batch": work.batch,
        "steps": work.steps,
    }
    if work.options:
        result["options"] = dict(work.options)
    programs, runs, figures = {}, {}, {}
    with jax.legacy_prng_key("allow"):
        for side, env in games.items():
            programs[side], figures[side] = _compile(env, work)
            if side == "ours":
                result["right"] = _is_as_on_cpu(programs[side])
                if not result["right"]:
                    return result
            runs[side] = _warmed_up(programs[side])
        seconds = median_seconds(runs, repeats)
    speeds = {side: work.batch * work.steps / seconds[side] for side in games}
    for side in games:
        prefix = "" if side == "ours" else "rival_"
        result[f"{prefix}steps_per_second"] = round(speeds[side])
        result |= {f"{prefix}{k}": value for k, value in figures[side].items()}
    if "rival" in speeds:
        result["rival"] = f"pgx {work.rival}"
        result["ratio"] = round(speeds["ours"] / speeds["rival"], 2)
    return result


def _pgx(name: str) -> Any:
    import pgx

    with jax.legacy_prng_key("allow"):
        return pgx.make(name)  # type: ignore[arg-type]


class Program(NamedTuple):
    """Random play of many games, and what to call it with."""

    play: Callable[[Any, jax.Array], Any]
    compiled: Callable[[Any, jax.Array], Any]
    starts: Any
    key: jax.Array


def _compile(env: Any, work: Work) -> tuple[Program, dict[str, Any]]:
    """The program of a game, and what it took."""
    starts = jax.jit(partial(start_all, env, batch_size=work.batch))(jax.random.key(0))
    program = partial(play_randomly, env, work.steps)
    key = jax.random.key(1)
    compiled = compile_program(program, (starts, key))
    # A step for one board, as a user compiles it.
    one = jax.tree.map(lambda leaf: leaf[0], starts)
    action = jnp.zeros(one.legal_action_mask.shape[:-1], jnp.int32)
    step = compile_program(env.step, (one, action, key))
    return Program(program, compiled.run, starts, key), {
        "compile_seconds": round(compiled.seconds, 2),
        "step_compile_seconds": round(step.seconds, 2),
        "state_bytes": sum(leaf.nbytes for leaf in jax.tree.leaves(one)),
    }


def _is_as_on_cpu(program: Program) -> bool:
    """Whether the games come to the same states on the CPU, to the last bit."""
    arguments = program.starts, program.key
    found = program.compiled(*arguments)
    cpu = jax.devices("cpu")[0]
    known = jax.jit(program.play)(*jax.device_put(arguments, cpu))
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(known), strict=True)
    return all(np.array_equal(*pair) for pair in pairs)


def _warmed_up(program: Program) -> Callable[[], Any]:
    """A run from the middle of games."""
    states = program.starts
    for number in range(WARM_UP_RUNS):
        states = program.compiled(states, jax.random.fold_in(program.key, number))
    jax.block_until_ready(states)  # or the first run of the other side would wait
    return partial(program.compiled, states, program.key)


def play_randomly(env: Any, num_steps: int, states: Any, key: jax.Array) -> Any:
    """The states after some random steps, games that end being replaced by new ones."""
    init_key, key = jax.random.split(key)
    starts = start_all(env, init_key, len(states.terminated))
    step = auto_reset(env, lambda key, batch_size: starts)

    def play(states, key):
        action_key, step_key = jax.random.split(key)
        actions = random_actions(action_key, states)
        return step(states, actions, step_key).states, None

    return jax.lax.scan(play, states, jax.random.split(key, num_steps))[0]


def table(results: list[dict[str, Any]]) -> Table:
    rows = new_table(
        "thousand steps per second of random play, ours and pgx's",
        ("game",),
        ("batch", "ours", "pgx's", "ratio", "compile s", "state bytes"),
    )
    for result in results:
        theirs = result.get("rival_steps_per_second")
        rows.add_row(
            " ".join([result["game"], *map(str, result.get("options", {}).values())]),
            str(result["batch"]),
            f"{result['steps_per_second'] / 1e3:.1f}",
            "" if theirs is None else f"{theirs / 1e3:.1f}",
            "" if theirs is None else f"{result['ratio']:.1f}",
            f"{result['step_compile_seconds']:.1f}",
            str(result["state_bytes"]),
        )
    return rows


if __name__ == "__main__":
    raise SystemExit(main(tyro.cli(GameOptions, description=__doc__)))
