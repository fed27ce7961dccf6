"""Choosing the move to play from the weights that a search gives the actions."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

NO_ACTION = -1
"""The action of a row whose position is finished: there is no move to choose."""


def sample_action(
    key: jax.Array, action_weights: jax.Array, temperature: ArrayLike
) -> jax.Array:
    """Samples actions [B] int32 in proportion to weights ** (1 / temperature).

    Computed in logarithms, so every temperature from 0 to infinity is safe: 0 takes the
    highest weight (the key decides between equals), infinity chooses evenly among the
    actions with a weight. An action of weight 0 is never chosen; a row without any
    weight gives `NO_ACTION`. The key is consumed.

    Args:
      action_weights: [B, A], not negative; they need not sum to 1.
      temperature: scalar, or one for each row [B].
    """
    logits = action_log_probs(action_weights, temperature)
    action = jax.random.categorical(key, logits).astype(jnp.int32)
    return jnp.where(jnp.any(action_weights > 0, axis=-1), action, NO_ACTION)


def action_log_probs(action_weights: jax.Array, temperature: ArrayLike) -> jax.Array:
    """Log-probabilities [B, A] of weights ** (1 / temperature), -inf for weight 0."""
    weighted = action_weights > 0
    logits = jnp.log(jnp.where(weighted, action_weights, 1))
    logits = jnp.where(weighted, logits, -jnp.inf)
    # From the maximum: 0 / T is 0 for every T from the smallest number to infinity.
    below = logits - jnp.max(logits, axis=-1, keepdims=True)
    tiny = jnp.finfo(logits.dtype).tiny
    temperature = jnp.broadcast_to(temperature, logits.shape[:1])[:, None]
    scaled = below / jnp.maximum(temperature, tiny)
    return jax.nn.log_softmax(jnp.where(weighted, scaled, -jnp.inf), axis=-1)
