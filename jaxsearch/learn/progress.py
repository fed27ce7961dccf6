"""What a training run shows while it works: a bar and figures, kept up to date."""

from collections import deque
from typing import Any

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from jaxsearch.learn.bar import Bar

_AVERAGED = 10  # iterations, in the figures of the panel
_LEAST_WIDTH, _LEAST_HEIGHT = 52, 18  # of a terminal with room for the panel

# By what the panel calls them: the figures of metrics.jsonl and how they are written.
_COUNT, _SHARE, _LOSS = "{:,.0f}", "{:.0%}", "{:.3f}"
_SPEED = {
    "games/s": ("games_per_second", "{:,.1f}"),
    "moves/s": ("moves_per_second", _COUNT),
    "evaluations/s": ("evaluations_per_second", _COUNT),
    "batch fill": ("batch_fill", _SHARE),
    "in search": ("search_share", _SHARE),
    "in the net": ("net_share", _SHARE),
    "in learning": ("learning_share", _SHARE),
}
_GAMES = {
    "moves a game": ("game_length", "{:.1f}"),
    "first wins": ("first_wins", _SHARE),
    "second wins": ("second_wins", _SHARE),
    "draws": ("draws", _SHARE),
}
_LEARNING = {
    "loss": ("loss", _LOSS),
    "policy": ("policy_divergence", _LOSS),
    "value": ("value", _LOSS),
}
_STRENGTH = {"Elo": ("elo", "{:+.0f}"), "accuracy": ("accuracy_search", "{:.1%}")}


class TrainingProgress(Bar):
    """A bar with the time left, and under it the figures of the last iterations.

    A terminal with little room, or none, shows them in one line.
    """

    def __init__(self, console: Console):
        super().__init__(console, "training", "compiling")
        self._recent: deque[dict[str, Any]] = deque(maxlen=_AVERAGED)
        self._strength: dict[str, float] = {}  # the newest, measured now and then

    def show_iteration(self, share_done: float, metrics: dict[str, Any]) -> None:
        """Shows the metrics of an iteration; `share_done` of the run is over."""
        self._recent.append(metrics)
        for name, _ in _STRENGTH.values():
            if metrics.get(name) is not None:
                self._strength[name] = metrics[name]
        line = self._figures(metrics)
        size = self._console.size
        small = size.width < _LEAST_WIDTH or size.height < _LEAST_HEIGHT
        self.show(share_done, line, None if small else self._panel(metrics))

    def _figures(self, metrics: dict[str, Any]) -> str:
        """The figures of an iteration in a line."""
        line = (
            f"{metrics['games']:,} games, {metrics['games_per_second']:.0f}/s, "
            f"{metrics['evaluations_per_second']:,.0f} evaluations/s"
        )
        if metrics["loss"] is not None:
            line += (
                f", policy {metrics['policy_divergence']:.3f}, "
                f"value {metrics['value']:.3f}"
            )
        for heading, (name, style) in _STRENGTH.items():
            if name in self._strength:
                line += f", {heading} {style.format(self._strength[name])}"
        return line

    def _panel(self, metrics: dict[str, Any]) -> RenderableType:
        """Means of the last iterations, in groups side by side as far as they fit."""
        means = {name: self._mean(name) for name in metrics} | self._strength

        def group(heading, count, *parts):
            table = Table.grid(padding=(0, 1))
            table.add_column(width=13, style="dim")
            table.add_column(width=9, justify="right")
            table.add_row(Text(heading, style="bold"), Text(count, style="bold"))
            for part in parts:
                for label, (name, style) in part.items():
                    value = means.get(name)
                    if value is not None or part is not _STRENGTH:
                        told = "-" if value is None else style.format(value)
                        table.add_row(label, told)
            table.add_row("", "")
            return table

        groups = [
            group("games", f"{metrics['games']:,}", _GAMES),
            group("steps", f"{metrics['updates']:,}", _LEARNING, _STRENGTH),
            group("iteration", f"{metrics['iteration']:,}", _SPEED),
        ]
        return Columns(groups, padding=(0, 2))

    def _mean(self, name: str) -> float | None:
        known = [m[name] for m in self._recent if m.get(name) is not None]
        return sum(known) / len(known) if known else None
