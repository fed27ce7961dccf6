"""Compiling and timing programs side by side, and naming the machine they ran on."""

import importlib.metadata
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What one program cost."""

    seconds: float  # the median of the runs
    compile_seconds: float  # tracing included
    memory_bytes: int  # everything it holds but its arguments


def measure(
    programs: Mapping[str, Callable[..., Any]], arguments: tuple, repeats: int
) -> dict[str, Measurement]:
    """Compiles each program, then runs them in turn, `repeats` times.

    Taking turns spreads a slow spell of the machine over all of them.
    """
    compiled, compile_seconds = {}, {}
    for name, program in programs.items():
        start = time.perf_counter()
        compiled[name] = jax.jit(program).lower(*arguments).compile()
        compile_seconds[name] = time.perf_counter() - start
    seconds = {name: [] for name in programs}
    for _ in range(repeats):
        for name, program in compiled.items():
            start = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            seconds[name].append(time.perf_counter() - start)
    return {
        name: Measurement(
            seconds=statistics.median(seconds[name]),
            compile_seconds=compile_seconds[name],
            memory_bytes=_memory_bytes(compiled[name]),
        )
        for name in programs
    }


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


def _memory_bytes(compiled) -> int:
    analysis = compiled.memory_analysis()
    return analysis.temp_size_in_bytes + analysis.output_size_in_bytes


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
