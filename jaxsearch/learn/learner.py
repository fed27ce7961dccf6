"""Learning: one gradient step towards the search's policy and the games' results."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import optax

from jaxsearch.learn.targets import FinalBoard


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Positions [B] and what the net is to say about them."""

    observation: jax.Array  # [B, *observation_shape], view of the player to move
    legal_action_mask: jax.Array  # [B, A] bool
    policy_target: jax.Array  # [B, A] float32, sums to 1
    outcome: jax.Array  # [B] float32: return of the game, mover's view
    search_value: jax.Array  # [B] float32: value of the search's root, mover's view
    final: FinalBoard | None = None  # [B]: the end of the game, mover's view


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """Means over a batch, [] float32 each."""

    policy: jax.Array  # cross-entropy to the search's policy, in nats
    policy_divergence: jax.Array  # the same less the target's own entropy
    value: jax.Array  # squared error
    total: jax.Array
    ownership: jax.Array | None = None  # cross-entropy of a cell, in nats
    score: jax.Array | None = None  # absolute error, in points


class Prediction(Protocol):
    """What a net says about positions [B]."""

    @property
    def prior_logits(self) -> jax.Array: ...  # [B, A] float32, unmasked
    @property
    def value(self) -> jax.Array: ...  # [B] float32 in [-1, 1]
    @property
    def outcome_logits(self) -> jax.Array | None: ...  # [B, 3]: win, draw, loss
    @property
    def ownership_logits(self) -> jax.Array | None: ...  # [B, *board]: to be mine
    @property
    def score(self) -> jax.Array | None: ...  # [B]: my points less the opponent's


NetFn = Callable[[Any, jax.Array], Prediction]
"""`(params, observations [B, ...]) -> Prediction`."""


SQUARED_POINTS = 10.0  # errors of the score up to here count squared
SCORE_SHARE = 0.004  # of the score's loss against that of the ownership


def augment(key: jax.Array, batch: Batch, symmetries: Any) -> Batch:
    """Shows each position [B] under a symmetry of the game drawn at random.

    Observation, mask, policy and ownership go together; values do not change.

    Args:
      symmetries: the game's `cells` [S, num_cells] and `actions` [S, A], see
        docs/add_a_game.md.
    """
    batch_size = batch.outcome.shape[0]
    number = jax.random.randint(key, (batch_size,), 0, len(symmetries.cells))
    cells = jnp.asarray(symmetries.cells)[number]
    actions = jnp.asarray(symmetries.actions)[number]

    def permute(rows, index):
        return jax.vmap(lambda row, i: row[i])(rows, index)

    num_cells = symmetries.cells.shape[1]
    boards = batch.observation.reshape(batch_size, num_cells, -1)
    final = batch.final
    if final is not None:
        owned = permute(final.ownership.reshape(batch_size, num_cells), cells)
        owned = owned.reshape(final.ownership.shape)
        final = dataclasses.replace(final, ownership=owned)
    return dataclasses.replace(
        batch,
        observation=permute(boards, cells).reshape(batch.observation.shape),
        legal_action_mask=permute(batch.legal_action_mask, actions),
        policy_target=permute(batch.policy_target, actions),
        final=final,
    )


def value_targets(
    outcome: jax.Array, search_value: jax.Array, search_value_share: float
) -> jax.Array:
    """What the value learns [B]: the game's outcome mixed with the search's value.

    All from the view of the player to move. A share of 0 is the outcome alone, as in
    AlphaGo Zero; a share of 1 the value of the search's root alone.
    """
    return (1 - search_value_share) * outcome + search_value_share * search_value


def outcome_targets(
    outcome: jax.Array, search_value: jax.Array, search_value_share: float
) -> jax.Array:
    """Probabilities [B, 3] of a win, a draw and a loss, mixed in the same way.

    A value v between a loss and a win stands for the two outcomes nearest to it, so
    that their mean is v: a draw, and a win or a loss.
    """

    def of_value(value):
        value = jnp.clip(value, -1, 1)
        parts = jnp.maximum(value, 0), 1 - jnp.abs(value), jnp.maximum(-value, 0)
        return jnp.stack(parts, axis=-1)

    share = search_value_share
    return (1 - share) * of_value(outcome) + share * of_value(search_value)


