# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""The priors of the root: masked, and mixed with noise for self-play."""

from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jax.typing import ArrayLike

from jaxsearch import keys
from jaxsearch.search.arguments import MOST_VALUE
from jaxsearch.search.moves import action_log_probs


def root_priors(
    root: mctx.RootFnOutput,
    invalid_actions: Any | None,
    root_prior_probs: Any | None,
) -> tuple[jax.Array, jax.Array]:
    """The priors [B, A] of the roots, and which rows [B] cannot be searched.

    The priors are in float32 at least, exactly 0 where illegal and only there. A row
    with a prior that is not finite or below 0, or with a value that is not finite or
    beyond `MOST_VALUE`, has failed: its priors are even, unless they are fine.
    """
    logits = jnp.asarray(root.prior_logits)
    dtype = jnp.result_type(logits, root.value, jnp.float32)
    if invalid_actions is None:
        legal = jnp.ones_like(logits, bool)
    else:
        legal = ~jnp.asarray(invalid_actions).astype(bool)
    if root_prior_probs is None:
        masked = jnp.where(legal, logits.astype(dtype), -jnp.inf)
        probs = jnp.maximum(jax.nn.softmax(masked, axis=-1), jnp.finfo(dtype).tiny)
    else:
        probs = jnp.asarray(root_prior_probs).astype(dtype)
    probs = jnp.where(legal, probs, jnp.zeros_like(probs))
    finite = jnp.all(jnp.isfinite(probs) & (probs >= 0), axis=-1)
    even = legal / jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1)
    probs = jnp.where(finite[:, None], probs, even.astype(dtype))
    return probs, ~(finite & (jnp.abs(jnp.asarray(root.value)) <= MOST_VALUE))


def for_self_play(
    key: jax.Array,
    root: mctx.RootFnOutput,
    invalid_actions: Any | None,
    root_prior_probs: Any | None,
    *,
    fraction: ArrayLike,
    alpha: ArrayLike,
    total: ArrayLike | None,
    temperature: ArrayLike,
) -> tuple[mctx.RootFnOutput, Any | None]:
    """Root priors at a temperature, with Dirichlet noise; for `puct_policy`.

    Returns `root` and `root_prior_probs`, one of them changed. Logits get the noise of
    all actions, as in mctx, before they are masked; priors at a temperature, or with
    the concentration `total` / legal moves, that of the legal ones.
    """
    noisy = not (isinstance(fraction, int | float) and fraction == 0)
    flatter = not (isinstance(temperature, int | float) and temperature == 1)
    if flatter or (noisy and total is not None):
        probs, failed = root_priors(root, invalid_actions, root_prior_probs)
        probs = jnp.exp(action_log_probs(probs, temperature))
        # The search marks these rows once more.
        root_prior_probs = jnp.where(failed[:, None], jnp.nan, probs)
    if not noisy:
        return root, root_prior_probs
    logits = jnp.asarray(root.prior_logits)
    if root_prior_probs is not None:
        root_prior_probs = jnp.asarray(root_prior_probs)
        legal = root_prior_probs > 0
        if total is not None:
            alpha = total / jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1)
        alpha = jnp.broadcast_to(alpha, logits.shape)
        noise = keys.draw(jax.random.dirichlet, key, alpha)
        noise = jnp.where(legal, noise, 0)
        tiny = jnp.finfo(noise.dtype).tiny
        noise = noise / jnp.maximum(jnp.sum(noise, axis=-1, keepdims=True), tiny)
        return root, (1 - fraction) * root_prior_probs + fraction * noise
    if jnp.ndim(alpha) == 0 and not keys.is_for_each_row(key):  # as mctx draws it
        alpha = jnp.full(logits.shape[-1:], alpha)
        noise = jax.random.dirichlet(key, alpha, logits.shape[:-1])
    else:
        alpha = jnp.broadcast_to(alpha, logits.shape)
        noise = keys.draw(jax.random.dirichlet, key, alpha)
    if invalid_actions is not None:  # whose logits may be anything
        illegal = jnp.asarray(invalid_actions).astype(bool) & ~jnp.isfinite(logits)
        logits = jnp.where(illegal, jnp.finfo(logits.dtype).min, logits)
    probs = jax.nn.softmax(logits, axis=-1)
    probs = (1 - fraction) * probs + fraction * noise
    logits = jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))
    return root.replace(prior_logits=logits), None
