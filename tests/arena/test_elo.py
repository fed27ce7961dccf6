"""Scores of paired games; the numbers are worked out by formula."""

import math

import numpy as np
import pytest

from jaxsearch.arena.elo import (
    Ratings,
    elo_difference,
    estimate_elo,
    fit_ratings,
    scored_match,
)


def pair_scores(counts):
    """`counts` pairs that gave 0, 0.5, 1, 1.5 and 2 points."""
    return np.repeat([0, 0.25, 0.5, 0.75, 1], counts)


# Margins: t * standard deviation / sqrt(n), the deviation with n - 1 below the line, t
# from tables: 2.1199 with 16 degrees of freedom, 2.0096 with 49.
@pytest.mark.parametrize(
    ("counts", "score", "margin"),
    [
        ([1, 3, 4, 7, 2], 10 / 17, 2.1199 * 0.278688 / math.sqrt(17)),
        ([0, 0, 40, 0, 10], 0.6, 2.0096 * math.sqrt(2 / 49) / math.sqrt(50)),
    ],
)
def test_interval_is_student_s_over_pairs(counts, score, margin):
    result = estimate_elo(pair_scores(counts))
    expected = [score, score - margin, score + margin]
    np.testing.assert_allclose(
        [result.score, result.score_low, result.score_high], expected, atol=1e-5
    )
    np.testing.assert_allclose(
        [result.elo, result.elo_low, result.elo_high],
        [elo_difference(s) for s in expected],
        atol=0.01,
    )


def test_two_pairs_that_differ_say_next_to_nothing():
    result = estimate_elo([0.5, 1.0])  # t is 12.7 with one degree of freedom
    assert (result.score, result.score_low, result.score_high) == (0.75, 0, 1)


@pytest.mark.parametrize("score", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_equal_pairs_leave_room_for_results_that_did_not_occur(score, count):
    result = estimate_elo([score] * count)
    # The chance of any other result at which `count` equal ones have one of 2.5%.
    other = 1 - 0.025 ** (1 / count)
    expected = [score - other * score, score + other * (1 - score)]
    np.testing.assert_allclose([result.score_low, result.score_high], expected)


def test_one_pair_that_differs_does_not_narrow_the_interval():
    swept, nearly = estimate_elo([1.0] * 50), estimate_elo([1.0] * 49 + [0.75])
    assert nearly.score_low < swept.score_low


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5, 0.9, 0.98])
@pytest.mark.parametrize("count", [3, 20, 50])
def test_interval_holds_the_mean_in_at_least_93_percent_of_matches(chance, count):
    # A pair is won with this chance and split otherwise: all matches, by their weight.
    held = 0.0
    for won in range(count + 1):
        result = estimate_elo(pair_scores([0, 0, count - won, 0, won]))
        weight = math.comb(count, won) * chance**won * (1 - chance) ** (count - won)
        held += weight * (result.score_low <= (1 + chance) / 2 <= result.score_high)
    assert held >= 0.93


def test_clean_sweep_is_infinite_with_a_finite_bound():
    won, lost = estimate_elo([1.0] * 20), estimate_elo([0.0] * 20)
    assert (won.elo, won.elo_high) == (math.inf, math.inf)
    # The score s at which 20 won pairs out of 20 have a chance of 2.5%.
    bound = 0.025 ** (1 / 20)
    np.testing.assert_allclose(won.elo_low, 400 * math.log10(bound / (1 - bound)))
    assert (lost.elo_low, lost.elo_high) == (-math.inf, -won.elo_low)


def test_repeated_pairs_are_no_evidence():
    scores = [0.5, 0.75] * 5
    assert estimate_elo(scores * 4, num_distinct=10) == estimate_elo(scores)


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match=r"from 0 to 1, got 1\.5"):
        elo_difference(1.5)
    with pytest.raises(ValueError, match="at least one"):
        estimate_elo([])


def unknown(count):
    """The first player has an Elo of 0, of the others nothing is known."""
    return Ratings(elo=np.zeros(count), covariance=1e6 * np.diag(np.arange(count) > 0))


# Of n pairs, of which one more is won and one more lost.
def test_elo_of_one_match_is_that_of_its_score():
    scores = pair_scores([2, 3, 10, 8, 7])
    ratings = fit_ratings(unknown(2), [scored_match(1, 0, scores, 30)])
    score = (scores.sum() + 1) / 32
    deviation = np.append(scores, [0, 1]).std() / math.sqrt(32)
    slope = 400 / math.log(10) / (score * (1 - score))
    assert ratings.elo[0] == pytest.approx(0, abs=0.1)
    assert ratings.elo[1] == pytest.approx(elo_difference(score), rel=0.01)
    assert ratings.errors[1] == pytest.approx(slope * deviation, rel=0.01)


def test_pairs_that_repeat_others_make_no_rating_more_certain():
    scores = np.tile([0.5, 1], 15)
    errors = [
        fit_ratings(unknown(2), [scored_match(1, 0, scores, distinct)]).errors[1]
        for distinct in (4, 30)
    ]
    assert errors[0] > 2 * errors[1]


# Pairs are drawn as the model says, 100 for each of three players against each other.
def test_ratings_of_players_are_found_from_their_matches():
    true, generator = np.array([0.0, 150.0, 350.0]), np.random.default_rng(0)
    distances = []
    for _ in range(200):
        matches = []
        for first, second in ((1, 0), (2, 0), (2, 1)):
            expected = 1 / (1 + 10 ** ((true[second] - true[first]) / 400))
            scores = generator.binomial(2, expected, 100) / 2
            matches.append(scored_match(first, second, scores, 100))
        ratings = fit_ratings(unknown(3), matches)
        distances.append((ratings.elo - true)[1:] / ratings.errors[1:])
    # Means and deviations of normal numbers, to within four standard errors.
    assert (abs(np.mean(distances, axis=0)) < 4 / 200**0.5 + 0.15).all()
    assert (abs(np.std(distances, axis=0) - 1) < 4 / 400**0.5).all()


def test_row_of_wins_has_a_finite_rating():
    ratings = fit_ratings(unknown(2), [scored_match(1, 0, np.ones(32), 32)])
    assert 500 < ratings.elo[1] < 700
    assert ratings.errors[1] > 100
