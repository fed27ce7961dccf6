"""A bar with the time left and a line of figures, on a terminal or in a log."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

_PLAIN_INTERVAL = 15.0  # seconds between lines where there is no terminal


class Bar:
    """Shows how much of a task is done, and below it what is told of it.

    Without a terminal (a log file, CI) a plain line is printed every 15 seconds, and
    the last one at the end. Use it in a `with` statement.

    Args:
      console: where to show it.
      task: its name.
      line: what stands below the bar at first.
    """

    def __init__(self, console: Console, task: str, line: str = ""):
        self._console = console
        self._task = task
        self._bar = _BarAndMore(
            TextColumn(task),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:3.0f}%"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._bar.below = _one_line(line)
        self._number = self._bar.add_task(task, total=1.0)
        self._printed = time.monotonic()
        self._line = ""  # the last one, until it is printed

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
        self._print_line()

    def show(
        self, share_done: float, line: str = "", below: RenderableType | None = None
    ) -> None:
        """Shows that a share of the task is done, from 0 to 1.

        Args:
          share_done: more than 1 counts as 1.
          line: what to tell of it; cut where the terminal is too narrow.
          below: stands below the bar in place of the line.
        """
        self._bar.below = _one_line(line) if below is None else below
        self._bar.update(self._number, completed=min(share_done, 1.0))
        self._line = f"{share_done:4.0%}  {line or self._task}"
        if time.monotonic() - self._printed > _PLAIN_INTERVAL:
            self._print_line()

    def _print_line(self) -> None:
        if self._line and not self._console.is_terminal:
            self._console.print(self._line, soft_wrap=True)
        self._line, self._printed = "", time.monotonic()


class _BarAndMore(Progress):
    """A bar, and what stands below it, so that neither squeezes the other."""

    below: RenderableType = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield self.below


def _one_line(line: str) -> Text:
    return Text(line, no_wrap=True, overflow="ellipsis")
