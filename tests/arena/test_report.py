"""Tables as they are printed."""

import io
import math
import re

from rich.console import Console

from jaxsearch.arena.compare import Comparison, SearchCost
from jaxsearch.arena.elo import estimate_elo
from jaxsearch.arena.match import MatchResult, Tally
from jaxsearch.arena.report import (
    comparison_report,
    elo_text,
    match_report,
    sweep_report,
)
from jaxsearch.arena.sweep import SweepPoint, SweepResult


def printed(report):
    console = Console(file=io.StringIO(), width=80)
    console.print(report)
    return console.file.getvalue()


def printed_match(moving_first, moving_second, total, pairs, warnings=()):
    result = MatchResult(
        game="nim",
        first="a",
        second="b",
        games=sum(total),
        opening_plies=0,
        distinct_openings=1,
        distinct_games=2,
        moving_first=tally(*moving_first),
        moving_second=tally(*moving_second),
        total=tally(*total),
        scored_pairs=len(pairs),
        distinct_pairs=len(pairs),
        pair_scores=tuple(pairs),
        estimate=estimate_elo(pairs),
        warnings=warnings,
    )
    return printed(match_report(result))


def tally(wins, losses, draws):
    return Tally(wins=wins, losses=losses, draws=draws, truncated=0)


def test_infinite_elo_is_shown_as_such():
    assert elo_text(math.inf) == "+inf"
    assert elo_text(-math.inf) == "-inf"
    assert elo_text(61.96) == "+62"
    text = printed_match(
        (2, 0, 0),
        (2, 0, 0),
        (4, 0, 0),
        pairs=[1.0, 1.0],
        warnings=("only 2 of 4 games are different",),
    )
    assert "Elo difference +inf" in text
    assert "warning: only 2 of 4" in text
    assert "nan" not in text.lower()


# Case R64: 3 wins, 1 loss and 2 draws, which are one more win moving first.
def test_match_shows_wins_losses_and_draws_by_colour():
    text = printed_match((2, 0, 1), (1, 1, 1), (3, 1, 2), pairs=[1.0, 0.5, 0.5])
    table = [re.split("[│┃]", line)[1:-1] for line in text.splitlines()]
    heads, *rows = ([word.strip() for word in row] for row in table if row)
    assert heads == ["", "games", "wins", "losses", "draws", "truncated"]
    assert rows == [
        ["moving first", "3", "2", "0", "1", "0"],
        ["moving second", "3", "1", "1", "1", "0"],
        ["all", "6", "3", "1", "2", "0"],
    ]


def test_sweep_shows_every_setting():
    points = [
        SweepPoint(simulations=n, c_puct=c, value=v, low=v - 0.1, high=v + 0.1)
        for n, c, v in ((8, 1.0, 0.25), (8, 2.0, 0.5), (16, 1.0, 0.75), (16, 2.0, 0.6))
    ]
    result = SweepResult(
        player="runs/a",
        measure="score against random",
        simulations=(8, 16),
        c_puct=(1.0, 2.0),
        points=tuple(points),
    )
    rows = [line for line in printed(sweep_report(result)).splitlines() if "±" in line]
    assert [row.split("│")[1].strip() for row in rows] == ["8", "16"]
    assert "25.0 ±10.0" in rows[0] and "60.0 ±10.0" in rows[1]


def test_comparison_says_how_many_times_longer_mctx_takes():
    def cost(search, seconds):
        return SearchCost(
            search=search,
            seconds=seconds,
            simulations_per_second=8 / seconds,
            compile_seconds=1.0,
            tree_bytes=1000,
            bytes_per_node=10.0,
            working_bytes=None,
        )

    result = Comparison(
        game="nim",
        simulations=4,
        batch=2,
        equal_rows=0.5,
        costs=(cost("puct", 0.01), cost("mctx-puct", 0.25), cost("mctx-gumbel", 0.02)),
    )
    text = printed(comparison_report(result))
    assert "50.00% of the roots" in text.replace("\n", " ")
    assert "mctx-puct takes 25.00 times" in text
