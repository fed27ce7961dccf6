"""Checkpoints: everything comes back, and damage is survived."""

import json
import multiprocessing
import random
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxsearch.learn import checkpoint
from jaxsearch.learn.checkpoint import Checkpoints
from jaxsearch.learn.files import write_json
from jaxsearch.learn.run_folder import RunFolder, UnusableRunError


def example_state(step):
    params = {"a": jnp.arange(6.0).reshape(2, 3) + step, "b": {0: jnp.ones(3)}}
    optimizer = optax.adam(1e-2)
    opt_state = optimizer.init(params)
    for number in range(10):
        gradients = jax.tree.map(lambda x: jnp.sin(x + number), params)  # noqa: B023
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        params = optax.apply_updates(params, updates)
    return {
        "params": params,
        "opt_state": opt_state,
        "key": jax.random.key(step),
        "mask": jnp.array([True, False]),
        "games": jnp.int32(100_000 + step),
    }


def assert_equal(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for x, y in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert x.dtype == y.dtype
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y)


def save(folder, *steps):
    with Checkpoints(folder) as checkpoints:
        for step in steps:
            checkpoints.save(
                step, agent={"w": jnp.full(3, step)}, state=example_state(step)
            )
        return checkpoints.steps


# Moments, count and counters are there, so the next step is the same.
def test_state_comes_back_bit_for_bit_and_the_next_step_is_the_same(tmp_path):
    save(tmp_path, 7)
    with Checkpoints(tmp_path) as checkpoints:
        step, parts, damaged = checkpoints.load_newest(state=example_state(0))
    assert (step, damaged) == (7, [])
    before, after = example_state(7), parts["state"]
    assert_equal(after, before)
    optimizer = optax.adam(1e-2)
    assert_equal(
        optimizer.update(before["params"], after["opt_state"]),
        optimizer.update(before["params"], before["opt_state"]),
    )


def test_last_two_checkpoints_are_kept(tmp_path):
    assert save(tmp_path, 1, 2, 3) == [2, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]


def test_more_are_kept_where_that_is_asked_for(tmp_path):
    with Checkpoints(tmp_path, keep_last=1, keep_every=4) as checkpoints:
        for step in (0, 2, 4, 6, 8, 10):
            checkpoints.save(step, agent={"w": jnp.full(3, step)})
        assert checkpoints.steps == [0, 4, 8, 10]


# What follows a save may change what was saved, before it is on the disk.
def test_arrays_may_be_donated_while_they_are_saved(tmp_path):
    grow = jax.jit(lambda x: x + 1, donate_argnums=0)
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    array = jax.device_put(jnp.zeros((800, 1000)), spread)
    with Checkpoints(tmp_path) as checkpoints:
        for step in range(6):
            checkpoints.save(step, agent={"w": array})
            for _ in range(4):
                array = grow(array)
            if step:
                checkpoints.wait()
                example = {"w": jnp.zeros((800, 1000))}
                saved = checkpoints.load_newest(agent=example)[1]["agent"]["w"]
                np.testing.assert_array_equal(saved, 4 * step)


def test_checkpoint_goes_to_other_devices_than_it_came_from(tmp_path):
    def spread(count, value):
        devices = jax.devices()[:count]
        mesh = jax.make_mesh(
            (count,),
            ("x",),
            axis_types=(jax.sharding.AxisType.Auto,),
            devices=devices,
        )
        by_row = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
        keys = jax.random.split(jax.random.key(value), 16)
        return jax.device_put({"x": jnp.arange(16.0) + value, "key": keys}, by_row)

    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(3, state=spread(8, 7))
        for count in (1, 2, 4):
            state = checkpoints.load_newest(state=spread(count, 0))[1]["state"]
            assert_equal(state, spread(8, 7))
            assert len(state["x"].sharding.device_set) == count


def test_notes_of_the_host_come_back(tmp_path):
    notes = {"ladder": [0.5, 12], "promoted": 3}
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, notes=notes, agent={"w": jnp.zeros(3)})
        notes["promoted"] = 4  # too late
        parts = checkpoints.load_newest(agent={"w": jnp.zeros(3)})[1]
    assert parts["notes"] == {"ladder": [0.5, 12], "promoted": 3}


