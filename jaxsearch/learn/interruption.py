"""Stopping a run from outside."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Self


class Interruption:
    """While in its `with` block, SIGINT and SIGTERM only set `signal_name`.

    A second signal of the kind ends the process.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal_name: str | None = None
        self._leave = False

    def __enter__(self) -> Self:
        self._before = {s: signal.signal(s, self._note) for s in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Inside, a signal ends the block at once and without an error."""
        self._leave = True
        try:
            yield
        # Whatever became of the KeyboardInterrupt on its way out.
        except BaseException:
            if self.signal_name is None:
                raise
        finally:
            self._leave = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.signal_name = signal.Signals(number).name
        signal.signal(number, signal.SIG_DFL)
        if self._leave:
            raise KeyboardInterrupt
