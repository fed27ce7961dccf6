"""The figures of a training run: what one iteration came to, and their picture."""

from typing import Any, NamedTuple

import jax

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
        value = getattr(losses, name, None)
        return None if value is None else float(value)

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
        "ownership": loss("ownership"),
        "score_error": loss("score"),
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
