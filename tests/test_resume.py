"""train.py --resume: what is taken from the run, what may change, what is refused."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import train
from jaxsearch.learn.run_folder import RunFolder

SMALL = [
    *("--env", "tic_tac_toe", "--net", "mlp", "--width", "8", "--depth", "1"),
    *("--search", "puct", "--simulations", "4", "--games", "8", "--plies", "4"),
    *("--batch", "8", "--updates", "1", "--positions", "64", "--no-evaluate"),
    *("--devices", "1"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A finished run of four iterations."""
    run = tmp_path_factory.mktemp("runs") / "base"
    flags = ["--iterations", "4", "--save-every", "2"]
    assert train.main(["--run", str(run), *SMALL, *flags]) == 0
    return run


@pytest.fixture
def run(base, tmp_path):
    """A copy of that run."""
    return shutil.copytree(base, tmp_path / "run")


def test_folder_is_named_after_the_game():
    assert train.parse(["--env", "nim"]).folder == "runs/nim"
    assert train.parse(["--env", "nim", "--run", "runs/mine"]).folder == "runs/mine"


def resume(run, *flags):
    return train.main(["--run", str(run), "--resume", *flags])


def files(run):
    return {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


def refusal(run, capsys, *flags):
    """The one line that refuses to resume, after which all files are as before."""
    before = files(run)
    capsys.readouterr()
    assert resume(run, *flags) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1, captured.err
    after = files(run)
    after.pop(run / "lock", None)
    before.pop(run / "lock", None)
    assert after == before
    return captured.err


def iterations_of(run):
    return [metrics["iteration"] for metrics in RunFolder(run).read_metrics()]


def test_resumed_run_has_its_own_length_and_keeps_a_new_one(run):
    assert resume(run) == 0
    assert iterations_of(run) == [1, 2, 3, 4]
    assert resume(run, "--iterations", "6", "--tensorboard") == 0
    assert iterations_of(run) == [1, 2, 3, 4, 5, 6]
    assert len(list((run / "tensorboard").iterdir())) == 1
    stored = json.loads((run / "config.json").read_text())
    assert (stored["iterations"], stored["minutes"]) == (6, None)
    assert (stored["save_every"], stored["evaluate"]) == (2, False)


def test_figures_of_a_run_are_documented(base):
    page = (Path(train.__file__).parent / "docs/evaluate.md").read_text()
    for name in RunFolder(base).read_metrics()[0]:
        assert f"`{name}`" in page, name


def test_length_that_is_given_replaces_all_that_are_stored(run):
    flags = train.parse(["--run", str(run), "--resume", "--minutes", "3"])
    assert (flags.minutes, flags.iterations) == (3, None)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env connect_four", "has --env tic_tac_toe, which cannot become connect"),
        ("--iterations 5 --games 128", "has --games 8, which cannot become 128"),
        ("--learning-rate inf", "--learning-rate must be at most 1e+30, got inf"),
    ],
)
def test_flag_that_equals_a_default_is_not_ignored(run, capsys, flags, message):
    assert message in refusal(run, capsys, *flags.split())


def test_run_that_lost_its_checkpoints_is_refused(run, capsys):
    shutil.rmtree(run / "checkpoints")
    assert "has metrics but no checkpoint" in refusal(run, capsys, "--iterations", "5")
    assert not (run / "checkpoints").exists()


def test_damaged_line_of_the_metrics_loses_no_other(run, capsys):
    metrics = run / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True)
    damaged = [b"12\n", b"\xff\n", b"[" * 9999 + b"\n", lines[0][:20] + b"\n"]
    metrics.write_bytes(b"".join([*lines[:2], *damaged, *lines[2:], lines[0][:20]]))
    assert resume(run) == 0
    assert metrics.read_bytes() == b"".join(lines)
    output = capsys.readouterr().out
    assert [n for n in range(1, 10) if f"line {n} is dropped" in output] == [3, 4, 5, 6]


def test_folder_in_the_place_of_the_metrics_is_refused(run, capsys):
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()
    assert "metrics.jsonl cannot be read: Is a dir" in refusal(run, capsys)


