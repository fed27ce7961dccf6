"""Learning: one gradient step towards the search's policy and the games' results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxsearch.learn.replay import Plies


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """Means over a batch, [] float32 each."""

    policy: jax.Array  # cross-entropy to the search's policy, in nats
    policy_divergence: jax.Array  # the same less the target's own entropy
    value: jax.Array  # squared error
    total: jax.Array


NetFn = Callable[[Any, jax.Array], tuple[jax.Array, jax.Array]]
"""`(params, observations [B, ...]) -> (prior_logits [B, A], value [B])`."""


def augment(key: jax.Array, plies: Plies, symmetries: Any) -> Plies:
    """Shows each position [B] under a symmetry of the game drawn at random.

    Observation, mask and policy go together; values do not change.

    Args:
      symmetries: the game's `cells` [S, num_cells] and `actions` [S, A], see
        docs/add_a_game.md.
    """
    batch_size = plies.player.shape[0]
    number = jax.random.randint(key, (batch_size,), 0, len(symmetries.cells))
    cells = jnp.asarray(symmetries.cells)[number]
    actions = jnp.asarray(symmetries.actions)[number]

    def permute(rows, index):
        return jax.vmap(lambda row, i: row[i])(rows, index)

    num_cells = symmetries.cells.shape[1]
    boards = plies.observation.reshape(batch_size, num_cells, -1)
    return Plies(
        observation=permute(boards, cells).reshape(plies.observation.shape),
        legal_action_mask=permute(plies.legal_action_mask, actions),
        policy_target=permute(plies.policy_target, actions),
        search_value=plies.search_value,
        player=plies.player,
        rewards=plies.rewards,
        terminated=plies.terminated,
        truncated=plies.truncated,
    )


def value_targets(
    outcome: jax.Array, search_value: jax.Array, search_value_share: float
) -> jax.Array:
    """What the value learns [B]: the game's outcome mixed with the search's value.

    All from the view of the player to move. A share of 0 is the outcome alone, as in
    AlphaGo Zero; a share of 1 the value of the search's root alone.
    """
    return (1 - search_value_share) * outcome + search_value_share * search_value


def losses(
    net: NetFn, params: Any, plies: Plies, value_target: jax.Array, value_weight: float
) -> Losses:
    """The losses of positions [B] against their targets.

    Illegal actions take no part: their logits are masked before the softmax.

    Args:
      value_target: [B], from the view of the player to move.
      value_weight: weight of the value loss in the total.
    """
    prior_logits, value = net(params, plies.observation)
    lowest = jnp.finfo(prior_logits.dtype).min
    masked_logits = jnp.where(plies.legal_action_mask, prior_logits, lowest)
    log_prior = jax.nn.log_softmax(masked_logits, axis=-1)
    target = plies.policy_target
    policy = jnp.mean(-jnp.sum(jnp.where(target > 0, target * log_prior, 0), axis=-1))
    entropy = jnp.mean(jnp.sum(jax.scipy.special.entr(target), axis=-1))
    value_loss = jnp.mean(jnp.square(value - value_target))
    return Losses(
        policy=policy,
        policy_divergence=policy - entropy,
        value=value_loss,
        total=policy + value_weight * value_loss,
    )


def update(
    net: NetFn,
    optimizer: optax.GradientTransformation,
    params: Any,
    opt_state: optax.OptState,
    plies: Plies,
    value_target: jax.Array,
    *,
    value_weight: float,
    learning_rate_scale: jax.Array,
) -> tuple[Any, optax.OptState, Losses]:
    """One step of the optimizer; its updates are scaled by `learning_rate_scale`."""

    def total_loss(params):
        result = losses(net, params, plies, value_target, value_weight)
        return result.total, result

    gradients, result = jax.grad(total_loss, has_aux=True)(params)
    updates, opt_state = optimizer.update(gradients, opt_state, params)
    updates = jax.tree.map(lambda u: u * learning_rate_scale, updates)
    return optax.apply_updates(params, updates), opt_state, result
