"""The searches of self-play do what the settings of a run say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch import two_player_model
from jaxsearch.learn import searches, self_play
from jaxsearch.learn.settings import Settings

ENV = envs.make("tic_tac_toe")
GAMES = 4


def evaluate(params, key, states):
    del params, key
    logits = jnp.arange(9.0)[None, :] * jnp.ones((len(states.current_player), 1))
    return logits / 4, jnp.zeros(len(logits))


def weights_of(settings, *, fast=False, seed=0):
    found = searches.make_searches(settings)
    search = found.fast if fast else found.full
    states = jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), GAMES))
    keys = jax.random.split(jax.random.key(seed), GAMES)
    output = jax.jit(
        lambda keys, states: self_play.search_positions(
            two_player_model(ENV, evaluate), search, None, keys, states
        )
    )(keys, states)
    return np.asarray(output.action_weights), output


def test_full_search_is_noisy_and_fast_search_is_not():
    settings = Settings(search="puct", simulations=16, fast_simulations=8)
    full, _ = weights_of(settings)
    fast, output = weights_of(settings, fast=True)
    assert len(np.unique(full, axis=0)) > 1
    assert len(np.unique(fast, axis=0)) == 1
    np.testing.assert_array_equal(output.search_tree.simulations, 8)


def test_there_is_no_fast_search_unless_it_is_asked_for():
    assert searches.make_searches(Settings()).fast is None


@pytest.mark.parametrize("solve", [True, False])
def test_proofs_are_kept_if_asked_for(solve):
    _, output = weights_of(Settings(simulations=4, solve=solve))
    assert (output.search_tree.proofs is not None) == solve


def test_gumbel_visits_no_more_moves_than_are_considered():
    _, output = weights_of(Settings(simulations=12, considered_actions=2))
    visited = np.asarray(output.search_tree.summary().visit_counts) > 0
    np.testing.assert_array_equal(visited.sum(axis=1), 2)


@pytest.mark.parametrize("search", ["gumbel", "mctx-gumbel"])
def test_gumbel_without_temperature_leaves_moves_to_no_chance(search):
    chosen = {}
    for temperature in (0.0, 1.0):
        settings = Settings(search=search, simulations=16, temperature=temperature)
        runs = [weights_of(settings, seed=seed)[1].action for seed in range(8)]
        chosen[temperature] = len(np.unique(np.concatenate(runs)))
    assert chosen[0.0] == 1
    assert chosen[1.0] > 2


def test_trees_that_are_kept_have_room_for_another_search():
    _, output = weights_of(Settings(simulations=6, reuse_tree=True))
    assert output.search_tree.capacity == 13


# From 1 to 0.2: half of the way in 10 plies, three quarters in 20.
def test_temperature_falls_by_halves_to_its_end():
    settings = Settings(search="puct", temperature_half_life=10.0, temperature_end=0.2)
    plies = jnp.array([0, 10, 20])
    found = searches.temperature(settings, plies)
    np.testing.assert_allclose(found, [1.0, 0.6, 0.4], rtol=1e-6)
    assert searches.temperature(Settings(temperature=0.7), plies) == 0.7


def test_nobody_gives_up_unless_it_is_asked_for():
    assert searches.make_resignation(Settings()) is None
    found = searches.make_resignation(Settings(resign_value=0.8, resign_plies=2))
    assert (found.value, found.plies, found.play_on_share) == (0.8, 2, 0.1)
