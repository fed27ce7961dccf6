"""Trains an agent by self-play.

    python train.py                                # connect four, about five minutes
    python train.py --run runs/mine --minutes 15   # longer, in another folder
    python train.py --run runs/mine --resume --minutes 30
    python train.py --env nim --net mlp --minutes 1
    python train.py report runs/mine               # a run as a page, report.html

Every iteration plays some moves in a batch of games, each move chosen by a tree search,
and takes some learning steps on positions of the last games. Both run on the device.
The run folder holds everything that is needed to go on, and to play: see
`python evaluate.py --help`.

With `--iterations` a run depends on nothing but its configuration: the same seed gives
the same parameters, bit for bit on one CPU, however often it was stopped and resumed.
"""

import contextlib
import dataclasses
import functools
import inspect
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import jax
import tyro
from flax import nnx
from rich.console import Console
from tyro.conf import arg

import envs
import nets
from jaxsearch import backend
from jaxsearch.arena import distillation, report_page
from jaxsearch.arena.last_measures import measure_agent
from jaxsearch.arena.player_names import check_run_name
from jaxsearch.arena.report_page import ReportPage
from jaxsearch.arena.sample_games import GameSampler
from jaxsearch.arena.training_evaluation import TrainingEvaluation, check_evaluation
from jaxsearch.learn import hosts, memory
from jaxsearch.learn.agent import Agent, ConfigT, untrained_agent
from jaxsearch.learn.checkpoint import Checkpoints
from jaxsearch.learn.config import OF_COMMAND, AgentConfig, DistillConfig, RunConfig
from jaxsearch.learn.files import write_json
from jaxsearch.learn.interruption import Interruption
from jaxsearch.learn.presets import PRESETS, preset_named
from jaxsearch.learn.programs import Programs
from jaxsearch.learn.progress import TrainingProgress
from jaxsearch.learn.resumable import open_checkpoints
from jaxsearch.learn.run_folder import RunFolder, UnusableRunError
from jaxsearch.learn.settings import flag, read_options
from jaxsearch.learn.starts import read_starts
from jaxsearch.learn.tensorboard import Events
from jaxsearch.learn.trainer import NotFiniteError, Trainer
from jaxsearch.program import finish, one_line

# --------------------------------------------------------------------------------------
# The agent: game, net and search

GAMES = f"The game: {', '.join(envs.names(in_turn=True))}."
RECIPES = (
    "A recipe whose settings stand for the defaults, see docs/recipes.md: "
    f"{', '.join(PRESETS)}."
)


@dataclass(frozen=True, kw_only=True)
class Config(RunConfig):
    """Flags of train.py; a run folder keeps its own in config.json."""

    preset: Annotated[str | None, arg(help=RECIPES)] = None
    env: Annotated[str, arg(help=GAMES)] = "connect_four"


def make_agent(config: ConfigT, *, copies: int = 2) -> Agent[ConfigT]:
    """An untrained agent.

    Raises:
      ValueError: an unknown game, net, option or size, or memory does not hold `copies`
        of the parameters.
    """
    env = envs.make_in_turn(config.env, **read_options(config.env_options))

    def make_net(depth):
        return nets.make(
            config.net,
            env.observation_shape,
            env.num_actions,
            depth=depth,
            **config.net_options(),
            rngs=nnx.Rngs(jax.random.key(config.seed)),
        )

    return untrained_agent(config, env, make_net, copies=copies)


def load_agent(run: str | Path) -> Agent[Any]:
    """The agent of a run folder, from its own configuration and newest checkpoint.

    Raises:
      ValueError: there is no run, or it cannot be read; one line that says why.
    """
    folder = RunFolder(run)
    config = folder.read_config(Config, DistillConfig)
    with folder.naming_config():
        agent = make_agent(config)
    with Checkpoints(folder.checkpoints, config.lasting()) as checkpoints:
        _, parts, damaged = checkpoints.load_newest(agent=agent.params)
    for line in damaged:
        print(f"warning: {line}", file=sys.stderr)
    return dataclasses.replace(agent, params=parts["agent"])


# --------------------------------------------------------------------------------------
# The run


