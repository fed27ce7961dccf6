"""train.py: runs that stop, die and go on, and bad input."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import train
from jaxsearch.arena.sample_games import read_sample
from jaxsearch.learn.run_folder import RunFolder, UnusableRunError
from tests.runs import SMALL, assert_same_state, iterations_of, last_state

LAST = 200  # iterations of a whole run


@pytest.fixture(scope="module")
def cache():
    """The environment of the programs: one device, the session's compiled programs."""
    return os.environ | {"JAX_NUM_CPU_DEVICES": "1"}


def start_training(cache, run, *flags):
    command = [sys.executable, "train.py", "--run", str(run), *SMALL, *flags]
    return subprocess.Popen(
        command,
        cwd=Path(train.__file__).parent,
        env=cache,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_training(cache, run, *flags):
    process = start_training(cache, run, *flags)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def wait_for_iteration(process, run, iteration):
    while max(iterations_of(run), default=0) < iteration:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.005)


def wait_for_save(process, run):
    """Until a checkpoint is being written: not yet named by its step alone."""
    while all(path.name.isdigit() for path in (run / "checkpoints").iterdir()):
        assert process.poll() is None, process.stdout.read()


@pytest.fixture(scope="module")
def straight(tmp_path_factory, cache):
    """A whole run that nothing disturbed, and that alone plays sample games."""
    run = tmp_path_factory.mktemp("runs") / "straight"
    run_training(cache, run, "--iterations", str(LAST), "--sample-every", "100")
    return run


def test_run_folder_tells_what_was_done(straight):
    assert iterations_of(straight) == list(range(1, LAST + 1))
    metrics = RunFolder(straight).read_metrics()
    assert metrics[-1]["positions"] == LAST * 8 * 4  # more than the replay holds
    # All games, of at most 9 moves, and not those of the 256 positions in the replay.
    assert metrics[-1]["games"] > LAST * 8 * 4 / 9 - 8 > 2 * 256 / 5
    assert metrics[-1]["updates"] > 2 * (LAST - 20)
    losses = [m["value"] for m in metrics if m["value"] is not None]
    assert len(losses) > LAST - 20
    assert np.isfinite(losses).all()
    assert json.loads((straight / "config.json").read_text())["simulations"] == 4
    assert json.loads((straight / "versions.json").read_text())["jax"]
    assert (straight / "report.html").read_text().count("<svg") == 6
    samples = sorted((straight / "games").iterdir())
    assert [path.name for path in samples] == ["0000100.txt", "0000200.txt"]
    assert len(read_sample(samples[1].read_text())) == 4


# The seconds that JAX says it spent on compiling, or on reading from its cache.
def test_second_start_compiles_faster_with_a_cache(tmp_path, cache):
    environment = cache | {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "compiled"),
        "JAX_LOG_COMPILES": "1",
    }
    compiling = re.compile(r"Finished XLA compilation of (\S+) in ([\d.]+) sec")
    first, second = (
        compiling.findall(run_training(environment, run, "--iterations", "1"))
        for run in (tmp_path / "first", tmp_path / "second")
    )
    programs = [program for program, _ in first]
    assert programs == [program for program, _ in second]
    assert {"jit(play)", "jit(learn)"} < set(programs)
    assert seconds_of(second) < 0.7 * seconds_of(first)


def seconds_of(compilations):
    return sum(float(seconds) for _, seconds in compilations)


# At three random moments, the last of them in the middle of a save.
def test_run_killed_three_times_equals_a_straight_one_bit_for_bit(
    straight, tmp_path, cache
):
    run, choice = tmp_path / "run", random.Random(0)
    flags = ["--iterations", str(LAST), "--save-every", "5"]
    for earliest in (10, 60, 110):
        process = start_training(cache, run, *flags)
        wait_for_iteration(process, run, earliest + choice.randrange(40))
        time.sleep(choice.uniform(0, 0.2))  # about five iterations and a save
        if earliest == 110:
            wait_for_save(process, run)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        if "--resume" not in flags:
            flags.append("--resume")
    run_training(cache, run, *flags)
    assert_same_state(straight, run)
    assert iterations_of(run) == list(range(1, LAST + 1))
    kept = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert kept == [str(LAST - 5), str(LAST)]


