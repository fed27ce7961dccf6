"""The figures of a training run: what one iteration came to, and their picture."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsearch.learn.files import write_atomically
from jaxsearch.learn.learner import Losses
from jaxsearch.learn.programs import TrainingState
from jaxsearch.learn.self_play import GameCounts
from jaxsearch.learn.settings import Settings

_SMOOTHED = 9  # iterations in the running mean that is drawn


class Took(NamedTuple):
    """Seconds of an iteration."""

    play: float
    learn: float
    # One evaluation of all games by the net alone. What the net takes of the playing is
    # estimated from it.
    net: float


def measure(
    settings: Settings,
    state: TrainingState,
    counts: GameCounts,
    losses: Losses | None,
    took: Took,
) -> dict[str, Any]:
    """The figures of an iteration; waits for the device.

    Losses and shares are None where nothing was learned and no game ended.
    """
    counts = jax.tree.map(int, counts)
    total = took.play + took.learn
    of_net = took.net * counts.evaluations / settings.games
    net_share = min(of_net, took.play) / total

    def loss(name):
        return None if losses is None else float(getattr(losses, name))

    def share(count):
        return count / counts.games if counts.games else None

    return {
        "iteration": int(state.iteration),
        "seconds": float(state.seconds),
        "positions": int(state.iteration) * counts.plies,
        "games": int(state.finished),
        "updates": int(state.updates),
        "loss": loss("total"),
        "policy": loss("policy"),
        "policy_divergence": loss("policy_divergence"),
        "value": loss("value"),
        "game_length": share(counts.plies),
        "first_wins": share(counts.wins_first),
        "second_wins": share(counts.wins_second),
        "draws": share(counts.draws),
        "resigned": share(counts.resigned),
        "false_resignations": (
            counts.wrongly / counts.gave_up if counts.gave_up else None
        ),
        "games_per_second": counts.games / total,
        "moves_per_second": counts.plies / total,
        "evaluations_per_second": counts.evaluations / total,
        "batch_fill": counts.useful / counts.evaluations,
        "search_share": took.play / total - net_share,
        "net_share": net_share,
        "learning_share": took.learn / total,
    }


def plot_curves(metrics: list[dict[str, Any]], path: Path, title: str) -> None:
    """Draws losses, game length and results over the minutes of training, as a PNG."""
    import matplotlib.figure  # slow to import, and wanted only here

    minutes = np.array([m.get("seconds") for m in metrics], float) / 60

    def series(name):
        return _smooth(np.array([m.get(name) for m in metrics], float))

    figure = matplotlib.figure.Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    panels = {
        "policy: divergence from the search (nats)": ["policy_divergence"],
        "value: squared error": ["value"],
        "moves in a game": ["game_length"],
        "results: share of the games": ["first_wins", "second_wins", "draws"],
    }
    for axis, (heading, names) in zip(axes.flat, panels.items(), strict=True):
        for name in names:
            axis.plot(minutes, series(name), label=name.replace("_", " "))
        axis.set_title(heading, fontsize=10, loc="left")
        axis.grid(alpha=0.3)
        if len(names) > 1:
            axis.legend(fontsize=8, frameon=False)
    for axis in axes[1]:
        axis.set_xlabel("minutes of training")
    if len(minutes):
        title += f", {minutes[-1]:.1f} minutes"
    figure.suptitle(title)
    figure.supxlabel(f"every curve is a running mean of {_SMOOTHED} iterations", size=8)
    write_atomically(path, lambda beside: figure.savefig(beside, format="png", dpi=120))


def _smooth(values: np.ndarray, width: int = _SMOOTHED) -> np.ndarray:
    """A running mean over what is there: iterations before the first result are NaN."""
    known = np.isfinite(values)
    window = np.ones(min(width, max(len(values), 1)))
    weight = np.convolve(known, window, mode="same")
    total = np.convolve(np.where(known, values, 0), window, mode="same")
    return np.where(weight > 0, total / np.maximum(weight, 1), np.nan)
