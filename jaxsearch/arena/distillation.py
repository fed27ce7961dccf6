"""Distillation: a net is fitted to what players say about positions."""

import dataclasses
import functools
import shlex
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import jax
from rich.console import Console

from jaxsearch import backend
from jaxsearch.arena.player_names import (
    game_of_all,
    load_agents,
    make_player,
    parse_player,
)
from jaxsearch.arena.teachers import (
    Progress,
    check_memory,
    ensemble,
    lessons_of_games,
    lessons_on,
    read_positions,
)
from jaxsearch.learn import memory
from jaxsearch.learn.agent import Agent
from jaxsearch.learn.bar import Bar
from jaxsearch.learn.config import AgentConfig, DistillConfig
from jaxsearch.learn.fit import Fitter, split_lessons
from jaxsearch.learn.interruption import Interruption
from jaxsearch.learn.lessons import Lessons, load_lessons, save_lessons
from jaxsearch.learn.resumable import open_checkpoints
from jaxsearch.learn.run_folder import RunFolder, UnusableRunError
from jaxsearch.program import one_line


class MakeAgent(Protocol):
    """Gives an untrained agent; raises ValueError if memory does not hold it."""

    def __call__(
        self, config: DistillConfig, *, copies: int
    ) -> Agent[DistillConfig]: ...


def main(
    parse: Callable[[], DistillConfig],
    *,
    load_agent: Callable[[str], Agent[AgentConfig]],
    make_agent: MakeAgent,
) -> int:
    """Runs `train.py distill` and gives its exit code.

    Args:
      parse: gives the flags, or raises ValueError.
      load_agent: gives the agent of a run folder, or raises ValueError.
      make_agent: see `MakeAgent`.
    """
    console = Console(markup=False, emoji=False)
    try:
        job = prepare(parse(), load_agent=load_agent, make_agent=make_agent)
    except ValueError as error:
        print(f"train.py: {one_line(error)}", file=sys.stderr)
        return 2
    console.print(backend.describe(), highlight=False, soft_wrap=True)
    again = f"go on from the last checkpoint with: {job.folder.resume_command}"
    try:
        distill(job, console)
    except UnusableRunError as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 2
    except FloatingPointError as error:
        lower = job.student.config.learning_rate / 10
        print(f"train.py: {error}; {again} --learning-rate {lower:g}", file=sys.stderr)
        return 1
    except OSError as error:
        warnings.simplefilter("ignore")  # of what Orbax leaves unfinished
        print(f"train.py: cannot write: {error}; {again}", file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True, kw_only=True)
class Distillation:
    """A run whose input has been checked."""

    folder: RunFolder
    student: Agent[DistillConfig]
    lessons: Lessons | None  # None if the teachers still have to give them
    teach: Callable[[Progress], Lessons]


def prepare(
    config: DistillConfig,
    *,
    load_agent: Callable[[str], Agent[AgentConfig]],
    make_agent: MakeAgent,
) -> Distillation:
    """Checks everything that can be wrong; raises ValueError and changes nothing."""
    config.check()
    folder = RunFolder(config.folder, config.program)
    backend.select(config.device)
    if config.resume:
        folder.check_resumable()
    if config.resume and folder.lessons.exists():
        with folder.naming_config():
            student = _student(config, make_agent)
        lessons = load_lessons(folder.lessons, student.env)
        return Distillation(
            folder=folder, student=student, lessons=lessons, teach=lambda _: lessons
        )
    names = [parse_player(text) for text in config.teachers]
    agents = load_agents(names, load_agent)
    if agents and not config.env:
        taught = next(iter(agents.values())).config
        game = {"env": taught.env, "env_options": taught.env_options}
        config = dataclasses.replace(config, **game)
    if not config.env:
        raise ValueError("no teacher names a run, which tells the game: add --env")
    if not config.resume:
        folder.check_unused(config.env)
    student = _student(config, make_agent)
    env = game_of_all(agents, student.env)
    players = [make_player(name, env, agents.get(name.run)) for name in names]
    together = ensemble(players)
    check_memory(env, together, config.teacher_batch)
    key = jax.random.key(config.seed)
    options = {"batch_size": config.teacher_batch, "key": key}
    if config.positions is not None:
        states = read_positions(env, Path(config.positions))
        teach = functools.partial(lessons_on, env, together, states, **options)
    else:
        options |= {"games": config.games, "temperature": config.temperature}
        options |= {"opening_plies": config.opening_plies}
        teach = functools.partial(lessons_of_games, env, together, **options)
    return Distillation(
        folder=folder,
        student=student,
        lessons=None,
        teach=lambda progress: teach(progress=progress),
    )


