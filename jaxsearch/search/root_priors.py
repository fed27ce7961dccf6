# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportReturnType=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""The priors of the root: masked, and mixed with noise for self-play."""

import jax
import jax.numpy as jnp
import mctx
from jax.typing import ArrayLike


def masked_softmax(
    prior_logits: jax.Array, invalid_actions: jax.Array | None
) -> jax.Array:
    """Priors [B, A], in float32 at least: exactly 0 where illegal, and only there."""
    logits = prior_logits.astype(jnp.result_type(prior_logits, jnp.float32))
    if invalid_actions is None:
        legal = jnp.ones_like(logits, bool)
    else:
        legal = ~invalid_actions.astype(bool)
    probs = jax.nn.softmax(jnp.where(legal, logits, -jnp.inf), axis=-1)
    return jnp.where(legal, jnp.maximum(probs, jnp.finfo(probs.dtype).tiny), 0.0)


def add_dirichlet_noise(
    key: jax.Array,
    root: mctx.RootFnOutput,
    root_prior_probs: jax.Array | None,
    fraction: ArrayLike,
    alpha: ArrayLike,
) -> tuple[mctx.RootFnOutput, jax.Array | None]:
    """Mixes noise into the root's priors; returns `root` and `root_prior_probs`.

    Logits get the noise of all actions, as in mctx, before they are masked; given
    probabilities get that of the legal ones.
    """
    if isinstance(fraction, int | float) and fraction == 0:
        return root, root_prior_probs
    shape = root.prior_logits.shape
    noise = jax.random.dirichlet(key, jnp.full(shape[-1:], alpha), shape[:-1])
    if root_prior_probs is not None:
        tiny = jnp.finfo(noise.dtype).tiny
        noise = jnp.where(root_prior_probs > 0, noise, 0)
        noise = noise / jnp.maximum(jnp.sum(noise, axis=-1, keepdims=True), tiny)
        return root, (1 - fraction) * root_prior_probs + fraction * noise
    probs = jax.nn.softmax(root.prior_logits, axis=-1)
    probs = (1 - fraction) * probs + fraction * noise
    logits = jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))
    return root.replace(prior_logits=logits), None
