"""The folder of a training run.

config.json    the configuration, from which the game and the net are rebuilt
versions.json  what it was last run with
metrics.jsonl  one line an iteration
lessons.npz    what the teachers said, where a net is fitted to it
checkpoints/   see `jaxsearch.learn.checkpoint`
openings.txt   of --openings, a copy
games/         sample games, see `jaxsearch.arena.sample_games`
tensorboard/   the metrics for TensorBoard, if asked for
measured.json  what was measured at the end
report.html    all of it as a page
bad_batch.npz  what a learning step that gave infinities or NaN learned from
lock           held by the process that trains here
"""

import contextlib
import dataclasses
import difflib
import fcntl
import importlib.metadata
import json
import os
import platform
import re
import reprlib
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from jaxsearch.learn import hosts
from jaxsearch.learn.config import AgentConfig, RunConfig
from jaxsearch.learn.files import (
    check_file,
    check_folder,
    read_object,
    remove_leftovers,
    write_arrays,
    write_atomically,
    write_json,
)

_PACKAGES = ("jaxsearch", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "mctx")

_BAD_BATCH = "bad_batch.npz"
_LESSONS = "lessons.npz"
_OPENINGS = "openings.txt"
_FILES = (
    *("config.json", "versions.json", "metrics.jsonl", "lock"),
    *("measured.json", "report.html", _BAD_BATCH, _LESSONS, _OPENINGS),
)
_FOLDERS = ("checkpoints", "games", "tensorboard")

ConfigT = TypeVar("ConfigT", bound=AgentConfig)


class UnusableRunError(ValueError):
    """A run folder cannot be used; the message is one line for its owner."""


