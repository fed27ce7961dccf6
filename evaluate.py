"""Measures play: matches, solved positions, sweeps, searches side by side.

    python evaluate.py positions runs/connect_four
    python evaluate.py match runs/connect_four uct:sims=400 --games 100
    python evaluate.py match random uct:sims=100 --env connect_four
    python evaluate.py sweep runs/connect_four --sims 16 32 64 128 --c-puct 0.5 1 2 4
    python evaluate.py compare --env connect_four --sims 32 --batch 256
    python evaluate.py fixtures

A player is a short text, in quotes in a shell if it holds ? or &:

    random                                    uniformly random moves
    uct:sims=400&c=4                          search with random games, no net
    runs/c4?search=raw                        the net of a run folder alone
    runs/c4?search=puct&sims=64&c_puct=1.5    the net with a search: puct, mctx-puct
                                              gumbel or mctx-gumbel

A run plays the game of its own stored configuration, with its options. Bad input ends
the program with exit code 2 before anything is measured or written.
"""

import functools
import json
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax
import tyro
from rich.console import Console, RenderableType
from tyro.conf import Positional

import envs
from jaxsearch import backend
from jaxsearch.arena import report
from jaxsearch.arena.compare import check_compare, compare_searches
from jaxsearch.arena.fixtures import GAME as FIXTURES_GAME
from jaxsearch.arena.fixtures import reproduce_fixtures
from jaxsearch.arena.hashed_evaluation import hashed_evaluate
from jaxsearch.arena.match import check_match, play_match
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.player_names import (
    EXAMPLES,
    PlayerName,
    game_of_all,
    load_agents,
    make_player,
    parse_player,
)
from jaxsearch.arena.players import Agent
from jaxsearch.arena.positions import GAME as POSITIONS_GAME
from jaxsearch.arena.positions import check_positions, evaluate_positions
from jaxsearch.arena.sweep import (
    check_output,
    check_sweep,
    save_sweep,
    sweep_match,
    sweep_positions,
)
from jaxsearch.learn.files import check_file, plain, write_atomically
from jaxsearch.learn.run_folder import check_no_part_of_run
from jaxsearch.learn.settings import check_numbers
from jaxsearch.program import finish, one_line
from train import load_agent

# --------------------------------------------------------------------------------------
# Commands


GAMES = f"one of {', '.join(envs.names(in_turn=True))}"
GAME_HELP = f"Where no run names the game: {GAMES}, with its default options."
GameName = Annotated[str, tyro.conf.arg(help=GAME_HELP)]
PlayerText = Annotated[Positional[str], tyro.conf.arg(metavar="PLAYER")]


@dataclass(frozen=True, kw_only=True)
class Command:
    """Flags of every command."""

    device: str = "auto"
    """Where to run: auto, cpu, gpu or tpu."""
    seed: int = 0
    """Of openings, random moves and ties."""
    json: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """A file for the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class Match(Command):
    """Two players: wins, draws and losses by seat, Elo difference with an interval."""

    first: PlayerText
    """A player: random, uct:sims=400 or RUN?search=puct&sims=64, for example."""
    second: PlayerText
    """Its opponent."""
    env: GameName = ""
    games: int = 100
    """Games to play, an even number: every opening is played with both seatings."""
    opening_plies: int = 4
    """Random moves at the start of a game."""


@dataclass(frozen=True, kw_only=True)
class Positions(Command):
    """The share of solved connect-four positions in which a player keeps the outcome.

    A run without options plays three times: its net alone, 32 and 128 simulations.
    """

    players: Annotated[Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAYERS")]
    """Players: a run folder, RUN?search=puct&sims=64 or uct:sims=400, for example."""
    batch: int = 600
    """Positions at a time."""


@dataclass(frozen=True, kw_only=True)
class Sweep(Command):
    """A run with every number of simulations and every c_puct."""

    run: Annotated[Positional[str], tyro.conf.arg(metavar="RUN")]
    """The run folder."""
    sims: tuple[int, ...] = (16, 32, 64, 128)
    """Numbers of simulations."""
    c_puct: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    """Constants of AlphaGo Zero's rule."""
    out: Path = Path("sweep")
    """Folder for sweep.jsonl and sweep.png."""
    opponent: str = ""
    """A player to measure against; without one the solved positions measure."""
    games: int = 40
    """Games of each setting against the opponent."""
    opening_plies: int = 4
    """Random moves at the start of a game."""


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Our puct and gumbel beside mctx's, on the same roots: visits, time, memory."""

    env: GameName = ""
    run: str = ""
    """A run folder; without one hashes stand in for the net."""
    sims: int = 32
    """Simulations of each root."""
    batch: int = 256
    """Roots searched at once."""
    plies: int = 4
    """Random moves from the start to a root."""
    repeats: int = 5
    """Timed runs of each search; the median counts."""


