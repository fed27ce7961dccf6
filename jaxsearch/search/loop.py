"""The search loop: descend, expand, back up and select, for a batch of trees at once.

One simulation costs the same however large the tree has grown, and nearly the same
however many actions a game has:

- Every node keeps the child that its scores choose. They change only when a simulation
  passes through the node, so that a descent follows pointers, all B of them in lock
  step, and the choice is made again afterwards, for the nodes of all paths together.
- A choice reads the visited children of a node and the best of its unvisited actions.
- Expansion and backup write single entries, in place. Nothing selects over, copies or
  reduces an array of all actions of all nodes.

What varies between kinds of search is the two selection rules, passed in as functions.
"""

import dataclasses
from functools import partial
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import mctx

from jaxsearch import keys
from jaxsearch.search import memory, stopping
from jaxsearch.search.arguments import check_arguments
from jaxsearch.search.expand import (
    Roots,
    ends_the_search,
    expand,
    keep_highest,
    known_return,
    new_tree,
)
from jaxsearch.search.options import (
    SearchOptions,
    check_options,
    check_same_kind,
    row_budgets,
)
from jaxsearch.search.paths import Backup, Descent, back_up, descend, path_buffer
from jaxsearch.search.proofs import unknown_bounds
from jaxsearch.search.reuse import continued
from jaxsearch.search.root_priors import root_priors
from jaxsearch.search.select import (
    Rules,
    ScoreFn,
    places_buffer,
    select_at_roots,
    select_below,
    select_on_descent,
)
from jaxsearch.search.sharding import over_rows
from jaxsearch.search.tree import Tree

Params = Any


def search(
    params: Params,
    rng_key: jax.Array,
    *,
    root: mctx.RootFnOutput,
    recurrent_fn: mctx.RecurrentFn,
    root_score: ScoreFn,
    interior_score: ScoreFn,
    num_simulations: int,
    max_depth: int | None = None,
    invalid_actions: jax.Array | None = None,
    root_prior_probs: jax.Array | None = None,
    root_order: jax.Array | None = None,
    row_parameters: Any = None,
    not_counted: jax.Array | None = None,
    count_root_evaluation: bool = True,
    keep_squares: bool = False,
    keep_qvalue_range: bool = False,
    **options: Unpack[SearchOptions],
) -> Tree:
    """Runs `num_simulations` simulations from each of the B roots.

    Where the batch is spread over the axes of an explicit mesh, each device runs a loop
    of its own on its rows.

    Args:
      params: passed on to `recurrent_fn`.
      rng_key: consumed; simulation i gets the key that mctx would give it. With keys
        [B], one for each row, the model gets keys [B].
      root: mctx's root: prior_logits [B, A], value [B], embedding [B, ...].
      recurrent_fn: mctx's model: `(params, key, action [B], embedding)` to
        `(mctx.RecurrentFnOutput, embedding)`. A discount of exactly 0 ends the game:
        the position is never expanded, and the value and logits that come with it are
        not used, whatever they are. A prior of exactly 0 (a logit of -inf, or one so
        low that softmax gives 0) marks an action below the root as illegal. A row that
        gets a number that is not finite, or a position that goes on without a legal
        action, is marked in `Tree.failed` and not searched any further.
      root_score, interior_score: the selection rules.
      num_simulations: at least 1.
      max_depth: most edges from the root to a leaf; a leaf at that depth is evaluated
        anew at each visit. None for no limit.
      invalid_actions: [B, A], nonzero = illegal at the root, None for none. A row with
        no legal action is a finished position: it is not searched.
      root_prior_probs: [B, A], the root's priors where they are known as probabilities
        rather than logits; used as they are, 0 where illegal. None for the softmax of
        `root.prior_logits`.
      root_order: [B, A], the order in which the root's unvisited actions are opened,
        the highest number first; one of 0 is never opened. None for the priors.
      row_parameters: arrays [B, ...] for the selection rules.
      not_counted: [B, A] int, visits of earlier searches that an early stop leaves out,
        as the choice of the move does. None for none.
      count_root_evaluation: whether the root starts with one visit, its own evaluation
        (mctx), or with none (the AlphaZero pseudocode).
      keep_squares: whether `Tree.square_sums` is kept, for variances.
      keep_qvalue_range: whether `Tree.qvalue_range` is kept. The scores may depend on
        it: choices are then made on the descent, which is slower.
      options: see `SearchOptions`.

    Raises:
      ValueError: for counts below 1 and for arrays whose shapes do not fit together.
    """
    check_arguments(root, num_simulations, invalid_actions, max_depth, root_prior_probs)
    check_options(root, num_simulations, options)
    roots = _roots(
        root,
        invalid_actions,
        root_prior_probs,
        root_order,
        options.get("max_children"),
        options.get("tree"),
    )
    limits = row_budgets(root, num_simulations, options)
    start = partial(
        new_tree,
        count_root_evaluation=count_root_evaluation,
        keep_squares=keep_squares,
        keep_qvalue_range=keep_qvalue_range,
        **_size(num_simulations, options),
    )
    memory.check_fits(jax.eval_shape(start, roots))
    run = partial(
        _search,
        recurrent_fn=recurrent_fn,
        root_score=root_score,
        interior_score=interior_score,
        num_simulations=num_simulations,
        max_depth=max_depth,
        max_children=options.get("max_children"),
        early_stop=options.get("early_stop"),
        refill_terminals=options.get("refill_terminals", False),
        start=start,
    )
    whole, rows = (params, rng_key), ()
    if keys.is_for_each_row(rng_key):
        whole, rows = (params,), (rng_key,)
    rows += roots, options.get("tree"), limits, row_parameters, not_counted
    return over_rows(run, whole, rows, like=roots.prior_probs)


