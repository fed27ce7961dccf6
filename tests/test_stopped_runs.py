"""Runs that are stopped in the middle of something go on as if they had not been."""

import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import train
from jaxsearch.learn.run_folder import RunFolder
from tests.runs import SMALL, iterations_of


def resume(run, *flags):
    return train.main(["--run", str(run), "--resume", *flags])


EVALUATED = [
    *("--evaluate-every", "2", "--evaluate-games", "8", "--gate", "0.5"),
    *("--evaluate-simulations", "2", "--save-every", "3", "--schedule", "constant"),
]


# The second evaluation is at iteration 4, the save before it at 3.
def test_run_stopped_in_an_evaluation_finds_the_same_in_it(
    tmp_path, monkeypatch, capsys
):
    found, measure = [], train.TrainingEvaluation.measure
    for name in ("straight", "killed", "stopped"):
        flags = ["--run", str(tmp_path / name), *SMALL, *EVALUATED]
        with monkeypatch.context() as patch:
            if name == "killed":
                patch.setattr(train.TrainingEvaluation, "measure", at(4, lambda: 1 / 0))
                with pytest.raises(ZeroDivisionError):
                    train.main([*flags, "--iterations", "6"])
            if name == "stopped":
                stop = functools.partial(signal.raise_signal, signal.SIGTERM)
                patch.setattr(train.TrainingEvaluation, "measure", at(4, stop))
                assert train.main([*flags, "--iterations", "4"]) == 0
                assert "stopped after iteration 4" in capsys.readouterr().out
            if name != "straight":
                assert iterations_of(tmp_path / name) == [1, 2, 3]
                flags.append("--resume")
            patch.setattr(train.TrainingEvaluation, "measure", measure)
            if name == "stopped":  # at its end, but for the evaluation
                assert train.main(flags) == 0
                assert iterations_of(tmp_path / name) == [1, 2, 3, 4]
            assert train.main([*flags, "--iterations", "6"]) == 0
        metrics = RunFolder(tmp_path / name).read_metrics()
        assert [m["iteration"] for m in metrics if "elo" in m] == [2, 4, 6]
        same = ("iteration", "loss", "games", "elo", "elo_error", "score", "score_low")
        same += ("score_high", "promoted", "accuracy_raw", "accuracy_search")
        found.append([[m.get(figure) for figure in same] for m in metrics])
        page = (Path(train.__file__).parent / "docs/evaluate.md").read_text()
        assert all(f"`{name}`" in page for name in metrics[1])
    assert found[0] == found[1] == found[2]


def at(iteration, act):
    measure = train.TrainingEvaluation.measure

    def acting(evaluation, number, average):
        figures = measure(evaluation, number, average)
        if number >= iteration:
            act()
        return figures

    return acting


# Files of at most 4 KiB stand for a full disk; the run has not begun then.
def test_full_disk_in_the_first_save_lets_the_run_start_again(tmp_path):
    run = tmp_path / "run"
    command = [sys.executable, "train.py", "--run", str(run), *SMALL]
    result = subprocess.run(
        ["bash", "-c", 'ulimit -f 4; exec "$@"', "-", *command, "--iterations", "2"],
        cwd=Path(train.__file__).parent,
        env={k: v for k, v in os.environ.items() if "COMPILATION_CACHE" not in k},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr.startswith("train.py: cannot write: checkpoint 0: ")
    assert iterations_of(run) == []
    assert resume(run) == 0
    assert iterations_of(run) == [1, 2]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--openings", ""], "--openings is a file of positions, got ''"),
        (
            ["--evaluate-every", "2", "--evaluate-simulations", "1048576"],
            "lower --evaluate-games or --evaluate-simulations",
        ),
    ],
)
def test_flags_that_no_run_can_have_write_nothing(tmp_path, capsys, flags, message):
    assert train.main(["--run", str(tmp_path / "run"), *SMALL, *flags]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_link_to_nothing_is_refused(tmp_path, capsys):
    (tmp_path / "run").symlink_to(tmp_path / "nothing")
    assert train.main(["--run", str(tmp_path / "run"), *SMALL]) == 2
    assert "is a link to nothing" in capsys.readouterr().err


def test_sample_that_a_signal_cut_short_is_made_up_for(tmp_path, monkeypatch):
    flags = ["--run", str(tmp_path), *SMALL, "--sample-every", "2"]
    save = train.GameSampler.save

    def stop(sampler, params, iteration, interruption):
        signal.raise_signal(signal.SIGTERM)
        save(sampler, params, iteration, interruption)

    with monkeypatch.context() as patch:
        patch.setattr(train.GameSampler, "save", stop)
        assert train.main([*flags, "--iterations", "4"]) == 0
    assert not (tmp_path / "games" / "0000002.txt").exists()
    assert resume(tmp_path) == 0
    assert (tmp_path / "games" / "0000002.txt").exists()
