"""Names of runs: what may be one, and that they are printed as they are."""

import shlex

import jax
import pytest
from rich.console import Console

import envs
import evaluate
import train
from jaxsearch.arena import last_measures
from jaxsearch.arena.match import play_match
from jaxsearch.arena.player_names import parse_player
from jaxsearch.arena.players import random_player
from jaxsearch.arena.report import match_report
from jaxsearch.learn.run_folder import RunFolder

TINY = [
    *("--env", "nim", "--net", "mlp", "--width", "8", "--depth", "1", "--games", "4"),
    *("--simulations", "2", "--plies", "2", "--positions", "64", "--batch", "8"),
    *("--updates", "1", "--iterations", "1", "--no-evaluate", "--search", "puct"),
    *("--devices", "1"),
]


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", "random", "./random", "uct", "uct:sims=4", "random?", "a?b"),
        *("a?search=raw", "-x", "a\nb", "a\x1b[31m", "a\udcff", "\0x"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["new", "resume"])
def test_name_that_evaluate_cannot_take_is_refused(capsys, name, resume):
    assert train.main([f"--run={name}", *resume]) == 2
    captured = capsys.readouterr()
    assert "cannot name a run" in captured.err
    assert captured.err.count("\n") == 1
    assert captured.err.strip().isprintable()
    assert captured.out == ""


@pytest.mark.parametrize(
    "name", ["it's :smile: $y", pytest.param("x]y {1}", marks=pytest.mark.slow)]
)
def test_name_is_printed_as_it_is_and_quoted_in_commands(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.chdir(tmp_path)
    assert train.main([f"--run={name}", *TINY]) == 0
    assert f"report of the run: {name}/report.html\n" in capsys.readouterr().out
    assert train.main([f"--run={name}", "--resume"]) == 0
    assert "going on from iteration 1" in capsys.readouterr().out
    words = shlex.split(RunFolder(name).resume_command)
    assert words == ["python", "train.py", "--run", name, "--resume"]
    agent = train.load_agent(name)
    monkeypatch.setattr(last_measures, "match_report", lambda match: "")
    monkeypatch.setattr(last_measures, "play_match", lambda *_, **__: None)
    object.__setattr__(agent.config, "evaluate", True)
    train.report(RunFolder(name), agent, Console(markup=False, emoji=False))
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("more: ")
    assert shlex.split(command)[:4] == ["python", "evaluate.py", "match", name]
    assert parse_player(name).run == name
    command = ["match", f"{name}?sims=2", "random", "--games", "2"]
    assert evaluate.main([*command, "--opening-plies", "0"]) == 0
    assert f"{name}?search=puct&sims=2 against" in capsys.readouterr().out


def test_titles_hold_names_as_they_are(capsys):
    player, key = random_player(), jax.random.key(0)
    match = play_match(
        envs.make("nim"),
        player,
        player,
        games=2,
        opening_plies=0,
        key=key,
    )
    object.__setattr__(match, "first", "x[/b] [red] :smile: $y")
    Console(width=100).print(match_report(match))
    assert "x[/b] [red] :smile: $y against random" in capsys.readouterr().out


# Orbax looks for files by patterns that start with the whole path.
@pytest.mark.parametrize("name", ["x[/b]", "x[red]y", "a*b", "a\\b", "[1]/c"])
def test_name_that_is_a_pattern_is_refused(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert train.main([f"--run={name}", *TINY]) == 2
    captured = capsys.readouterr()
    assert "take a folder without any of" in captured.err
    assert name in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_commands_in_advice_are_quoted(capsys):
    assert evaluate.main(["match", "no such run", "random"]) == 2
    assert "python train.py --run 'no such run'\n" in capsys.readouterr().err
    assert train.main(["--run", "no such run", "--resume"]) == 2
    assert "python train.py --run 'no such run'\n" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["?search=raw", "?", " ?sims=4", "a\nb", "a\0"])
def test_text_without_a_name_gets_no_advice_to_train_it(capsys, text):
    assert evaluate.main(["match", text, "random"]) == 2
    error = capsys.readouterr().err
    assert "names no player" in error
    assert "train.py" not in error
    assert error.count("\n") == 1
    assert error.strip().isprintable()
