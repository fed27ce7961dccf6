# pyright: reportCallIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""PUCT: search guided by a policy prior and mean values.

Sources: the log schedule and the normalised values are those of MuZero (Schrittwieser
et al. 2020, appendix B, https://arxiv.org/abs/1911.08265), the constant c_puct that of
AlphaGo Zero (Silver et al. 2017, methods, "Select"), forced playouts those of KataGo
(Wu 2019, section 3.2, https://arxiv.org/abs/1902.10565).
"""

from collections.abc import Callable
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
    TINY,
    check_arguments,
    check_key,
    check_numbers,
    check_row_shape,
    check_scalars,
    check_types,
    per_row,
    root_of_arrays,
)
from jaxsearch.search.loop import search
from jaxsearch.search.moves import check_temperature, sample_action
from jaxsearch.search.options import SearchOptions
from jaxsearch.search.qtransforms import (
    FirstPlayUrgency,
    QTransform,
    VarianceScaling,
    qtransform_by_parent_and_siblings,
    qtransform_by_tree_range,
)
from jaxsearch.search.root_priors import for_self_play
from jaxsearch.search.select import NodeStatistics, root_statistics


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
    dirichlet_total: ArrayLike | None = None,
    pb_c_init: ArrayLike = 1.25,
    pb_c_base: ArrayLike = 19652,
    c_puct: ArrayLike | None = None,
    variance_scaling: VarianceScaling | None = None,
    first_play_urgency: FirstPlayUrgency | None = None,
    root_first_play_urgency: FirstPlayUrgency | None = None,
    root_prior_temperature: ArrayLike = 1.0,
    root_prior_probs: jax.Array | None = None,
    forced_playouts: ArrayLike | None = None,
    temperature: ArrayLike = 1.0,
    count_root_evaluation: bool = True,
    keep_squares: bool = False,
    **options: Unpack[SearchOptions],
) -> mctx.PolicyOutput:
    """Searches B positions with PUCT; arguments and defaults as `mctx.muzero_policy`.

    At each node the column with the highest

        qtransform(Q(a)) + c * P(a) * sqrt(N) / (1 + N(a))

    is followed, where N counts the visits of the node, its own evaluation included, and
    c = pb_c_init + log((N + pb_c_base + 1) / pb_c_base), or the constant `c_puct`.
    Of equal columns the lowest action is followed at the root, below it the child that
    was visited first. With untied scores the visit counts equal mctx's.

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
      qtransform: puts Q on the scale of the scores: of a `NodeStatistics` of M nodes
        the values [M, C]. Default: as in mctx. With `c_puct`, AlphaGo Zero's rule takes
        `qtransform_fixed_scale`.
      dirichlet_fraction: share of Dirichlet noise in the root prior; 0 for none, as
        wanted for playing and measuring. Like the other two a number, or one for each
        row [B].
      dirichlet_alpha: concentration of that noise. It is drawn for all actions and
        masked afterwards, as in mctx.
      dirichlet_total: the concentration of a row is this over its number of legal
        moves, and the noise goes to those alone, as in KataGo (there 10.83). In place
        of `dirichlet_alpha`.
      pb_c_init, pb_c_base: the log schedule of c; not used with `c_puct`.
      c_puct: a constant c, a number or one for each row [B].
      variance_scaling: makes c follow the spread of the returns, see `VarianceScaling`.
      first_play_urgency: the Q of unvisited actions, before the transform, such as
        `ConstantUrgency(-1.0)` or `ParentUrgency(reduction=0.2)`. None: their
        transformed value is 0, as in mctx.
      root_first_play_urgency: the same at the root. None: as below it.
      root_prior_temperature: the root's priors are taken to the power of one over it,
        before the noise. A number, or one for each row [B].
      root_prior_probs: [B, A], the root's priors as probabilities in place of
        `root.prior_logits`: used as they are, 0 where illegal.
      forced_playouts: k of KataGo (there 2): at the root a visited action is followed
        until it has sqrt(k * P(a) * all visits) visits. `action_weights` then leave
        out the visits that its score does not justify. None for not.
      temperature: of the move choice, see `sample_action`.
      count_root_evaluation: False starts the root at N = 0, as AlphaZero's pseudocode.
      keep_squares: keeps `search_tree.square_sums`, which `lcb_action` needs.
      options: see `jaxsearch.search.options.SearchOptions`.

    Returns:
      `mctx.PolicyOutput`: `action` [B] int32, sampled from the visits; `action_weights`
      [B, A], the visit shares; `search_tree`, a `jaxsearch.Tree`. A row without a legal
      action is not searched: its action is `NO_ACTION` and its weights are 0. A row
      that got a number that is not finite is marked in `search_tree.failed`: its
      weights are its priors, as are those of a row without a visit. With `solve` only
      moves that may keep the best outcome have a weight.

    Raises:
      ValueError: see `jaxsearch.search.loop.search`; or for a number out of range.
    """
    root = root_of_arrays(root)
    check_key(rng_key, np.shape(root.value))
    check_arguments(root, num_simulations, invalid_actions, max_depth, root_prior_probs)
    num_simulations = int(num_simulations)
    check_numbers(
        dirichlet_fraction=(dirichlet_fraction, 0, 1),
        dirichlet_alpha=(dirichlet_alpha, TINY, LARGEST),
        dirichlet_total=(dirichlet_total, TINY, LARGEST),
        pb_c_init=(pb_c_init, 0, LARGEST),
        pb_c_base=(pb_c_base, TINY, LARGEST),
        c_puct=(c_puct, 0, LARGEST),
        root_prior_temperature=(root_prior_temperature, TINY, LARGEST),
        forced_playouts=(forced_playouts, 0, LARGEST),
    )
    check_temperature(temperature, np.shape(root.value))
    check_row_shape(
        "root_prior_temperature", root_prior_temperature, np.shape(root.value)
    )
    check_types(
        qtransform=(qtransform, Callable),
        first_play_urgency=(first_play_urgency, Callable),
        root_first_play_urgency=(root_first_play_urgency, Callable),
        variance_scaling=(variance_scaling, VarianceScaling),
    )
    check_scalars(
        pb_c_init=pb_c_init,
        pb_c_base=pb_c_base,
        forced_playouts=forced_playouts,
    )
    action_key, dirichlet_key, search_key = keys.split(rng_key, 3)
    root, root_prior_probs = for_self_play(
        dirichlet_key,
        root,
        invalid_actions,
        root_prior_probs,
        fraction=per_row("dirichlet_fraction", dirichlet_fraction, root),
        alpha=per_row("dirichlet_alpha", dirichlet_alpha, root),
        total=per_row("dirichlet_total", dirichlet_total, root),
        temperature=root_prior_temperature,
    )
    per_row("c_puct", c_puct, root)
    if c_puct is not None:
        c_puct = jnp.broadcast_to(jnp.asarray(c_puct), np.shape(root.value))
    below = PuctRule(
        qtransform=qtransform,
        first_play_urgency=first_play_urgency,
        variance_scaling=variance_scaling,
        pb_c_init=pb_c_init,
        pb_c_base=pb_c_base,
    )
    at_root = below
    if root_first_play_urgency is not None:
        at_root = below._replace(first_play_urgency=root_first_play_urgency)
    root_score = at_root.scores
    if forced_playouts is not None:
        root_score = partial(_forced_scores, rule=at_root, k=forced_playouts)
    tree = search(
        params,
        search_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_score=root_score,
        interior_score=below.scores,
        num_simulations=num_simulations,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        root_prior_probs=root_prior_probs,
        row_parameters=c_puct,
        count_root_evaluation=count_root_evaluation,
        keep_squares=keep_squares or variance_scaling is not None,
        keep_qvalue_range=qtransform is qtransform_by_tree_range,
        **options,
    )
    if forced_playouts is None:
        visit_counts = tree.summary().visit_counts
    else:
        visit_counts = _pruned_visits(tree, c_puct, at_root, forced_playouts)
    action_weights = tree.or_fallback(visit_counts)
    return mctx.PolicyOutput(
        action=sample_action(action_key, action_weights, temperature),
        action_weights=action_weights,
        search_tree=tree,
    )


class PuctRule(NamedTuple):
    """The scores of PUCT. `row_parameters` of the nodes are the c [B], if constant."""

    qtransform: QTransform
    first_play_urgency: FirstPlayUrgency | None = None
    variance_scaling: VarianceScaling | None = None
    pb_c_init: ArrayLike = 1.25
    pb_c_base: ArrayLike = 19652

    def scores(self, node: NodeStatistics) -> jax.Array:
        """The scores [M, C]; -inf where illegal."""
        scores = self.values(node) + self.exploration(node) / (1 + node.visit_counts)
        return jnp.where(node.prior_probs > 0, scores, -jnp.inf)

    def values(self, node: NodeStatistics) -> jax.Array:
        """The transformed Q [M, C]; of unvisited columns 0, or their urgency's."""
        visited = node.visit_counts > 0
        if self.first_play_urgency is None:
            return jnp.where(visited, self.qtransform(node), 0)
        urgency = self.first_play_urgency(node)[:, None]
        qvalues = jnp.where(visited, node.qvalues, urgency)
        return self.qtransform(node._replace(qvalues=qvalues))

    def exploration(self, node: NodeStatistics) -> jax.Array:
        """c * P(a) * sqrt(N) [M, C]."""
        visits = node.node_visits.astype(node.qvalues.dtype)
        if node.row_parameters is None:
            c = self.pb_c_init + jnp.log((visits + self.pb_c_base + 1) / self.pb_c_base)
        else:
            c = node.parameters
        if self.variance_scaling is not None:
            c = c * self.variance_scaling.factor(node)
        return jnp.asarray((c * jnp.sqrt(visits))[:, None] * node.prior_probs)


def _forced_scores(node: NodeStatistics, *, rule: PuctRule, k) -> jax.Array:
    """The scores [M, C], infinite where an action is owed visits."""
    owed = node.visit_counts < _forced_visits(node, k)
    owed = owed & (node.visit_counts > 0) & (node.prior_probs > 0)
    return jnp.where(owed, jnp.inf, rule.scores(node))


def _forced_visits(node, k):
    total = jnp.sum(node.visit_counts, axis=1, keepdims=True)
    return jnp.sqrt(k * node.prior_probs * total)


def _pruned_visits(tree, c_puct, rule: PuctRule, k) -> jax.Array:
    """The visits [B, A] of the roots without those that were forced and no more.

    The most visited action keeps its visits. Another one loses up to its forced visits
    as long as its score stays below that of the most visited one, and is left out if
    one visit or none remains.
    """
    root = root_statistics(tree, c_puct)
    visits = root.visit_counts
    best = jnp.argmax(visits, axis=1)[:, None]
    exploration, values = rule.exploration(root), rule.values(root)
    scores = values + exploration / (1 + visits)
    gap = jnp.take_along_axis(scores, best, axis=1) - values
    needed = jnp.where(gap > 0, exploration / jnp.where(gap > 0, gap, 1), visits)
    unforced = visits - jnp.floor(_forced_visits(root, k))
    kept = jnp.clip(jnp.maximum(jnp.floor(needed), unforced), 0, visits)
    kept = jnp.where(kept <= 1, 0, kept)
    is_best = jnp.arange(tree.num_actions)[None, :] == best
    return jnp.where(is_best, visits, kept)