def test_line_with_a_number_beyond_floats_is_dropped_and_drawn_without(run, capsys):
    metrics = run / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True)
    huge = json.dumps(json.loads(lines[0]) | {"value": 10**309}).encode() + b"\n"
    metrics.write_bytes(b"".join([huge, *lines[1:]]))
    (run / "report.html").unlink()
    assert resume(run) == 0
    assert "line 1 is dropped: it holds a number too large" in capsys.readouterr().out
    assert (run / "report.html").exists()


@pytest.mark.parametrize(
    "name", ["lock", "versions.json", "report.html", "config.json", "checkpoints"]
)
def test_place_that_cannot_be_written_is_found_first(run, tmp_path, capsys, name):
    place = run / name
    if name == "checkpoints":
        place.rename(tmp_path / "elsewhere")
        place.write_text("")
        (run / "metrics.jsonl").unlink()
    else:
        place.unlink()
        place.mkdir()
    assert str(place) in refusal(run, capsys, "--iterations", "5")
    if name == "config.json":
        return
    new = tmp_path / "new"
    (new / name).mkdir(parents=True) if name != "checkpoints" else new.mkdir()
    if name == "checkpoints":
        (new / name).write_text("")
    assert train.main(["--run", str(new), *SMALL]) == 2
    assert str(new / name) in capsys.readouterr().err
    assert list(new.rglob("*")) == [new / name]


