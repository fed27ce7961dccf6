"""Stopping a run from outside: finish the step in hand, then save."""

import signal
from types import FrameType
from typing import Self


class Interruption:
    """While in its `with` block, SIGINT and SIGTERM only set `signal_name`.

    A second signal of the kind ends the process at once.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal_name: str | None = None

    def __enter__(self) -> Self:
        self._before = {s: signal.signal(s, self._note) for s in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.signal_name = signal.Signals(number).name
        signal.signal(number, signal.SIG_DFL)
