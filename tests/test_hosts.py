"""train.py in two processes: the same run as in one, stopped and resumed."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import train
from jaxsearch.learn import hosts
from jaxsearch.learn.run_folder import RunFolder
from tests.runs import SMALL

FLAGS = [*SMALL, "--schedule", "constant", "--devices", "2"]
EVALUATED = [
    *("--evaluate-every", "3", "--evaluate-games", "8", "--evaluate-simulations", "2"),
]


def free_place():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def run_in_root(command):
    return subprocess.Popen(
        command,
        cwd=Path(train.__file__).parent,
        env=os.environ | {"JAX_NUM_CPU_DEVICES": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start(run, *flags):
    """Two processes with a device each that train a run."""
    command = [sys.executable, "train.py", "--run", str(run), *flags]
    command += ["--coordinator", free_place(), "--processes", "2"]
    return [run_in_root([*command, "--process", str(process)]) for process in (0, 1)]


def finish(processes):
    """Exit codes, outputs and errors."""
    try:
        told = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], told


def finish_well(processes):
    codes, told = finish(processes)
    assert codes == [0, 0], told
    output, alone = told[0][0], told[1][0]
    assert all("Gloo" in line for line in alone.splitlines()), alone
    return output


def figures_of(run):
    return RunFolder(run).read_metrics()


# The rounding of sums over devices differs and nothing else, until it chooses a move.
def test_two_processes_train_as_one_and_stop_together(tmp_path):
    run, one = tmp_path / "two", tmp_path / "one"
    flags = [*FLAGS, *EVALUATED]
    processes = start(run, *flags, "--iterations", "100000", "--keep-last", "1")
    while len(figures_of(run)) < 4:
        assert [process.poll() for process in processes] == [None, None]
        time.sleep(0.01)
    processes[1].send_signal(signal.SIGTERM)  # one of them is enough
    output = finish_well(processes)
    last = figures_of(run)[-1]["iteration"]
    assert "2 devices in 2 processes" in output
    assert f"SIGTERM: stopped after iteration {last}, everything is saved" in output
    assert [path.name for path in (run / "checkpoints").iterdir()] == [str(last)]

    output = finish_well(start(run, "--resume", "--iterations", str(last + 4)))
    assert f"going on from iteration {last}" in output
    assert [m["iteration"] for m in figures_of(run)] == list(range(1, last + 5))
    assert train.load_agent(run).params

    assert train.main(["--run", str(one), *flags, "--iterations", "12"]) == 0
    for ours, theirs in zip(figures_of(run), figures_of(one), strict=False):
        for name in ("games", "updates", "game_length", "first_wins", "draws"):
            assert ours[name] == theirs[name]
        assert ("elo" in ours) == ("elo" in theirs) == (ours["iteration"] % 3 == 0)
        for name in ("policy", "value"):
            if theirs[name] is not None:
                np.testing.assert_allclose(ours[name], theirs[name], rtol=0.01)


# JAX itself may end the other one, after 100 seconds without a sign of life.
@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_process_whose_other_is_killed_ends_and_both_can_go_on(tmp_path, killed):
    run = tmp_path / "run"
    processes = start(run, *FLAGS, "--iterations", "100000", "--save-every", "2")
    while len(figures_of(run)) < 5:
        assert [process.poll() for process in processes] == [None, None]
        time.sleep(0.01)
    began = time.monotonic()
    processes[killed].kill()
    codes, _ = finish(processes)
    assert time.monotonic() - began < 150
    assert codes[1 - killed] != 0
    finish_well(start(run, "--resume", "--iterations", "8"))
    assert [m["iteration"] for m in figures_of(run)][:8] == list(range(1, 9))


# What only the first process looks at ends the second one, too.
def test_run_that_is_there_already_is_refused_by_all(tmp_path):
    (tmp_path / "config.json").write_text('{"env": "tic_tac_toe"}')
    codes, told = finish(start(tmp_path, *FLAGS))
    assert codes == [2, 2]
    for _, error in told:
        assert "holds a run of tic_tac_toe already" in error
        assert error.count("\n") == 1


TALK = """
import sys
import jax
from jaxsearch.learn import hosts
place, process = sys.argv[1], int(sys.argv[2])
hosts.join(place, 2, process)
print(hosts.is_first(), hosts.of_first({"number": process, "é": [None]}))
print(hosts.gather("é" * process), hosts.any_of("late" if process else None))
spread = jax.jit(lambda x: x, out_shardings=jax.NamedSharding(
    jax.make_mesh((2,), ("x",)), jax.P("x")))
print(hosts.whole(spread(jax.numpy.arange(4))))
for block in (
    lambda: hosts.check_same({"env": "nim", "save_every": 5 + process}),
    lambda: int("none") if process else None,
    lambda: None,
):
    try:
        with hosts.together():
            block()
    except ValueError as error:
        print(error)
"""


def test_processes_tell_each_other_what_they_need(tmp_path):
    program = [sys.executable, "-c", TALK, free_place()]
    codes, told = finish([run_in_root([*program, str(i)]) for i in (0, 1)])
    assert codes == [0, 0], told
    same = [
        "['', 'é'] late",
        "[0 1 2 3]",
        "process 0 has --save-every 5 and process 1 has 6: start all with the same "
        "flags",
    ]
    wrong = "invalid literal for int() with base 10: 'none'"
    for process, ends in enumerate((f"process 1 stopped: {wrong}", wrong)):
        first = f"{process == 0} {{'number': 0, 'é': [None]}}"
        lines = told[process][0].splitlines()
        said = [line for line in lines if "Gloo" not in line]
        assert said == [first, *same, ends]


@pytest.mark.parametrize("process", [0, 1])
def test_process_whose_others_do_not_come_is_ended(process):
    program = (
        "import sys; sys.argv = ['train.py']; from jaxsearch.learn import hosts; "
        f"hosts._JOIN_SECONDS = 1; hosts.join('127.0.0.1:17', 2, {process})"
    )
    (code,), ((_, error),) = finish([run_in_root([sys.executable, "-c", program])])
    assert code == 2
    assert "train.py: all 2 processes did not meet at 127.0.0.1:17" in error


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((None, 2, 0), "--processes 2 --process 0: --coordinator HOST:PORT of"),
        (("auto", 2, 1), "--process 1: no --processes and no --process with"),
        (("host", 2, 1), "--coordinator is HOST:PORT of process 0, or auto, got 'ho"),
        (("host:0", 2, 1), "got 'host:0'"),
        (("host:80", 2, 2), "--process 2 is none of --processes 2"),
    ],
)
def test_place_among_processes_is_checked(flags, message):
    with pytest.raises(ValueError, match=message):
        hosts.check_flags(*flags)
