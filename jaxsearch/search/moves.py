"""Choosing the move to play from the weights that a search gives the actions."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxsearch import keys
from jaxsearch.search.arguments import LARGEST, check_numbers, check_row_shape

NO_ACTION = -1
"""The action of a row whose position is finished: there is no move to choose."""


def sample_action(
    key: jax.Array, action_weights: jax.Array, temperature: ArrayLike
) -> jax.Array:
    """Samples actions [B] int32 in proportion to weights ** (1 / temperature).

    Computed in logarithms, so every temperature from 0 to infinity is safe: 0 takes the
    highest weight (the key decides between equals), infinity chooses evenly among the
    actions with a weight. An action of weight 0, or of one that is not finite, is never
    chosen; a row without any weight gives `NO_ACTION`. The key, or those of the rows
    [B], are consumed.

    Args:
      action_weights: [B, A], not negative; they need not sum to 1.
      temperature: scalar, or one for each row [B]. Under tracing, where nothing can be
        raised, one below 0 or NaN counts as 0.

    Raises:
      ValueError: the temperature is below 0 or not a number, or a shape does not fit.
    """
    action_weights = jnp.asarray(action_weights)
    if action_weights.ndim != 2:
        raise ValueError(
            f"action_weights has shape {action_weights.shape}, expected [B, A]: a row "
            "of weights for each move to choose; for one row give weights[None, :]"
        )
    check_temperature(temperature, action_weights.shape[:1])
    logits = action_log_probs(action_weights, temperature)
    action = keys.draw(jax.random.categorical, key, logits).astype(jnp.int32)
    return jnp.where(jnp.any(_has_weight(action_weights), axis=-1), action, NO_ACTION)


def check_temperature(temperature: ArrayLike, rows: tuple[int, ...]) -> None:
    """Raises ValueError for what is no temperature, nor one for each row (B,)."""
    check_numbers(temperature=(temperature, 0, math.inf))
    check_row_shape("temperature", temperature, rows)


def action_log_probs(action_weights: jax.Array, temperature: ArrayLike) -> jax.Array:
    """Log-probabilities [B, A] of weights ** (1 / temperature), -inf for weight 0."""
    weighted = _has_weight(action_weights)
    logits = jnp.log(jnp.where(weighted, action_weights, 1))
    logits = jnp.where(weighted, logits, -jnp.inf)
    # From the maximum: 0 / T is 0 for every T from the smallest number to infinity.
    below = logits - jnp.max(logits, axis=-1, keepdims=True)
    tiny = jnp.finfo(logits.dtype).tiny
    temperature = jnp.broadcast_to(jnp.asarray(temperature), logits.shape[:1])[:, None]
    # Written so that NaN counts as the smallest.
    temperature = jnp.where(temperature > tiny, temperature, tiny)
    scaled = below / temperature
    return jax.nn.log_softmax(jnp.where(weighted, scaled, -jnp.inf), axis=-1)


def _has_weight(action_weights):
    return (action_weights > 0) & jnp.isfinite(action_weights)


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
    visit_counts, qvalues, stdevs = map(jnp.asarray, (visit_counts, qvalues, stdevs))
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
