"""Searches as they measure: the net's own priors, nothing on top."""

import jax
import numpy as np
import pytest

import envs
from jaxsearch.arena.hashed_evaluation import hash_rows
from jaxsearch.arena.noiseless_search import noiseless_search
from jaxsearch.arena.openings import random_openings
from tests.arena.agents import net_agent


# The priors at the root are the masked softmax of the net, for every seed.
def test_root_priors_are_those_of_the_net():
    agent = net_agent("connect_four")
    # Plies enough that some columns are full.
    key = jax.random.key(3)
    states = random_openings(agent.env, count=32, num_plies=18, key=key).states
    run = noiseless_search(agent.env, agent.evaluate, search="puct", num_simulations=4)
    logits, _ = agent.evaluate(agent.params, None, states)
    legal = np.asarray(states.legal_action_mask)
    assert not legal.all()
    weights = np.where(legal, np.exp(logits), 0)
    for seed in range(3):
        output = jax.jit(run)(agent.params, jax.random.key(seed), states)
        np.testing.assert_allclose(
            output.search_tree.root_prior_probs,
            weights / weights.sum(axis=1, keepdims=True),
            atol=1e-6,
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "alpha"}, "unknown search 'alpha'"),
        ({"num_simulations": 0}, "at least 1 simulation, got 0"),
        ({"temperature": -1.0}, "temperature must be 0 or more"),
        ({"search": "mctx-gumbel", "temperature": 1.0}, "takes no temperature"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    agent = net_agent("tic_tac_toe")
    settings = {"search": "puct", "num_simulations": 4} | settings
    with pytest.raises(ValueError, match=message):
        noiseless_search(agent.env, agent.evaluate, **settings)


def test_hashes_are_fixed_even_and_tell_positions_apart():
    env = envs.make("connect_four")
    states = random_openings(
        env, count=1000, num_plies=10, key=jax.random.key(0)
    ).states
    boards = jax.vmap(env.observe)(states)
    hashes = np.asarray(hash_rows(boards, 4))
    np.testing.assert_array_equal(hashes, hash_rows(boards[::-1], 4)[::-1])
    assert all(len(np.unique(column)) == 1000 for column in hashes.T)
    assert hashes.min() >= 0 and hashes.max() < 1
    # Mean and correlations of uniform numbers, to within four standard errors.
    assert (abs(hashes.mean(axis=0) - 0.5) < 4 * 0.2887 / 1000**0.5).all()
    correlations = np.corrcoef(hashes.T)[np.triu_indices(4, 1)]
    assert (abs(correlations) < 4 / 1000**0.5).all()
