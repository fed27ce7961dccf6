"""Stopping a run from outside."""

import signal
from types import FrameType
from typing import Self


class Interruption:
    """While in its `with` block, SIGINT and SIGTERM only set `signal_name`.

    With `leave` they also end the block, at once and without an error. A second signal
    of the kind ends the process.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, *, leave: bool = False) -> None:
        self.signal_name: str | None = None
        self._leave = leave

    def __enter__(self) -> Self:
        self._before = {s: signal.signal(s, self._note) for s in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> bool:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        # Whatever became of the KeyboardInterrupt on its way out.
        return self._leave and self.signal_name is not None

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.signal_name = signal.Signals(number).name
        signal.signal(number, signal.SIG_DFL)
        if self._leave:
            raise KeyboardInterrupt
