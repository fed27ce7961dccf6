"""Choosing the move to play from the weights that a search gives the actions."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxsearch.search.arguments import LARGEST, check_numbers

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


def lcb_action(
    visit_counts: jax.Array,
    qvalues: jax.Array,
    stdevs: jax.Array,
    *,
    z: ArrayLike = 5.0,
    min_visit_share: ArrayLike = 0.1,
) -> jax.Array:
    """The actions [B] int32 whose mean return is the highest with confidence.

    That is the highest lower confidence bound Q - z * stdev / sqrt(N) among the actions
    with enough visits; of equals the more visited, then the lowest action. A row
    without visits gives `NO_ACTION`.

    Source: KataGo's choice of a move to play, with its `lcbStdevs` as default of z.

    Args:
      visit_counts: [B, A] int, N.
      qvalues: [B, A] float, Q, the view of the player to move; ignored if unvisited.
      stdevs: [B, A] float, the standard deviations of the returns that Q is the mean
        of; ignored if unvisited.
      z: scalar, how many standard errors below Q the bound lies; 0 takes the highest Q.
      min_visit_share: scalar, the share of the most visits that an action needs; 1
        leaves only the most visited.

    Raises:
      ValueError: a number out of range.
    """
    check_numbers(z=(z, 0, LARGEST), min_visit_share=(min_visit_share, 0, 1))
    most = jnp.max(visit_counts, axis=-1, keepdims=True)
    enough = (visit_counts > 0) & (visit_counts >= min_visit_share * most)
    bounds = qvalues - z * stdevs / jnp.sqrt(jnp.maximum(visit_counts, 1))
    best = best_of(enough, bounds, visit_counts)
    action = jnp.argmax(best, axis=-1).astype(jnp.int32)
    return jnp.where(jnp.any(enough, axis=-1), action, NO_ACTION)


def best_of(candidates: jax.Array, *scores: jax.Array) -> jax.Array:
    """The candidates [..., C] bool of the highest score; the next score breaks ties."""
    for score in scores:
        is_float = jnp.issubdtype(score.dtype, jnp.floating)
        lowest = -jnp.inf if is_float else jnp.iinfo(score.dtype).min
        highest = jnp.max(
            score, axis=-1, keepdims=True, where=candidates, initial=lowest
        )
        candidates = candidates & (score == highest)
    return candidates
