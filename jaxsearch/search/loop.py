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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from jaxsearch.search.arguments import check_arguments, check_output
from jaxsearch.search.root_priors import root_priors
from jaxsearch.search.rows import pick, put, put_in_row
from jaxsearch.search.select import ScoreFn, chunk_size, select_on_paths
from jaxsearch.search.tree import Tree

Params = Any

_STRIDE = 4  # levels that a descent takes in one turn of its loop


class _Descent(NamedTuple):
    """B paths from the root to the node where each descent stopped."""

    path: jax.Array  # [D, B] int32: node at each depth, N past a row's end
    last: jax.Array  # [B] int32: the node at the end
    length: jax.Array  # [B] int32: depth of the last node, -1 for a row at rest
    longest: jax.Array  # [] int32: a bound of the lengths


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
    count_root_evaluation: bool = True,
) -> Tree:
    """Runs `num_simulations` simulations from each of the B roots.

    Where the batch is spread over the axes of an explicit mesh, each device runs a loop
    of its own on its rows.

    Args:
      params: passed on to `recurrent_fn`.
      rng_key: consumed; simulation i gets the key that mctx would give it.
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
      count_root_evaluation: whether the root starts with one visit, its own evaluation
        (mctx), or with none (the AlphaZero pseudocode).

    Raises:
      ValueError: for counts below 1 and for arrays whose shapes do not fit together.
    """
    check_arguments(root, num_simulations, invalid_actions, max_depth, root_prior_probs)
    prior_probs, failed = root_priors(root, invalid_actions, root_prior_probs)
    run = partial(
        _search,
        recurrent_fn=recurrent_fn,
        root_score=root_score,
        interior_score=interior_score,
        num_simulations=num_simulations,
        max_depth=max_depth,
        count_root_evaluation=count_root_evaluation,
    )
    if root_order is None:
        root_order = prior_probs
    value = jnp.asarray(root.value)
    of_rows = value, root.embedding, prior_probs, root_order, failed, row_parameters
    axes = _explicit_axes(prior_probs)[0]
    if axes is not None:
        run = jax.shard_map(
            run,
            in_specs=(jax.tree.map(_explicit_axes, params), jax.P(), jax.P(axes)),
            out_specs=jax.P(axes),
        )
    return run(params, rng_key, of_rows)


def _explicit_axes(x) -> jax.P:
    """The axes of an explicit mesh that each dimension of `x` is spread over."""
    return jax.P(*jax.typeof(x).sharding.spec)


def _search(
    params,
    rng_key,
    of_rows,
    *,
    recurrent_fn,
    root_score,
    interior_score,
    num_simulations,
    max_depth,
    count_root_evaluation,
):
    *of_root, row_parameters = of_rows
    tree = _new_tree(num_simulations, count_root_evaluation, *of_root)
    num_steps = min(max_depth or num_simulations, num_simulations)
    row = jnp.zeros_like(tree.visits[:, 0])
    path = jnp.repeat(row[None, :], num_steps + _STRIDE, axis=0)
    nodes = jnp.repeat(row, num_steps + chunk_size(len(row)))

    def simulate(simulation, carry):
        key, tree, path, nodes = carry
        key, _, expand_key = jax.random.split(key, 3)
        descent = _descend(tree, path)
        tree, leaf_return = _expand(
            tree,
            descent,
            params,
            expand_key,
            recurrent_fn,
            new_node=(simulation + 1).astype(jnp.int32),
            max_depth=max_depth,
        )
        descent = descent._replace(length=jnp.where(tree.failed, -1, descent.length))
        tree, nodes = _back_up(tree, descent, leaf_return, nodes)
        tree = select_on_paths(
            tree,
            descent.length >= 0,
            nodes,
            jnp.sum(jnp.maximum(descent.length, 0)),
            root_score=root_score,
            interior_score=interior_score,
            row_parameters=row_parameters,
        )
        return key, tree, descent.path, nodes

    carry = rng_key, tree, path, nodes
    return jax.lax.fori_loop(0, num_simulations, simulate, carry)[1]


