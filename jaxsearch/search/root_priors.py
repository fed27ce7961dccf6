# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""The priors of the root: masked, and mixed with noise for self-play."""

from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jax.typing import ArrayLike


def root_priors(
    root: mctx.RootFnOutput,
    invalid_actions: Any | None,
    root_prior_probs: Any | None,
) -> tuple[jax.Array, jax.Array]:
    """The priors [B, A] of the roots, and which rows [B] cannot be searched.

    The priors are in float32 at least, exactly 0 where illegal and only there. A row
    with a prior or a value that is not finite has failed: its priors are even.
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
    finite = jnp.all(jnp.isfinite(probs), axis=-1)
    even = legal / jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1)
    probs = jnp.where(finite[:, None], probs, even.astype(dtype))
    return probs, ~(finite & jnp.isfinite(root.value))


def add_dirichlet_noise(
    key: jax.Array,
    root: mctx.RootFnOutput,
    invalid_actions: Any | None,
    root_prior_probs: Any | None,
    fraction: ArrayLike,
    alpha: ArrayLike,
) -> tuple[mctx.RootFnOutput, Any | None]:
    """Mixes noise into the root's priors; returns `root` and `root_prior_probs`.

    Logits get the noise of all actions, as in mctx, before they are masked; given
    probabilities get that of the legal ones.
    """
    if isinstance(fraction, int | float) and fraction == 0:
        return root, root_prior_probs
    logits = jnp.asarray(root.prior_logits)
    noise = jax.random.dirichlet(
        key, jnp.full(logits.shape[-1:], alpha), logits.shape[:-1]
    )
    tiny = jnp.finfo(noise.dtype).tiny
    if root_prior_probs is not None:
        noise = jnp.where(jnp.asarray(root_prior_probs) > 0, noise, 0)
        noise = noise / jnp.maximum(jnp.sum(noise, axis=-1, keepdims=True), tiny)
        return root, (1 - fraction) * root_prior_probs + fraction * noise
    if invalid_actions is not None:  # whose logits may be anything
        illegal = jnp.asarray(invalid_actions).astype(bool) & ~jnp.isfinite(logits)
        logits = jnp.where(illegal, jnp.finfo(logits.dtype).min, logits)
    probs = jax.nn.softmax(logits, axis=-1)
    probs = (1 - fraction) * probs + fraction * noise
    logits = jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))
    return root.replace(prior_logits=logits), None
