"""What the pictures say of themselves."""

import matplotlib.figure
import pytest

from jaxsearch.arena.sweep import SweepPoint, SweepResult, draw_heat_map


@pytest.fixture
def saved(monkeypatch):
    """The figures that are saved."""
    figures = []

    def savefig(figure, path, **options):
        path.touch()
        figures.append(figure)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", savefig)
    return figures


@pytest.mark.parametrize(
    ("measure", "title", "label"),
    [
        (
            "share of solved positions kept",
            "runs/a",
            "share of solved positions kept, %",
        ),
        (
            "score against runs/other?search=puct&sims=128",
            "runs/a\nagainst runs/other?search=puct&sims=128",
            "score, %",
        ),
    ],
)
def test_heat_map_names_its_measure_once(saved, tmp_path, measure, title, label):
    point = SweepPoint(simulations=8, c_puct=1.0, value=0.5, low=0.4, high=0.6)
    result = SweepResult(
        player="runs/a",
        measure=measure,
        simulations=(8,),
        c_puct=(1.0,),
        points=(point,),
    )
    draw_heat_map(result, tmp_path / "s")
    grid, colours = saved[0].axes
    assert grid.get_title() == title
    assert colours.get_ylabel() == label