def test_agent_is_read_whatever_became_of_the_rest(tmp_path):
    save(tmp_path, 1, 2)
    agent = {"w": jnp.zeros(3, jnp.int32)}
    for path in files_of(tmp_path / "2" / "state"):
        damage(path, "cut")
    for _ in range(2):
        with Checkpoints(tmp_path) as checkpoints:
            step, parts, damaged = checkpoints.load_newest(agent=agent)
        assert (step, damaged) == (2, [])
        np.testing.assert_array_equal(parts["agent"]["w"], 2)
        shutil.rmtree(tmp_path / "2" / "state", ignore_errors=True)
    assert load(tmp_path)[0] == 1


@pytest.mark.parametrize(
    ("found", "remedy"),
    [(99, "update jaxsearch"), (1, "read it with the version that wrote it, or start")],
)
def test_checkpoint_of_another_format_is_refused(tmp_path, monkeypatch, found, remedy):
    monkeypatch.setattr(checkpoint, "FORMAT", found)
    save(tmp_path, 1)
    monkeypatch.undo()
    with pytest.raises(UnusableRunError) as error:
        load(tmp_path)
    assert str(error.value).startswith(
        f"checkpoint {tmp_path / '1'} has format {found} and this version of jaxsearch "
        f"reads 2: {remedy}"
    )


# As the first version wrote it, without a word of its format.
def test_checkpoint_of_the_first_format_is_refused(tmp_path):
    save(tmp_path, 1)
    (tmp_path / "1" / "checkpoint.json").unlink()
    checksums = tmp_path / "1" / "checksums.json"
    stored = json.loads(checksums.read_text())
    del stored["checkpoint.json"]
    write_json(checksums, stored)
    with pytest.raises(UnusableRunError, match="has format 1 and this version"):
        load(tmp_path)


def test_save_that_fails_is_told_by_the_next_or_by_the_end(tmp_path, monkeypatch):
    def refuse(path, value):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "write_json", refuse)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, agent={"w": jnp.zeros(3)})
    with pytest.raises(OSError, match=r"checkpoint 1: .* No space left"):
        checkpoints.save(2, agent={"w": jnp.zeros(3)})
    with (
        pytest.raises(OSError, match=r"checkpoint 3: .* No space left"),
        Checkpoints(tmp_path) as checkpoints,
    ):
        checkpoints.save(3, agent={"w": jnp.zeros(3)})


def files_of(folder):
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def damage(path, how):
    if how == "cut":
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] or b"not empty any more")
    else:
        path.unlink()


def load(folder):
    agent = {"w": jnp.zeros(3, jnp.int32)}
    with Checkpoints(folder) as checkpoints:
        return checkpoints.load_newest(agent=agent, state=example_state(0))


# Whatever file of the newest checkpoint is cut short or lost.
@pytest.mark.parametrize("how", ["cut", "deleted"])
def test_damage_to_any_file_of_the_newest_falls_back_and_is_named(tmp_path, capfd, how):
    save(tmp_path, 1, 2)
    newest = tmp_path / "2"
    for path in files_of(newest):
        if path.name == "checksums.json":
            continue
        whole = path.read_bytes()
        damage(path, how)
        step, parts, lines = load(tmp_path)
        assert step == 1
        assert_equal(parts["state"], example_state(1))
        assert len(lines) == 1
        assert str(newest) in lines[0]
        assert str(path.relative_to(newest)) in lines[0]
        path.write_bytes(whole)
    assert load(tmp_path)[0] == 2
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


# As a crash between a checkpoint and its checksums leaves it, the rest damaged or not.
@pytest.mark.parametrize("text", [None, "", "{}", "[]", "12", '{"a"'])
@pytest.mark.parametrize("rest", ["whole", "cut"])
def test_checkpoint_without_whole_checksums_is_not_read(tmp_path, capfd, text, rest):
    save(tmp_path, 1, 2)
    checksums = tmp_path / "2" / "checksums.json"
    if rest == "cut":
        for path in files_of(tmp_path / "2" / "state"):
            damage(path, "cut")
    damage(checksums, "deleted")
    if text is not None:
        checksums.write_text(text)
    step, parts, (line,) = load(tmp_path)
    assert step == 1
    assert_equal(parts["state"], example_state(1))
    assert f"checksums.json is {'missing' if text is None else 'damaged'}" in line
    assert "using the one before it, 1: nothing is to be done" in line
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_checkpoint_of_another_structure_is_told_without_words_of_orbax(tmp_path):
    save(tmp_path, 1)
    with (
        Checkpoints(tmp_path) as checkpoints,
        pytest.raises(UnusableRunError) as error,
    ):
        checkpoints.load_newest(agent={"other": jnp.zeros(4)})
    assert str(error.value) == (
        f"checkpoint {tmp_path / '1'} cannot be read: it is of another net or version; "
        "no older one is left: bring back the files, or start another run"
    )


