"""train.py distill: students, runs that stop and go on, and bad input."""

import json
import os
import shutil
import signal
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evaluate
import train
from jaxsearch import backend
from jaxsearch.learn.bar import Bar
from jaxsearch.learn.checkpoint import Checkpoints
from jaxsearch.learn.run_folder import RunFolder

NET = ["--net", "mlp", "--width", "24", "--depth", "1"]
FLAGS = [
    *(*NET, "--batch", "64", "--games", "150", "--learning-rate", "1e-2"),
    *("--updates", "40", "--iterations", "10", "--save-every", "3"),
    *("--held-out-share", "0.25"),
]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A run with random parameters that likes some moves better than others."""
    run = tmp_path_factory.mktemp("runs") / "teacher"
    # Without symmetries, which a random teacher would not keep to.
    game = ["--env", "nim", "--env-options", "heaps=(4,5,6)"]
    flags = ["--run", str(run), *game, *NET, "--seed", "5"]
    agent = train.make_agent(train.parse(flags))
    params = jax.tree.map(
        lambda x: x + 2 * jnp.sin(7.0 * jnp.arange(x.size)) if x.ndim == 1 else 2 * x,
        agent.params,
    )
    folder = RunFolder(run)
    run.mkdir()
    folder.write_config(agent.config)
    lasting = agent.config.lasting()
    with Checkpoints(folder.checkpoints, lasting, writable=True) as checkpoints:
        checkpoints.save(0, agent=params)
    return run


def distill(teacher, run, *flags):
    command = ["distill", f"{teacher}?search=raw", "--run", str(run)]
    return train.main([*command, *FLAGS, *flags])


@pytest.fixture(scope="module")
def student(teacher, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "student"
    assert distill(teacher, run) == 0
    return run


def test_student_comes_near_its_teacher_on_positions_held_out(student):
    first, *_, last = RunFolder(student).read_metrics()
    assert last["updates"] == 400
    assert last["held_out_agreement"] > 0.9
    assert last["held_out_divergence"] < 0.01 < first["held_out_divergence"]
    assert last["held_out_value"] < 0.01 < first["held_out_value"]


def test_student_is_a_run_that_evaluate_plays(teacher, student, tmp_path):
    stored = json.loads((student / "config.json").read_text())
    assert stored["program"] == "train.py distill"
    assert stored["teachers"] == [f"{teacher}?search=raw"]
    assert (stored["env"], stored["env_options"]) == ("nim", ["heaps=(4,5,6)"])
    file = tmp_path / "result.json"
    players = [f"{student}?search=raw", "random", "--json", str(file)]
    assert evaluate.main(["match", *players, "--games", "4"]) == 0
    assert json.loads(file.read_text())["game"] == "nim"


def test_figures_of_a_fit_are_documented(student):
    page = (Path(train.__file__).parent / "docs/train.md").read_text()
    for name in RunFolder(student).read_metrics()[0]:
        assert f"`{name}`" in page, name


def stop_at(monkeypatch, iteration):
    """Sends SIGTERM when the metrics of an iteration are written."""
    append = RunFolder.append_metrics

    def stopping(folder, metrics):
        append(folder, metrics)
        if metrics["iteration"] == iteration:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "append_metrics", stopping)


def checkpoint_of(run):
    """The bytes of the newest checkpoint, without the seconds that it took."""
    agent = train.load_agent(run)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(agent.params)]


def untimed(run):
    metrics = RunFolder(run).read_metrics()
    timed = ("seconds", "updates_per_second")
    return [{k: v for k, v in m.items() if k not in timed} for m in metrics]


def test_fit_that_stopped_goes_on_bit_for_bit_and_needs_no_teacher(
    teacher, student, tmp_path, monkeypatch, capsys
):
    run, moved = tmp_path / "run", tmp_path / "teacher"
    shutil.copytree(teacher, moved)
    with monkeypatch.context() as patched:
        stop_at(patched, 4)
        assert distill(moved, run) == 0
    assert f"distill --run {run} --resume" in capsys.readouterr().out
    assert len(untimed(run)) == 4
    shutil.rmtree(moved)
    assert train.main(["distill", "--run", str(run), "--resume"]) == 0
    assert "going on from iteration 4" in capsys.readouterr().out
    assert untimed(run) == untimed(student)
    for x, y in zip(checkpoint_of(run), checkpoint_of(student), strict=True):
        np.testing.assert_array_equal(x, y)


def test_stop_while_the_teachers_teach_leaves_no_run(
    teacher, tmp_path, monkeypatch, capsys
):
    def stop(bar, share, line=""):
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Bar, "show", stop)
    assert distill(teacher, tmp_path / "run") == 0
    assert "SIGINT: stopped while the teachers" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["lock"]


def test_lessons_that_are_lost_or_damaged_are_made_again(student, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(student, run)
    lessons = (run / "lessons.npz").read_bytes()
    (run / "lessons.npz").write_bytes(lessons[:1000])
    resume = ["distill", "--run", str(run), "--resume"]
    assert train.main(resume) == 2
    assert f"{run}/lessons.npz cannot be read: " in capsys.readouterr().err
    (run / "lessons.npz").unlink()
    assert train.main(resume) == 0
    with np.load(run / "lessons.npz") as new, np.load(student / "lessons.npz") as old:
        assert set(new) == set(old)
        for name in new:
            np.testing.assert_array_equal(new[name], old[name])


def test_one_process_at_a_time_fits_in_a_folder(teacher, tmp_path, capsys):
    with RunFolder(tmp_path / "run").locked():
        assert distill(teacher, tmp_path / "run") == 2
    assert "another process is training in" in capsys.readouterr().err


def test_run_is_refused_to_the_other_program(teacher, student, capsys):
    assert train.main(["--run", str(student), "--resume"]) == 2
    error = capsys.readouterr().err
    assert f"{student} holds a run of 'train.py distill', not of train.py" in error
    assert train.main(["distill", "--run", str(teacher), "--resume"]) == 2
    assert "holds a run of 'train.py', not of train.py dis" in capsys.readouterr().err
    assert distill(teacher, student) == 2
    assert "holds a run of nim already: add --resume" in capsys.readouterr().err
    assert distill(student, teacher) == 2
    assert "holds a run of nim already: choose" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("teachers", "flags", "message"),
    [
        ([], "", "distill needs one or more teachers, such as 'runs/"),
        (["random"], "", "no teacher names a run, which tells the game: add --env"),
        (["random"], "--env nim", "the player 'random' has nothing to teach"),
        (["random"], "--env nimm", "unknown game 'nimm'"),
        (["{run}?sims=0"], "", "sims must be a whole number from 1"),
        (["{run}", "missing"], "", "unknown player 'missing'"),
        (["{run}"], "--env tic_tac_toe", "these play different games"),
        (["{run}"], "--env-options misere=True", "--env-options is for a game that"),
        (["{run}"], "--net lstm", "unknown net 'lstm'"),
        (["{run}"], "--games 0", "--games must be above 0, got 0"),
        (["{run}"], "--held-out-share 1", "--held-out-share 1.0 leaves no position"),
        (["{run}"], "--positions missing.txt", "missing.txt cannot be read"),
        (["{run}"], "--positions x --games 5", "--games is of games that the teachers"),
        (["{run}"], "--width 65536 --depth 1000", "GB of memory"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    teacher, tmp_path, capsys, teachers, flags, message
):
    texts = [text.format(run=teacher) for text in teachers]
    run = tmp_path / "run"
    command = ["distill", *texts, "--run", str(run), *NET, *flags.split()]
    assert train.main(command) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not run.exists()


def test_batch_that_no_memory_holds_is_refused(teacher, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(backend, "device_bytes", lambda: 10**7)
    assert distill(teacher, tmp_path / "run", "--batch", "1000000") == 2
    assert "lower --batch or --width" in capsys.readouterr().err


def test_ensemble_teaches_each_position_of_a_file_once(
    teacher, student, tmp_path, capsys
):
    file, run = tmp_path / "positions.txt", tmp_path / "run"
    file.write_text("1 2 3\n4 5 6\n1 2 3 first\n\n0 0 1 second\n")
    texts = [f"{teacher}?search=raw", f"{student}?search=puct&sims=4"]
    flags = ["--positions", str(file), *NET, "--batch", "8", "--iterations", "1"]
    assert train.main(["distill", *texts, "--run", str(run), *flags]) == 0
    assert "3 different positions, 1 of them held out" in capsys.readouterr().out
    file.write_text("1 2 3\n1 2 3\n")
    other = ["--run", str(tmp_path / "other"), *flags]
    assert train.main(["distill", *texts, *other]) == 2
    assert "1 different positions are too few" in capsys.readouterr().err
