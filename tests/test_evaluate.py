"""evaluate.py: its commands, and bad input."""

import json

import pytest

import envs
import evaluate
import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A tiny run of connect four with sizes that are not the defaults."""
    folder = tmp_path_factory.mktemp("runs") / "c4"
    flags = [
        *("--run", str(folder), "--net", "mlp", "--width", "12", "--depth", "1"),
        *("--search", "puct", "--simulations", "2", "--games", "4", "--plies", "2"),
        *("--positions", "64", "--batch", "8", "--updates", "1"),
        *("--opening-plies", "0", "--iterations", "3", "--no-evaluate"),
    ]
    assert train.main(flags) == 0
    return folder


# The folder alone says what is to be played and how big the net is.
def test_run_is_measured_from_its_folder_alone(run, tmp_path, capsys):
    file = tmp_path / "result.json"
    command = ["positions", f"{run}?search=puct&sims=4", f"{run}?search=raw"]
    assert evaluate.main([*command, "--json", str(file)]) == 0
    first_line = capsys.readouterr().out.splitlines()[0]
    assert first_line.startswith("backend cpu, 4 devices")
    assert "jax 0." in first_line
    searched, raw = json.loads(file.read_text())
    assert searched["positions"] == raw["positions"] == 600
    assert 0.2 < raw["share"] < 0.7


def test_match_names_its_results(tmp_path, capsys):
    file = tmp_path / "result.json"
    command = ["match", "random", "uct:sims=8", "--env", "tic_tac_toe"]
    assert evaluate.main([*command, "--games", "20", "--json", str(file)]) == 0
    result = json.loads(file.read_text())
    total = result["total"]
    assert total["wins"] + total["losses"] + total["draws"] == 20
    assert total["losses"] > total["wins"]
    _, second_line, *others = capsys.readouterr().out.splitlines()
    assert second_line == "playing 20 games"
    assert any("Elo difference" in line for line in others)


@pytest.mark.parametrize("command", [["match"], ["compare"], []])
def test_help_names_every_game(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    main = evaluate.main if command else train.main
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in envs.names())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("match random uct:sims=10", "no player has a game of its own"),
        ("match random random --env chess960", "unknown game 'chess960'"),
        ("match random random --env nim --games 3", "even number"),
        ("match random random --env nim --games 0", "even number"),
        ("match random minimax --env nim", "unknown player 'minimax'"),
        ("match random uct:sims=0 --env nim", "sims"),
        ("match random random --env tic_tac_toe --opening-plies 9", "plies"),
        ("positions", "positions needs a player, for example random, uct"),
        ("positions runs/missing", "there is no such run folder"),
        ("positions {run} --batch 0", "--batch must be at least 1"),
        ("positions {run}?search=alpha", "unknown search 'alpha'"),
        ("positions {run} --device gpu", "asked for device 'gpu'"),
        ("positions {run} --device cpux", "unknown device 'cpux'"),
        ("positions {run} --json {run}/no/such.json", "no folder"),
        ("match {run} random --env nim", "different games"),
        ("sweep {run} --sims 0", "0"),
        ("sweep {run} --c-puct nan", "nan"),
        ("compare --env connect_four --sims 0", "simulations must be at least 1"),
        ("compare --env connect_four --batch 0", "batch must be at least 1"),
        ("compare --seed -1 --env nim", "--seed must be 0 or more"),
    ],
)
def test_bad_input_is_refused_in_one_line(command, message, run, capsys):
    before = sorted(run.rglob("*"))
    assert evaluate.main(command.format(run=run).split()) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(run.rglob("*")) == before


def test_runs_of_two_games_do_not_play_each_other(run, tmp_path, capsys):
    other = tmp_path / "nim"
    flags = ["--run", str(other), "--env", "nim", "--net", "mlp", "--iterations", "1"]
    small = ["--simulations", "2", "--games", "4", "--plies", "1", "--search", "puct"]
    small += ["--positions", "8", "--batch", "8", "--no-evaluate"]
    assert train.main([*flags, *small]) == 0
    capsys.readouterr()
    assert evaluate.main(["match", str(run), str(other)]) == 2
    error = capsys.readouterr().err
    assert "connect_four" in error
    assert "nim" in error
