"""The programs of a run: the same games on any number of devices, with all options."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
from jaxsearch import backend
from jaxsearch.learn.programs import make_programs

TINY = {
    "devices": 1,
    "env": "tic_tac_toe",
    "net": "mlp",
    "width": 16,
    "depth": 1,
    "games": 8,
    "plies": 4,
    "simulations": 8,
    "positions": 256,
    "batch": 16,
    "updates": 2,
}
ALL = {
    "search": "puct",
    "fast_simulations": 4,
    "full_share": 0.5,
    "temperature_half_life": 4.0,
    "root_temperature": 1.2,
    "forced_playouts": 2.0,
    "resign_value": 0.6,
    "resign_plies": 1,
    "play_on_share": 0.5,
    "reuse_tree": True,
    "bootstrap_plies": 3,
    "surprise_share": 0.5,
    "most_of_game": 2,
    "first_positions": 64,
    "reanalyse_share": 0.5,
    "optimizer": "sgd",
    "learning_rate": 1e-2,
    "value_head": "wdl",
}


@functools.cache
def programs_of(host_replay=False, **settings):
    config = train.Config(**TINY | settings)
    config.check()
    agent = train.make_agent(config)
    parts = config, agent.env, agent.net, agent.evaluate
    return agent, make_programs(*parts, host_replay=host_replay)


class Run:
    """A run of the programs, as `Trainer` makes it, step by step."""

    def __init__(self, **settings):
        agent, self.programs = programs_of(**settings)
        self.state = self.programs.start(agent.params)
        self.replay = self.programs.start_replay(agent.params)
        self.average = jax.tree.map(jnp.copy, self.state.params)
        self.losses = []

    def play(self, num_iterations=1):
        for _ in range(num_iterations):
            self.state, plies, _ = self.programs.play(self.average, self.state)
            plies = jax.device_put(plies, self.programs.plies_sharding)
            self.replay, self.drawable = self.programs.insert(
                self.replay, plies, np.int32(256)
            )

    def drawn(self):
        updates = np.int32(self.state.updates)
        drawn = self.programs.draw(self.replay, self.drawable, updates)
        return jax.device_put(drawn, self.programs.drawn_sharding)

    def batch(self):
        return jax.device_get(
            self.programs.batch(self.average, self.state, self.drawn())
        )

    def learn(self, scale=1.0):
        step = self.average, self.state, self.drawn(), np.float32(scale)
        self.average, self.state, losses = self.programs.learn(*step)
        self.losses.append([float(losses.policy), float(losses.value)])
        return losses


def run(num_iterations, **settings):
    """The last state, replay and averages, and the losses of every learning step."""
    made = Run(**settings)
    for _ in range(num_iterations):
        made.play()
        if int(made.drawable.count) >= 16:
            made.learn()
            made.learn()
    kept = jax.device_get((made.state.games, made.replay, made.average))
    return kept, np.array(made.losses)


def assert_same(one, other):
    for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        if x.dtype.kind == "f":
            np.testing.assert_allclose(y, x, atol=1e-3)
        else:
            np.testing.assert_array_equal(y, x)


# The rounding of sums over devices differs, and nothing else.
@pytest.mark.parametrize("settings", [{}, ALL], ids=["defaults", "all options"])
def test_run_is_the_same_on_one_device_and_on_eight(settings):
    (*one, average), losses = run(5, **settings)
    (*eight, of_eight), losses_of_eight = run(5, **settings, devices=8)
    assert len(losses) >= 4 and np.isfinite(losses).all()
    np.testing.assert_allclose(losses_of_eight, losses, rtol=1e-3)
    for x, y in zip(*map(jax.tree.leaves, (average, of_eight)), strict=True):
        np.testing.assert_allclose(y, x, atol=1e-4)
    assert_same(one, eight)


# On one device bit for bit; on four the host's device is the first of them.
@pytest.mark.parametrize("devices", [1, 4])
def test_run_is_the_same_with_the_replay_on_the_host(devices):
    kept, losses = run(5, devices=devices)
    on_host, losses_on_host = run(5, devices=devices, host_replay=True)
    np.testing.assert_array_equal(losses_on_host, losses)
    for x, y in zip(*map(jax.tree.leaves, (kept, on_host)), strict=True):
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(y, x)
    replay = Run(devices=devices, host_replay=True).replay
    places = {place for leaf in jax.tree.leaves(replay) for place in leaf.devices()}
    assert places == {backend.host_device()}


# The learning net knows nothing yet, so that how far it is from its targets tells
# how sure the net was that made them.
def test_positions_searched_again_have_the_targets_of_the_newest_net():
    made = Run(reanalyse_share=1.0, opening_plies=0)
    made.play(4)
    same, state = made.average, jax.tree.map(jnp.copy, made.state)
    made.average = jax.tree.map(jnp.copy, same)
    made.average["policy_out"]["bias"] = -6.0 * jnp.arange(9.0)
    of_sure = made.learn(scale=0)
    made.average, made.state = same, state
    of_same = made.learn(scale=0)
    assert float(of_sure.policy_divergence) > float(of_same.policy_divergence) + 0.5


# All results are NaN from the third of five learning steps on.
def test_batch_of_the_first_step_that_is_not_finite_is_drawn_again():
    made = Run(reanalyse_share=0.5)
    made.play(4)
    for _ in range(2):
        made.learn()
        assert made.state.finite
    found = made.drawable.found
    spoiled = dataclasses.replace(found, value=jnp.full_like(found.value, jnp.nan))
    made.drawable = dataclasses.replace(made.drawable, found=spoiled)
    expected, average = made.batch(), jax.device_get(made.average)
    for _ in range(3):
        made.learn()
        assert not made.state.finite
    assert int(made.state.updates) == 2
    batch = made.batch()
    assert np.isnan(batch.outcome).all() and np.isfinite(batch.policy_target).all()
    kept, wanted = (batch, made.average), (expected, average)
    for x, y in zip(*map(jax.tree.leaves, (kept, wanted)), strict=True):
        np.testing.assert_array_equal(x, y)
