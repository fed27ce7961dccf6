"""Several processes that train one run together, on one machine or on many.

Each process has devices of its own, and all run the same programs on arrays that lie
over all devices. So all must decide alike: what hangs on a clock, a signal or a file is
told by one of them. The first process alone writes, prints and holds the lock.

With one process every function here gives back what it is given, at once.
"""

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

AUTO = "auto"

ValueT = TypeVar("ValueT")

_JOIN_SECONDS = 300
_LEAVE_SECONDS = 30


class OtherProcessError(ValueError):
    """Another process cannot go on; the message is its own."""


def check_flags(coordinator: str | None, processes: int, process: int) -> None:
    """Raises ValueError if flags name no place among processes."""
    if coordinator in (None, AUTO):
        if (processes, process) != (1, 0):
            needed = "--coordinator HOST:PORT of process 0"
            if coordinator:
                needed = f"no --processes and no --process with --coordinator {AUTO}"
            raise ValueError(f"--processes {processes} --process {process}: {needed}")
        return
    host, _, port = str(coordinator).rpartition(":")
    if not (host and port.isdecimal() and 0 < int(port) < 2**16):
        raise ValueError(
            f"--coordinator is HOST:PORT of process 0, or {AUTO}, got {coordinator!r}"
        )
    if not 0 <= process < processes:
        raise ValueError(
            f"--process {process} is none of --processes {processes}, which are "
            f"counted from 0: give --processes 2 --process 1 to the second of two"
        )


def join(coordinator: str | None, processes: int, process: int) -> None:
    """Joins the other processes, before JAX has started a device; None is alone.

    Ends the program with code 2 if they do not meet within five minutes.

    Args:
      coordinator: "host:port" of process 0; or "auto" where JAX finds out by itself
        (a TPU pod, SLURM, Open MPI).
      processes: how many there are.
      process: which of them this is, from 0.

    Raises:
      ValueError: JAX cannot find out by itself.
    """
    if coordinator is None:
        return
    # JAX's own would take the signal that a run is to be saved at.
    jax.config.update("jax_enable_preemption_service", False)
    # JAX ends a program that waited too long by a crash.
    who = "all processes" if coordinator == AUTO else f"all {processes} processes"
    late = (
        f"{who} did not meet at {coordinator} within {_JOIN_SECONDS} s: start each "
        "with the same --coordinator and --processes and its own --process"
    )
    watch = threading.Timer(_JOIN_SECONDS, _end, [late, 2])
    watch.daemon = True
    watch.start()
    place = {}
    if coordinator != AUTO:
        place = {
            "coordinator_address": coordinator,
            "num_processes": processes,
            "process_id": process,
            "cluster_detection_method": "deactivate",
        }
    try:
        jax.distributed.initialize(
            **place,
            initialization_timeout=_JOIN_SECONDS + 60,
            shutdown_timeout_seconds=_LEAVE_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"--coordinator {coordinator}: {str(error).splitlines()[0]}"
        ) from error
    finally:
        watch.cancel()


def is_first() -> bool:
    """Whether this is the process that writes and prints."""
    return not jax.distributed.is_initialized() or jax.process_index() == 0


def of_first(value: ValueT) -> ValueT:
    """The value of the first process; JSON takes it, and gives lists for tuples."""
    if not jax.distributed.is_initialized():
        return value
    return json.loads(gather(json.dumps(value))[0])


def any_of(text: str | None) -> str | None:
    """A text that a process gives, or None if none of them gives one."""
    return next(filter(None, gather(text or "")), None)


def gather(text: str) -> list[str]:
    """The text of every process, in their order."""
    if not jax.distributed.is_initialized():
        return [text]
    data = np.frombuffer(text.encode(), np.uint8)
    sizes = multihost_utils.process_allgather(np.int32(data.size))
    padded = np.pad(data, (0, int(sizes.max()) + 1 - data.size))
    rows = multihost_utils.process_allgather(padded)
    return [
        row[:size].tobytes().decode() for row, size in zip(rows, sizes, strict=True)
    ]


def whole(array: jax.Array) -> np.ndarray:
    """An array that lies over the devices of all processes."""
    if not jax.distributed.is_initialized():
        return np.asarray(array)
    return multihost_utils.process_allgather(array, tiled=True)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """An expected error in one process is raised in all of them, at the block's end.

    All wait there for each other.

    Raises:
      ValueError, OSError: as raised in this process.
      OtherProcessError: there was none in this process, but in another.
    """
    error = None
    try:
        yield
    except (ValueError, OSError) as raised:
        error = raised
    messages = gather("" if error is None else str(error))
    if error is not None:
        raise error
    for process, message in enumerate(messages):
        if message:
            raise OtherProcessError(f"process {process} stopped: {message}")


@contextlib.contextmanager
def watched(remedy: str) -> Iterator[None]:
    """Inside, the end of another process ends this one, with a message and code 1."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not jax.distributed.is_initialized():
            raise
        reason = str(error).splitlines()[0][:200]
        _end(f"another process has ended, it seems ({reason}); {remedy}", 1)


@contextlib.contextmanager
def first_alone() -> Iterator[None]:
    """Inside, the first process works, and the others wait at the end for it."""
    try:
        yield
    finally:
        gather("")


def check_same(settings: Mapping[str, Any]) -> None:
    """Raises ValueError, in all processes, if settings differ; names one of them."""
    first, *others = (json.loads(text) for text in gather(json.dumps(dict(settings))))
    for process, other in enumerate(others, 1):
        for name in settings:
            if (wanted := first.get(name)) != (got := other.get(name)):
                raise ValueError(
                    f"process 0 has --{name.replace('_', '-')} {wanted} and process "
                    f"{process} has {got}: start all with the same flags"
                )


def _end(message: str, code: int) -> NoReturn:
    """Ends the program without waiting for other processes."""
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr, flush=True)
    os._exit(code)
