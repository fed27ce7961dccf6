"""Evaluation of a position by one game of random moves."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.search.two_player import EvaluateFn
from jaxsearch.vector import rollout


def playout_evaluate(env: Any) -> EvaluateFn:
    """An evaluation by uniform priors and the result of one random game.

    All rows play at once, until the longest game ends. The value is what the player to
    move gets in the end: +1, 0 or -1. The key is consumed; there are no parameters.
    """

    def evaluate(params, key, states):
        del params
        mover = states.current_player
        prior_logits = jnp.zeros_like(states.legal_action_mask, jnp.float32)
        returns = rollout(env, states, key).returns
        value = jax.vmap(lambda gains, player: gains[player])(returns, mover)
        return prior_logits, value

    return evaluate
