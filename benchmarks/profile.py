"""Counting what a program makes the device do, from a profile of one run."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
from jax.profiler import ProfileData

HOST = "/host:CPU"
END = "end: "  # what the CPU backend writes after each operation


def num_kernels(run: Callable[[], Any]) -> int | None:
    """The kernels that a run launches on the device; on a CPU the operations it makes.

    None where the profile does not tell. Profiling slows the run down, so it is not one
    to time.
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(run())
        files = list(Path(folder).rglob("*.xplane.pb"))
        if not files:
            return None
        planes = ProfileData.from_file(str(files[0])).planes
        return count_kernels(planes, on_host=jax.default_backend() == "cpu")


def count_kernels(planes: Iterable[Any], *, on_host: bool) -> int | None:
    """The events on the streams of GPUs, those of operations on the host's threads."""
    count = 0
    for plane in planes:
        for line in plane.lines:
            if on_host and plane.name == HOST:
                count += sum(event.name.startswith(END) for event in line.events)
            elif "device" in plane.name.lower() and line.name.startswith("Stream"):
                count += sum(1 for _ in line.events)
    return count or None
