"""What a training run shows on a terminal of 80 columns, and in a log."""

import io
import re

from rich.console import Console

from jaxsearch.learn.progress import TrainingProgress

METRICS = {
    "games": 123_456,
    "games_per_second": 52.4,
    "evaluations_per_second": 119_138.2,
    "loss": 1.0,
    "policy_divergence": 0.939,
    "value": 0.267,
}
FIGURES = (
    "123,456 games, 52/s, 119,138 evaluations/s, policy 0.939, value 0.267"  # 69 wide
)


def shown(*, is_terminal, width=80):
    """The lines that are written while 42% of a run are shown."""
    console = Console(
        file=io.StringIO(),
        force_terminal=is_terminal,
        width=width,
        _environ={"TERM": "xterm"},
    )
    with TrainingProgress(console) as progress:
        progress.show(0.42, METRICS)
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", console.file.getvalue()).splitlines()


def test_bar_share_and_time_left_stand_above_the_figures():
    bar, figures = shown(is_terminal=True)[-2:]
    assert re.fullmatch(r"training ━+\S* +42% (\d+:\d+|-+:-+) *", bar)
    assert bar.count("━") + bar.count("╸") + bar.count("╺") == 20
    assert figures.rstrip() == FIGURES


def test_figures_are_cut_and_not_wrapped_where_there_is_no_room():
    lines = shown(is_terminal=True, width=50)
    assert lines[-1] == FIGURES[:49] + "…"
    assert " 42% " in lines[-2]


def test_log_gets_no_bar_and_the_last_iteration_once(monkeypatch):
    assert shown(is_terminal=False) == [f" 42%  {FIGURES}"]
    monkeypatch.setattr("jaxsearch.learn.progress._PLAIN_INTERVAL", -1.0)
    assert shown(is_terminal=False) == [f" 42%  {FIGURES}"]
