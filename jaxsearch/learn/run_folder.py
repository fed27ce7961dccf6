"""The folder of a training run.

config.json    the configuration, from which the game and the net are rebuilt
versions.json  what it was last run with
metrics.jsonl  one line an iteration
checkpoints/   see `jaxsearch.learn.checkpoint`
"""

import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

from jaxsearch.learn.files import write_atomically

_PACKAGES = ("jaxsearch", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "mctx")


class UnusableRunError(ValueError):
    """A run folder cannot be used; the message is one line for its owner."""


class RunFolder:
    """Paths and small files of a run."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self._config = self.path / "config.json"
        self._metrics = self.path / "metrics.jsonl"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def started(self) -> bool:
        return self._config.exists()

    def create(self, config: dict[str, Any]) -> None:
        """Makes the folder and writes its configuration."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self._config, config)

    def read_config(self) -> dict[str, Any]:
        """The stored configuration.

        Raises:
          UnusableRunError: there is no run here, or its configuration cannot be read.
        """
        if not self.path.is_dir():
            raise UnusableRunError(
                f"there is no run folder {self}: train one with "
                f"`python train.py --run {self}`, or check the path"
            )
        try:
            config = json.loads(self._config.read_text())
        except FileNotFoundError:
            raise UnusableRunError(
                f"{self} is not a run folder: it holds no config.json"
            ) from None
        except (OSError, ValueError) as error:
            raise UnusableRunError(f"{self._config} cannot be read: {error}") from None
        if not isinstance(config, dict):
            raise UnusableRunError(f"{self._config} holds no configuration")
        return config

    def write_versions(self, device: str) -> None:
        versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
        versions |= {"python": platform.python_version(), "device": device}
        write_json(self.path / "versions.json", versions)

    def append_metrics(self, metrics: dict[str, Any]) -> None:
        with self._metrics.open("a") as file:
            file.write(json.dumps(metrics) + "\n")

    def read_metrics(self) -> list[dict[str, Any]]:
        """The metrics so far; a last line that a crash cut short is left out."""
        if not self._metrics.exists():
            return []
        lines = []
        for line in self._metrics.read_text().splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                break
        return lines

    def cut_metrics(self, last_iteration: int) -> None:
        """Drops the lines after an iteration: the run is resumed from there."""
        kept = [m for m in self.read_metrics() if m["iteration"] <= last_iteration]
        text = "".join(json.dumps(m) + "\n" for m in kept)
        write_atomically(self._metrics, lambda path: path.write_text(text))


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file beside its place and moves it there when it is complete."""
    text = json.dumps(value, indent=2) + "\n"
    write_atomically(path, lambda beside: beside.write_text(text))
