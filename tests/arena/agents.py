"""Agents and scripted players for the tests of the arena."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import envs
import nets
from jaxsearch.arena.players import Player


@dataclass(frozen=True)
class NetAgent:
    env: Any
    params: Any
    evaluate: Any


def net_agent(game, seed=0):
    """An untrained net whose priors differ from action to action."""
    env = envs.make(game)
    net = nets.make(
        "mlp", env.observation_shape, env.num_actions, width=16, rngs=nnx.Rngs(seed)
    )
    graphdef, params = nnx.split(net)
    params = jax.tree.map(lambda x: 3 * x, params)

    def evaluate(params, key, states):
        del key
        return nnx.merge(graphdef, params)(jax.vmap(env.observe)(states))

    return NetAgent(env, params, evaluate)


def scripted_player(ranks):
    """Plays the legal action of highest rank."""

    def choose(params, key, states):
        del key
        return jnp.argmax(
            jnp.where(states.legal_action_mask, params[None, :], -jnp.inf), axis=-1
        ).astype(jnp.int32)

    return Player(name="scripted", params=np.asarray(ranks, np.float32), choose=choose)
