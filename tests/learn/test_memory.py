"""Runs too large for memory are refused before anything is made."""

import re

import jax
import pytest

import train
from jaxsearch import backend

NIM = [
    *("--env", "nim", "--net", "mlp", "--width", "8", "--depth", "1"),
    *("--devices", "1"),
]
MOST = str(2**20)


# The largest values that the bounds of single flags let pass.
@pytest.mark.parametrize(
    ("flags", "remedy"),
    [
        (["--positions", str(2**31 - 1)], "lower --positions"),
        (["--width", "65536", "--depth", "2"], "lower --width or --depth"),
        (["--width", "65536", "--depth", "1000"], "lower --width or --depth"),
        (["--games", MOST, "--simulations", MOST], "more than 1073741824 on a dev"),
        (["--games", MOST, "--simulations", "1024"], "lower --games or --simulations"),
        (
            ["--games", MOST, "--simulations", "1000", "--search", "mctx-puct"],
            "the search trees alone",
        ),
        (["--games", MOST, "--plies", "65536"], "more than 1073741824 on a dev"),
        (["--games", MOST, "--plies", "1024"], "the replay alone"),
        (
            ["--batch", MOST, "--positions", MOST, "--width", "65536"],
            "lower --batch, --games or --width",
        ),
    ],
    ids=" ".join,
)
def test_run_beyond_the_memory_is_refused(tmp_path, capsys, monkeypatch, flags, remedy):
    monkeypatch.setattr(backend, "device_bytes", lambda: 16 * 10**9)
    run = tmp_path / "run"
    assert train.main(["--run", str(run), *NIM, *flags]) == 2
    captured = capsys.readouterr()
    assert remedy in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not run.exists()


# A configuration that was edited, or a smaller machine.
def test_net_beyond_the_memory_is_not_made(monkeypatch):
    monkeypatch.setattr(backend, "device_bytes", lambda: 16 * 10**9)
    config = train.Config(env="nim", net="mlp", width=65536, depth=2)
    with pytest.raises(ValueError, match=r"34\.\d GB .* there are 16\.0 GB: lower"):
        train.make_agent(config)


@pytest.mark.parametrize(("net", "depth"), [("mlp", 1), ("mlp", 4), ("resnet", 3)])
def test_size_of_a_net_is_told_to_the_byte(monkeypatch, net, depth):
    config = train.Config(net=net, width=8, depth=depth)
    params = jax.tree.leaves(train.make_agent(config).params)
    size = sum(leaf.nbytes for leaf in params)
    monkeypatch.setattr(backend, "device_bytes", lambda: 2 * size)
    train.make_agent(config)
    monkeypatch.setattr(backend, "device_bytes", lambda: 2 * size - 1)
    with pytest.raises(ValueError, match="lower --width or --depth"):
        train.make_agent(config)


# What each part of a run has when it has been made, and the parameters six times.
def test_memory_of_a_run_is_told_before_it_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "device_bytes", lambda: 16 * 10**9)
    flags = [*NIM, "--run", str(tmp_path / "run"), "--positions", "1000000"]
    folder, agent, programs, line = train.prepare(train.parse(flags))
    total, _, parts = line.partition(" of 16.0 GB: ")
    assert re.fullmatch(r"memory: \d+\.\d [MG]B", total)
    held = dict(re.findall(r"([a-z ]+) ([\d.]+ [kMG]B)", parts))
    state, replay = programs.start(agent.params), programs.start_replay(agent.params)

    def size(*trees):
        return sum(leaf.nbytes for tree in trees for leaf in jax.tree.leaves(tree))

    assert held["the replay"] == f"{size(replay) / 1e6:.1f} MB"
    assert held[" the games"] == f"{size(state.games) / 1e3:.1f} kB"
    assert held[" the parameters"] == f"{size(*6 * [agent.params]) / 1e3:.1f} kB"
    assert not folder.path.exists()


# The devices have 16 MB and the host 32; 100,000 positions take 10.
@pytest.mark.parametrize(
    ("where", "positions", "told"),
    [
        ("auto", 100_000, r"memory: 1\d\.\d MB of 16\.0 MB: the replay 10\.2 MB, .*"),
        ("host", 100_000, r"memory: .*; of the host: 10\.2 MB of 32\.0 MB: the replay"),
        (
            "auto",
            250_000,
            r"memory: .*; of the host: 25\.\d MB of 32\.0 MB: .*",
        ),
        ("device", 250_000, "lower --positions, --games or --plies"),
        ("auto", 400_000, "lower --positions, --games or --plies"),
    ],
)
def test_replay_that_devices_cannot_hold_goes_to_the_host(
    tmp_path, monkeypatch, where, positions, told
):
    monkeypatch.setattr(backend, "device_bytes", lambda: 16 * 10**6)
    monkeypatch.setattr(backend, "host_bytes", lambda: 32 * 10**6)
    flags = [*NIM, "--run", str(tmp_path), "--positions", str(positions)]
    flags += ["--replay-memory", where]
    if told.startswith("lower"):
        with pytest.raises(ValueError, match=told):
            train.prepare(train.parse(flags))
    else:
        assert re.match(told, train.prepare(train.parse(flags))[-1])


def test_memory_of_the_devices_is_added_up(monkeypatch):
    class Device:
        def memory_stats(self):
            return {"bytes_limit": 3}

    assert 10**8 < backend.device_bytes() < 10**14
    monkeypatch.setattr(jax, "local_devices", lambda: [Device(), Device()])
    assert backend.device_bytes() == 6