class RunFolder:
    """Paths and small files of a run.

    Where several processes train together, the first of them checks and writes, and in
    the others these methods do nothing.

    Args:
      path: where it stands.
      program: what makes runs there, as a command line begins.
    """

    def __init__(self, path: Path | str, program: str = "train.py"):
        self.path = Path(path)
        self._program = program
        self.checkpoints = self.path / "checkpoints"
        self.games = self.path / "games"
        self.tensorboard = self.path / "tensorboard"
        self.measured = self.path / "measured.json"
        self.lessons = self.path / _LESSONS
        self.openings = self.path / _OPENINGS
        self._config = self.path / "config.json"
        self._metrics = self.path / "metrics.jsonl"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def resume_command(self) -> str:
        """Goes on with the run; of a finished one it makes the report again."""
        return f"{self._train_command} --resume"

    @property
    def _train_command(self) -> str:
        return f"python {self._program} --run {shlex.quote(str(self))}"

    @property
    def remedy(self) -> str:
        """What to do where there is no such folder; a run of a like name may be meant.

        Looked for beside it and in runs/.
        """
        runs = {}
        with contextlib.suppress(OSError, ValueError):  # names that no file can have
            for folder in (Path("runs"), self.path.parent):
                configs = folder.glob("*/config.json")
                runs |= {path.parent.name: path.parent for path in configs}
        if near := difflib.get_close_matches(self.path.name, runs, n=1):
            return f"did you mean {runs[near[0]]}?"
        return f"train a run with: {self._train_command}"

    def check_unused(self, game: str) -> None:
        """Raises ValueError if no run of a game can start here; changes nothing."""
        if not hosts.is_first():
            return
        self._check_writable()
        if self._config.exists():
            held = made_by = None
            with contextlib.suppress(OSError, ValueError):
                config = read_object(self._config.read_bytes())
                held, made_by = config.get("env"), config.get("program")
            same = (held, made_by) == (game, self._program)
            resume = "add --resume to go on with it, or " if same else ""
            raise UnusableRunError(
                f"{self} holds a run{f' of {held}' if held else ''} already: {resume}"
                "choose another folder with --run"
            )

    def check_resumable(self) -> None:
        """Raises ValueError if a run cannot go on here; changes nothing.

        Either it got somewhere and its checkpoints are gone, the first of which is
        saved before the first iteration, or something cannot be written.
        """
        if not hosts.is_first():
            return
        saved = any(path.name.isdigit() for path in self.checkpoints.glob("*"))
        if self.read_metrics() and not saved:
            raise UnusableRunError(
                f"{self} has metrics but no checkpoint to go on from: bring back "
                f"{self.checkpoints}, or start another run"
            )
        self._check_writable()

    def _check_writable(self) -> None:
        check_folder(self.path)
        check_no_pattern(self.path)
        if self.path.exists():
            for name in _FOLDERS:
                check_folder(self.path / name)
            for name in _FILES:
                check_file(self.path / name)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder and keeps other processes from training in it.

        The lock ends with the process, however that ends.

        Raises:
          UnusableRunError: another process is training here.
        """
        with contextlib.ExitStack() as held:
            with hosts.together():
                if hosts.is_first():
                    self._lock(held)
            yield

    def _lock(self, held: contextlib.ExitStack) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        file = held.enter_context((self.path / "lock").open("a"))
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnusableRunError(
                f"another process is training in {self}: wait for its end, or "
                "choose another folder with --run"
            ) from None
        remove_leftovers(self.path)

    def write_config(self, config: AgentConfig) -> None:
        if hosts.is_first():
            stored = {"program": config.program} | dataclasses.asdict(config)
            write_json(self._config, stored)

    def read_config(self, *kinds: type[ConfigT]) -> ConfigT:
        """The stored configuration, of the kind whose program has made the run.

        Raises:
          UnusableRunError: there is no run here, or another program has made it, or its
            configuration cannot be used.
        """
        if not os.path.isdir(self.path):  # Path.is_dir raises for some names
            raise UnusableRunError(f"there is no run folder {self}: {self.remedy}")
        with self.naming_config():
            try:
                text = self._config.read_bytes()
            except FileNotFoundError:
                raise UnusableRunError(
                    f"{self} is not a run folder: it holds no config.json"
                ) from None
            stored = read_object(text)
            program = stored.pop("program", RunConfig.program)
            for kind in kinds:
                if program == kind.program:
                    return kind.from_json(stored)
            programs = " or ".join(kind.program for kind in kinds)
            raise UnusableRunError(
                f"{self} holds a run of {reprlib.repr(program)}, not of {programs}: "
                "take that program, or another folder"
            )

    @contextlib.contextmanager
    def naming_config(self) -> Iterator[None]:
        """Inside, what cannot be read or used is the fault of config.json."""
        try:
            yield
        except UnusableRunError:
            raise
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnusableRunError(f"{self._config} cannot be used: {reason}") from None

    def write_versions(self, device: str) -> None:
        if not hosts.is_first():
            return
        versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
        versions |= {"python": platform.python_version(), "device": device}
        write_json(self.path / "versions.json", versions)

    def read_versions(self) -> dict[str, Any]:
        """What the run was last run with; nothing where that cannot be read."""
        with contextlib.suppress(OSError, ValueError):
            return read_object((self.path / "versions.json").read_bytes())
        return {}

    def keep_openings(self, path: str) -> None:
        if hosts.is_first():
            write_atomically(self.openings, lambda copy: shutil.copyfile(path, copy))

    def keep_batch(self, arrays: dict[str, np.ndarray]) -> str:
        """Writes a batch that could not be learned from; says where, or why not."""
        path = self.path / _BAD_BATCH
        try:
            if hosts.is_first():
                write_arrays(path, arrays)
        except OSError as error:
            return f"its batch cannot be written: {error}"
        return f"its batch is in {path}, for numpy.load"

    def append_metrics(self, metrics: dict[str, Any]) -> None:
        if not hosts.is_first():
            return
        with self._metrics.open("a") as file:
            file.write(json.dumps(metrics) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """The metrics so far, without lines that cannot be read."""
        return self._read_metrics()[0]

    def cut_metrics(self, last_iteration: int) -> list[str]:
        """Drops the lines after an iteration: the run is resumed from there.

        Returns a text for each damaged line that it drops, but for a last one: a crash
        cut that short.
        """
        if not hosts.is_first():
            return []
        metrics, damaged = self._read_metrics()
        kept = [m for m in metrics if m["iteration"] <= last_iteration]
        text = "".join(json.dumps(m) + "\n" for m in kept)
        write_atomically(self._metrics, lambda path: path.write_text(text))
        return damaged

    def _read_metrics(self) -> tuple[list[dict[str, Any]], list[str]]:
        try:
            lines = self._metrics.read_bytes().splitlines()
        except FileNotFoundError:
            return [], []
        except OSError as error:
            raise UnusableRunError(
                f"{self._metrics} cannot be read: {error.strerror}"
            ) from None
        metrics, damaged = [], []
        for number, line in enumerate(lines, 1):
            try:
                metrics.append(_read_line(line))
            except ValueError as error:
                if number < len(lines):
                    damaged.append(f"{self._metrics} line {number} is dropped: {error}")
        return metrics, damaged


def check_no_pattern(path: Path) -> None:
    """Raises UnusableRunError for a path that Orbax would take for a pattern."""
    if found := re.search(r"[*?\[\\]", str(path.absolute())):
        raise UnusableRunError(
            f"{path.absolute()} holds {found[0]}, with which checkpoints cannot be "
            "read: take a folder without any of * ? [ \\"
        )


def check_no_part_of_run(path: Path) -> None:
    """Raises ValueError if a path is one of the files by which a run lives."""
    place = Path(os.path.realpath(path.absolute().parent), path.name)
    for folder in place.parents:
        part = place.relative_to(folder).parts[0]
        if part in (*_FILES, *_FOLDERS) and (folder / "config.json").is_file():
            raise ValueError(
                f"cannot write {path}: it is part of the run in {folder}; choose "
                "another name"
            )


def _read_line(line: bytes) -> dict[str, Any]:
    metrics = read_object(line)
    if type(metrics.get("iteration")) is not int:
        raise ValueError("it names no iteration")
    for value in metrics.values():
        if type(value) not in (int, float, type(None)):
            raise ValueError("it holds more than numbers")
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ValueError("it holds a number too large to draw")
    return metrics
