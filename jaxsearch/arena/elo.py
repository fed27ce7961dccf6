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

_ELO = 400 / math.log(10)
"""Elo of one unit of the natural logarithm of the odds."""


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


@dataclass(frozen=True, kw_only=True)
class Scored:
    """What a match told of two of the players that are rated together."""

    first: int
    second: int
    score: float  # of the first, between 0 and 1
    error: float  # its standard error, above 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratings:
    """Elo of n players as far as it is known."""

    elo: np.ndarray  # [n]
    covariance: np.ndarray  # [n, n], in squares of Elo

    @property
    def errors(self) -> np.ndarray:
        """[n]: the standard error of each."""
        return np.sqrt(np.diag(self.covariance))


def scored_match(
    first: int,
    second: int,
    pair_scores: Sequence[float] | np.ndarray,
    num_distinct: int,
) -> Scored:
    """A match of two players as evidence for their ratings.

    It counts as if one more pair had been won and one more lost (the rule of Agresti
    and Coull): a row of wins is no proof of endless strength, and pairs that all gave
    the same are no proof that all others would.

    Args:
      pair_scores: [n], in [0, 1], the mean score of each pair of games.
      num_distinct: how many of the pairs differ; repetitions are no evidence.
    """
    mean, square = np.mean(pair_scores), np.mean(np.square(pair_scores))
    total = num_distinct + 2
    score = (num_distinct * mean + 1) / total
    variance = (num_distinct * square + 1) / total - score**2
    return Scored(
        first=first,
        second=second,
        score=float(score),
        error=float(math.sqrt(variance / total)),
    )


def fit_ratings(known: Ratings, matches: Sequence[Scored]) -> Ratings:
    """What matches add to what is known of the players' Elo.

    Bradley and Terry's model: a player that is d Elo stronger scores 1 / (1 +
    10^(-d / 400)). A match counts as the number of independent games without draws
    whose score would be as uncertain. The ratings are the most probable ones, what is
    known being normally distributed, and the covariance is that of the normal
    distribution around them (Laplace's approximation).
    """
    start, spread = known.elo / _ELO, known.covariance / _ELO**2
    # A rating that is exactly known would have no inverse.
    precision = np.linalg.inv(spread + 1e-9 * np.eye(len(start)))
    x = start.copy()
    information = precision
    for _ in range(100):
        gradient, information = precision @ (start - x), precision.copy()
        for match in matches:
            expected = 1 / (1 + math.exp(x[match.second] - x[match.first]))
            games = match.score * (1 - match.score) / match.error**2
            side = np.zeros(len(x))
            side[match.first], side[match.second] = 1, -1
            gradient += games * (match.score - expected) * side
            spread = games * expected * (1 - expected)
            information += spread * np.outer(side, side)
        step = np.linalg.solve(information, gradient)
        longest = np.abs(step).max()
        x = x + step / max(1.0, longest)
        if longest < 1e-9:
            break
    return Ratings(elo=x * _ELO, covariance=np.linalg.inv(information) * _ELO**2)