def _student(config: DistillConfig, make_agent: MakeAgent) -> Agent[DistillConfig]:
    student = make_agent(config, copies=memory.COPIES)
    layer = memory.of_layer(
        student.env, student.net, student.params, config.batch, "--batch or --width"
    )
    memory.check([layer])
    return student


def distill(job: Distillation, console: Console) -> None:
    """Has the teachers teach, and fits the student.

    Raises:
      UnusableRunError: another process trains here, or the run to resume has no
        checkpoint that can be read.
      FloatingPointError: parameters have become infinite or NaN; they are not saved.
      OSError: something cannot be written.
    """
    config, folder, lessons = job.student.config, job.folder, job.lessons
    if lessons is None:
        lessons = _taught(job, console)
        if lessons is None:
            return
    student = job.student
    fitter = Fitter(config, student.env, student.net, student.params, lessons)
    with (
        folder.locked(),
        Interruption() as interruption,
        open_checkpoints(folder, config) as checkpoints,
        Bar(console, "fitting") as bar,
    ):
        fitter.set_up(folder, checkpoints, console)  # before the clock starts
        while fitter.share_done < 1 and not interruption.signal_name:
            figures = fitter.iterate()
            folder.append_metrics(figures)
            bar.show(fitter.share_done, _line(figures))
            if fitter.iteration % config.save_every == 0:
                checkpoints.save(fitter.iteration, **fitter.parts)
        if fitter.iteration not in checkpoints.steps:
            checkpoints.save(fitter.iteration, **fitter.parts)

    if name := interruption.signal_name:
        fitter.tell_stopped(name, folder, console)
    else:
        name = shlex.quote(f"{folder}?search=raw")
        console.print(
            f"measure it: python evaluate.py match {name} uct:sims=100",
            soft_wrap=True,
        )


def _taught(job: Distillation, console: Console) -> Lessons | None:
    """The lessons of the teachers, kept in the folder; None if interrupted."""
    config, folder = job.student.config, job.folder
    with folder.locked(), Interruption() as interruption:
        if not config.resume:
            folder.check_unused(config.env)  # again: from here on it is taken
        with Bar(console, "teaching") as bar:
            lessons = interruption.until_signal(lambda: job.teach(bar.show))
        if lessons is None:
            console.print(
                f"{interruption.signal_name}: stopped while the teachers were "
                "teaching, of which nothing is kept: start again with the same command",
                soft_wrap=True,
            )
            return None
        _, held_out = split_lessons(config, lessons)
        console.print(
            f"{len(lessons):,} different positions, {len(held_out):,} of them held out"
        )
        folder.write_config(config)
        save_lessons(folder.lessons, lessons)
        if interruption.signal_name is None:
            return lessons
    console.print(
        f"{interruption.signal_name}: stopped when the teachers had taught. Go on "
        f"with:\n  {folder.resume_command}",
        soft_wrap=True,
    )
    return None


def _line(figures: dict[str, Any]) -> str:
    """The figures of an iteration in 80 columns."""
    return (
        f"step {figures['updates']:,}: policy {figures['policy_divergence']:.3f}, "
        f"value {figures['value']:.3f}; held out {figures['held_out_divergence']:.3f}, "
        f"{figures['held_out_value']:.3f}, "
        f"same move {figures['held_out_agreement']:.1%}"
    )
