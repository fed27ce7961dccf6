# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""Gumbel MuZero: sequential halving at the root, an improved policy below it.

Source: "Policy improvement by planning with Gumbel" (Danihelka et al. 2022,
https://openreview.net/forum?id=bERaNdoegnO): the root is its algorithm 2, the choice
below it equation 14, the completed values appendix D.
"""

from functools import partial
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jax.typing import ArrayLike

from jaxsearch import keys
from jaxsearch.search.arguments import (
    LARGEST,
    check_arguments,
    check_count,
    check_key,
    check_numbers,
    per_row,
    root_of_arrays,
)
from jaxsearch.search.loop import search
from jaxsearch.search.moves import NO_ACTION
from jaxsearch.search.options import SearchOptions, check_options, row_budgets
from jaxsearch.search.qtransforms import QTransform
from jaxsearch.search.root_priors import root_priors
from jaxsearch.search.select import NodeStatistics, root_statistics


def qtransform_completed_by_mix_value(
    node: NodeStatistics,
    *,
    value_scale: ArrayLike = 0.1,
    maxvisit_init: ArrayLike = 50.0,
    rescale_values: bool = True,
    use_mixed_value: bool = True,
    epsilon: float = 1e-8,
) -> jax.Array:
    """Completed Q, scaled to be added to logits; made for Gumbel, too large for PUCT.

    The Q of unvisited actions is the mixed value: the node's raw value and the visited
    Q, weighted by prior. The scale is (maxvisit_init + highest visits) * value_scale.

    Args:
      value_scale, maxvisit_init: the constants c_scale and c_visit of the paper.
      rescale_values: scales Q to [0, 1] by its range first.
      use_mixed_value: False takes the raw value for the unvisited.
      epsilon: the smallest range that Q is scaled by.
    """
    visited = node.visit_counts > 0
    total = jnp.sum(node.visit_counts, axis=1)
    value = node.raw_value
    if use_mixed_value:
        # The smallest number, lest all visited actions have a prior of 0.
        probs = jnp.maximum(node.prior_probs, jnp.finfo(node.prior_probs.dtype).tiny)
        probs = jnp.where(visited, probs, 0)
        share = jnp.where(total > 0, jnp.sum(probs, axis=1), 1)[:, None]
        weighted = jnp.sum(jnp.where(visited, probs * node.qvalues / share, 0), axis=1)
        value = (value + total * weighted) / (total + 1)
    completed = jnp.where(visited, node.qvalues, value[:, None])
    if rescale_values:
        all_visited = jnp.sum(visited, axis=1) == node.num_actions
        counts = visited | ~all_visited[:, None]
        lowest = jnp.min(jnp.where(counts, completed, jnp.inf), axis=1)
        highest = jnp.max(jnp.where(counts, completed, -jnp.inf), axis=1)
        scale = jnp.maximum(highest - lowest, epsilon)
        completed = (completed - lowest[:, None]) / scale[:, None]
    most_visits = jnp.max(node.visit_counts, axis=1, keepdims=True)
    return jnp.asarray((maxvisit_init + most_visits) * value_scale * completed)


def gumbel_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    *,
    qtransform: QTransform = qtransform_completed_by_mix_value,
    max_num_considered_actions: int = 16,
    gumbel_scale: ArrayLike = 1.0,
    **options: Unpack[SearchOptions],
) -> mctx.PolicyOutput:
    """Searches B positions; arguments and defaults as `mctx.gumbel_muzero_policy`.

    With the same key and untied scores the action, its weights and the visit counts
    equal mctx's.

    Args:
      params: passed on to `recurrent_fn`: the parameters of a net, or None.
      rng_key: a key of `jax.random.key`, consumed; or one for each row [B], so that
        what a row draws does not depend on the others. The model gets such keys, too.
      root: `mctx.RootFnOutput`: prior_logits [B, A], value [B] in the view of the
        player to move, embedding [B, ...], such as the states of a game.
      recurrent_fn: `(params, key, action [B], embedding)` to
        `(mctx.RecurrentFnOutput, embedding)`, see `jaxsearch.search.loop.search`;
        `jaxsearch.two_player_model` makes one of a game.
      num_simulations: at least 1; under `jax.jit` a static argument.
      invalid_actions: [B, A], nonzero or True = illegal at the root. None for none.
      max_depth: the most moves from the root to a leaf. None for no limit.
      qtransform: of a `NodeStatistics` of M nodes the completed Q [M, C], on the scale
        of logits.
      max_num_considered_actions: the most actions visited at the root.
      gumbel_scale: scale of the noise that draws them, a number or one for each row
        [B]; 0 for none, as wanted for playing and measuring.
      options: see `jaxsearch.search.options.SearchOptions`. The halving of a row
        follows its own budget. With a tree to go on with it counts the visits of this
        search only.

    Returns:
      `mctx.PolicyOutput`: `action` [B] int32, the best of the most visited;
      `action_weights` [B, A], the improved policy softmax(logits + completed Q), a
      training target and not the visit shares; `search_tree`, a `jaxsearch.Tree`. A row
      without a legal action is not searched: its action is `NO_ACTION` and its weights
      are 0. A row that got a number that is not finite is marked in
      `search_tree.failed`: its weights are its priors.

    Raises:
      ValueError: see `jaxsearch.search.loop.search`; or for a number out of range.
    """
    root = root_of_arrays(root)
    check_key(rng_key, np.shape(root.value))
    check_arguments(root, num_simulations, invalid_actions, max_depth)
    check_options(root, num_simulations, options)
    check_count("max_num_considered_actions", max_num_considered_actions)
    num_simulations = int(num_simulations)
    max_num_considered_actions = int(max_num_considered_actions)
    check_numbers(gumbel_scale=(gumbel_scale, 0, LARGEST))
    gumbel_scale = per_row("gumbel_scale", gumbel_scale, root)
    search_key, gumbel_key = keys.split(rng_key, 2)
    prior_probs, failed = root_priors(root, invalid_actions, None)
    legal = prior_probs > 0
    logits = jnp.asarray(root.prior_logits)
    logits = logits.astype(jnp.result_type(logits, jnp.bfloat16))
    noise = keys.draw(_gumbel_like, gumbel_key, logits)
    logits = logits.astype(prior_probs.dtype)
    # Legal actions of the lowest logit are still ahead of the illegal ones.
    logits = jnp.maximum(logits, jnp.finfo(logits.dtype).min / 4)
    logits = logits - jnp.max(jnp.where(legal, logits, -jnp.inf), axis=1, keepdims=True)
    logits = jnp.where(failed[:, None], 0, logits)
    # Not 0 * noise, whose sign would order equal logits.
    noise = jnp.where(gumbel_scale == 0, 0, gumbel_scale * noise)
    noisy_logits = logits + noise.astype(logits.dtype)
    noisy_logits = jnp.where(legal, noisy_logits, -jnp.inf)
    most = min(max_num_considered_actions, logits.shape[1])
    most = min(most, options.get("max_children") or most)
    num_considered = jnp.minimum(jnp.sum(legal, axis=1), most)
    budgets = row_budgets(root, num_simulations, options)
    inherited = jnp.zeros_like(noisy_logits, jnp.int32)
    if (reused := options.get("tree")) is not None:
        inherited = reused.summary().visit_counts.astype(jnp.int32)
        inherited = jnp.where(reused.failed[:, None], 0, inherited)  # these start anew
    order = _order(noisy_logits, num_considered, most)
    halving = _Halving(
        noisy_logits=jnp.where(order > 0, noisy_logits, -jnp.inf),
        due=considered_visits(num_considered, budgets, num_simulations, most),
        inherited=inherited,
    )
    tree = search(
        params,
        search_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_score=partial(_root_score, qtransform=qtransform),
        interior_score=partial(_interior_score, qtransform=qtransform),
        num_simulations=num_simulations,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        root_order=order,
        row_parameters=halving,
        not_counted=inherited,
        **options,
    )
    completed = qtransform(root_statistics(tree).without_lost())
    completed = jnp.where(tree.failed[:, None], 0, completed)
    weights = jax.nn.softmax(jnp.where(legal, logits + completed, -jnp.inf), axis=1)
    visits = tree.summary().visit_counts - inherited
    visits = jnp.where(tree.playable, visits, -1)
    scores = jnp.where(
        visits == jnp.max(visits, axis=1, keepdims=True),
        noisy_logits + completed,
        -jnp.inf,
    )
    action = jnp.argmax(scores, axis=1).astype(jnp.int32)
    return mctx.PolicyOutput(
        action=jnp.where(tree.root_finished, NO_ACTION, action),
        action_weights=tree.or_fallback(weights),
        search_tree=tree,
    )


def _gumbel_like(key, logits):
    return jax.random.gumbel(key, logits.shape, logits.dtype)


class _Halving(NamedTuple):
    """What the choice at the root of each row reads."""

    noisy_logits: jax.Array  # [B, A] float: -inf where not considered
    due: jax.Array  # [B, N] int32: the visits that each simulation's action must have
    inherited: jax.Array  # [B, A] int32: visits of earlier searches


def considered_visits(
    num_considered: jax.Array, budgets: jax.Array, num_simulations: int, most: int
) -> jax.Array:
    """The visit count [B, N] that each simulation's root action must have.

    Sequential halving: each phase visits the actions still considered equally often,
    then keeps half of them, at least two. For one action it is 0, 1, 2 and so on.

    Args:
      num_considered: [B], at most `most`.
      budgets: [B], the simulations that the phases are laid out for.
      num_simulations: N.
    """
    simulation = jnp.arange(num_simulations, dtype=jnp.int32)[None, :]
    considered = jnp.maximum(num_considered, 2)[:, None]
    halvings = range(1, max(2, most).bit_length() + 1)
    num_phases = sum((considered > 2**i).astype(jnp.int32) for i in halvings) + 1
    start = visits = jnp.zeros_like(considered)
    due = jnp.zeros_like(start + simulation)
    for _ in halvings:  # the last one goes on for ever
        due = jnp.where(
            simulation >= start, visits + (simulation - start) // considered, due
        )
        repeats = jnp.maximum(1, budgets[:, None] // (num_phases * considered))
        start = start + repeats * considered
        visits = visits + repeats
        considered = jnp.maximum(2, considered // 2)
    return jnp.where(num_considered[:, None] <= 1, simulation, due)


def _order(noisy_logits, num_considered, most):
    """Numbers [B, A], the higher the earlier, 0 for actions not to be considered."""
    _, best = jax.lax.top_k(noisy_logits, most)
    places = jnp.arange(most)[None, :]
    numbers = jnp.where(places < num_considered[:, None], most - places, 0)
    return jax.vmap(lambda row, i, n: row.at[i].set(n))(
        jnp.zeros_like(noisy_logits), best, numbers.astype(noisy_logits.dtype)
    )


def _root_score(node: NodeStatistics, *, qtransform):
    """Noisy logits and Q of the actions with the visit count that is due."""
    halving: _Halving = node.parameters
    actions = jnp.minimum(jnp.asarray(node.actions), node.num_actions - 1)
    visited = node.visit_counts > 0
    visits = node.visit_counts - jnp.where(
        visited, jnp.take_along_axis(halving.inherited, actions, axis=1), 0
    )
    total = jnp.sum(visits, axis=1, keepdims=True)
    last = halving.due.shape[1] - 1
    due = jnp.take_along_axis(halving.due, jnp.minimum(total, last), axis=1)
    noisy = jnp.take_along_axis(halving.noisy_logits, actions, axis=1)
    scores = jnp.where(
        node.prior_probs > 0, noisy + qtransform(node.without_lost()), -jnp.inf
    )
    is_due = visits == due
    if node.full is not None:  # then any action is due if those that were are unvisited
        is_due = is_due & (visited | ~node.full[:, None])
        none = ~jnp.any(is_due & (scores > -jnp.inf), axis=1, keepdims=True)
        is_due = is_due | (none & node.full[:, None])
    return jnp.where(is_due, scores, -jnp.inf)


def _interior_score(node: NodeStatistics, *, qtransform):
    """How far the share of visits is below the improved policy (equation 14)."""
    visited = node.visit_counts > 0
    rest = 1 - jnp.sum(jnp.where(visited, node.prior_probs, 0), axis=1)
    rest = jnp.maximum(rest, node.prior_probs[:, 0])
    node = node.without_lost()
    # Empty columns have no part in the policy, however high the mixed value is.
    bonus = jnp.where(node.prior_probs > 0, qtransform(node), -jnp.inf)
    bonus = jnp.exp(bonus - jnp.max(bonus, axis=1, keepdims=True))
    weights = node.prior_probs * bonus
    # All unvisited actions have the bonus of column 0, the best of them.
    total = jnp.sum(jnp.where(visited, weights, 0), axis=1) + rest * bonus[:, 0]
    visits = node.visit_counts
    shares = visits / (1 + jnp.sum(visits, axis=1, keepdims=True))
    scores = weights / total[:, None] - shares
    return jnp.where(node.prior_probs > 0, scores, -jnp.inf)