def memory_estimate(
    root: mctx.RootFnOutput,
    num_simulations: int,
    *,
    keep_squares: bool = False,
    keep_qvalue_range: bool = False,
    **options: Unpack[SearchOptions],
) -> memory.MemoryEstimate:
    """The memory that the tree of a search takes. Nothing is computed or compiled.

    Args:
      root: as for the search; arrays or shapes (`jax.ShapeDtypeStruct`).
      keep_squares: for a search with `keep_squares` or `variance_scaling`.
      keep_qvalue_range: for one with `qtransform_by_tree_range`.

    A search whose tree is larger than the memory of the local devices is refused.
    """
    check_arguments(root, num_simulations)
    check_options(root, num_simulations, options)
    roots = partial(_roots, max_children=options.get("max_children"))
    start = partial(
        new_tree,
        count_root_evaluation=True,
        keep_squares=keep_squares,
        keep_qvalue_range=keep_qvalue_range,
        **_size(num_simulations, options),
    )
    return memory.of_tree(jax.eval_shape(lambda root: start(roots(root)), root))


def _roots(
    root,
    invalid_actions=None,
    root_prior_probs=None,
    order=None,
    max_children=None,
    reused=None,
) -> Roots:
    prior_probs, failed = root_priors(root, invalid_actions, root_prior_probs)
    return Roots(
        value=jnp.asarray(root.value),
        embedding=root.embedding,
        prior_probs=_among_kept(
            prior_probs, prior_probs if order is None else order, max_children, reused
        ),
        order=order,
        num_legal=jnp.sum(prior_probs > 0, axis=1, dtype=jnp.int32),
        failed=failed,
    )


def _size(num_simulations, options: SearchOptions) -> dict[str, Any]:
    """What the options say of the tree's arrays."""
    tree = options.get("tree")
    return {
        "capacity": tree.capacity
        if tree is not None
        else options.get("capacity") or num_simulations + 1,
        "max_children": options.get("max_children"),
        "prior_dtype": options.get("prior_dtype"),
        "solve": options.get("solve", False),
    }


class _State(NamedTuple):
    """What a simulation changes."""

    key: jax.Array
    tree: Tree
    path: jax.Array  # [D, B] int32: see `Descent`
    below: jax.Array  # int32: see `back_up`
    watch: stopping.Watch | None


