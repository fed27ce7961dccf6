"""What a training run shows while it works: a bar and figures, kept up to date."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

_PLAIN_INTERVAL = 15.0  # seconds between lines where there is no terminal


class _BarAndFigures(Progress):
    """A bar, and below it a line of its own, so that neither squeezes the other."""

    figures = "compiling"

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        yield Text(self.figures, no_wrap=True, overflow="ellipsis")


class TrainingProgress:
    """A bar with the time left, and under it the figures of the last iteration.

    Without a terminal (a log file, CI) a plain line is printed every 15 seconds, and
    one for the last iteration.
    """

    def __init__(self, console: Console):
        self._console = console
        self._bar = _BarAndFigures(
            TextColumn("training"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:3.0f}%"),
            TimeRemainingColumn(compact=True),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=1.0)
        self._printed = time.monotonic()
        self._line = ""  # of the last iteration, until it is printed

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

    def show(self, share_done: float, metrics: dict[str, Any]) -> None:
        """Shows the metrics of an iteration; `share_done` of the run is over."""
        figures = (
            f"{metrics['games']:,} games, {metrics['games_per_second']:.0f}/s, "
            f"{metrics['evaluations_per_second']:,.0f} evaluations/s"
        )
        if metrics["loss"] is not None:
            figures += (
                f", policy {metrics['policy_divergence']:.3f}, "
                f"value {metrics['value']:.3f}"
            )
        self._bar.figures = figures
        self._bar.update(self._task, completed=min(share_done, 1.0))
        self._line = f"{share_done:4.0%}  {figures}"
        if time.monotonic() - self._printed > _PLAIN_INTERVAL:
            self._print_line()

    def _print_line(self) -> None:
        if self._line and not self._console.is_terminal:
            self._console.print(self._line, soft_wrap=True)
        self._line, self._printed = "", time.monotonic()
