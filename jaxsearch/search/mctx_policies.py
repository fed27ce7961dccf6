"""mctx's own policies under the signature of ours, to compare with and to switch to.

They differ from mctx's functions in small ways: a mask may be bool, a root without a
legal action gives `NO_ACTION` and weights 0, as ours does, a bad count or shape is
refused before tracing, and PUCT never plays an action that it did not visit, whatever
the temperature.
"""

from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jax.typing import ArrayLike

from jaxsearch.search.arguments import check_arguments, check_key, root_of_arrays
from jaxsearch.search.moves import NO_ACTION, sample_action


def mctx_puct_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    *,
    temperature: ArrayLike = 1.0,
    **options: Any,
) -> mctx.PolicyOutput:
    """`mctx.muzero_policy`; `options` are its keyword arguments, numbers or arrays.

    The action is drawn with mctx's key by `sample_action`, so it is mctx's wherever
    mctx plays a visited action. mctx itself gives illegal actions a logit that a high
    temperature makes as good as any other.

    What the model says of finished positions is multiplied by 0, not left out: a value
    of NaN or infinity there becomes NaN above, where `puct_policy` ignores it.

    Args:
      params, rng_key, root, recurrent_fn, num_simulations, invalid_actions, max_depth:
        as for `puct_policy`.
      temperature: of the move choice, from 0 to infinity.
      options: see `mctx.muzero_policy`.

    Returns:
      `mctx.PolicyOutput`: `action` [B] int32, `action_weights` [B, A], the visit
      shares, and mctx's `search_tree`.

    Raises:
      ValueError: for a count below 1 or shapes that do not fit together.
    """
    output = _run(
        mctx.muzero_policy,
        (params, rng_key, root, recurrent_fn, num_simulations),
        invalid_actions,
        max_depth,
        # mctx refuses a Dirichlet option that is a whole number, such as 0.
        {k: float(v) if isinstance(v, int) else v for k, v in options.items()},
    )
    action_key = jax.random.split(rng_key, 3)[0]  # as mctx splits it
    return output.replace(
        action=sample_action(action_key, output.action_weights, temperature)
    )


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
    """`mctx.gumbel_muzero_policy`; `options` are its keyword arguments.

    Args:
      params, rng_key, root, recurrent_fn, num_simulations, invalid_actions, max_depth:
        as for `gumbel_policy`.
      options: see `mctx.gumbel_muzero_policy`.

    Returns:
      `mctx.PolicyOutput`: `action` [B] int32, `action_weights` [B, A], the improved
      policy, and mctx's `search_tree`.

    Raises:
      ValueError: for a count below 1 or shapes that do not fit together.
    """
    return _run(
        mctx.gumbel_muzero_policy,
        (params, rng_key, root, recurrent_fn, num_simulations),
        invalid_actions,
        max_depth,
        options,
    )


def _run(policy, arguments, invalid_actions, max_depth, options) -> Any:
    params, rng_key, root, recurrent_fn, num_simulations = arguments
    check_key(rng_key)
    root = root_of_arrays(root)
    check_arguments(root, num_simulations, invalid_actions, max_depth)
    mask = (
        None if invalid_actions is None else jnp.asarray(invalid_actions, jnp.float32)
    )
    arguments = params, rng_key, root, recurrent_fn, int(num_simulations)
    output = policy(*arguments, mask, max_depth, **options)
    if mask is None:
        return output
    finished = jnp.all(mask != 0, axis=-1)
    return output.replace(
        action=jnp.where(finished, NO_ACTION, output.action),
        action_weights=jnp.where(finished[:, None], 0, output.action_weights),
    )
