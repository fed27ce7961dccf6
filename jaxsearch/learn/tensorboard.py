"""The figures of a run for TensorBoard."""

import os
import time
from pathlib import Path
from typing import Any, Self

from jaxsearch.learn import hosts


class Events:
    """Writes what metrics.jsonl gets as scalars. Use it in a `with` statement.

    Of several processes the first alone writes.

    Written at once and without a thread, unlike tensorboardX's own SummaryWriter: a
    full disk is an error here and not a program that waits for ever.

    Args:
      folder: where the files go, one for each start of the run.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def start(self, iteration: int) -> None:
        """Begins a file after an iteration; TensorBoard drops what earlier ones have of
        later iterations.

        Raises:
          OSError: the file cannot be written.
        """
        if not hosts.is_first():
            return
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import SessionLog  # pyright: ignore

        self._folder.mkdir(exist_ok=True)
        prefix = str(self._folder.absolute() / "events")
        self._writer = EventsWriter(prefix, filename_suffix=f".{os.getpid()}")
        purge = SessionLog(status=SessionLog.START)
        self._write(iteration + 1, session_log=purge)

    def add(self, figures: dict[str, Any]) -> None:
        """Writes the figures of an iteration that are known, if it was started.

        Raises:
          OSError: they cannot be written.
        """
        if self._writer is None:
            return
        from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore

        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in figures.items()
            if value is not None and name != "iteration"
        ]
        self._write(figures["iteration"], summary=Summary(value=values))

    def _write(self, step: int, **content: Any) -> None:
        from tensorboardX.proto.event_pb2 import Event  # pyright: ignore

        event = Event(wall_time=time.time(), step=step, **content)
        self._writer.write_event(event)
        self._writer.flush()