def test_folder_that_is_read_only_is_refused(run, capsys, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert "Permission denied" in refusal(run, capsys, "--iterations", "5")


# As a kill between the first checkpoint and its checksums leaves a run.
def test_run_killed_in_its_first_save_starts_again(run, capsys):
    for path in (run / "checkpoints").iterdir():
        shutil.rmtree(path) if path.name != "4" else path.rename(path.with_name("0"))
    (run / "checkpoints" / "0" / "checksums.json").unlink()
    (run / "metrics.jsonl").unlink()
    assert resume(run, "--iterations", "2") == 0
    assert iterations_of(run) == [1, 2]


def test_finished_run_without_its_metrics_ends_without_a_page(run, capsys):
    (run / "metrics.jsonl").unlink()
    (run / "report.html").unlink()
    assert resume(run) == 0
    assert not (run / "report.html").exists()
    assert "Traceback" not in capsys.readouterr().err


def test_option_given_twice_is_refused(tmp_path, capsys):
    options = ["--env-options", "misere=True", "misere=False"]
    flags = ["--env", "nim", "--net", "mlp", *options]
    assert train.main(["--run", str(tmp_path / "run"), *flags]) == 2
    assert "--env-options gives 'misere' twice" in capsys.readouterr().err


def test_run_that_diverges_saves_nothing_and_goes_on_with_another_rate(run, capsys):
    before = sorted((run / "checkpoints").iterdir())
    flags = ["--iterations", "6", "--learning-rate", "1e30"]
    assert resume(run, *flags) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no longer finite at iteration 6, learning step " in error
    assert f"its batch is in {run / 'bad_batch.npz'}, for numpy.load" in error
    assert error.endswith(f"--run {run} --resume --learning-rate 1e+29\n")
    with np.load(run / "bad_batch.npz") as batch:
        assert (batch["iteration"], batch["observation"].shape) == (6, (8, 3, 3, 2))
        assert batch["learning_rate"] > 1e27
        np.testing.assert_allclose(batch["policy_target"].sum(axis=1), 1, atol=1e-5)
        assert not batch["policy_target"][~batch["legal_action_mask"]].any()
        assert set(batch) >= {"outcome", "search_value", "update"}
    assert sorted((run / "checkpoints").iterdir()) == before
    assert resume(run, "--learning-rate", "1e-3") == 0
    assert "going on from iteration 4" in capsys.readouterr().out
    assert iterations_of(run) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "name", ["", "\0x", "/etc/passwd/x", "/proc/x/y", "x" * 300], ids=ascii
)
def test_name_that_no_folder_can_have_is_refused(capsys, name):
    assert train.main(["--run", name, *SMALL]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.out == ""


# Files of at most 4 KiB stand for a full disk.
def test_full_disk_leaves_the_checkpoints_and_is_told(run):
    (run / ".config.json.1.part").touch()  # as a kill inside a write leaves it
    command = [sys.executable, "train.py", "--run", str(run), "--resume"]
    result = subprocess.run(
        ["bash", "-c", 'ulimit -f 4; exec "$@"', "-", *command, "--iterations", "8"],
        cwd=Path(train.__file__).parent,
        env={k: v for k, v in os.environ.items() if "COMPILATION_CACHE" not in k},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert result.returncode == 1
    assert result.stderr.startswith("train.py: cannot write: ")
    assert result.stderr.endswith(f": python train.py --run {run} --resume\n")
    assert result.stderr.count("\n") == 1
    assert list((run / "checkpoints").glob("*.orbax-checkpoint-tmp"))
    assert resume(run) == 0
    assert not list(run.glob(".*"))
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["6", "8"]
    assert iterations_of(run) == [*range(1, 9)]


@pytest.mark.parametrize("text", ["", '{"env": "tic_t', "[]", '{"sims": 4}'])
def test_run_with_a_damaged_configuration_is_left_alone(tmp_path, capsys, text):
    config = tmp_path / "config.json"
    config.write_text(text)
    assert train.main(["--run", str(tmp_path), "--resume"]) == 2
    captured = capsys.readouterr()
    assert str(config) in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == [config]
    assert config.read_text() == text


LOCK = """
import sys, time
from jaxsearch.learn.run_folder import RunFolder
with RunFolder(sys.argv[1]).locked():
    print("locked", flush=True)
    time.sleep(600)
"""


def test_two_processes_do_not_train_in_one_folder(run, capsys):
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK, str(run)],
        cwd=Path(train.__file__).parent,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == b"locked\n"
        error = refusal(run, capsys, "--iterations", "5")
        assert f"another process is training in {run}" in error
        process.kill()
    assert resume(run, "--iterations", "5") == 0


@pytest.mark.parametrize(("name", "value"), [("env", "connect_four"), ("width", 16)])
def test_checkpoint_of_another_game_or_size_is_named(run, capfd, name, value):
    file = run / "config.json"
    config = json.loads(file.read_text())
    message = f"with {name} {config[name]!r}, but config.json has {name} {value!r}"
    file.write_text(json.dumps(config | {name: value}))
    assert message in refusal(run, capfd, "--iterations", "5")
    with pytest.raises(ValueError, match=message):
        train.load_agent(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"env_options": 5}, "env_options is 5, expected something like ()"),
        ({"env_options": None}, "env_options is None"),
        ({"env_options": [5]}, r"env_options is [5]"),
        ({"games": True}, "games is True, expected something like 128"),
        ({"learning_rate": None}, "learning_rate is None"),
        ({"device": "abacus"}, "device is 'abacus'"),
        ({"simulations": 0}, "--simulations must be above 0, got 0"),
        ({"env": "chess960"}, "unknown game 'chess960'"),
        ({"sims": 4}, "unknown setting 'sims'"),
        ({"width": 10**4000}, "--width must be at most 65536, got 1000000"),
        ({"device": "x" * 4000}, "device is 'xxxx"),
        ({"x" * 4000: 1}, "unknown setting 'xxxx"),
        ("games", "the setting 'games' is missing"),
        pytest.param("[" * 100_000, "nested too deeply", id="brackets"),
        (b"\xff", "can't decode"),
    ],
    ids=str,
)
def test_damaged_configuration_is_named(run, capsys, change, message):
    file = run / "config.json"
    config = json.loads(file.read_text())
    if isinstance(change, dict):
        file.write_text(json.dumps(config | change))
    elif change in config:
        file.write_text(json.dumps({k: v for k, v in config.items() if k != change}))
    else:
        file.write_bytes(change if isinstance(change, bytes) else change.encode())
    error = refusal(run, capsys)
    assert error.startswith(f"train.py: {file} cannot be used: ")
    assert message in error
    assert len(error) < 400
