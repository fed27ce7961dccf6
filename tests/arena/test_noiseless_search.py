"""Searches as they measure: the net's own priors, nothing on top."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.hashed_evaluation import hash_rows
from jaxsearch.arena.noiseless_search import noiseless_search
from jaxsearch.arena.openings import random_openings
from jaxsearch.search.policy_names import policy_names
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


# Zero logits and values tie everywhere. The first of equal actions is followed by
# puct, a random one by mctx-puct.
@pytest.mark.parametrize(("search", "depends"), [("puct", False), ("mctx-puct", True)])
def test_visits_depend_on_the_key_where_ties_are_broken_at_random(search, depends):
    env = envs.make("tic_tac_toe")
    states = jax.tree.map(lambda leaf: leaf[None], env.init())
    run = jax.jit(
        noiseless_search(
            env,
            lambda params, key, states: (jnp.zeros((1, 9)), jnp.zeros(1)),
            search=search,
            num_simulations=12,
        )
    )
    weights = {
        run(None, jax.random.key(seed), states).action_weights.tobytes()
        for seed in range(20)
    }
    assert (len(weights) > 1) == depends


@pytest.mark.parametrize("search", policy_names())
def test_move_without_ties_is_the_same_for_every_key(search):
    agent = net_agent("connect_four")
    key = jax.random.key(4)
    states = random_openings(agent.env, count=32, num_plies=6, key=key).states
    run = jax.jit(
        noiseless_search(agent.env, agent.evaluate, search=search, num_simulations=16)
    )
    outputs = [run(agent.params, jax.random.key(seed), states) for seed in range(20)]
    weights = np.sort(outputs[0].action_weights, axis=1)
    untied = weights[:, -1] > weights[:, -2]
    assert untied.sum() > 16
    for output in outputs:
        np.testing.assert_array_equal(output.action[untied], outputs[0].action[untied])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "alpha"}, "unknown search 'alpha'"),
        ({"num_simulations": 0}, "at least 1 simulation, got 0"),
        ({"temperature": -1.0}, "temperature must be 0 or more"),
        ({"search": "mctx-puct", "solve": True}, "solve is for puct and gumbel"),
        ({"search": "gumbel", "temperature": 1.0}, "takes no temperature"),
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
