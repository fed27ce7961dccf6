"""mctx's own policies under the signature of ours, to compare with and to switch to.

They differ from mctx's functions in three small ways: a mask may be bool, a root
without a legal action gives `NO_ACTION` and weights 0, as ours does, and a bad count or
shape is refused before tracing.
"""

from typing import Any

import jax
import jax.numpy as jnp
import mctx

from jaxsearch.search.arguments import check_arguments
from jaxsearch.search.moves import NO_ACTION


def mctx_puct_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    **options: Any,
) -> mctx.PolicyOutput:
    """`mctx.muzero_policy`; `options` are its keyword arguments, numbers or arrays."""
    check_arguments(root, num_simulations, invalid_actions, max_depth)
    output = mctx.muzero_policy(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        _as_mctx_mask(invalid_actions),
        max_depth,
        **_with_float_numbers(options),
    )
    return _without_finished_rows(output, invalid_actions)


def mctx_gumbel_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    **options: Any,
) -> mctx.PolicyOutput:
    """`mctx.gumbel_muzero_policy`; `options` are its keyword arguments."""
    check_arguments(root, num_simulations, invalid_actions, max_depth)
    output = mctx.gumbel_muzero_policy(
        params,
        rng_key,
        root,
        recurrent_fn,
        num_simulations,
        _as_mctx_mask(invalid_actions),
        max_depth,
        **options,
    )
    return _without_finished_rows(output, invalid_actions)


def _as_mctx_mask(invalid_actions):
    return None if invalid_actions is None else invalid_actions.astype(jnp.float32)


def _without_finished_rows(output, invalid_actions):
    if invalid_actions is None:
        return output
    finished = jnp.all(invalid_actions.astype(bool), axis=-1)
    return output.replace(
        action=jnp.where(finished, NO_ACTION, output.action),
        action_weights=jnp.where(finished[:, None], 0, output.action_weights),
    )


def _with_float_numbers(options: dict[str, Any]) -> dict[str, Any]:
    """mctx refuses a Dirichlet option that is a whole number, such as 0."""
    return {k: float(v) if isinstance(v, int) else v for k, v in options.items()}
