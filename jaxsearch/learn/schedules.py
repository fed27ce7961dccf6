"""What changes over a run: learning rate, learning steps, the window of positions."""

import math

from jaxsearch.learn.settings import LearnerSettings, Settings


def learning_rate_scale(
    settings: LearnerSettings, share_done: float, updates: int
) -> float:
    """What the learning rate is multiplied with, see `schedule` and `warm_up`."""
    warm_up = min(1.0, (updates + 1) / (settings.warm_up + 1))
    if settings.schedule == "constant":
        return warm_up
    return warm_up * max(0.05, 0.5 * (1 + math.cos(math.pi * min(share_done, 1.0))))


def updates_due(settings: Settings, learnable: int, updates: int) -> int:
    """The learning steps of an iteration.

    Args:
      learnable: positions of full searches that were played so far.
      updates: learning steps taken so far.
    """
    if not settings.samples_per_position:
        return settings.updates
    per_position = settings.samples_per_position / settings.batch
    due = int(per_position * learnable) - updates
    # At first none are taken, until the replay holds enough; they are made up for, but
    # not at once.
    share = settings.full_share if settings.fast_simulations else 1.0
    usual = per_position * settings.games * settings.plies * share
    return min(max(0, due), math.ceil(2 * usual))


def window(settings: Settings, iterations: int) -> int:
    """The newest positions that are learned from after so many iterations.

    With w of them at first and n played it is w (1 + b ((n / w)^a - 1) / a), a = 0.75
    and b = 0.4 (D. Wu, "Accelerating Self-Play Learning in Go", 2019, appendix C).
    """
    first, played = settings.first_positions, settings.games * settings.plies
    played *= iterations
    if not first or played <= first:
        return first or settings.positions
    grown = first * (1 + 0.4 * ((played / first) ** 0.75 - 1) / 0.75)
    return min(settings.positions, int(grown))
