"""evaluate.py: its commands, and bad input."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import envs
import evaluate
import train
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.player_names import make_player, parse_player
from jaxsearch.arena.positions import choose_actions


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """Tiny runs of the games, with sizes that are not the defaults."""

    @functools.cache
    def run_of(game):
        folder = tmp_path_factory.mktemp("runs") / game
        flags = [
            *("--run", str(folder), "--env", game, "--net", "mlp"),
            *("--width", "12", "--depth", "1", "--search", "puct"),
            *("--simulations", "2", "--games", "4", "--plies", "2", "--devices", "1"),
            *("--positions", "64", "--batch", "8", "--updates", "1"),
            *("--opening-plies", "0", "--iterations", "3", "--no-evaluate"),
        ]
        assert train.main(flags) == 0
        return folder

    return run_of


@pytest.fixture(scope="module")
def run(run_of):
    return run_of("connect_four")


# The folder alone says what is to be played and how big the net is.
def test_run_is_measured_from_its_folder_alone(run, tmp_path, capsys):
    file = tmp_path / "result.json"
    command = ["positions", f"{run}?search=puct&sims=4", f"{run}?search=raw"]
    assert evaluate.main([*command, "--json", str(file)]) == 0
    first_line = capsys.readouterr().out.splitlines()[0]
    assert first_line.startswith("backend cpu, 8 devices")
    assert "jax 0." in first_line
    searched, raw = json.loads(file.read_text())
    assert searched["positions"] == raw["positions"] == 600
    assert 0.2 < raw["share"] < 0.7


def test_moves_that_are_measured_do_not_depend_on_the_seed(run, tmp_path):
    file = tmp_path / "result.json"
    kept = set()
    for seed in ("1", "2", "3"):
        command = ["positions", f"{run}?search=gumbel&sims=4", "--json", str(file)]
        assert evaluate.main([*command, "--seed", seed]) == 0
        kept.add(json.loads(file.read_text())[0]["share"])
    assert len(kept) == 1


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
    assert all(name in shown for name in envs.names(in_turn=True))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("match random uct:sims=10", "no run tells which game is meant"),
        ("match random random --env chess960", "unknown game 'chess960'"),
        ("match random random --env nim --games 3", "even number"),
        ("match random random --env nim --games 0", "--games must be above 0, got 0"),
        ("match random minimax --env nim", "unknown player 'minimax'"),
        ("match random uct:sims=0 --env nim", "sims"),
        ("match random random --env tic_tac_toe --opening-plies 9", "plies"),
        ("positions", "positions needs one or more players, such as random, uct"),
        ("positions runs/missing", "there is no such run folder"),
        ("positions {run}x", "did you mean {run}?"),
        ("positions {run} --batch 0", "--batch must be above 0, got 0"),
        ("positions {run}?search=alpha", "unknown search 'alpha'"),
        ("positions {run} --device gpu", "asked for device 'gpu'"),
        ("positions {run} --device cpux", "unknown device 'cpux'"),
        ("positions {run} --json {run}/no/such.json", "no folder"),
        ("match {run} random --env nim", "different games"),
        ("sweep {run} --sims 0", "0"),
        ("sweep {run} --c-puct 1 nan", "--c-puct must be above 0, got nan"),
        ("sweep {run} --out /proc/sweep", "cannot write '/proc/sweep'"),
        ("match {run} random --json /proc/xx", "cannot write '/proc/xx'"),
        ("match {run} random --json /dev/null", "something else is there"),
        ("match {run} random --games 2097152", "--games must be at most 1048576, got"),
        ("match {run} random --opening-plies 99999", "--opening-plies must be at most"),
        ("match {run} uct:sims=99999999999999", "sims must be a whole number from 1"),
        ("match {run} uct:c=1e39", "c must be a number above 0, at most 1e+30"),
        ("compare --run {run}?search=raw", "a run folder alone is wanted"),
        ("compare --run random --env nim", "a run folder alone is wanted"),
        ("positions", "positions needs one or more players, such as random"),
        ("positions {run} --seed 4294967296", "--seed must be at most 4294967295"),
        ("positions " + "x" * 300, "there is no such run folder"),
        ("compare --env connect_four --sims 0", "--sims must be above 0, got 0"),
        ("compare --env connect_four --batch 0", "--batch must be above 0, got 0"),
        ("compare --seed -1 --env nim", "--seed must be 0 or more"),
    ],
)
def test_bad_input_is_refused_in_one_line(command, message, run, capsys):
    before = sorted(run.rglob("*"))
    assert evaluate.main(command.format(run=run).split()) == 2
    captured = capsys.readouterr()
    assert message.format(run=run) in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep {run} --out {out}/new --json {out}/new", "stands in the way"),
        ("sweep {run} --out {out}/a/b --json {out}/a", "stands in the way"),
        ("sweep {run} --out {out} --json {out}/sweep.png", "stands in the way"),
        ("sweep {run} --out {out}/full", "sweep.jsonl: something else is there"),
        ("sweep {run} --out {run}/checkpoints", "is part of the run in"),
        ("match {run} random --json {run}/config.json", "is part of the run in"),
        ("match {run} random --json {run}/lock", "is part of the run in"),
        ("match {run} random --json {run}/checkpoints/x", "is part of the run in"),
        ("match {run} random --json {out}/link/metrics.jsonl", "is part of the run in"),
    ],
)
def test_place_for_results_is_checked_before_measuring(
    command, message, run, tmp_path, capsys
):
    (tmp_path / "full" / "sweep.jsonl").mkdir(parents=True)
    (tmp_path / "link").symlink_to(run)
    before = sorted(run.rglob("*")), sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    assert evaluate.main(command.format(run=run, out=tmp_path).split()) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert (sorted(run.rglob("*")), sorted(tmp_path.rglob("*"))) == before


def test_runs_of_two_games_do_not_play_each_other(run_of, capsys):
    players = [str(run_of(game)) for game in ("connect_four", "nim")]
    capsys.readouterr()
    assert evaluate.main(["match", *players]) == 2
    error = capsys.readouterr().err
    assert "connect_four" in error
    assert "nim" in error


def test_runs_of_one_game_with_other_options_are_of_two_games():
    def agent(heaps):
        return SimpleNamespace(env=envs.make("nim", heaps=heaps))

    agents = {"runs/a": agent((3, 4, 5)), "runs/b": agent((1, 2))}
    with pytest.raises(ValueError, match=r"different games: runs/a .*runs/b"):
        evaluate.common_game(agents, "")  # pyright: ignore[reportArgumentType]
    same = {"runs/a": agent((1, 2)), "runs/b": agent((1, 2))}
    assert evaluate.common_game(same, "").options["heaps"] == (1, 2)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "command", ["sweep runs/a --sims x", "sweep runs/a --bogus", "fixtures --seed 1"]
)
def test_error_of_a_flag_names_the_help_of_its_command(command, capsys):
    with pytest.raises(SystemExit) as end:
        evaluate.main(command.split())
    assert end.value.code == 2
    name, *_ = command.split()
    assert f"evaluate.py {name} --help" in capsys.readouterr().err


def test_game_of_simultaneous_moves_is_refused_by_the_name_of_its_view(capsys):
    for main, command in (
        (evaluate.main, ["match", "random", "random", "--env", "tron_10x10"]),
        (evaluate.main, ["compare", "--env", "tron_10x10"]),
        (train.main, ["--env", "tron_10x10"]),
    ):
        assert main(command) == 2
        captured = capsys.readouterr()
        assert "take its sequential view, sequential:tron_10x10" in captured.err
        assert captured.err.count("\n") == 1 and captured.out == ""


# The folder alone is enough, whatever the game.
@pytest.mark.parametrize(
    "game",
    [
        "nim",
        *(
            pytest.param(game, marks=pytest.mark.slow)
            for game in envs.names(in_turn=True)
            if game != "nim"
        ),
    ],
)
def test_run_of_every_game_plays_legal_moves(game, run_of, tmp_path):
    run, file = str(run_of(game)), tmp_path / "result.json"
    command = ["match", run, "random", "--games", "4", "--json", str(file)]
    assert evaluate.main([*command, "--opening-plies", "1"]) == 0
    result = json.loads(file.read_text())
    assert (result["game"], result["games"]) == (game, 4)

    agent = train.load_agent(run)
    assert (agent.config.width, agent.config.depth) == (12, 1)
    key = jax.random.key(0)
    states = random_openings(agent.env, count=64, num_plies=2, key=key).states
    player = make_player(parse_player(run), agent.env, agent)
    actions = choose_actions(player, key, states)
    assert np.asarray(states.legal_action_mask)[np.arange(64), actions].all()


def test_positions_of_a_run_of_another_game_are_refused_by_name(run_of, capsys):
    run = str(run_of("nim"))
    capsys.readouterr()
    assert evaluate.main(["positions", run]) == 2
    told = "solved positions of connect_four and tic_tac_toe only, got a player of nim"
    assert told in capsys.readouterr().err
    assert evaluate.main(["sweep", run]) == 2
    assert "--opponent, such as --opponent uct:sims=100" in capsys.readouterr().err


# 10 games do not divide among 3 devices, and need not.
def test_match_on_three_devices_reports_the_games_asked_for(tmp_path):
    file = tmp_path / "result.json"
    output = subprocess.check_output(
        [
            *(sys.executable, "evaluate.py", "match", "random", "uct:sims=4"),
            *("--env", "tic_tac_toe", "--games", "10", "--json", str(file)),
        ],
        cwd=Path(evaluate.__file__).parent,
        env=os.environ | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "3"},
        text=True,
    )
    assert output.startswith("backend cpu, 3 devices")
    result = json.loads(file.read_text())
    total = result["total"]
    assert result["games"] == 10
    assert total["wins"] + total["losses"] + total["draws"] == 10
    assert result["scored_pairs"] == 5
