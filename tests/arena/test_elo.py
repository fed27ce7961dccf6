"""Scores of paired games; the numbers are worked out by formula."""

import math

import numpy as np
import pytest

from jaxsearch.arena.elo import elo_difference, estimate_elo


def pair_scores(counts):
    """`counts` pairs that gave 0, 0.5, 1, 1.5 and 2 points."""
    return np.repeat([0, 0.25, 0.5, 0.75, 1], counts)


@pytest.mark.parametrize(
    ("counts", "elo", "low", "high"),
    [
        ([1, 3, 4, 7, 2], 61.96, -28.1, 161.3),
        ([0, 0, 50, 0, 0], 0, 0, 0),
        ([0, 0, 40, 0, 10], 70.44, 31.0, 111.7),
    ],
)
def test_interval_is_over_pairs(counts, elo, low, high):
    result = estimate_elo(pair_scores(counts))
    np.testing.assert_allclose(
        [result.elo, result.elo_low, result.elo_high], [elo, low, high], atol=0.06
    )


def test_clean_sweep_is_infinite_with_a_finite_bound():
    won, lost = estimate_elo([1.0] * 20), estimate_elo([0.0] * 20)
    assert (won.elo, won.elo_high) == (math.inf, math.inf)
    # The score s at which 20 won pairs out of 20 have a chance of 2.5%.
    bound = 0.025 ** (1 / 20)
    np.testing.assert_allclose(won.elo_low, 400 * math.log10(bound / (1 - bound)))
    assert (lost.elo_low, lost.elo_high) == (-math.inf, -won.elo_low)


def test_repeated_pairs_are_no_evidence():
    scores = [0.5, 0.75] * 20
    narrow, wide = estimate_elo(scores), estimate_elo(scores, num_distinct=10)
    ratio = (wide.score_high - wide.score) / (narrow.score_high - narrow.score)
    np.testing.assert_allclose(ratio, 2)  # a quarter of the evidence


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match=r"from 0 to 1, got 1\.5"):
        elo_difference(1.5)
    with pytest.raises(ValueError, match="at least one"):
        estimate_elo([])
