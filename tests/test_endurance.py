"""Long runs of training: killed at twenty moments, and a thousand learning steps."""

import contextlib
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import train
from tests.runs import SMALL, assert_same_state, curve_of, iterations_of

LAST = 240  # iterations
EACH = 10  # between kills, and a save every other iteration
MOMENTS = ("start", "learning", "saving", "learning", "saving")


def train_in_child(run, output, flags):
    with Path(output).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os._exit(train.main(["--run", str(run), *SMALL, *flags]))


def start(run, *flags):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    output = run.with_suffix(".out")
    process = processes.Process(target=train_in_child, args=(run, output, flags))
    process.start()
    return process


def finish(process, run):
    process.join()
    assert process.exitcode == 0, run.with_suffix(".out").read_text()


def wait(process, run, condition):
    while not condition():
        assert process.is_alive(), run.with_suffix(".out").read_text()
        time.sleep(0.001)


def reached(run):
    return max(iterations_of(run), default=0)


def is_saving(run):
    return any(not path.name.isdigit() for path in (run / "checkpoints").iterdir())


def is_measuring(run):
    return "measuring" in run.with_suffix(".out").read_text()


# While it starts, learns and saves, and last while it measures what it has learned.
@pytest.mark.slow
def test_run_killed_at_twenty_moments_equals_a_straight_one(tmp_path):
    straight, run = tmp_path / "straight", tmp_path / "killed"
    finish(start(straight, "--iterations", str(LAST)), straight)
    choice, in_a_save = random.Random(8), 0
    flags = ["--iterations", str(LAST), "--save-every", "2"]
    for number in range(20):
        moment = "measuring" if number >= 18 else MOMENTS[number % len(MOMENTS)]
        also = ["--evaluate"] if moment == "measuring" else []
        process = start(run, *flags, *also)
        if moment == "start":
            time.sleep(choice.uniform(0, 4))
        elif moment == "measuring":
            wait(process, run, lambda: is_measuring(run))
            time.sleep(choice.uniform(0, 3))
        else:
            goal = EACH * (number + 1) + choice.randrange(EACH)
            wait(process, run, lambda goal=goal: reached(run) >= goal)
            if moment == "saving":
                wait(process, run, lambda: is_saving(run))
            time.sleep(choice.uniform(0, 0.02))
        process.kill()
        process.join()
        in_a_save += (run / "checkpoints").exists() and is_saving(run)
        if (run / "config.json").exists() and "--resume" not in flags:
            flags.append("--resume")
    finish(start(run, *flags), run)
    assert_same_state(straight, run)
    assert curve_of(run) == curve_of(straight)
    assert len(curve_of(run)) == LAST
    assert in_a_save >= 3


# The first tenth of the iterations fills the replay and what the allocator keeps.
@pytest.mark.slow
def test_a_thousand_steps_take_no_more_memory_and_compile_nothing_twice(tmp_path):
    run, sizes = tmp_path / "run", {}
    flags = ["--iterations", "1000", "--updates", "1", "--save-every", "10"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "train.py", "--run", str(run), *SMALL, *flags],
            cwd=Path(train.__file__).parent,
            env=os.environ | {"JAX_NUM_CPU_DEVICES": "1", "JAX_LOG_COMPILES": "1"},
            stdout=log,
            stderr=log,
        )
        while process.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
                sizes[reached(run)] = int(pages) * os.sysconf("SC_PAGE_SIZE")
            time.sleep(0.05)
    text = (tmp_path / "log").read_text()
    assert process.returncode == 0, text
    early = max(size for at, size in sizes.items() if 100 <= at < 300)
    late = max(size for at, size in sizes.items() if 800 <= at < 1000)
    print(f"{early / 1e6:.1f} MB, later {late / 1e6:.1f} MB")
    assert late < 1.02 * early
    compiled = re.findall(r"Finished XLA compilation of (\S+) in", text)
    for program in ("jit(play)", "jit(learn)", "jit(start)"):
        assert compiled.count(program) == 1
