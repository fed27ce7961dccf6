"""The programs of a run: the same games on any number of devices, with all options."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import train
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
def programs_of(**settings):
    config = train.Config(**TINY | settings)
    config.check()
    agent = train.make_agent(config)
    return agent, make_programs(config, agent.env, agent.net, agent.evaluate)


def run(num_iterations, **settings):
    """The last state and averages, and the losses of every learning step."""
    agent, programs = programs_of(**settings)
    state, losses = programs.start(agent.params), []
    average = jax.tree.map(jnp.copy, state.params)
    for _ in range(num_iterations):
        state, drawable, _ = programs.play(average, state, jnp.int32(256))
        if int(drawable.count) >= 16:
            for _ in range(2):
                step = programs.learn(average, state, drawable, jnp.float32(1))
                average, state, loss = step
                losses.append([float(loss.policy), float(loss.value)])
    return jax.device_get((state, average)), np.array(losses)


# The rounding of sums over devices differs, and nothing else.
@pytest.mark.parametrize("settings", [{}, ALL], ids=["defaults", "all options"])
def test_run_is_the_same_on_one_device_and_on_eight(settings):
    (one, average), losses = run(5, **settings)
    (eight, of_eight), losses_of_eight = run(5, **settings, devices=8)
    assert len(losses) >= 4 and np.isfinite(losses).all()
    np.testing.assert_allclose(losses_of_eight, losses, rtol=1e-3)
    for x, y in zip(*map(jax.tree.leaves, (average, of_eight)), strict=True):
        np.testing.assert_allclose(y, x, atol=1e-4)
    for name in ("games", "replay"):
        pairs = zip(
            *(jax.tree.leaves(getattr(state, name)) for state in (one, eight)),
            strict=True,
        )
        for x, y in pairs:
            if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
                x, y = jax.random.key_data(x), jax.random.key_data(y)
            if x.dtype.kind == "f":
                np.testing.assert_allclose(y, x, atol=1e-3)
            else:
                np.testing.assert_array_equal(y, x)


# The learning net knows nothing yet, so that how far it is from its targets tells
# how sure the net was that made them.
def test_positions_searched_again_have_the_targets_of_the_newest_net():
    agent, programs = programs_of(reanalyse_share=1.0)
    state = programs.start(agent.params)
    average = jax.tree.map(jnp.copy, state.params)
    for _ in range(4):
        state, drawable, _ = programs.play(average, state, jnp.int32(256))
    sure = jax.tree.map(jnp.copy, average)
    sure["policy_out"]["bias"] = -6.0 * jnp.arange(9.0)
    copy = jax.tree.map(jnp.copy, state)
    *_, of_sure = programs.learn(sure, copy, drawable, jnp.float32(0))
    *_, of_same = programs.learn(average, state, drawable, jnp.float32(0))
    assert float(of_sure.policy_divergence) > float(of_same.policy_divergence) + 0.5


# All results are NaN from the third of five learning steps on.
def test_batch_of_the_first_step_that_is_not_finite_is_drawn_again():
    agent, programs = programs_of(reanalyse_share=0.5)
    state = programs.start(agent.params)
    average = jax.tree.map(jnp.copy, state.params)
    for _ in range(4):
        state, drawable, _ = programs.play(average, state, jnp.int32(256))
    found = drawable.found
    nothing = dataclasses.replace(found, value=jnp.full_like(found.value, jnp.nan))
    spoiled = dataclasses.replace(drawable, found=nothing)
    for number in range(5):
        given = drawable if number < 2 else spoiled
        if number == 2:
            expected = jax.device_get(programs.next_batch(average, state, given))
            before = jax.device_get(average)
        average, state, _ = programs.learn(average, state, given, jnp.float32(1))
        assert bool(state.finite) == (number < 2)
    assert int(state.updates) == 2
    batch = jax.device_get(programs.next_batch(average, state, spoiled))
    assert np.isnan(batch.outcome).all() and np.isfinite(batch.policy_target).all()
    kept, wanted = (
        jax.tree.leaves((batch, average)),
        jax.tree.leaves((expected, before)),
    )
    for x, y in zip(kept, wanted, strict=True):
        np.testing.assert_array_equal(x, y)