def _new_tree(
    num_simulations, count_root_evaluation, value, embedding, prior_probs, order, failed
) -> Tree:
    batch_size, num_actions = prior_probs.shape
    num_nodes = num_simulations + 1
    value = jnp.where(failed, 0, value.astype(prior_probs.dtype))
    count = jnp.zeros_like(value, jnp.int32)

    def of_nodes(like, fill=0):
        return _filled((batch_size, num_nodes), like, fill)

    value_sum = value if count_root_evaluation else value * 0
    next_action, next_prior_prob = _highest(order)
    unvisited = _filled((batch_size, num_nodes, num_actions), value, 0)
    return Tree(
        visits=of_nodes(count).at[:, 0].set(int(count_root_evaluation)),
        raw_values=of_nodes(value).at[:, 0].set(value),
        value_sums=of_nodes(value).at[:, 0].set(value_sum),
        num_children=of_nodes(count),
        last_child=of_nodes(count, Tree.NO_CHILD),
        unvisited_prior_probs=unvisited.at[:, 0].set(order),
        next_action=of_nodes(count).at[:, 0].set(next_action),
        next_prior_prob=of_nodes(value).at[:, 0].set(next_prior_prob),
        selected=of_nodes(count, Tree.NO_CHILD),
        embeddings=jax.tree.map(
            lambda x: jnp.repeat(x[:, None], num_nodes, axis=1), embedding
        ),
        previous_sibling=of_nodes(count, Tree.NO_CHILD),
        parents=of_nodes(count, Tree.NO_PARENT),
        actions=of_nodes(count, Tree.NO_PARENT),
        prior_probs=of_nodes(value),
        rewards=of_nodes(value),
        discounts=of_nodes(value),
        qvalues=of_nodes(value),
        root_prior_probs=prior_probs,
        failed=failed,
    )


def _descend(tree, path) -> _Descent:
    """Follows the selected children from the roots to nodes that have none."""
    at_rest = tree.root_finished | tree.failed
    no_node = jnp.full_like(path[0], tree.visits.shape[1])
    start = jnp.where(at_rest, no_node, Tree.ROOT)
    path = jax.lax.dynamic_update_index_in_dim(path, start, 0, axis=0)
    length = -at_rest.astype(jnp.int32)

    def step(carry):
        depth, node, walking, path, length = carry
        for _ in range(_STRIDE):
            child = pick(tree.selected, node)
            walking = (child != Tree.NO_CHILD) & ~at_rest
            node = jnp.where(walking, child, node)
            depth = depth + 1
            length = length + walking
            path = jax.lax.dynamic_update_index_in_dim(
                path, jnp.where(walking, child, no_node), depth, axis=0
            )
        return depth, node, walking, path, length

    depth, last, _, path, length = jax.lax.while_loop(
        lambda carry: jnp.any(carry[2]),
        step,
        (
            jnp.int32(0),
            jnp.zeros_like(no_node),
            ~at_rest,
            path,
            -at_rest.astype(jnp.int32),
        ),
    )
    return _Descent(path=path, last=last, length=length, longest=depth)


def _expand(tree, descent, params, key, recurrent_fn, new_node, max_depth):
    """Evaluates one edge a row; returns the tree and the return [B] to back up.

    Where the descent stopped at a finished position or at the greatest depth, that
    position is evaluated again; elsewhere its best unvisited action opens the node
    `new_node`, and the return is that of the new edge.
    """
    num_nodes = tree.visits.shape[1]
    searched = descent.length >= 0
    last = descent.last
    again = (last != Tree.ROOT) & (pick(tree.discounts, last) == 0)
    if max_depth is not None:
        again = again | (descent.length == max_depth)
    parent = jnp.where(again, pick(tree.parents, last), last)
    action = jnp.where(again, pick(tree.actions, last), pick(tree.next_action, parent))
    embedding = jax.tree.map(lambda x: pick(x, parent), tree.embeddings)
    output, embedding = recurrent_fn(params, key, action, embedding)
    check_output(output, embedding, tree)

    dtype = tree.value_sums.dtype
    reward, discount = output.reward.astype(dtype), output.discount.astype(dtype)
    value = jnp.where(discount == 0, 0, output.value.astype(dtype))
    probs, has_probs = _softmax(output.prior_logits.astype(dtype))
    fine = jnp.isfinite(reward + discount * value) & (has_probs | (discount == 0))
    failed = tree.failed | (searched & ~fine)
    opened = searched & fine & ~again
    linked_parent = jnp.where(opened, parent, num_nodes)
    num_children = pick(tree.num_children, parent)

    def write(slots, values):
        return jax.lax.dynamic_update_index_in_dim(slots, values, new_node, axis=1)

    def fill(slots, values, default=0):
        values = jnp.where(opened, values, default)
        return write(slots, values.astype(slots.dtype))

    # The barrier keeps XLA from reading these again after a write, for which it would
    # copy the whole array.
    sibling, prior_prob = jax.lax.optimization_barrier(
        (pick(tree.last_child, parent), pick(tree.next_prior_prob, parent))
    )
    # This row is read from the array just written, for the same reason.
    unvisited_prior_probs = put_in_row(
        write(tree.unvisited_prior_probs, probs), linked_parent, action, 0 * value
    )
    prior_prob = jnp.where(
        parent == Tree.ROOT, pick(tree.root_prior_probs, action), prior_prob
    )
    next_action, next_prior_prob = _highest(probs)
    rest_action, rest_prior_prob = _highest(pick(unvisited_prior_probs, parent))
    edge_return = reward + discount * value
    tree = dataclasses.replace(
        tree,
        visits=fill(tree.visits, 1),
        raw_values=fill(tree.raw_values, value),
        value_sums=fill(tree.value_sums, value),
        num_children=put(tree.num_children, linked_parent, num_children + 1),
        last_child=put(tree.last_child, linked_parent, new_node),
        unvisited_prior_probs=unvisited_prior_probs,
        next_action=put(
            fill(tree.next_action, next_action), linked_parent, rest_action
        ),
        next_prior_prob=put(
            fill(tree.next_prior_prob, next_prior_prob), linked_parent, rest_prior_prob
        ),
        embeddings=jax.tree.map(write, tree.embeddings, embedding),
        previous_sibling=fill(tree.previous_sibling, sibling, Tree.NO_CHILD),
        parents=fill(tree.parents, parent, Tree.NO_PARENT),
        actions=fill(tree.actions, action, Tree.NO_PARENT),
        prior_probs=fill(tree.prior_probs, prior_prob),
        rewards=fill(tree.rewards, reward),
        discounts=fill(tree.discounts, discount),
        qvalues=fill(tree.qvalues, jnp.where(discount == 0, reward, edge_return)),
        failed=failed,
    )
    return tree, jnp.where(again, value, edge_return)


