"""Evaluation of a position by one game of random moves."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.search.two_player import EvaluateFn
from jaxsearch.vector import random_actions


def playout_evaluate(env: Any) -> EvaluateFn:
    """An evaluation by uniform priors and the result of one random game.

    All rows play at once, until the longest game ends. The value is what the player to
    move gets in the end: +1, 0 or -1. The key is consumed; there are no parameters.
    """

    def evaluate(params, key, states):
        del params
        mover = states.current_player
        prior_logits = jnp.zeros_like(states.legal_action_mask, jnp.float32)

        def unfinished(carry):
            _, states, _ = carry
            return jnp.any(~(states.terminated | states.truncated))

        def play(carry):
            ply, states, value = carry
            actions = random_actions(jax.random.fold_in(key, ply), states)
            states = jax.vmap(env.step)(states, actions)
            gain = jax.vmap(lambda rewards, player: rewards[player])(
                states.rewards, mover
            )
            return ply + 1, states, value + gain

        start = (jnp.int32(0), states, jnp.zeros_like(mover, jnp.float32))
        _, _, value = jax.lax.while_loop(unfinished, play, start)
        return prior_logits, value

    return evaluate
