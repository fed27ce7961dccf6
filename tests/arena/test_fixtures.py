"""The published record of tic-tac-toe searches, reproduced."""

import envs
from jaxsearch.arena.fixtures import reproduce_fixtures


def test_every_record_is_reproduced():
    result = reproduce_fixtures(envs.make("tic_tac_toe"))
    assert [(row.budget, row.records, row.equal) for row in result.budgets] == [
        (budget, 60, 60) for budget in (1, 2, 8, 32, 100, 200, 800)
    ]
    assert len(result.worked_example) == 2
    assert all(row.equal for row in result.worked_example)
    assert len(result.summary) == 3
    for row in result.summary:
        assert round(row.share_float64, 3) == round(row.recorded_share, 3)
        assert row.plays_float64 == row.recorded_plays
        assert abs(row.share_float32 - row.recorded_share) < 0.03
    assert result.mctx_equal == result.mctx_roots > 0