def _search(
    params,
    rng_key,
    roots,
    reused,
    limits,
    row_parameters,
    not_counted,
    *,
    recurrent_fn,
    root_score,
    interior_score,
    num_simulations,
    max_depth,
    max_children,
    early_stop,
    refill_terminals,
    start,
):
    tree = start(roots)
    rules = Rules(
        root_score,
        interior_score,
        row_parameters,
        on_descent=tree.qvalue_range is not None,
        reused=reused is not None,
    )
    limits = jnp.where(tree.root_finished | tree.failed, 0, limits)
    num_steps = num_simulations
    if reused is not None:
        check_same_kind(reused, tree)
        tree = continued(reused, tree)
        tree = select_at_roots(tree, limits > 0, rules)
        num_steps = tree.capacity
    num_steps = min(max_depth or num_steps, num_steps)
    row = jnp.zeros_like(limits)
    state = _State(
        key=rng_key,
        tree=tree,
        path=path_buffer(row, num_steps),
        below=places_buffer(row, num_steps),
        watch=None if early_stop is None else stopping.watch(tree, not_counted),
    )

    def active(state):
        tree = state.tree
        active = (tree.simulations < limits) & ~tree.failed
        if tree.proofs is not None:
            active = active & ~tree.proofs.proven[:, Tree.ROOT]
        if early_stop is not None:
            active = active & ~state.watch.stopped
        return active

    def go_down(state):
        next_child = None
        if rules.on_descent:
            next_child = partial(select_on_descent, state.tree, rules=rules)
        return descend(state.tree, active(state), state.path, next_child, max_depth)

    def go_up(state, descent, backup):
        tree, below = back_up(state.tree, descent, backup, state.below)
        moved = descent.length >= 0
        tree = dataclasses.replace(tree, simulations=tree.simulations + moved)
        tree = select_at_roots(tree, moved, rules)
        if not rules.on_descent:
            num_below = jnp.sum(jnp.maximum(descent.length, 0))
            tree = select_below(tree, below, num_below, rules)
        watch = state.watch
        if early_stop is not None:
            watch = stopping.look(early_stop, watch, tree, moved, limits)
        return state._replace(tree=tree, path=descent.path, below=below, watch=watch)

    def refill(state, descent):
        """Makes the simulations that need no model, until each row needs it."""

        def ended(state, descent):
            return (descent.length > 0) & ends_the_search(state.tree, descent.last)

        def step(carry):
            state, descent, rows = carry
            unknown = jnp.zeros_like(state.tree.root_prior_probs[:, 0])
            node_return = known_return(state.tree, descent.last, unknown)
            backup = Backup(node_return, unknown_bounds(rows))
            state = go_up(state, _of_rows(descent, rows), backup)
            descent = go_down(state)
            return state, descent, ended(state, descent)

        carry = state, descent, ended(state, descent)
        return jax.lax.while_loop(lambda carry: jnp.any(carry[2]), step, carry)[:2]

    def simulate(state):
        key, _, expand_key = keys.split(state.key, 3)
        state = state._replace(key=key)
        descent = go_down(state)
        if refill_terminals:
            state, descent = refill(state, descent)
        tree, backup = expand(
            state.tree,
            descent,
            params,
            expand_key,
            recurrent_fn,
            max_depth=max_depth,
            max_children=max_children,
        )
        descent = _of_rows(descent, ~tree.failed)
        return go_up(state._replace(tree=tree), descent, backup)

    state = jax.lax.while_loop(lambda state: jnp.any(active(state)), simulate, state)
    return state.tree


def _of_rows(descent: Descent, rows: jax.Array) -> Descent:
    """The paths of some rows [B] bool; the others are at rest."""
    return descent._replace(length=jnp.where(rows, descent.length, -1))


def _among_kept(prior_probs, order, max_children, reused):
    """The priors [B, A] of the actions that the root keeps, scaled to the same sum.

    Those that were visited in the tree to go on with are kept as well: they may be
    proven.
    """
    kept, actions = keep_highest(order, max_children)
    if actions is None:
        return prior_probs
    columns = jnp.where(kept > 0, actions.astype(jnp.int32), prior_probs.shape[1])
    is_kept = jax.vmap(lambda row, i: row.at[i].set(True, mode="drop"))(
        jnp.zeros_like(prior_probs, bool), columns
    )
    if reused is not None:
        visited = reused.root_children != Tree.NO_CHILD
        is_kept = is_kept | (visited & ~reused.failed[:, None])
    total = jnp.sum(prior_probs, axis=1, keepdims=True)
    kept_probs = jnp.where(is_kept, prior_probs, 0)
    kept_total = jnp.sum(kept_probs, axis=1, keepdims=True)
    cut = jnp.any((order > 0) & ~is_kept, axis=1, keepdims=True)
    return jnp.where(
        cut, kept_probs * total / jnp.maximum(kept_total, 1e-30), prior_probs
    )