def test_run_goes_on_from_before_a_damaged_checkpoint(straight, tmp_path, cache):
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    newest = run / "checkpoints" / str(LAST)
    largest = max(newest.rglob("*"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    flags = ["--resume", "--iterations", str(LAST), "--save-every", "999"]
    output = run_training(cache, run, *flags)
    first, *lines = output.splitlines()
    assert first.startswith("backend cpu, 1 device (cpu), jax ")
    assert any(
        line.startswith(f"warning: checkpoint {newest} cannot be read")
        for line in lines
    )
    assert f"going on from iteration {LAST - 20}" in lines
    assert "Traceback" not in output
    assert_same_state(straight, run)
    assert iterations_of(run) == list(range(1, LAST + 1))


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name
)
def test_signal_saves_and_says_how_to_go_on(straight, tmp_path, cache, number):
    run = tmp_path / "run"
    process = start_training(cache, run, "--iterations", str(LAST))
    wait_for_iteration(process, run, 25)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert number.name in output
    assert f"python train.py --run {run} --resume" in output
    last = iterations_of(run)[-1]
    assert 25 <= last == last_state(run)[0] < LAST
    output = run_training(cache, run, "--resume", "--iterations", str(LAST))
    assert f"going on from iteration {last}" in output
    assert_same_state(straight, run)


# What the signal kept from being measured is measured on resuming.
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)],
    ids=lambda s: s.name,
)
def test_signal_during_the_last_measurements_leaves_a_saved_run(
    straight, tmp_path, cache, number
):
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    (run / "report.html").unlink()
    flags = ["--resume", "--iterations", str(LAST), "--evaluate"]
    process = start_training(cache, run, *flags)
    while not (run / "report.html").exists():  # written before the match is played
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.005)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert output.splitlines()[-1] == (
        f"{number.name}: stopped before all was measured, the run is saved. Measure it "
        f"with: python train.py --run {run} --resume"
    )
    assert "Traceback" not in output
    assert "Elo difference" not in output
    if number == signal.SIGTERM:
        assert "Elo difference" in run_training(cache, run, *flags)
    assert_same_state(straight, run)


