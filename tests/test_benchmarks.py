"""The benchmarks run at tiny sizes and count what they say."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import (
    check,
    cost,
    envs,
    equal_depth,
    models,
    overhead,
    phases,
    search,
    self_play,
    training_study,
    tree_memory,
)
from benchmarks.measure import compile_program, measure
from benchmarks.profile import count_kernels
from benchmarks.report import Options, Report


def lines_of(main, options, file):
    """What a benchmark prints and writes."""
    code = main(options)
    return code, [json.loads(line) for line in file.read_text().splitlines()]


def test_report_prints_and_appends_lines(tmp_path, capsys):
    file = tmp_path / "new" / "lines.json"
    file.parent.mkdir()
    file.write_text('{"old": 1}\n')
    report = Report("some", Options(json=file))
    report.add(value=1.5)
    line = file.read_text().splitlines()[1]
    assert capsys.readouterr().out == line + "\n"
    result = json.loads(line)
    assert result == report.results[0]
    assert result["benchmark"] == "some" and result["value"] == 1.5
    assert {"date", "hardware", "python", "jax", "mctx"} <= result.keys()


def test_measure_times_programs_in_turn():
    order = []

    def program(x):
        jax.debug.callback(lambda: order.append("first"))
        return jnp.sin(x)

    def other(x):
        jax.debug.callback(lambda: order.append("second"))
        return jnp.cos(x)

    measured = measure({"one": program, "two": other}, (jnp.ones(4),), repeats=2)
    jax.effects_barrier()
    assert order == ["first", "second"] * 2
    assert measured["one"].seconds > 0 and measured["one"].compile_seconds > 0
    assert compile_program(jnp.sin, (jnp.ones(4),)).memory_bytes >= 16


def test_depths_are_counted_from_parents():
    # 0 - 1 - 2 - 3 and a star; the deepest at each step are 1, 2, 3.
    parents = jnp.array([[-1, 0, 1, 2], [-1, 0, 0, 0]])
    assert equal_depth.depths(parents) == (1.5, 2.0)


def test_constant_is_found_by_bisection():
    def depths_at(constant):
        return equal_depth.Depths(10 / (1 + constant), 0)

    constant = equal_depth.constant_for(2.0, depths_at)
    assert constant == pytest.approx(4, rel=0.03)


def test_illegal_actions_of_the_synthetic_game_have_no_prior():
    model = models.synthetic(3, 11, num_legal=4)
    root, mask = model.root_fn(*jax.device_put((model.params, model.states)))
    assert mask is not None
    np.testing.assert_array_equal(np.sum(~mask, axis=1), 4)
    np.testing.assert_array_equal(np.isfinite(root.prior_logits), ~mask)
    assert np.sum(np.isfinite(model.params[0]), axis=1).tolist() == [4] * 4096


def test_tic_tac_toe_has_even_priors_and_values_of_the_board():
    model = models.tic_tac_toe(2)
    params, key, states = model.arguments
    root, mask = model.root_fn(params, states)
    assert mask is not None and not np.any(mask)
    assert np.ptp(root.prior_logits) == 0
    output, _ = model.recurrent_fn(params, key, jnp.array([0, 4]), states)
    assert len({float(root.value[0]), *map(float, output.value)}) == 3


def test_nodes_of_mctx_are_counted_from_its_tree():
    model = models.synthetic(2, 7)
    # A node: visits, value, raw value, parent, action and state; an edge: child, prior
    # logit, visits, reward, discount and value.
    assert tree_memory.mctx_bytes_per_node(model, 3) == 6 * 4 + 7 * 6 * 4
    assert tree_memory.bytes_per_node(model, 3, max_children=2) < 100


def test_memory_of_a_chess_sized_node_is_a_fifteenth_of_that_in_mctx():
    figures = list(cost.node_bytes(cost.Sizes(chess_batch=2, chess_simulations=4)))
    assert len(figures) == 2
    assert all(figure["value"] <= 1 / 15 for figure in figures)


def test_kernels_are_events_on_streams_or_ends_of_operations():
    def plane(name, line, *events):
        events = [SimpleNamespace(name=event) for event in events]
        return SimpleNamespace(
            name=name, lines=[SimpleNamespace(name=line, events=events)]
        )

    host = plane("/host:CPU", "worker", "fusion.1", "end: fusion.1", "Execute")
    gpu = plane("/device:GPU:0", "Stream #14(Compute)", "fusion_1", "sort", "copy")
    names = plane("/device:GPU:0", "XLA Ops", "fusion_1", "sort")
    planes = [host, gpu, names]
    assert count_kernels(planes, on_host=False) == 3
    assert count_kernels([host], on_host=True) == 1
    assert count_kernels([names], on_host=False) is None


def test_model_alone_is_called_once_a_simulation():
    model = models.tic_tac_toe(2)
    calls = []

    def recurrent_fn(*arguments):
        jax.debug.callback(lambda: calls.append(1))
        return model.recurrent_fn(*arguments)

    program = overhead.model_program(model._replace(recurrent_fn=recurrent_fn), 5)
    total = jax.jit(program)(*model.arguments)
    jax.effects_barrier()
    assert len(calls) == 5 and total.shape == (2,)


def test_check_finds_searches_that_differ(monkeypatch, tmp_path):
    def visits(model, policy_name, num_simulations):
        del num_simulations
        counts = np.ones((len(model.states), model.num_actions))
        counts[0, 0] += policy_name == "gumbel"
        return counts

    monkeypatch.setattr(check, "root_visits", visits)
    file = tmp_path / "lines.json"
    options = check.Options(json=file, tiny=True)
    code, lines = lines_of(check.main, options, file)
    assert code == 1
    assert [line["rows_that_differ"] for line in lines] == [0, 1]
    assert [line["right"] for line in lines] == [True, False]


# The other tests are compiled to be quick to compile (see tests/conftest.py).
def test_check_passes_with_the_flags_that_users_have():
    command = [sys.executable, "-m", "benchmarks.check", "--rows", "200"]
    command += ["--simulations", "32", "--actions", "20"]
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["policy"] for line in lines] == ["puct", "gumbel"]
    assert all(line["right"] for line in lines)


def test_games_are_measured_beside_the_rival_s(tmp_path, capsys):
    file = tmp_path / "lines.json"
    options = envs.GameOptions(json=file, tiny=True, games=("tic_tac_toe",))
    code, (line,) = lines_of(envs.main, options, file)
    assert code == 0 and line["right"]
    assert line["game"] == "tic_tac_toe" and line["rival"] == "pgx tic_tac_toe"
    assert line["state_bytes"] == 32 < line["rival_state_bytes"]
    speeds = line["steps_per_second"], line["rival_steps_per_second"]
    assert line["ratio"] == pytest.approx(speeds[0] / speeds[1], abs=0.01)
    assert "tic_tac_toe" in capsys.readouterr().err


def test_game_that_plays_otherwise_on_the_device_is_not_measured(tmp_path, monkeypatch):
    def stays(program, arguments):
        compiled = compile_program(program, arguments)
        return dataclasses.replace(compiled, run=lambda states, key: states)

    monkeypatch.setattr(envs, "compile_program", stays)
    file = tmp_path / "lines.json"
    options = envs.GameOptions(json=file, tiny=True, games=("tic_tac_toe",))
    code, (line,) = lines_of(envs.main, options, file)
    assert code == 1 and not line["right"]
    assert "steps_per_second" not in line


def test_games_that_are_not_measured_are_refused():
    with pytest.raises(SystemExit, match="no game 'shogi' here: choose among"):
        envs.main(envs.GameOptions(games=("shogi",)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "options", "num_lines"),
    [
        (search.main, Options, 4),
        (cost.main, Options, 10),
        (overhead.main, overhead.Options, 4),
        (check.main, check.Options, 2),
        (phases.main, Options, 2),
        (envs.main, envs.GameOptions, len(envs.WORK)),
        (self_play.main, self_play.Options, 1),
    ],
    ids=["search", "cost", "overhead", "check", "phases", "envs", "self_play"],
)
def test_benchmark_runs_at_tiny_sizes(main, options, num_lines, tmp_path, capsys):
    file = tmp_path / "lines.json"
    code, lines = lines_of(main, options(json=file, tiny=True), file)
    assert not code
    assert len(lines) == num_lines
    assert capsys.readouterr().out == file.read_text()
    for line in lines:
        assert all(math.isfinite(x) for x in line.values() if isinstance(x, float))


@pytest.mark.slow
def test_training_study_measures_what_each_variant_came_to(tmp_path):
    file, runs = tmp_path / "lines.json", tmp_path / "runs"
    options = training_study.Options(
        json=file, tiny=True, runs=runs, variants=("preset", "surprise")
    )
    _, lines = lines_of(training_study.main, options, file)
    assert [line["variant"] for line in lines] == ["preset", "surprise"]
    assert all(line["positions"] == 32 for line in lines)
    assert all(0 < line[name] < 1 for line in lines for name in ("raw", "with_128"))
    assert '"surprise_share": 0.5' in (runs / "surprise/config.json").read_text()


def test_variant_that_is_none_is_refused():
    with pytest.raises(SystemExit, match="no variant larger: take some of preset"):
        training_study.main(training_study.Options(variants=("larger",)))


# Case R23: a search takes the same time in a tree with room to spare, so few rows that
# the trees stay in the cache; nothing is copied or looked through.
@pytest.mark.slow
def test_simulations_take_the_same_time_in_larger_trees():
    figures = list(cost.capacity(cost.Sizes(), 16, repeats=15))
    assert all(figure["value"] < 1.2 for figure in figures)


# Case R26: memory does not creep up.
@pytest.mark.slow
def test_memory_stays_the_same_over_many_searches():
    figures = list(cost.creep(cost.Sizes()))
    assert figures
    assert all(figure["value"] < 1.02 for figure in figures)
