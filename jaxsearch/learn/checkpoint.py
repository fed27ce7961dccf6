"""Checkpoints of a training run: atomic, several kept, damage survived.

Everything of Orbax that the project uses stands in this file.
"""

import contextlib
import gc
import logging
import warnings
from pathlib import Path
from typing import Any, Self

import jax
from orbax.checkpoint import v1 as ocp

from jaxsearch.learn.run_folder import UnusableRunError


class Checkpoints:
    """The checkpoints of one folder. Use it in a `with` statement.

    A checkpoint is written beside its place and moved there when it is complete, so a
    crash at any moment leaves the ones before it as they were.
    """

    def __init__(self, folder: Path, keep: int = 2):
        policies = ocp.training.preservation_policies
        with _quiet():
            self._checkpointer = ocp.training.Checkpointer(
                str(folder.absolute()),
                preservation_policy=policies.LatestN(keep),  # pyright: ignore
            )
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with _quiet():
            self._checkpointer.close()

    @property
    def steps(self) -> list[int]:
        """The steps of which there is a complete checkpoint, oldest first."""
        return sorted(checkpoint.step for checkpoint in self._checkpointer.checkpoints)

    def save(self, step: int, **parts: Any) -> None:
        """Saves pytrees of arrays under names; returns when they are safe on disk."""
        with _quiet():
            self._checkpointer.save_checkpointables(step, parts, overwrite=True)

    def load_newest(self, **examples: Any) -> tuple[int, dict[str, Any], list[str]]:
        """Loads parts of the newest checkpoint that can be read.

        Args:
          examples: for each part wanted a pytree like the one saved, for its structure,
            shapes, dtypes and devices.

        Returns:
          The step, the parts, and one line for each newer checkpoint that is damaged.

        Raises:
          UnusableRunError: there is none, or none that can be read.
        """
        abstract = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),
            examples,
        )
        damaged = []
        with _quiet():
            for step in reversed(self.steps):
                try:
                    parts = self._checkpointer.load_checkpointables(step, abstract)
                # A damaged file shows as whatever error the reader stumbles over.
                except Exception as error:
                    reason = str(error).strip() or type(error).__name__
                    damaged.append(
                        f"checkpoint {self._folder / str(step)} cannot be read, "
                        f"skipping it: {reason.splitlines()[0][:200]}"
                    )
                else:
                    return step, parts, damaged
                gc.collect()  # the reader's half-done work warns when it is dropped
        if damaged:
            raise UnusableRunError("; ".join(damaged) + "; no older checkpoint is left")
        raise UnusableRunError(f"there is no checkpoint in {self._folder}")


@contextlib.contextmanager
def _quiet():
    """Keeps what Orbax logs off the terminal; its errors are raised as well."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "coroutine .* was never awaited")
            yield
    finally:
        logger.setLevel(level)