# Sizes that are not the defaults come from the stored configuration.
def test_agent_is_rebuilt_from_its_run_folder(straight):
    agent = train.load_agent(straight)
    assert agent.env.id == "tic_tac_toe"
    assert (agent.config.width, agent.config.depth) == (16, 1)
    states = jax.tree.map(lambda x: x[None], agent.env.init())
    prior_logits, value = agent.evaluate(agent.params, None, states)
    assert prior_logits.shape == (1, 9)
    untrained = train.make_agent(agent.config)
    start, _ = agent.evaluate(untrained.params, None, states)
    assert np.abs(prior_logits - start).max() > 0.01
    assert value.shape == (1,)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--env conect_four", "'conect_four': did you mean 'connect_four'"),
        ("--env nim --env-options heaps", "--env-options takes name=value"),
        ("--env nim --env-options piles=3", "has no option 'piles'"),
        ("--env nim --env-options heaps=(3", "got 'heaps=(3': '(' was never closed"),
        ("--env nim --env-options misere=true", "not a Python value"),
        ("--env nim", "got [3, 6]: for such a game take --net mlp\n"),
        ("--net transformer", "unknown net 'transformer': choose one of"),
        ("--dtype float16", "unknown dtype 'float16'"),
        (
            "--search alpha-beta",
            "unknown search 'alpha-beta': choose one of gumbel, puct, mctx-puct, "
            "mctx-gumbel\n",
        ),
        ("--simulations 0", "--simulations must be above 0, got 0"),
        ("--simulations -1", "--simulations must be above 0, got -1"),
        ("--games 0", "--games must be above 0, got 0"),
        ("--games -4", "--games must be above 0, got -4"),
        ("--batch 0", "--batch must be above 0, got 0"),
        ("--minutes 0", "--minutes must be above 0, got 0.0"),
        ("--minutes -1", "--minutes must be above 0, got -1.0"),
        ("--minutes nan", "--minutes must be above 0, got nan"),
        ("--iterations -3", "--iterations must be above 0, got -3"),
        ("--iterations 0", "--iterations must be above 0, got 0"),
        ("--learning-rate nan", "--learning-rate must be above 0, got nan"),
        ("--average-decay 2", "--average-decay is a share from 0 to 1, got 2.0"),
        ("--seed -1", "--seed must be 0 or more, got -1"),
        ("--seed 4294967296", "--seed must be at most 4294967295, got 4294967296"),
        ("--learning-rate inf", "--learning-rate must be at most 1e+30, got inf"),
        ("--weight-decay inf", "--weight-decay must be at most 1e+30, got inf"),
        ("--value-weight inf", "--value-weight must be at most 1e+30, got inf"),
        (f"--width {10**20}", f"--width must be at most 65536, got {10**20}"),
        ("--depth 1001", "--depth must be at most 1000, got 1001"),
        (f"--simulations {2**21}", "--simulations must be at most 1048576"),
        (f"--positions {2**31}", "--positions must be at most 2147483647"),
        ("--device gpu", "asked for device 'gpu', but the devices that JAX sees are"),
        ("--devices 99 --games 99 --batch 99", "on the CPU set JAX_NUM_CPU_DEVICES=99"),
        ("--positions 64", "--batch 512 is more than --positions 64"),
        ("--resume", "there is no run folder"),
        ("--keep-every 30", "--keep-every 30 is no multiple of --save-every 20"),
        ("--processes 2", "--processes 2 --process 0: --coordinator HOST:PORT of"),
        ("--coordinator here", "--coordinator is HOST:PORT of process 0, or auto, got"),
        (
            "--devices 3 --games 64",
            "--games 64 does not divide among 3 devices: take 63 or 66",
        ),
        (
            "--devices 3 --games 63 --batch 100",
            "--batch 100 does not divide among 3 devices: take 99 or 102",
        ),
        ("--devices 3 --games 2", "--games 2 does not divide among 3 devices: take 3"),
    ],
)
def test_bad_flags_are_refused_in_one_line(flags, message, tmp_path, capsys):
    run = tmp_path / "run"
    assert train.main(["--run", str(run), *flags.split()]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not run.exists()


def test_a_run_is_neither_overwritten_nor_resumed_as_another(straight, capsys):
    before = (straight / "config.json").read_text()
    for flags, message in [
        (SMALL, "holds a run of tic_tac_toe already: add --resume"),
        ([], "holds a run of tic_tac_toe already: choose another folder"),
        (
            ["--resume", "--env", "nim"],
            "has --env tic_tac_toe, which cannot become nim",
        ),
        (["--resume", "--width", "64"], "has --width 16, which cannot become 64"),
    ]:
        assert train.main(["--run", str(straight), *flags]) == 2
        assert message in capsys.readouterr().err
    assert (straight / "config.json").read_text() == before
    assert iterations_of(straight) == list(range(1, LAST + 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json cannot be used: Expecting property name"),
        ("[]", "holds no JSON object"),
        ('{"simulation": 4}', "unknown setting 'simulation'"),
        ("{}", "is missing"),
    ],
)
def test_damaged_run_folder_is_one_clear_error(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        train.load_agent(tmp_path)
    with pytest.raises(UnusableRunError, match="no run folder"):
        train.load_agent(tmp_path / "missing")


def test_run_whose_checkpoints_are_all_damaged_is_refused(straight, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(straight, run)
    for path in (run / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:20])
    assert train.main(["--run", str(run), "--resume", "--iterations", "999"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("train.py: checkpoint")
    assert error.count("cannot be read") == 2
    assert error.count("\n") == 1


def test_training_on_several_devices_learns_and_resumes(tmp_path, capsys):
    gate = ["--evaluate-every", "5", "--evaluate-simulations", "2", "--gate", "0.5"]
    flags = [*SMALL, *gate, "--run", str(tmp_path / "run"), "--devices", "4"]
    assert train.main([*flags, "--iterations", "12"]) == 0
    capsys.readouterr()
    flags[-1] = "2"  # on a smaller machine
    assert train.main([*flags, "--resume", "--iterations", "14"]) == 0
    output = capsys.readouterr().out
    assert "going on from iteration 12" in output
    assert "warning" not in output
    assert iterations_of(tmp_path / "run") == list(range(1, 15))
    assert train.load_agent(tmp_path / "run").params
