"""Checkpoints of a training run: atomic, several kept, damage survived.

Everything of Orbax that the project uses stands in this file. A checkpoint is a folder
named after its step:

    agent/, state/, ...  a pytree of arrays each, as Orbax writes them
    checkpoint.json      the format, the settings of the run, and the notes
    checksums.json       of all files; it comes last, and without it nothing is read
"""

import contextlib
import json
import logging
import shutil
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import jax
from orbax.checkpoint import v1 as ocp

from jaxsearch.learn import hosts
from jaxsearch.learn.files import read_object, write_json
from jaxsearch.learn.run_folder import UnusableRunError, check_no_pattern

FORMAT = 2
"""Of what is written; it counts up when older code can no longer read it."""

_ABOUT = "checkpoint.json"
_CHECKSUMS = "checksums.json"
_UNFINISHED = "*.orbax-checkpoint-tmp*"
_REMOVED = ".{}.removed"


class Checkpoints:
    """The checkpoints of one folder. Use it in a `with` statement.

    A checkpoint is written beside its place and moved there when it is complete, so a
    crash at any moment leaves the ones before it as they were. The checksums of its
    files follow, because Orbax reads some damaged files as if they were whole; without
    them a checkpoint is incomplete and is not read. Older ones are removed after that.

    Where several processes train together all of them make, save and load at the same
    time, in a folder that they share.

    Args:
      folder: where they stand.
      settings: what a run is made of, as JSON takes it. They are kept with each
        checkpoint, and one that was saved under others is not loaded.
      keep_last: how many to keep.
      keep_every: the multiples of it to keep besides; 0 for none.
      writable: whether to make the folder, and to remove what a save that was cut short
        has left; only for the one run that saves.

    Raises:
      UnusableRunError: there is no folder, and it is not to be made, or its name is a
        pattern to Orbax.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any] = MappingProxyType({}),
        *,
        keep_last: int = 2,
        keep_every: int = 0,
        writable: bool = False,
    ):
        if not writable and not folder.is_dir():
            raise UnusableRunError(f"there is no checkpoint in {folder}")
        check_no_pattern(folder)
        # What Orbax logs, from threads of its own as well, it also raises.
        for name in ("absl", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if writable:
            with hosts.together():
                _make_ready(folder)
        self._folder = folder.absolute()
        self._settings = json.loads(json.dumps(dict(settings)))
        self._keep_last, self._keep_every = keep_last, keep_every
        self._damaged: set[int] = set()
        self._saving: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.wait()
        elif self._saving is not None:
            self._saving.exception()  # of a save that fails as well nothing is said

    @property
    def steps(self) -> list[int]:
        """The steps of checkpoints not known to be damaged, oldest first.

        Waits for one that is being saved.
        """
        self.wait()
        found = hosts.of_first(sorted(_steps(self._folder)))
        return [step for step in found if step not in self._damaged]

    def save(
        self,
        step: int,
        *,
        notes: Mapping[str, Any] = MappingProxyType({}),
        **parts: Any,
    ) -> None:
        """Begins to save pytrees of arrays under names; `wait` ends it.

        Returns when the arrays may be changed or donated. A save before it ends first.

        Args:
          notes: small data of the host, as JSON takes it.

        Raises:
          OSError: they, or what was saved before, cannot be written.
        """
        self.wait()
        about = {"format": FORMAT, "settings": self._settings, "notes": dict(notes)}
        about = json.loads(json.dumps(about))  # now, as the notes may change
        with hosts.together(), _told_as_os_error(step):
            writing = ocp.save_checkpointables_async(
                str(self._folder / str(step)), parts, overwrite=True
            )
        self._damaged.discard(step)
        self._saving = _in_background(self._finish, step, writing, about)

    def wait(self) -> None:
        """Waits until everything is safe on disk.

        Raises:
          OSError: it cannot be written.
        """
        saving, self._saving = self._saving, None
        with hosts.together():
            if saving is not None:
                saving.result()

    def load_newest(self, **examples: Any) -> tuple[int, dict[str, Any], list[str]]:
        """Loads parts of the newest checkpoint of which they can be read.

        Other parts may be damaged, or made by another version.

        Args:
          examples: for each part wanted a pytree like the one saved, for its structure,
            shapes, dtypes and devices. These need not be those that saved it.

        Returns:
          The step, the parts and the `notes` among them, and one line for each newer
          checkpoint that is damaged.

        Raises:
          UnusableRunError: there is none, none that can be read, or it is of a run with
            other settings, or of another format.
        """
        abstract = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
            examples,
        )
        damaged = []
        for step in reversed(self.steps):
            folder = self._folder / str(step)
            try:
                about = _about(folder, examples)
                self._check_settings(folder, about["settings"])
                notes = {"notes": about["notes"]}
                parts = ocp.load_checkpointables(str(folder), abstract) | notes
            except UnusableRunError:
                raise
            # A damaged file shows as whatever error the reader stumbles over.
            except Exception as error:
                self._damaged.add(step)
                known = isinstance(error, _DamageError)
                reason = error if known else "it is of another net or version"
                damaged.append(f"checkpoint {folder} cannot be read: {reason}")
            else:
                using = f"; using the one before it, {step}: nothing is to be done"
                return step, parts, [line + using for line in damaged]
        if damaged:
            raise UnusableRunError(
                f"{'; '.join(damaged)}; no older one is left: bring back the files, or "
                "start another run"
            )
        raise UnusableRunError(f"there is no checkpoint in {self._folder}")

    def _finish(self, step: int, writing: Any, about: dict[str, Any]) -> None:
        with _told_as_os_error(step):
            writing.result()
            if hosts.is_first():
                folder = self._folder / str(step)
                write_json(folder / _ABOUT, about)
                write_json(folder / _CHECKSUMS, _checksums(folder))
                self._remove_before(step)

    def _remove_before(self, last: int) -> None:
        found = sorted(step for step in _steps(self._folder) if step <= last)
        whole = [step for step in found if step not in self._damaged]
        kept = set(whole[-self._keep_last :])
        if self._keep_every:
            kept |= {step for step in whole if step % self._keep_every == 0}
        for step in set(found) - kept:
            removed = self._folder / _REMOVED.format(step)
            (self._folder / str(step)).rename(removed)
            shutil.rmtree(removed)

    def _check_settings(self, folder: Path, settings: dict[str, Any]) -> None:
        for name, saved in settings.items():
            if (expected := self._settings.get(name, saved)) != saved:
                raise UnusableRunError(
                    f"checkpoint {folder} is of a run with {name} {saved!r}, but "
                    f"config.json has {name} {expected!r}: set it back, or bring back "
                    "the checkpoints of this run"
                )


def _make_ready(folder: Path) -> None:
    if not hosts.is_first():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in (_UNFINISHED, _REMOVED.format("*")):
        for path in folder.glob(pattern):
            shutil.rmtree(path)


def _steps(folder: Path) -> set[int]:
    return {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}


def _in_background(work: Any, *arguments: Any) -> Future[None]:
    """Runs something in a thread, for which the end of the program does not wait."""
    done: Future[None] = Future()

    def run():
        try:
            done.set_result(work(*arguments))
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done


@contextlib.contextmanager
def _told_as_os_error(step: int) -> Iterator[None]:
    """A full disk shows as whatever error the writer stumbles over."""
    try:
        yield
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise OSError(f"checkpoint {step}: {reason}") from error


def _checksums(folder: Path, parts: Collection[str] | None = None) -> dict[str, int]:
    """Of the files of some parts, or of all; and of those that belong to no part."""
    return {
        name: zlib.crc32(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _CHECKSUMS
        for name in (str(path.relative_to(folder)),)
        if _is_wanted(name, parts)
    }


def _is_wanted(name: str, parts: Collection[str] | None) -> bool:
    part, *inside = name.split("/")
    return parts is None or not inside or part in parts


class _DamageError(Exception):
    """A checkpoint is not as it was written; says what is wrong."""


def _about(folder: Path, parts: Collection[str]) -> dict[str, Any]:
    """What checkpoint.json holds, if the files of some parts are as they were written.

    Raises:
      UnusableRunError: it is of another format.
      _DamageError: something is not as it was written.
    """
    damage, about = "", {}
    if hosts.is_first():
        try:
            about = _read(folder, parts)
        except _DamageError as error:
            damage = str(error)
    damage, about = hosts.of_first((damage, about))
    if damage:
        raise _DamageError(damage)
    if (found := about.get("format", 1)) != FORMAT:
        newer = "update jaxsearch"
        older = "read it with the version that wrote it, or start another run"
        raise UnusableRunError(
            f"checkpoint {folder} has format {found} and this version of jaxsearch "
            f"reads {FORMAT}: {newer if found > FORMAT else older}"
        )
    return about


def _read(folder: Path, parts: Collection[str]) -> dict[str, Any]:
    """What checkpoint.json holds; raises _DamageError as `_about` does."""
    try:
        stored = read_object((folder / _CHECKSUMS).read_bytes())
        found = _checksums(folder, parts)
    except FileNotFoundError:  # a crash came between the checkpoint and its checksums
        raise _DamageError(f"{_CHECKSUMS} is missing") from None
    except OSError as error:
        raise _DamageError(f"{error.filename}: {error.strerror}") from None
    except ValueError:
        stored = found = {}
    if not stored:
        raise _DamageError(f"{_CHECKSUMS} is damaged")
    for name, checksum in stored.items():
        if _is_wanted(name, parts) and found.get(name) != checksum:
            wrong = "damaged" if name in found else "missing"
            raise _DamageError(f"{name} is {wrong}")
    # The first format had none.
    return read_object((folder / _ABOUT).read_bytes()) if _ABOUT in found else {}