@dataclass(frozen=True, kw_only=True)
class Fixtures(Command):
    """A recorded set of tic-tac-toe searches, reproduced to the last visit."""

    seed: tyro.conf.Suppress[int] = 0  # the record has its own


COMMANDS = Match | Positions | Sweep | Compare | Fixtures

# How a run plays in `positions` where its text has no options.
PLAIN_RUN = ("search=raw", "search=puct&sims=32", "search=puct&sims=128")


class Job(NamedTuple):
    """A command whose input has been checked."""

    measure: Callable[[], Any]
    report: Callable[[Any], RenderableType]
    save: Callable[[Any], list[Path]] = lambda result: []  # returns the files


# --------------------------------------------------------------------------------------
# Preparing: ValueErrors here are the user's


def prepare(command: Command) -> Job:
    """Checks a command and loads what it needs."""
    check_numbers(command, {"seed", "opening_plies", "plies"})
    if command.json is not None:
        check_file(command.json)
        check_no_part_of_run(command.json)
    match command:
        case Match():
            return prepare_match(command)
        case Positions():
            return prepare_positions(command)
        case Sweep():
            return prepare_sweep(command)
        case Compare():
            return prepare_compare(command)
        case Fixtures():
            env = envs.make(FIXTURES_GAME)
            return Job(lambda: reproduce_fixtures(env), report.fixtures_report)
    raise TypeError(f"unknown command {command!r}")


def prepare_match(command: Match) -> Job:
    names = [parse_player(text) for text in (command.first, command.second)]
    agents = load_agents(names, load_agent)
    env = common_game(agents, command.env)
    check_match(env, command.games, command.opening_plies)
    first, second = (make_player(name, env, agents.get(name.run)) for name in names)
    key = jax.random.key(command.seed)
    check_openings(env, command.opening_plies, key)
    return Job(
        lambda: play_match(
            env,
            first,
            second,
            games=command.games,
            opening_plies=command.opening_plies,
            key=key,
        ),
        report.match_report,
    )


def prepare_positions(command: Positions) -> Job:
    if not command.players:
        raise ValueError(f"positions needs one or more players, such as {EXAMPLES}")
    names = []
    for text in command.players:
        name = parse_player(text)
        if name.run == text:
            texts = [f"{text}?{options}" for options in PLAIN_RUN]
            names += [parse_player(text) for text in texts]
        else:
            names.append(name)
    agents = load_agents(names, load_agent)
    env = common_game(agents, "" if agents else POSITIONS_GAME)
    check_positions(env)
    players = [make_player(name, env, agents.get(name.run)) for name in names]
    key = jax.random.key(command.seed)
    return Job(
        lambda: [
            evaluate_positions(env, player, key=key, batch_size=command.batch)
            for player in players
        ],
        report.positions_report,
    )


