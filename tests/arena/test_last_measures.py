"""What is measured at the end of a run, and how it is told."""

import numpy as np
from rich.console import Console

import train
from jaxsearch.arena import positions
from jaxsearch.arena.last_measures import measure_agent
from jaxsearch.arena.positions import positions_result


def test_measures_at_the_end_fit_80_columns(monkeypatch, capsys):
    monkeypatch.setattr(positions, "evaluate_positions", kept_everything)
    agent = train.make_agent(train.Config(net="mlp", width=8, depth=1))
    measured = measure_agent(agent, "runs/connect_four", Console(width=80), seed=0)
    assert [result["share"] for result in measured["positions"]] == [1, 1, 1]
    told, title, run, *lines = capsys.readouterr().out.splitlines()
    assert told == "measuring 600 solved positions: raw net, 32, 128 simulations"
    assert (title.strip(), run.strip()) == (
        "Outcome kept in 600 solved positions, %",
        "runs/connect_four",
    )
    assert max(map(len, lines)) < 80
    rows = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert rows == [
        "search=raw",
        *("search=puct", "&sims=32"),
        "search=puct",
        "&sims=128",
    ]


def kept_everything(env, player):
    plies = np.repeat([10, 14, 18, 22, 26], 120)
    return positions_result(player.name, np.ones(600, bool), plies)