def losses(
    net: NetFn,
    params: Any,
    batch: Batch,
    *,
    value_weight: float,
    search_value_share: float,
    auxiliary_weight: float = 0.0,
) -> Losses:
    """The losses of positions [B] against their targets.

    Illegal actions take no part: their logits are masked before the softmax. A net with
    `outcome_logits` learns the chances of a win, a draw and a loss by cross-entropy,
    any other its value by squared error. Where the batch has final boards they are
    learned, too, see `auxiliary_losses`.

    Args:
      value_weight: weight of the value loss in the total.
      search_value_share: see `value_targets`.
      auxiliary_weight: weight of the loss of final boards in the total.
    """
    told = net(params, batch.observation)
    lowest = jnp.finfo(told.prior_logits.dtype).min
    masked_logits = jnp.where(batch.legal_action_mask, told.prior_logits, lowest)
    log_prior = jax.nn.log_softmax(masked_logits, axis=-1)
    target = batch.policy_target
    policy = jnp.mean(-jnp.sum(jnp.where(target > 0, target * log_prior, 0), axis=-1))
    entropy = jnp.mean(jnp.sum(jax.scipy.special.entr(target), axis=-1))
    mixed = batch.outcome, batch.search_value, search_value_share
    squared_error = jnp.mean(jnp.square(told.value - value_targets(*mixed)))
    value_loss = squared_error
    if told.outcome_logits is not None:
        log_probs = jax.nn.log_softmax(told.outcome_logits, axis=-1)
        value_loss = jnp.mean(-jnp.sum(outcome_targets(*mixed) * log_probs, axis=-1))
    total = policy + value_weight * value_loss
    ownership = score = None
    if batch.final is not None:
        ownership, score, auxiliary = auxiliary_losses(told, batch.final)
        total = total + auxiliary_weight * auxiliary
    return Losses(
        policy=policy,
        policy_divergence=policy - entropy,
        value=squared_error,
        total=total,
        ownership=ownership,
        score=score,
    )


def auxiliary_losses(
    told: Prediction, final: FinalBoard
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """How far a net is from the ends of games [B], means over those that are known.

    The ownership of each cell counts by cross-entropy, where a cell of nobody's is half
    mine, and the score by Huber's loss (D. Wu, "Accelerating Self-Play Learning in Go",
    2019, https://arxiv.org/abs/1902.10565, which also has a distribution of the score).

    Returns the cross-entropy of a cell in nats, the absolute error of the score in
    points, and the sum to be learned from.
    """
    assert told.ownership_logits is not None and told.score is not None
    weight = final.known.astype(jnp.float32)
    weight = weight / jnp.maximum(jnp.sum(weight), 1)
    mine = (1 + final.ownership.astype(jnp.float32)) / 2
    of_cells = optax.sigmoid_binary_cross_entropy(told.ownership_logits, mine)
    of_boards = jnp.mean(of_cells.reshape(len(weight), -1), axis=1)
    ownership = jnp.sum(weight * of_boards)
    error = told.score - final.score
    score = jnp.sum(weight * jnp.abs(error))
    robust = jnp.sum(weight * optax.huber_loss(error, delta=SQUARED_POINTS))
    return ownership, score, ownership + SCORE_SHARE * robust


def update(
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[[Any], Losses],
    params: Any,
    opt_state: optax.OptState,
    *,
    learning_rate_scale: jax.Array,
) -> tuple[Any, optax.OptState, Losses]:
    """One step of the optimizer; its updates are scaled by `learning_rate_scale`."""

    def total_loss(params):
        result = loss_fn(params)
        return result.total, result

    gradients, result = jax.grad(total_loss, has_aux=True)(params)
    updates, opt_state = optimizer.update(gradients, opt_state, params)
    updates = jax.tree.map(lambda u: u * learning_rate_scale, updates)
    return optax.apply_updates(params, updates), opt_state, result


def all_finite(tree: Any) -> jax.Array:
    """Whether no number in a pytree is infinite or NaN: [] bool."""
    return jnp.all(jnp.stack([jnp.isfinite(x).all() for x in jax.tree.leaves(tree)]))