def _back_up(tree, descent, node_return, nodes) -> tuple[Tree, jax.Array]:
    """Adds the returns to every node from the ends of the paths to the roots.

    Returns the tree and `nodes`, of which the first entries are those below the roots:
    row * N + node, row after row.
    """
    batch_size, num_nodes = tree.visits.shape
    moving = descent.length >= 0
    below = jnp.maximum(descent.length, 0)
    first = jnp.cumsum(below) - below
    row_start = jnp.arange(batch_size, dtype=jnp.int32) * num_nodes

    def step(carry):
        depth, visits, value_sums, qvalues, nodes, node_return = carry
        node = jnp.where(moving, descent.path[depth], num_nodes)
        on_path = node < num_nodes
        reward, discount = pick(tree.rewards, node), pick(tree.discounts, node)
        count = pick(visits, node) + 1
        total = pick(value_sums, node) + node_return
        # One rounding for the mean, so that equal means are equal to the last bit.
        mean = (count * reward + discount * total) / count
        place = jnp.where(on_path & (depth > 0), first + depth - 1, len(nodes))
        return (
            depth - 1,
            put(visits, node, count),
            put(value_sums, node, total),
            put(qvalues, node, jnp.where(discount == 0, reward, mean)),
            nodes.at[place].set(
                row_start + node, mode="drop", wrap_negative_indices=False
            ),
            jnp.where(on_path, reward + discount * node_return, node_return),
        )

    _, visits, value_sums, qvalues, nodes, _ = jax.lax.while_loop(
        lambda carry: carry[0] >= 0,
        step,
        (
            descent.longest,
            tree.visits,
            tree.value_sums,
            tree.qvalues,
            nodes,
            node_return,
        ),
    )
    tree = dataclasses.replace(
        tree, visits=visits, value_sums=value_sums, qvalues=qvalues
    )
    return tree, nodes


def _filled(shape, like, fill):
    """A constant array, sharded and varying over devices as `like` [B]."""
    like = jax.lax.expand_dims(jnp.full_like(like, fill), range(1, len(shape)))
    return jnp.broadcast_to(like, shape)


def _softmax(logits):
    """The softmax of each row [B, A], and whether it is one [B]: all zeros if not."""
    weights = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    total = jnp.sum(weights, axis=1, keepdims=True)
    is_finite = jnp.isfinite(total)
    return jnp.where(is_finite, weights / total, 0), is_finite[:, 0]


def _highest(probs):
    """The first column [B] of the highest entry [B, A] and the entry [B]."""
    columns = jnp.arange(probs.shape[1], dtype=jnp.int32)[None, :]
    highest = jnp.max(probs, axis=1)
    is_highest = probs == highest[:, None]
    return jnp.min(jnp.where(is_highest, columns, probs.shape[1] - 1), axis=1), highest
