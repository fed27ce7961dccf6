# pyright: reportCallIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""A two-player zero-sum game as the model that a search works on.

All handling of signs lives here: values and rewards are from the view of the player to
move, the discount is -1 where the opponent moves next, 1 where the same player does,
and 0 on the edge into a finished position.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

EvaluateFn = Callable[[Any, jax.Array, Any], tuple[jax.Array, jax.Array]]
"""`(params, key, states [B]) -> (prior_logits [B, A], value [B])`.

The value is from the view of the player to move, in [-1, 1]. Logits of illegal actions
may be anything. The key is for evaluators that play at random; a net ignores it.
"""


class TwoPlayerModel(NamedTuple):
    """`root_fn(params, key, states)` and mctx's `recurrent_fn`, for states [B]."""

    root_fn: Callable[[Any, jax.Array, Any], mctx.RootFnOutput]
    recurrent_fn: mctx.RecurrentFn


def two_player_model(env: Any, evaluate: EvaluateFn) -> TwoPlayerModel:
    """The model of a game, with the batched states as embedding.

    A search also needs the mask of the roots: `invalid_actions=
    ~states.legal_action_mask`. A game stopped by a move cap (`truncated`) ends there
    with the rewards that the game gave.

    Args:
      env: a game of two players whose rewards sum to 0, see docs/add_a_game.md.
      evaluate: the batched evaluation of states.

    Raises:
      ValueError: the game is not one of two players.
    """
    if env.num_players != 2:
        raise ValueError(
            f"two_player_model needs a game of 2 players, {env.id} has "
            f"{env.num_players}"
        )

    def masked_evaluation(params, key, states):
        prior_logits, value = evaluate(params, key, states)
        # The lowest number and not -inf: mctx would make NaN of a row of -inf.
        lowest = jnp.finfo(prior_logits.dtype).min
        return jnp.where(states.legal_action_mask, prior_logits, lowest), value

    def root_fn(params, key, states):
        prior_logits, value = masked_evaluation(params, key, states)
        return mctx.RootFnOutput(
            prior_logits=prior_logits, value=value, embedding=states
        )

    def recurrent_fn(params, key, action, states):
        mover = states.current_player
        states = jax.vmap(env.step)(states, action)
        prior_logits, value = masked_evaluation(params, key, states)
        reward = jax.vmap(lambda rewards, player: rewards[player])(
            states.rewards, mover
        )
        finished = states.terminated | states.truncated
        same_player = states.current_player == mover
        discount = jnp.where(finished, 0, jnp.where(same_player, 1, -1))
        output = mctx.RecurrentFnOutput(
            reward=reward.astype(value.dtype),
            discount=discount.astype(value.dtype),
            prior_logits=prior_logits,
            value=value,
        )
        return output, states

    return TwoPlayerModel(root_fn, recurrent_fn)
