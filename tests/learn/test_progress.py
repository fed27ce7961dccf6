"""What a training run shows on a terminal of 80 columns, and in a log."""

import io
import re

from rich.console import Console

from jaxsearch.learn.progress import TrainingProgress

METRICS = {
    **{"iteration": 143, "games": 123_456, "updates": 9_120, "game_length": 22.44},
    **{"games_per_second": 52.4, "moves_per_second": 1_040.3},
    **{"evaluations_per_second": 119_138.2, "batch_fill": 0.934},
    **{"search_share": 0.21, "net_share": 0.55, "learning_share": 0.24},
    **{"first_wins": 0.55, "second_wins": 0.4, "draws": None},
    **{"loss": 1.0, "policy_divergence": 0.939, "value": 0.267},
}
FIGURES = (
    "123,456 games, 52/s, 119,138 evaluations/s, policy 0.939, value 0.267"  # 69 wide
)


def shown(*iterations, is_terminal, width=80):
    """The lines that are written while 42% of a run are shown."""
    console = Console(
        file=io.StringIO(),
        force_terminal=is_terminal,
        width=width,
        height=24,
        _environ={"TERM": "xterm"},
    )
    with TrainingProgress(console) as progress:
        for metrics in iterations or [METRICS]:
            progress.show_iteration(0.42, metrics)
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", console.file.getvalue()).splitlines()


PANEL = """\
games           123,456  steps             9,120  iteration           143
moves a game       22.4  loss              1.000  games/s            52.4
first wins          55%  policy            0.939  moves/s           1,040
second wins         40%  value             0.267  evaluations/s   119,138
draws                 -                           batch fill          93%
                                                  in search           21%
                                                  in the net          55%
                                                  in learning         24%
"""


def test_bar_share_and_time_left_stand_above_the_figures():
    bar, *figures = shown(is_terminal=True)[-10:]
    assert re.fullmatch(r"training ━+\S* +42% (\d+:\d+|-+:-+) *", bar)
    assert bar.count("━") + bar.count("╸") + bar.count("╺") == 20
    assert [line.rstrip() for line in figures] == [*PANEL.splitlines(), ""]


def test_panel_shows_means_of_the_last_iterations_and_the_newest_strength():
    known = {"draws": 0.1, "loss": 3.0, "elo": 156.2, "accuracy_search": 0.785}
    text = "\n".join(shown(METRICS | known, METRICS, is_terminal=True, width=60)[-17:])
    for label, value in [
        *[("draws", "10%"), ("loss", "2.000"), ("games/s", "52.4")],
        *[("Elo", r"\+156"), ("accuracy", "78.5%")],
    ]:
        assert re.search(rf"{label} +{value}\s", text), text
    lines = shown(METRICS | known, METRICS, is_terminal=False)
    assert lines == [f" 42%  {FIGURES}, Elo +156, accuracy 78.5%"]


def test_figures_are_cut_and_not_wrapped_where_there_is_no_room():
    lines = shown(is_terminal=True, width=50)
    assert lines[-1] == FIGURES[:49] + "…"
    assert " 42% " in lines[-2]


def test_log_gets_no_bar_and_the_last_iteration_once(monkeypatch):
    assert shown(is_terminal=False) == [f" 42%  {FIGURES}"]
    monkeypatch.setattr("jaxsearch.learn.bar._PLAIN_INTERVAL", -1.0)
    assert shown(is_terminal=False) == [f" 42%  {FIGURES}"]