def test_saving_goes_on_below_a_damaged_checkpoint_and_over_it(tmp_path):
    save(tmp_path, 1, 4)
    damage(tmp_path / "4" / "agent" / "_METADATA", "cut")
    agent = {"w": jnp.zeros(3, jnp.int32)}
    with Checkpoints(tmp_path) as checkpoints:
        assert checkpoints.steps == [1, 4]
        assert checkpoints.load_newest(agent=agent)[0] == 1
        assert checkpoints.steps == [1]
        checkpoints.save(2, agent={"w": jnp.full(3, 20)})
        assert 2 in checkpoints.steps
    with Checkpoints(tmp_path) as checkpoints:
        step, parts, damaged = checkpoints.load_newest(agent=agent)
        assert (step, len(damaged)) == (2, 1)
        np.testing.assert_array_equal(parts["agent"]["w"], 20)
        for step in (3, 4, 5):
            checkpoints.save(step, agent={"w": jnp.full(3, 10 * step)})
        assert checkpoints.steps == [4, 5]
    with Checkpoints(tmp_path) as checkpoints:
        step, parts, damaged = checkpoints.load_newest(agent=agent)
    assert (step, damaged) == (5, [])
    np.testing.assert_array_equal(parts["agent"]["w"], 50)


def test_nothing_readable_is_one_clear_error(tmp_path):
    with pytest.raises(UnusableRunError, match="no checkpoint in"):
        Checkpoints(tmp_path / "none")
    with (
        Checkpoints(tmp_path) as checkpoints,
        pytest.raises(UnusableRunError, match="no checkpoint in"),
    ):
        checkpoints.load_newest(state=example_state(0))
    save(tmp_path, 1)
    for path in files_of(tmp_path / "1" / "state"):
        path.write_bytes(path.read_bytes()[:10])
    with (
        Checkpoints(tmp_path) as checkpoints,
        pytest.raises(UnusableRunError, match="cannot be read"),
    ):
        checkpoints.load_newest(state=example_state(0))


def save_without_end(folder, saved):
    jax.config.update("jax_platforms", "cpu")
    with Checkpoints(folder) as checkpoints:
        step = max(checkpoints.steps, default=0)
        while True:
            step += 1
            checkpoints.save(step, agent={"w": jnp.full(1000, step)})
            checkpoints.wait()
            saved.value = step


# Each kill comes in the middle of a save, or in the moment after it.
def test_kills_while_saving_cost_no_checkpoint(tmp_path):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    choice, in_the_middle = random.Random(49), 0
    saved = processes.Value("i", 0, lock=False)
    for _ in range(10):
        before = saved.value
        process = processes.Process(target=save_without_end, args=(tmp_path, saved))
        process.start()
        while saved.value == before:
            assert process.is_alive()
            process.join(0.005)
        process.join(choice.uniform(0, 0.2))
        process.kill()
        process.join()
        in_the_middle += any(not path.name.isdigit() for path in tmp_path.iterdir())
        with Checkpoints(tmp_path) as checkpoints:
            example = {"w": jnp.zeros(1000, jnp.int32)}
            step, parts, damaged = checkpoints.load_newest(agent=example)
        # The kill may come before the note of a step, or before its checksums.
        assert step - saved.value in (0, 1)
        assert all("checksums.json is missing" in line for line in damaged)
        np.testing.assert_array_equal(parts["agent"]["w"], step)
    assert in_the_middle >= 2


def test_metrics_survive_a_line_cut_short_and_are_cut_back(tmp_path):
    folder = RunFolder(tmp_path)
    for iteration in (1, 2, 3):
        folder.append_metrics({"iteration": iteration})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"iterat')
    assert [m["iteration"] for m in folder.read_metrics()] == [1, 2, 3]
    folder.cut_metrics(2)
    folder.append_metrics({"iteration": 3})
    assert [m["iteration"] for m in folder.read_metrics()] == [1, 2, 3]


def test_failed_write_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "config.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert path.read_text() == '{\n  "a": 1\n}\n'
