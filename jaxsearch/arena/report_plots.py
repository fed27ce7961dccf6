"""Curves of a training run as SVG for a page: colours and fonts are the page's."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

# What stands for the page's colours until the text is written.
_COLOURS = {
    "#010203": "currentColor",
    "#010204": "var(--grid)",
    "#010205": "var(--first)",
    "#010206": "var(--second)",
    "#010207": "var(--third)",
}
_TEXT, _GRID, *_LINES = _COLOURS
_DASHES = {"solid": "-", "dashed": "--", "dotted": ":"}
_LEAST_SMOOTHED = 9  # iterations in a running mean
_MOST_POINTS = 800  # of a curve


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Some figures of metrics.jsonl over the time of training."""

    heading: str
    unit: str
    figures: dict[str, str]  # names in metrics.jsonl, and what to call them
    measured_rarely: bool = False  # drawn as points joined, not as a running mean
    is_share: bool = False


PLOTS = (
    Plot(
        heading="Policy: how far the net is from the search",
        unit="nats",
        figures={
            "policy_divergence": "divergence",
            "held_out_divergence": "of positions not learned from",
        },
    ),
    Plot(
        heading="Value: how far the net is from its target",
        unit="squared error",
        figures={
            "value": "squared error",
            "held_out_value": "of positions not learned from",
        },
    ),
    Plot(
        heading="Best move as the teachers'",
        unit="% of positions not learned from",
        figures={"held_out_agreement": "agreement"},
        is_share=True,
    ),
    Plot(heading="Length of games", unit="moves", figures={"game_length": "moves"}),
    Plot(
        heading="Results of self-play",
        unit="% of games",
        figures={
            "first_wins": "first player wins",
            "second_wins": "second player wins",
            "draws": "draws",
        },
        is_share=True,
    ),
    Plot(
        heading="Accuracy on solved positions",
        unit="% of outcomes kept",
        figures={"accuracy_raw": "net alone", "accuracy_search": "with a search"},
        measured_rarely=True,
        is_share=True,
    ),
    Plot(
        heading="Strength",
        unit="Elo",
        figures={"elo": "Elo"},
        measured_rarely=True,
    ),
    Plot(
        heading="Speed",
        unit="evaluations a second",
        figures={"evaluations_per_second": "evaluations"},
    ),
    Plot(
        heading="Where the time goes",
        unit="% of the seconds",
        figures={
            "net_share": "net in self-play (estimate)",
            "search_share": "rest of self-play",
            "learning_share": "learning",
        },
        is_share=True,
    ),
)


class Curve:
    """The known values of a figure over the seconds of training."""

    def __init__(self, metrics: Sequence[dict[str, Any]], name: str):
        pairs = [
            (m.get("seconds") or 0, m[name])
            for m in metrics
            if m.get(name) is not None and np.isfinite(m[name])
        ]
        known = np.array(pairs, float).reshape(-1, 2)
        self.seconds, self.values = known[:, 0], known[:, 1]

    def __len__(self) -> int:
        return len(self.values)

    def smoothed(self, width: int) -> np.ndarray:
        """A running mean; near the ends over what there is."""
        window = np.ones(min(width, max(len(self), 1)))
        total = np.convolve(self.values, window, mode="same")
        return total / np.convolve(np.ones(len(self)), window, mode="same")


def time_unit(seconds: float) -> tuple[str, int]:
    """A unit in which a time is told well, and its seconds."""
    units = (("hours", 3600), ("minutes", 60))
    return next((unit for unit in units if seconds >= 2 * unit[1]), ("seconds", 1))


def smoothing(num_iterations: int) -> int:
    """The iterations in a running mean: a hundredth of a long run, and odd."""
    return max(_LEAST_SMOOTHED, num_iterations // 100 | 1)


def legend(plot: Plot, metrics: Sequence[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Name, colour and style of line of each curve of a plot, in CSS."""
    styles = zip(_LINES, _DASHES, strict=True)
    return [
        (name, _COLOURS[colour], dashes)
        for name, (colour, dashes) in zip(_curves(plot, metrics), styles, strict=False)
    ]


def _curves(plot: Plot, metrics: Sequence[dict[str, Any]]) -> dict[str, Curve]:
    """The curves of which something is known, by what the plot calls them."""
    return {
        told: curve
        for name, told in plot.figures.items()
        if len(curve := Curve(metrics, name))
    }


def draw(plot: Plot, metrics: Sequence[dict[str, Any]]) -> str | None:
    """An SVG element of a plot, which tells itself; None where nothing is known.

    The page has to define the colours --grid, --first, --second and --third.
    """
    import matplotlib.figure  # slow to import, and wanted only here
    from matplotlib import rc_context

    curves = _curves(plot, metrics)
    if not curves:
        return None
    width, dashes = smoothing(len(metrics)), list(_DASHES.values())
    unit, length = time_unit(max(curve.seconds[-1] for curve in curves.values()))
    factor = 100 if plot.is_share else 1
    told = []
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": plot.heading, "font.size": 13}
    with rc_context(style):
        figure = matplotlib.figure.Figure(figsize=(6, 3.4), layout="constrained")
        axes = figure.subplots()
        for number, (name, curve) in enumerate(curves.items()):
            line: Any = {"color": _LINES[number], "linestyle": dashes[number]}
            every = max(1, len(curve) // _MOST_POINTS)
            times, values = curve.seconds[::every] / length, factor * curve.values
            if plot.measured_rarely:
                shown = values
                axes.plot(times, values[::every], marker="o", markersize=4, **line)
            else:
                shown = factor * curve.smoothed(width)
                if len(curves) == 1:
                    faint: Any = {
                        "color": _LINES[number],
                        "alpha": 0.25,
                        "linewidth": 0.8,
                    }
                    axes.plot(times, values[::every], **faint)
                axes.plot(times, shown[::every], linewidth=2, **line)
            told.append(f"{name} {shown[0]:,.3g} at first and {shown[-1]:,.3g} at last")
        axes.set_xlabel(f"{unit} of training", color=_TEXT)
        axes.set_ylabel(plot.unit, color=_TEXT)
        axes.grid(color=_GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(colors=_TEXT, length=0)
        axes.spines[:].set_visible(False)
        axes.locator_params(nbins=6)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        if plot.is_share:
            low, high = axes.get_ylim()
            axes.set_ylim(max(low, -2), min(high, 102))
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = f"{plot.heading}, {plot.unit} over {unit} of training: {'; '.join(told)}"
    return _for_page(file.getvalue(), text)


def _for_page(svg: str, text: str) -> str:
    """The element alone, of any width, with names that no other plot has."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[a-z]+[._a-z0-9]*_\d+"', "", svg)  # figure_1, line2d_3, ...
    opening, rest = svg.split(">", 1)
    box = re.findall(r'viewBox="[^"]*"', opening)[0]
    svg = f'<svg {box} role="img" aria-label="{escape(text)}">{rest}'
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, name)
    return svg
