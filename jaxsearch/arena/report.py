"""Results as tables for a terminal. Nothing is computed here."""

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jaxsearch.arena.compare import Comparison
from jaxsearch.arena.fixtures import FixturesResult
from jaxsearch.arena.match import MatchResult
from jaxsearch.arena.positions import PositionsResult
from jaxsearch.arena.solved_game import AllReplies
from jaxsearch.arena.sweep import SweepResult


def match_report(result: MatchResult) -> RenderableType:
    """Wins, losses and draws by seat, the score and the Elo difference."""
    title = f"{result.first} against {result.second}, {result.game}"
    table = Table(title=_title(title))
    for heading in ("", "games", "wins", "losses", "draws", "truncated"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, tally in (
        ("moving first", result.moving_first),
        ("moving second", result.moving_second),
        ("all", result.total),
    ):
        counts = (tally.games, tally.wins, tally.losses, tally.draws, tally.truncated)
        table.add_row(name, *map(str, counts), end_section=name == "moving second")
    lines: list[RenderableType] = [table]
    if result.estimate is None:
        lines.append("score: none, all pairs have a truncated game")
    else:
        e = result.estimate
        lines.append(
            f"score {e.score:.3f}, 95% interval {e.score_low:.3f} to {e.score_high:.3f}"
        )
        lines.append(
            f"Elo difference {elo_text(e.elo)}, 95% interval {elo_text(e.elo_low)} to "
            f"{elo_text(e.elo_high)}"
        )
    lines.append(
        f"{result.distinct_openings} openings of {result.opening_plies} random plies, "
        f"{result.distinct_games} different games"
    )
    lines += [Text(f"warning: {line}", style="yellow") for line in result.warnings]
    return Group(*lines)


def positions_report(results: Sequence[PositionsResult]) -> RenderableType:
    """The share of solved positions kept, in all and by the stones on the board."""
    title = f"Outcome kept in {results[0].positions} solved positions, %"
    runs, _, searches = zip(*(r.player.partition("?") for r in results), strict=True)
    names = [result.player for result in results]
    if all(searches) and len(set(runs)) == 1:  # players of one run: name it once
        title, names = f"{title}\n{runs[0]}", searches
    table = Table(
        title=_title(title),
        caption="columns on the right: by the number of stones on the board",
    )
    table.add_column("player", overflow="fold")
    table.add_column("kept", justify="right")
    table.add_column("95% interval", justify="right")
    for part in results[0].by_plies:
        table.add_column(f"{part.first_ply}-{part.last_ply}", justify="right")
    for name, result in zip(names, results, strict=True):
        table.add_row(
            Text(name.replace("&", "\n&")),
            _percent(result.share),
            f"{_percent(result.low)} to {_percent(result.high)}",
            *(_percent(part.share) for part in result.by_plies),
        )
    lines = [
        f"{name}: {_replies_text(result.all_replies)}"
        for name, result in zip(names, results, strict=True)
        if result.all_replies is not None
    ]
    return Group(table, *map(Text, lines))


def sweep_report(result: SweepResult) -> RenderableType:
    """The grid, simulations down and c_puct across; the best value stands out."""
    table = Table(title=_title(f"{result.player}: {result.measure}, %"))
    table.add_column("simulations", justify="right")
    for constant in result.c_puct:
        table.add_column(f"c_puct {constant:g}", justify="right")
    highest = max(point.value for point in result.points)
    points = iter(result.points)
    for simulations in result.simulations:
        row = [next(points) for _ in result.c_puct]
        cells = [
            Text(
                f"{_percent(point.value)} ±{100 * (point.high - point.low) / 2:.1f}",
                style="bold green" if point.value == highest else "",
            )
            for point in row
        ]
        table.add_row(str(simulations), *cells)
    return table


def comparison_report(result: Comparison) -> RenderableType:
    """Equal visits, time and memory of the searches."""
    table = Table(
        title=f"{result.game}: {result.batch} roots, {result.simulations} simulations"
    )
    headings = ("search", "ms", "sims/s", "compile s", "tree MB", "B/node", "work MB")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for cost in result.costs:
        table.add_row(
            cost.search,
            f"{1e3 * cost.seconds:.2f}",
            f"{cost.simulations_per_second:,.0f}",
            f"{cost.compile_seconds:.1f}",
            f"{cost.tree_bytes / 1e6:.2f}",
            f"{cost.bytes_per_node:.0f}",
            "?" if cost.working_bytes is None else f"{cost.working_bytes / 1e6:.2f}",
        )
    ours = result.costs[0]
    return Group(
        table,
        f"puct and mctx-puct visit every action equally often in "
        f"{100 * result.equal_rows:.2f}% of the roots",
        *(
            f"{other.search} takes {other.seconds / ours.seconds:.2f} times the time "
            f"of {ours.search}"
            for other in result.costs[1:]
        ),
    )


def fixtures_report(result: FixturesResult) -> RenderableType:
    """The record of tic-tac-toe searches beside what puct_policy gives."""
    records = Table(
        title="Recorded searches reproduced",
        caption="budget: evaluations in a search; float64: visits, value sums and\n"
        "choice; float32: visits (the record says that 60 of 420 differ)",
    )
    records.add_column("budget")
    for row in result.budgets:
        records.add_column(str(row.budget), justify="right")
    records.add_column("all", justify="right")
    for name, counts, total in (
        ("float64", [row.equal for row in result.budgets], result.equal),
        (
            "float32",
            [row.equal_float32 for row in result.budgets],
            result.equal_float32,
        ),
    ):
        shares = (
            f"{count}/{row.records}"
            for count, row in zip(counts, result.budgets, strict=True)
        )
        records.add_row(name, *shares, f"{total}/{result.records}")
    summary = Table(title="Visit share and choice of the winning cell, 800 evaluations")
    for heading in ("priors", "recorded", "float64", "float32"):
        summary.add_column(heading, justify="left" if heading == "priors" else "right")
    for row in result.summary:
        summary.add_row(
            row.priors,
            f"{_percent(row.recorded_share)}%, {row.recorded_plays} of 20",
            f"{_percent(row.share_float64)}%, {row.plays_float64} of 20",
            f"{_percent(row.share_float32)}%, {row.plays_float32} of 20",
        )
    worked = [
        f"score of prior {row.prior:g} after {row.visits} visits: {row.score:.6f}, "
        f"{'equal' if row.equal else 'DIFFERENT'}"
        for row in result.worked_example
    ]
    return Group(
        records,
        *worked,
        summary,
        f"mctx on the same position, a deterministic value, "
        f"{result.mctx_simulations} simulations: equal visits in {result.mctx_equal} "
        f"of {result.mctx_roots} searches",
    )


def elo_text(elo: float) -> str:
    """An Elo difference with its sign: +62, -28, +inf."""
    if math.isinf(elo):
        return "+inf" if elo > 0 else "-inf"
    return f"{elo:+.0f}"


def _replies_text(replies: AllReplies) -> str:
    return (
        f"from all openings of up to {replies.opening_plies} plies, against all "
        f"replies, {replies.positions:,} positions: outcome not kept in "
        f"{replies.spoiled}, of which {replies.lost} are losses"
    )


def _title(text: str) -> Text:
    """A title in which names of runs stand as they are, be they markup or emoji."""
    return Text(text, style="table.title")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
