"""The recorded set of tic-tac-toe searches, reproduced."""

import pytest

import envs
from jaxsearch.arena.fixtures import reproduce_fixtures


@pytest.fixture(scope="module")
def result():
    return reproduce_fixtures(envs.make("tic_tac_toe"))


def test_every_record_is_reproduced_in_float64(result):
    assert [(row.budget, row.records, row.equal) for row in result.budgets] == [
        (budget, 60, 60) for budget in (1, 2, 8, 32, 100, 200, 800)
    ]
    for row in result.summary:
        assert round(row.share_float64, 3) == round(row.recorded_share, 3)
        assert row.plays_float64 == row.recorded_plays


def test_worked_example_has_its_scores(result):
    assert len(result.worked_example) == 2
    assert all(row.equal for row in result.worked_example)


def test_float32_differs_in_as_many_records_as_the_record_says(result):
    assert result.records - result.equal_float32 == 60


def test_summary_in_float32_is_within_three_points(result):
    for row in result.summary:
        assert abs(row.share_float32 - row.recorded_share) < 0.03, row.priors


def test_mctx_visits_the_same_position_equally(result):
    assert result.mctx_equal == result.mctx_roots == 60