def parse(arguments: Sequence[str] | None, kind: type[ConfigT] = Config) -> ConfigT:
    """The flags; a run that is resumed gives those that are left out.

    Raises:
      ValueError: there is no such preset, no run to resume, or a flag that it cannot
        take.
    """
    description = __doc__ if kind is Config else inspect.getdoc(kind)
    read = functools.partial(
        tyro.cli, kind, prog=kind.program, args=arguments, description=description
    )
    flags = read()
    if (preset := getattr(flags, "preset", None)) is not None:
        flags = read(default=kind(**preset_named(preset).settings))
    check_run_name(flags.folder)
    if not flags.resume:
        return flags
    folder = RunFolder(flags.folder, kind.program)
    told = {name: getattr(flags, name) for name in OF_COMMAND if name in vars(flags)}
    stored = dataclasses.replace(folder.read_config(kind), **told)
    # A length that is given takes the place of all that are stored.
    flags = read(default=dataclasses.replace(stored, minutes=None, iterations=None))
    for name, kept in stored.lasting().items():
        if (given := getattr(flags, name)) != kept:
            raise ValueError(
                f"the run in {folder} has {flag(name)} {kept}, which cannot become "
                f"{given}: leave the flag out, or start another run"
            )
    if flags.minutes is None and flags.iterations is None:
        lengths = {"minutes": stored.minutes, "iterations": stored.iterations}
        flags = dataclasses.replace(flags, **lengths)
    return flags


def meet(config: Config) -> None:
    """Starts JAX, with the other processes if there are any.

    Raises:
      ValueError: a flag has a value that no run can have, or that another process has
        not; or there is no such device.
    """
    config.check()
    hosts.join(config.coordinator, config.processes, config.process)
    backend.select(config.device)
    hosts.check_same(dataclasses.asdict(config) | {"process": None})


def prepare(config: Config) -> tuple[RunFolder, Agent, Programs, str]:
    """Checks everything that can be wrong; raises ValueError and changes nothing.

    The last that it gives is a line on the memory that the run takes.
    """
    folder = RunFolder(config.folder)
    if config.resume:
        folder.check_resumable()
    else:
        folder.check_unused(config.env)
    config = config.on_devices(present := len(jax.devices()))
    if config.devices < present and jax.process_count() > 1:
        raise ValueError(
            f"--devices {config.devices}: the {jax.process_count()} processes have "
            f"{present}, and all train: take --devices 0"
        )
    with folder.naming_config() if config.resume else contextlib.nullcontext():
        agent = make_agent(config, copies=memory.COPIES)
        check_evaluation(agent)
        file = folder.openings if config.resume else Path(config.openings or "")
        starts = read_starts(agent.env, file) if config.openings else None
        return folder, agent, *memory.programs_that_fit(config, agent, starts)


def train(
    folder: RunFolder, agent: Agent, programs: Programs, console: Console
) -> Agent | None:
    """Runs to the end and returns the trained agent, or None when interrupted.

    Raises:
      UnusableRunError: another process trains here, or the run to resume has no
        checkpoint that can be read.
      NotFiniteError: parameters have become infinite or NaN; they are not saved.
      OSError: something cannot be written.
    """
    config = agent.config
    trainer = Trainer(config, programs, agent.params)
    trainer.evaluation = TrainingEvaluation(agent, trainer.average)
    sampler = GameSampler(agent, config, folder.games, record=envs.write_record)
    with (
        folder.locked(),
        Interruption() as interruption,
        open_checkpoints(folder, config) as checkpoints,
        TrainingProgress(console) as progress,
        Events(folder.tensorboard) as events,
    ):
        with hosts.together():
            if not config.resume:
                # Again: nobody else can start from here on.
                folder.check_unused(config.env)
                if config.openings:
                    folder.keep_openings(config.openings)
                folder.write_config(config)
        trainer.set_up(folder, checkpoints, console)  # before the clock starts
        if config.tensorboard:
            with hosts.together():
                events.start(trainer.told)

        def sample():
            with hosts.together():
                sampler.save(trainer.average, trainer.iteration, interruption)

        def sample_if_due():
            every, iteration = config.sample_every, trainer.iteration
            if every and iteration and iteration % every == 0:
                sample()

        sample_if_due()  # a signal may have cut it short
        while not hosts.any_of(interruption.signal_name) and not trainer.is_done:
            figures = trainer.iterate(interruption)
            with hosts.together():
                if figures is not None:
                    folder.append_metrics(figures)
                    events.add(figures)
                    progress.show_iteration(trainer.share_done, figures)
            if trainer.iteration % config.save_every == 0:
                checkpoints.save(trainer.iteration, **trainer.parts)
            sample_if_due()
        if name := hosts.any_of(interruption.signal_name):
            console.print(f"{name}: saving; a second one ends at once")
        if trainer.iteration not in checkpoints.steps:
            checkpoints.save(trainer.iteration, **trainer.parts)
        if config.evaluate and config.sample_every:
            sample()

    if name := hosts.any_of(interruption.signal_name):
        trainer.tell_stopped(name, folder, console)
        return None
    return dataclasses.replace(agent, params=jax.device_get(trainer.average))


