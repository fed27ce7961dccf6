"""Files that appear whole or not at all, and whether they can be written."""

import contextlib
import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a file beside `path`, then moves it there in one step."""
    beside = _beside(path)
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=2) + "\n"
    write_atomically(path, lambda beside: beside.write_text(text))


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a NumPy archive, which has a checksum for each array."""

    def write(beside: Path) -> None:
        with beside.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    write_atomically(path, write)


def plain(value: Any) -> Any:
    """A result as JSON can hold it; JSON has no infinity, so that it becomes a text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def read_object(text: str | bytes) -> dict[str, Any]:
    """The object that a JSON text holds; ValueError for all else."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it holds no JSON object")
    return value


def check_file(path: Path) -> None:
    """Raises ValueError if no file can be written at `path`; leaves no trace."""
    _check_place(path)
    if path.exists() and not path.is_file():
        raise ValueError(
            f"cannot write the file {path}: something else is there, move it away"
        )
    if not path.absolute().parent.is_dir():
        raise ValueError(f"cannot write the file {path}: no folder {path.parent}")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"cannot write the file {path}: Permission denied")


def check_folder(path: Path) -> None:
    """Raises ValueError if no folder can be made or filled there; leaves no trace."""
    _check_place(path)
    if path.is_symlink() and not path.exists():
        raise ValueError(f"cannot write into {path}: it is a link to nothing")
    if path.exists() and not path.is_dir():
        raise ValueError(f"cannot write into {path}: it is a file")


def remove_leftovers(folder: Path) -> None:
    """Removes what writing was cut short in a folder that nobody writes to now."""
    for path in folder.glob(".*.part"):
        path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _check_place(path: Path) -> None:
    place = path.absolute()
    if not str(path).isprintable():
        raise ValueError(f"cannot write {str(path)!r}: take a name that can be printed")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.stat(_beside(place))  # refuses long names and what lies below a file
        while not place.exists():
            place = place.parent
        with tempfile.TemporaryFile(dir=place if place.is_dir() else place.parent):
            pass
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot write {str(path)!r}: {reason}") from None
