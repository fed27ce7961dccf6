"""Checkpoints of a training run: atomic, several kept, damage survived.

Everything of Orbax that the project uses stands in this file.
"""

import json
import logging
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import jax
from orbax.checkpoint import v1 as ocp

from jaxsearch.learn.files import read_object, write_json
from jaxsearch.learn.run_folder import UnusableRunError, check_no_pattern

_CHECKSUMS = "checksums.json"


class Checkpoints:
    """The checkpoints of one folder. Use it in a `with` statement.

    A checkpoint is written beside its place and moved there when it is complete, so a
    crash at any moment leaves the ones before it as they were. The checksums of its
    files follow, because Orbax reads some damaged files as if they were whole; without
    them a checkpoint is incomplete and is not read.

    Args:
      folder: where they stand.
      settings: what a run is made of, as JSON takes it. They are kept with each
        checkpoint, and one that was saved under others is not loaded.
      keep: how many to keep.
      writable: whether to make the folder, and to remove what a save that was cut short
        has left; only for the one process that saves.

    Raises:
      UnusableRunError: there is no folder, and it is not to be made, or its name is a
        pattern to Orbax.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any] = MappingProxyType({}),
        *,
        keep: int = 2,
        writable: bool = False,
    ):
        if not writable and not folder.is_dir():
            raise UnusableRunError(f"there is no checkpoint in {folder}")
        check_no_pattern(folder)
        # What Orbax logs, from threads of its own as well, it also raises.
        for name in ("absl", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        policies = ocp.training.preservation_policies
        self._checkpointer = ocp.training.Checkpointer(
            str(folder.absolute()),
            preservation_policy=policies.LatestN(keep),  # pyright: ignore
            cleanup_tmp_directories=writable,
        )
        self._settings = json.loads(json.dumps(dict(settings)))
        self._folder = folder
        self._damaged: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self._checkpointer.close()
        except Exception:  # again what a failed save has raised already
            if kind is None:
                raise

    @property
    def steps(self) -> list[int]:
        """The steps of complete checkpoints not known to be damaged, oldest first."""
        found = {checkpoint.step for checkpoint in self._checkpointer.checkpoints}
        return sorted(found - self._damaged)

    def save(self, step: int, **parts: Any) -> None:
        """Saves pytrees of arrays under names; returns when they are safe on disk.

        Raises:
          OSError: they cannot be written.
        """
        try:
            # Forced, as a damaged checkpoint may stand at this step or later.
            self._checkpointer.save_checkpointables(
                step,
                parts,
                force=True,
                overwrite=True,
                custom_metadata={"settings": self._settings},
            )
        # A full disk shows as whatever error the writer stumbles over.
        except Exception as error:
            raise OSError(f"checkpoint {step}: {_first_line(error)}") from error
        self._damaged.discard(step)
        folder = self._folder / str(step)
        write_json(folder / _CHECKSUMS, _checksums(folder))

    def load_newest(self, **examples: Any) -> tuple[int, dict[str, Any], list[str]]:
        """Loads parts of the newest checkpoint that can be read.

        Args:
          examples: for each part wanted a pytree like the one saved, for its structure,
            shapes, dtypes and devices.

        Returns:
          The step, the parts, and one line for each newer checkpoint that is damaged.

        Raises:
          UnusableRunError: there is none, none that can be read, or it is of a run with
            other settings.
        """
        abstract = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
            examples,
        )
        damaged = []
        for step in reversed(self.steps):
            try:
                _check_files(self._folder / str(step))
                self._check_settings(step)
                parts = self._checkpointer.load_checkpointables(step, abstract)
            except UnusableRunError:
                raise
            # A damaged file shows as whatever error the reader stumbles over.
            except Exception as error:
                self._damaged.add(step)
                known = isinstance(error, _DamageError)
                reason = error if known else "it is of another net or version"
                damaged.append(
                    f"checkpoint {self._folder / str(step)} cannot be read: {reason}"
                )
            else:
                using = f"; using the one before it, {step}: nothing is to be done"
                return step, parts, [line + using for line in damaged]
        if damaged:
            raise UnusableRunError(
                f"{'; '.join(damaged)}; no older one is left: bring back the files, or "
                "start another run"
            )
        raise UnusableRunError(f"there is no checkpoint in {self._folder}")

    def _check_settings(self, step: int) -> None:
        metadata: Any = self._checkpointer.checkpointables_metadata(step)
        for name, saved in (metadata.custom_metadata or {}).get("settings", {}).items():
            if (expected := self._settings.get(name, saved)) != saved:
                raise UnusableRunError(
                    f"checkpoint {self._folder / str(step)} is of a run with {name} "
                    f"{saved!r}, but config.json has {name} {expected!r}: set it back, "
                    "or bring back the checkpoints of this run"
                )


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _checksums(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): zlib.crc32(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _CHECKSUMS
    }


class _DamageError(Exception):
    """A checkpoint is not as it was written; says what is wrong."""


def _check_files(folder: Path) -> None:
    """Raises _DamageError if a file of a checkpoint is not as it was written."""
    try:
        stored = read_object((folder / _CHECKSUMS).read_bytes())
        found = _checksums(folder)
    except FileNotFoundError:  # a crash came between the checkpoint and its checksums
        raise _DamageError(f"{_CHECKSUMS} is missing") from None
    except OSError as error:
        raise _DamageError(f"{error.filename}: {error.strerror}") from None
    except ValueError:
        stored = found = {}
    if not stored:
        raise _DamageError(f"{_CHECKSUMS} is damaged")
    for name, checksum in stored.items():
        if found.get(name) != checksum:
            wrong = "damaged" if name in found else "missing"
            raise _DamageError(f"{name} is {wrong}")
