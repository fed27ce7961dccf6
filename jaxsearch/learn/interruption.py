"""Stopping a run from outside."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Self, TypeVar

ResultT = TypeVar("ResultT")


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

    def until_signal(self, work: Callable[[], ResultT]) -> ResultT | None:
        """What some work gives; None if a signal ends it, or came before."""
        given = None
        try:
            try:
                self._leave = True
                if self.signal_name is None:
                    given = work()
            finally:
                self._leave = False
        # Whatever became of the KeyboardInterrupt on its way out.
        except BaseException:
            self._leave = False
            if self.signal_name is None:
                raise
        return given

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.signal_name = signal.Signals(number).name
        signal.signal(number, signal.SIG_DFL)
        if self._leave:
            raise KeyboardInterrupt
