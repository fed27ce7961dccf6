"""Compiling and timing programs side by side, and naming the machine they ran on."""

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A compiled program and what it cost to make."""

    run: Callable[..., Any]
    seconds: float  # tracing included
    memory_bytes: int  # everything it holds but its arguments


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one program cost."""

    seconds: float  # the median of the runs
    compile_seconds: float  # tracing included
    memory_bytes: int  # everything it holds but its arguments


def measure(
    programs: Mapping[str, Callable[..., Any]],
    arguments: tuple,
    repeats: int,
    *,
    warm_up: bool = False,
) -> dict[str, Measurement]:
    """Compiles each program, then times them, see `median_seconds`."""
    compiled = {
        name: compile_program(program, arguments) for name, program in programs.items()
    }
    seconds = median_seconds(
        {name: partial(each.run, *arguments) for name, each in compiled.items()},
        repeats,
        warm_up=warm_up,
    )
    return {
        name: Measurement(
            seconds=seconds[name],
            compile_seconds=each.seconds,
            memory_bytes=each.memory_bytes,
        )
        for name, each in compiled.items()
    }


def compile_program(program: Callable[..., Any], arguments: tuple) -> Compiled:
    """Compiles a program for these arguments, which may be arrays or shapes."""
    start = time.perf_counter()
    compiled = jax.jit(program).lower(*arguments).compile()
    seconds = time.perf_counter() - start
    analysis: Any = compiled.memory_analysis()
    return Compiled(
        run=compiled,
        seconds=seconds,
        memory_bytes=analysis.temp_size_in_bytes + analysis.output_size_in_bytes,
    )


def median_seconds(
    runs: Mapping[str, Callable[[], Any]], repeats: int, *, warm_up: bool = False
) -> dict[str, float]:
    """The median time of each run in `repeats` rounds, all of them taking turns.

    Turns spread a slow spell of the machine over all. A first run takes longer; with
    `warm_up` there is one more before those that count.
    """
    seconds = {name: [] for name in runs}
    if warm_up:
        for run in runs.values():
            jax.block_until_ready(run())
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def environment() -> dict[str, str]:
    """The date and what the numbers depend on: hardware, Python, JAX."""
    device = jax.devices()[0]
    hardware = f"{_cpu_name()}, {os.cpu_count()} cores"
    if device.platform != "cpu":
        hardware = f"{device.device_kind}; {hardware}"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "hardware": hardware,
        "python": platform.python_version(),
        "jax": importlib.metadata.version("jax"),
        "mctx": importlib.metadata.version("mctx"),
    }


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
