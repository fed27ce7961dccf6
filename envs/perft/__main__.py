"""Counts the games of a number of plies: python -m envs.perft connect_four 8

python -m envs.perft chess "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1" 4
python -m envs.perft nim "3 4 5 first" 6 --option misere=True --divide
"""

import argparse
import ast
import sys
import time
from typing import Any

import jax

import envs
from envs.perft import BATCH, Perft, divide, perft


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        _run(given)
    except ValueError as error:
        print(f"perft: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    summary, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m envs.perft",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("game", help=f"one of {', '.join(envs.names())}, or pgx:NAME")
    parser.add_argument("position", nargs="?", help="as text; the start by default")
    parser.add_argument("depth", type=int, help="how many plies")
    parser.add_argument("--divide", action="store_true", help="count each first move")
    parser.add_argument(
        "--merge",
        action="store_true",
        help="play on from equal states once (fast where orders of moves do not "
        "matter; holds the states of a whole ply in memory)",
    )
    parser.add_argument(
        "--play-last",
        action="store_true",
        help="play the last moves too, to see what they end",
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=BATCH,
        metavar="N",
        help=f"how many states are expanded together, {BATCH} by default",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the game; may be given several times",
    )
    return parser


def _run(given: argparse.Namespace) -> None:
    env = envs.make(given.game, **dict(map(_option, given.option)))
    state = env.init() if given.position is None else env.from_text(given.position)
    options = {
        "merge": given.merge,
        "play_last": given.play_last,
        "batch": given.batch,
    }
    print(f"{env!r}\n{env.draw(state)}\n")
    perft(env, state, min(given.depth, 2), **options)  # compiles
    started = time.perf_counter()
    if given.divide:
        total = 0
        for move, counted in divide(env, state, given.depth, **options):
            print(f"{move:>8} {counted.games:>15,}", flush=True)
            total += counted.games
        print(f"{'all':>8} {total:>15,}")
    else:
        counted = perft(env, state, given.depth, **options)
        print(_table(counted))
        total = counted.games
    seconds = time.perf_counter() - started
    print(
        f"\n{seconds:.2f} s, {total / seconds:,.0f} games a second "
        f"({jax.default_backend()}, batch {given.batch:,})"
    )


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"an option is NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, value  # a word, such as the name of a rule


def _table(counted: Perft) -> str:
    """A line a ply: its games, the positions looked at, and how many games end."""
    lines = [f"{'ply':>4} {'games':>17} {'positions':>15} {'ended':>13}"]
    for number, ply in enumerate(counted.plies):
        positions = "" if ply.positions is None else f"{ply.positions:,}"
        ended = "" if ply.ended is None else f"{sum(ply.ended.values()):,}"
        lines.append(f"{number:>4} {ply.games:>17,} {positions:>15} {ended:>13}")
    if counted.leaves != counted.games:
        depth = len(counted.plies) - 1
        lines.append(f"{counted.leaves:,} with the games that end before ply {depth}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
