"""Scores and Elo differences of paired games, with their uncertainty.

The two games of a pair share an opening, so they are not independent of each other:
the spread is taken over pairs, never over single games.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

Z_95 = 1.959963984540054
"""Standard deviations on each side of a normal mean that hold 95% of its weight."""


@dataclass(frozen=True, kw_only=True)
class EloEstimate:
    """A mean score in [0, 1] and its Elo difference, each with a 95% interval."""

    score: float
    score_low: float
    score_high: float
    elo: float
    elo_low: float
    elo_high: float


def elo_difference(score: float) -> float:
    """The rating difference at which a player is expected to score `score`.

    400 * log10(score / (1 - score)); infinite at 0 and 1. Raises ValueError outside
    [0, 1].
    """
    if not 0 <= score <= 1:
        raise ValueError(f"a score is a number from 0 to 1, got {score}")
    if score in (0, 1):
        return math.inf if score == 1 else -math.inf
    return 400 * math.log10(score / (1 - score))


def estimate_elo(
    pair_scores: Sequence[float] | np.ndarray, num_distinct: int | None = None
) -> EloEstimate:
    """The mean of pair scores, its Elo difference and 95% intervals.

    The interval is Student's, with the sample variance over the n pairs, and never
    narrower than what a result that did not occur may hide: with 97.5% confidence such
    results have a chance of at most 1 - q, q = 0.025 ** (1 / n), so that the mean lies
    between q * score and 1 - q * (1 - score). Where all pairs gave the same score their
    variance is 0 and tells nothing: this bound is then the whole interval.

    Args:
      pair_scores: for each pair of games the mean score of the two, in [0, 1].
      num_distinct: how many of the pairs differ; repetitions of a game are no evidence.
        None if all do.

    Raises:
      ValueError: there are no pairs.
    """
    scores = np.asarray(pair_scores, np.float64)
    if not scores.size:
        raise ValueError("got no pairs of games: an Elo difference needs at least one")
    count = scores.size if num_distinct is None else num_distinct
    score = float(scores.mean())
    seen = 0.025 ** (1 / count)
    low, high = seen * score, 1 - seen * (1 - score)
    if count > 1:
        error = float(scores.std()) / math.sqrt(count - 1)  # of the mean of `count`
        margin = float(stdtrit(count - 1, 0.975)) * error
        low = min(low, max(score - margin, 0.0))
        high = max(high, min(score + margin, 1.0))
    return EloEstimate(
        score=score,
        score_low=low,
        score_high=high,
        elo=elo_difference(score),
        elo_low=elo_difference(low),
        elo_high=elo_difference(high),
    )