def prepare_sweep(command: Sweep) -> Job:
    check_sweep(command.sims, command.c_puct)
    check_output(command.out, command.json)
    name = parse_run(command.run)
    rival = parse_player(command.opponent) if command.opponent else None
    agents = load_agents([name, rival] if rival else [name], load_agent)
    env = common_game(agents, "")
    key = jax.random.key(command.seed)
    sweep = functools.partial(
        sweep_positions,
        agents[name.run],
        simulations=command.sims,
        c_puct=command.c_puct,
        key=key,
        name=command.run,
    )
    if rival is None:
        check_positions(env, instead="--opponent, such as --opponent uct:sims=100")
    else:
        check_match(env, command.games, command.opening_plies)
        check_openings(env, command.opening_plies, key)
        sweep = functools.partial(
            sweep_match,
            *sweep.args,
            make_player(rival, env, agents.get(rival.run)),
            games=command.games,
            opening_plies=command.opening_plies,
            **sweep.keywords,
        )
    return Job(
        sweep, report.sweep_report, lambda result: save_sweep(result, command.out)
    )


def prepare_compare(command: Compare) -> Job:
    names = [parse_run(command.run)] if command.run else []
    agents = load_agents(names, load_agent)
    env = common_game(agents, command.env)
    check_compare(env, command.sims, command.batch, command.repeats)
    agent = agents.get(command.run)
    key = jax.random.key(command.seed)
    check_openings(env, command.plies, key)
    return Job(
        lambda: compare_searches(
            env,
            agent.evaluate if agent else hashed_evaluate(env),
            agent.params if agent else None,
            simulations=command.sims,
            batch=command.batch,
            plies=command.plies,
            repeats=command.repeats,
            key=key,
        ),
        report.comparison_report,
    )


def parse_run(text: str) -> PlayerName:
    """The name of a run whose search the command sets; ValueError for other players."""
    name = parse_player(text)
    if name.run != text:
        raise ValueError(
            f"here a run folder alone is wanted, as the command sets the search, got "
            f"{text!r}; for example runs/connect_four"
        )
    return name


def common_game(agents: Mapping[str | None, Agent], game: str) -> envs.Env[Any]:
    """The game that all agents play, which has to be `game` where that is given."""
    given = envs.make_in_turn(game) if game else None
    if given is None and not agents:
        raise ValueError(f"no run tells which game is meant: add --env with {GAMES}")
    return game_of_all(agents, given)


def check_openings(env: envs.Env[Any], num_plies: int, key: jax.Array) -> None:
    """Raises ValueError where random play is over before so many plies."""
    random_openings(env, count=1, num_plies=num_plies, key=key)


# --------------------------------------------------------------------------------------
# The program


def main(arguments: Sequence[str] | None = None) -> int:
    backend.protect()
    command = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        backend.select(command.device)
        job = prepare(command)
    except ValueError as error:
        print(f"evaluate.py: {one_line(error)}", file=sys.stderr)
        return 2
    console = Console(markup=False, emoji=False)
    console.print(backend.describe(), highlight=False, soft_wrap=True)
    if isinstance(command, Match):
        console.print(f"playing {command.games} games", highlight=False)
    result = job.measure()
    console.print(job.report(result), highlight=False)
    saved = job.save(result)
    if command.json is not None:
        text = json.dumps(plain(result), indent=2, allow_nan=False) + "\n"
        write_atomically(command.json, lambda path: path.write_text(text))
        saved.append(command.json)
    for path in saved:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    return 0


def parse(arguments: Sequence[str]) -> Command:
    """The command; parsed alone, so that its errors name its own --help."""
    kinds = {kind.__name__.lower(): kind for kind in typing.get_args(COMMANDS)}
    if not arguments or arguments[0] not in kinds:
        return tyro.cli(COMMANDS, args=arguments, description=__doc__)
    kind, prog = kinds[arguments[0]], f"evaluate.py {arguments[0]}"
    return tyro.cli(kind, prog=prog, args=arguments[1:])


if __name__ == "__main__":
    finish(main)