def report(folder: RunFolder, agent: Agent, console: Console) -> None:
    """Measures what the run came to and tells all of it on a page."""
    config = agent.config
    page = None
    if folder.read_metrics():  # there is no page of nothing
        page = ReportPage(folder, config, agent.env)
        page.write()  # as it is, in case that the measurements are interrupted
        console.print(f"report of the run: {page.path}", soft_wrap=True)
    if config.evaluate:
        measured = measure_agent(agent, str(folder), console, config.seed)
        write_json(folder.measured, measured)
        if page:
            page.write()


# --------------------------------------------------------------------------------------
# The program


def main(arguments: Sequence[str] | None = None) -> int:
    backend.protect()
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and (command := COMMANDS.get(arguments[0])):
        return command(arguments[1:])
    try:
        config = parse(arguments)
        meet(config)
        with hosts.together():
            folder, agent, programs, takes = prepare(config)
    except ValueError as error:
        print(f"train.py: {one_line(error)}", file=sys.stderr)
        return 2
    console = Console(markup=False, emoji=False, quiet=not hosts.is_first())
    for line in backend.describe(), takes:
        console.print(line, highlight=False, soft_wrap=True)
    again = f"go on from the last checkpoint with: {folder.resume_command}"
    try:
        with hosts.watched(f"start all again to {again}"):
            trained = train(folder, agent, programs, console)
    except (UnusableRunError, hosts.OtherProcessError) as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 2
    except NotFiniteError as error:
        kept = folder.keep_batch(error.batch)
        again += f" --learning-rate {agent.config.learning_rate / 10:g}"
        print(f"train.py: {error}; {kept}; {again}", file=sys.stderr)
        return 1
    except OSError as error:
        warnings.simplefilter("ignore")  # of what Orbax leaves unfinished
        print(f"train.py: cannot write: {error}; {again}", file=sys.stderr)
        return 1
    if trained is None:
        return 0
    with Interruption() as interruption, hosts.first_alone():
        if hosts.is_first():
            interruption.until_signal(lambda: report(folder, trained, console))
    if interruption.signal_name:
        console.print(
            f"{interruption.signal_name}: stopped before all was measured, the run is "
            f"saved. Measure it with: {folder.resume_command}",
            soft_wrap=True,
        )
    return 0


def distill(arguments: Sequence[str]) -> int:
    return distillation.main(
        lambda: parse(arguments, DistillConfig),
        load_agent=load_agent,
        make_agent=make_agent,
    )


def report_run(arguments: Sequence[str]) -> int:
    def read(run: str) -> tuple[RunFolder, AgentConfig, Any]:
        folder = RunFolder(run)
        config = folder.read_config(Config, DistillConfig)
        folder = RunFolder(run, config.program)
        with folder.naming_config():
            options = read_options(config.env_options)
            return folder, config, envs.make_in_turn(config.env, **options)

    return report_page.main(arguments, read)


COMMANDS = {"distill": distill, "report": report_run}

if __name__ == "__main__":
    finish(main)
