# pyright: reportCallIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""PUCT: search guided by a policy prior and mean values.

Sources: the log schedule and the normalised values are those of MuZero (Schrittwieser
et al. 2020, appendix B, https://arxiv.org/abs/1911.08265), the constant c_puct that of
AlphaGo Zero (Silver et al. 2017, methods, "Select").
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import mctx
from jax.typing import ArrayLike

from jaxsearch.search.arguments import (
    LARGEST,
    TINY,
    check_arguments,
    check_numbers,
)
from jaxsearch.search.loop import search
from jaxsearch.search.moves import sample_action
from jaxsearch.search.root_priors import add_dirichlet_noise
from jaxsearch.search.select import NodeStatistics, QTransform


def qtransform_by_parent_and_siblings(
    node: NodeStatistics, *, epsilon: float = 1e-8
) -> jax.Array:
    """Q scaled to [0, 1] by the range of V(node) and the visited Q; unvisited: 0."""
    visited = node.visit_counts > 0
    node_value = node.node_value[:, None]
    known = jnp.where(visited, node.qvalues, node_value)
    lowest = jnp.minimum(jnp.min(known, axis=1, keepdims=True), node_value)
    highest = jnp.maximum(jnp.max(known, axis=1, keepdims=True), node_value)
    scaled = (node.qvalues - lowest) / jnp.maximum(highest - lowest, epsilon)
    return jnp.where(visited, scaled, 0)


def qtransform_fixed_scale(
    node: NodeStatistics, *, first_play_urgency: ArrayLike = 0.0
) -> jax.Array:
    """Q as it is, on the scale of the model's values; unvisited: the given constant."""
    return jnp.where(node.visit_counts > 0, node.qvalues, first_play_urgency)


def puct_policy(
    params: Any,
    rng_key: jax.Array,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    *,
    qtransform: QTransform = qtransform_by_parent_and_siblings,
    dirichlet_fraction: ArrayLike = 0.25,
    dirichlet_alpha: ArrayLike = 0.3,
    pb_c_init: ArrayLike = 1.25,
    pb_c_base: ArrayLike = 19652,
    c_puct: ArrayLike | None = None,
    temperature: ArrayLike = 1.0,
    root_prior_probs: jax.Array | None = None,
    count_root_evaluation: bool = True,
) -> mctx.PolicyOutput:
    """Searches B positions with PUCT; arguments and defaults as `mctx.muzero_policy`.

    At each node the column with the highest

        qtransform(Q(a)) + c * P(a) * sqrt(N) / (1 + N(a))

    is followed, where N counts the visits of the node, its own evaluation included, and
    c = pb_c_init + log((N + pb_c_base + 1) / pb_c_base), or the constant `c_puct`.
    Of equal columns the lowest action is followed at the root, below it the child that
    was visited first. With untied scores the visit counts equal mctx's.

    Args:
      params, rng_key, root, recurrent_fn, num_simulations, invalid_actions, max_depth:
        see `jaxsearch.search.loop.search`; rng_key is consumed.
      qtransform: the value score of a column. Default: as in mctx. With `c_puct`,
        AlphaGo Zero's rule takes `qtransform_fixed_scale`.
      dirichlet_fraction: share of Dirichlet noise in the root prior; 0 for none, as
        wanted for playing and measuring.
      dirichlet_alpha: concentration of that noise.
      pb_c_init, pb_c_base: the log schedule of c; not used with `c_puct`.
      c_puct: a constant c, a number or one for each row [B].
      temperature: of the move choice, see `sample_action`.
      root_prior_probs: [B, A], the root's priors as probabilities in place of
        `root.prior_logits`: used as they are, 0 where illegal.
      count_root_evaluation: False starts the root at N = 0, as AlphaZero's pseudocode.

    Returns:
      `mctx.PolicyOutput`: `action` [B] int32, sampled from the visits; `action_weights`
      [B, A], the visit shares; `search_tree`, a `jaxsearch.Tree`. A row without a legal
      action is not searched: its action is `NO_ACTION` and its weights are 0. A row
      that got a number that is not finite is marked in `search_tree.failed`: its
      weights are its priors.

    Raises:
      ValueError: see `jaxsearch.search.loop.search`; or for a number out of range.
    """
    check_arguments(root, num_simulations, invalid_actions, max_depth, root_prior_probs)
    check_numbers(
        dirichlet_fraction=(dirichlet_fraction, 0, 1),
        dirichlet_alpha=(dirichlet_alpha, TINY, LARGEST),
        pb_c_init=(pb_c_init, 0, LARGEST),
        pb_c_base=(pb_c_base, TINY, LARGEST),
        c_puct=(c_puct, 0, LARGEST),
        temperature=(temperature, 0, math.inf),
    )
    action_key, dirichlet_key, search_key = jax.random.split(rng_key, 3)
    root, root_prior_probs = add_dirichlet_noise(
        dirichlet_key,
        root,
        invalid_actions,
        root_prior_probs,
        dirichlet_fraction,
        dirichlet_alpha,
    )
    if c_puct is not None:
        c_puct = jnp.broadcast_to(c_puct, jnp.shape(root.value))

    def score(node: NodeStatistics) -> jax.Array:
        if node.row_parameters is None:
            visits = node.node_visits
            c = pb_c_init + jnp.log((visits + pb_c_base + 1) / pb_c_base)
        else:
            c = node.row_parameters[node.rows]
        return puct_scores(node, c, qtransform)

    tree = search(
        params,
        search_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_score=score,
        interior_score=score,
        num_simulations=num_simulations,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        root_prior_probs=root_prior_probs,
        row_parameters=c_puct,
        count_root_evaluation=count_root_evaluation,
    )
    action_weights = tree.or_fallback(tree.summary().visit_probs)
    return mctx.PolicyOutput(
        action=sample_action(action_key, action_weights, temperature),
        action_weights=action_weights,
        search_tree=tree,
    )


def puct_scores(node: NodeStatistics, c: Any, qtransform: QTransform) -> jax.Array:
    """The scores [M, C] of PUCT with the constants c [M]; -inf where illegal."""
    visits = node.node_visits.astype(node.qvalues.dtype)
    exploration = (c * jnp.sqrt(visits))[:, None] * node.prior_probs
    scores = qtransform(node) + exploration / (1 + node.visit_counts)
    return jnp.where(node.prior_probs > 0, scores, -jnp.inf)
