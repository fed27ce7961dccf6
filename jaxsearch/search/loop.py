"""The search loop: descend, expand and back up, for a whole batch of trees at once.

One simulation costs the same however large the tree has grown, and nearly the same
however many actions a game has:

- All B descents walk in lock step, one `while_loop` over [B] cursors. A step reads the
  visited children of one node a tree, and the best of the actions not yet visited.
- Expansion and backup write single entries, in place. Nothing selects over, copies or
  reduces an array of all actions of all nodes; XLA copies a few [B, N] arrays.

What varies between kinds of search is the two selection rules, passed in as functions.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from jaxsearch.search.arguments import check_arguments, check_output
from jaxsearch.search.root_priors import masked_softmax
from jaxsearch.search.tree import Tree

Params = Any


class NodeStatistics(NamedTuple):
    """What a selection rule sees of one node in each of B trees.

    At the root there is a column for each of the A actions. Below it the columns are
    the visited children in the order of their first visit, some empty ones (prior and
    visits 0), and last the unvisited action of highest prior.
    """

    prior_probs: jax.Array  # [B, C] float: exactly 0 where illegal or empty
    visit_counts: jax.Array  # [B, C] int32
    qvalues: jax.Array  # [B, C] float: mover's view; to be ignored where unvisited
    node_value: jax.Array  # [B] float: mean value of the node, mover's view
    node_visits: jax.Array  # [B] int32: its own evaluation included


ScoreFn = Callable[[NodeStatistics], jax.Array]
"""Scores [B, C] of the columns: the highest is followed, the first of equals.

Of two unvisited actions the one with the higher prior must not score lower.
"""


class _Descent(NamedTuple):
    """B descents; the last step of each leads from `parent` to `child`."""

    depth: jax.Array  # [] int32: steps of the longest descent so far
    walking: jax.Array  # [B] bool
    parent: jax.Array  # [B] int32
    child: jax.Array  # [B] int32: node or NO_CHILD
    path: jax.Array  # [D, B] int32: node left at each depth, N past a row's end


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
    count_root_evaluation: bool = True,
) -> Tree:
    """Runs `num_simulations` simulations from each of the B roots.

    Args:
      params: passed on to `recurrent_fn`.
      rng_key: consumed; simulation i gets the key that mctx would give it.
      root: mctx's root: prior_logits [B, A], value [B], embedding [B, ...].
      recurrent_fn: mctx's model: `(params, key, action [B], embedding)` to
        `(mctx.RecurrentFnOutput, embedding)`. A discount of exactly 0 ends the game:
        the position is never expanded, and the value and logits that come with it are
        not used, whatever they are. A prior of exactly 0 (a logit of -inf, or one so
        low that softmax gives 0) marks an action below the root as illegal.
      root_score, interior_score: the selection rules.
      num_simulations: at least 1.
      max_depth: most edges from the root to a leaf; a leaf at that depth is evaluated
        anew at each visit. None for no limit.
      invalid_actions: [B, A], nonzero = illegal at the root, None for none. A row with
        no legal action is a finished position: it is not searched.
      root_prior_probs: [B, A], the root's priors where they are known as probabilities
        rather than logits; used as they are, 0 where illegal. None for the softmax of
        `root.prior_logits`.
      count_root_evaluation: whether the root starts with one visit, its own evaluation
        (mctx), or with none (the AlphaZero pseudocode).

    Raises:
      ValueError: for counts below 1 and for arrays whose shapes do not fit together.
    """
    check_arguments(root, num_simulations, invalid_actions, max_depth, root_prior_probs)
    num_steps = min(max_depth or num_simulations, num_simulations)
    if root_prior_probs is None:
        root_prior_probs = masked_softmax(root.prior_logits, invalid_actions)
    elif invalid_actions is not None:
        root_prior_probs = jnp.where(invalid_actions.astype(bool), 0, root_prior_probs)
    tree = _new_tree(root, root_prior_probs, num_simulations, count_root_evaluation)
    searched = ~tree.root_finished

    def simulate(simulation, carry):
        key, tree = carry
        key, _, expand_key = jax.random.split(key, 3)
        root_action = _first_argmax(root_score(_root_statistics(tree)))
        descent = _descend(tree, root_action, interior_score, searched, num_steps)
        new_node = (simulation + 1).astype(jnp.int32)
        tree, leaf, value = _expand(
            tree, descent, root_action, params, expand_key, recurrent_fn, new_node
        )
        return key, _back_up(tree, descent, root_action, leaf, value)

    _, tree = jax.lax.fori_loop(0, num_simulations, simulate, (rng_key, tree))
    return tree


def _new_tree(root, prior_probs, num_simulations, count_root_evaluation) -> Tree:
    batch_size, num_actions = prior_probs.shape
    num_nodes = num_simulations + 1
    dtype = jnp.result_type(prior_probs, root.value, jnp.float32)
    prior_probs = prior_probs.astype(dtype)
    value = root.value.astype(dtype)
    count = jnp.zeros_like(value, jnp.int32)

    def of_nodes(like, fill=0):
        return _filled((batch_size, num_nodes), like, fill)

    value_sum = value if count_root_evaluation else value * 0
    num_slots = min(num_actions, num_nodes)
    return Tree(
        visits=of_nodes(count).at[:, 0].set(int(count_root_evaluation)),
        raw_values=of_nodes(value).at[:, 0].set(value),
        value_sums=of_nodes(value).at[:, 0].set(value_sum),
        num_children=of_nodes(count),
        children=_filled((batch_size, num_nodes, num_slots), count, 0),
        unvisited_prior_probs=_filled((batch_size, num_nodes, num_actions), value, 0),
        next_action=of_nodes(count),
        next_prior_prob=of_nodes(value),
        embeddings=jax.tree.map(
            lambda x: jnp.repeat(x[:, None], num_nodes, axis=1), root.embedding
        ),
        parents=of_nodes(count, Tree.NO_PARENT),
        actions=of_nodes(count, Tree.NO_PARENT),
        prior_probs=of_nodes(value),
        rewards=of_nodes(value),
        discounts=of_nodes(value),
        qvalues=of_nodes(value),
        root_prior_probs=prior_probs,
        root_children=_filled((batch_size, num_actions), count, Tree.NO_CHILD),
        root_visit_counts=_filled((batch_size, num_actions), count, 0),
        root_qvalues=_filled((batch_size, num_actions), value, 0),
    )


def _root_statistics(tree: Tree) -> NodeStatistics:
    visits = tree.visits[:, Tree.ROOT]
    return NodeStatistics(
        prior_probs=tree.root_prior_probs,
        visit_counts=tree.root_visit_counts,
        qvalues=tree.root_qvalues,
        node_value=tree.value_sums[:, Tree.ROOT] / jnp.maximum(visits, 1),
        node_visits=visits,
    )


def _descend(tree, root_action, interior_score, searched, num_steps) -> _Descent:
    """Follows the scores to an unvisited edge, a finished position or the last step."""
    no_node = jnp.full_like(root_action, tree.visits.shape[1])
    child = _pick(tree.root_children, root_action)

    def goes_on(child, depth):
        open_game = _pick(tree.discounts, child) != 0
        return (child != Tree.NO_CHILD) & open_game & (depth < num_steps)

    descent = _Descent(
        depth=jnp.int32(1),
        walking=searched & goes_on(child, 1),
        parent=jnp.zeros_like(root_action),
        child=child,
        path=jnp.repeat(no_node[None, :], num_steps, axis=0)
        .at[0]
        .set(jnp.where(searched, 0, no_node)),
    )

    def step(descent):
        node, walking, depth = descent.child, descent.walking, descent.depth
        child = _select_child(tree, node, walking, interior_score)
        return _Descent(
            depth=depth + 1,
            walking=walking & goes_on(child, depth + 1),
            parent=jnp.where(walking, node, descent.parent),
            child=jnp.where(walking, child, descent.child),
            path=jax.lax.dynamic_update_index_in_dim(
                descent.path, jnp.where(walking, node, no_node), depth, axis=0
            ),
        )

    return jax.lax.while_loop(lambda d: jnp.any(d.walking), step, descent)


def _select_child(tree, node, walking, interior_score):
    """The child [B] that the scores choose at `node` [B], NO_CHILD if unvisited.

    Most nodes have few visited children: a row is read only as wide as the widest node
    of the batch needs, in steps of a factor of 4.
    """
    num_children = _pick(tree.num_children, node)
    visits = _pick(tree.visits, node)
    node_value = _pick(tree.value_sums, node) / jnp.maximum(visits, 1)
    next_prior_prob = _pick(tree.next_prior_prob, node)

    def select(width):
        children = _pick(tree.children[..., :width], node)
        exists = jnp.arange(width)[None, :] < num_children[:, None]
        statistics = NodeStatistics(
            prior_probs=_append(
                jnp.where(exists, _pick(tree.prior_probs, children), 0),
                next_prior_prob,
            ),
            visit_counts=_append(
                jnp.where(exists, _pick(tree.visits, children), 0),
                jnp.zeros_like(visits),
            ),
            qvalues=_append(_pick(tree.qvalues, children), jnp.zeros_like(node_value)),
            node_value=node_value,
            node_visits=visits,
        )
        column = _first_argmax(interior_score(statistics))
        return _pick(_append(children, jnp.full_like(node, Tree.NO_CHILD)), column)

    widths = [w for w in (4, 16, 64, 256) if w < tree.children.shape[-1]]
    widest = jnp.max(jnp.where(walking, num_children, 0))
    branch = sum((widest > w).astype(jnp.int32) for w in widths)
    widths.append(tree.children.shape[-1])
    return jax.lax.switch(branch, [partial(select, width) for width in widths])


def _expand(tree, descent, root_action, params, key, recurrent_fn, new_node):
    """Evaluates the last edge of each row; returns the tree, the leaf and its value.

    Every row fills its slot `new_node`; only rows that reached an unvisited edge link
    it into their tree.
    """
    parent, child = descent.parent, descent.child
    unvisited = jnp.where(
        parent == Tree.ROOT, root_action, _pick(tree.next_action, parent)
    )
    action = jnp.where(child == Tree.NO_CHILD, unvisited, _pick(tree.actions, child))
    embedding = jax.tree.map(lambda x: _pick(x, parent), tree.embeddings)
    output, embedding = recurrent_fn(params, key, action, embedding)
    check_output(output, embedding, tree)

    num_nodes = tree.visits.shape[1]
    searched = descent.path[0] == Tree.ROOT
    opened = searched & (child == Tree.NO_CHILD)
    leaf = jnp.where(opened, new_node, jnp.where(searched, child, num_nodes))
    linked_parent = jnp.where(opened, parent, num_nodes)
    at_root = opened & (parent == Tree.ROOT)

    dtype = tree.value_sums.dtype
    reward, discount = output.reward.astype(dtype), output.discount.astype(dtype)
    value = jnp.where(discount == 0, 0, output.value.astype(dtype))
    prior_prob = jnp.where(
        at_root,
        _pick(tree.root_prior_probs, action),
        _pick(tree.next_prior_prob, parent),
    )
    num_children = _pick(tree.num_children, parent)
    probs = jax.nn.softmax(output.prior_logits.astype(dtype), axis=-1)

    def fill(slots, values):
        return jax.lax.dynamic_update_index_in_dim(slots, values, new_node, axis=1)

    no_parent = jnp.full_like(parent, Tree.NO_PARENT)
    # Rows are read from the array just written: a read of the old one would copy it.
    unvisited_prior_probs = _put2(
        fill(tree.unvisited_prior_probs, probs), linked_parent, action, 0 * value
    )
    next_action, next_prior_prob = _highest(probs)
    rest_action, rest_prior_prob = _highest(_pick(unvisited_prior_probs, parent))
    tree = dataclasses.replace(
        tree,
        raw_values=fill(tree.raw_values, value),
        num_children=_put(tree.num_children, linked_parent, num_children + 1),
        children=_put2(tree.children, linked_parent, num_children, leaf),
        unvisited_prior_probs=unvisited_prior_probs,
        next_action=_put(
            fill(tree.next_action, next_action), linked_parent, rest_action
        ),
        next_prior_prob=_put(
            fill(tree.next_prior_prob, next_prior_prob), linked_parent, rest_prior_prob
        ),
        embeddings=jax.tree.map(fill, tree.embeddings, embedding),
        parents=fill(tree.parents, jnp.where(opened, parent, no_parent)),
        actions=fill(tree.actions, jnp.where(opened, action, no_parent)),
        prior_probs=fill(tree.prior_probs, prior_prob),
        rewards=fill(tree.rewards, reward),
        discounts=fill(tree.discounts, discount),
        root_children=_put(
            tree.root_children, jnp.where(at_root, action, tree.num_actions), leaf
        ),
    )
    return tree, leaf, value


def _back_up(tree, descent, root_action, leaf, value) -> Tree:
    """Adds the returns to every node from the leaves to the roots, in lock step."""
    tree, node_return = _add_return(tree, leaf, value)

    def step(carry):
        depth, tree, node_return = carry
        node = descent.path[depth - 1]
        tree, above = _add_return(tree, node, node_return)
        on_path = node < tree.visits.shape[1]
        return depth - 1, tree, jnp.where(on_path, above, node_return)

    _, tree, _ = jax.lax.while_loop(
        lambda carry: carry[0] > 0, step, (descent.depth, tree, node_return)
    )
    searched = descent.path[0] == Tree.ROOT
    action = jnp.where(searched, root_action, tree.num_actions)
    child = _pick(tree.root_children, root_action)
    return dataclasses.replace(
        tree,
        root_visit_counts=_put(
            tree.root_visit_counts, action, _pick(tree.visits, child)
        ),
        root_qvalues=_put(tree.root_qvalues, action, _pick(tree.qvalues, child)),
    )


def _add_return(tree, node, node_return):
    """Counts one visit with `node_return` [B] at `node` [B]; the return of its edge."""
    reward, discount = _pick(tree.rewards, node), _pick(tree.discounts, node)
    visits = _pick(tree.visits, node) + 1
    value_sum = _pick(tree.value_sums, node) + node_return
    # One rounding for the mean, so that equal means are equal to the last bit.
    mean = (visits * reward + discount * value_sum) / visits
    tree = dataclasses.replace(
        tree,
        visits=_put(tree.visits, node, visits),
        value_sums=_put(tree.value_sums, node, value_sum),
        qvalues=_put(tree.qvalues, node, jnp.where(discount == 0, reward, mean)),
    )
    return tree, reward + discount * node_return


def _filled(shape, like, fill):
    """A constant array, sharded and varying over devices as `like` [B]."""
    like = jax.lax.expand_dims(jnp.full_like(like, fill), range(1, len(shape)))
    return jnp.broadcast_to(like, shape)


def _first_argmax(scores):
    """Column [B] of the highest score [B, C], the first of equals, the last if NaN."""
    # On a CPU two plain reductions are several times faster than an argmax.
    columns = jnp.arange(scores.shape[1], dtype=jnp.int32)[None, :]
    highest = jnp.max(scores, axis=1, keepdims=True)
    return jnp.min(jnp.where(scores == highest, columns, scores.shape[1] - 1), axis=1)


def _highest(probs):
    """The column [B] of the highest entry [B, A] and the entry [B]."""
    return _first_argmax(probs), jnp.max(probs, axis=1)


def _append(columns, last):
    return jnp.concatenate([columns, last[:, None]], axis=1)


def _pick(rows: jax.Array, index: jax.Array) -> jax.Array:
    """`rows[b, index[b]]` for every b; an index out of range reads the nearest."""
    return jax.vmap(
        lambda row, i: row.at[i].get(mode="clip", wrap_negative_indices=False)
    )(rows, index)


def _put(rows, index, values):
    """Sets `rows[b, index[b]]`; an index out of range writes nothing."""
    return jax.vmap(
        lambda row, i, v: row.at[i].set(v, mode="drop", wrap_negative_indices=False)
    )(rows, index, values)


def _put2(rows, node, column, values):
    """Sets `rows[b, node[b], column[b]]`; an index out of range writes nothing."""
    return jax.vmap(
        lambda row, n, c, v: row.at[n, c].set(
            v, mode="drop", wrap_negative_indices=False
        )
    )(rows, node, column, values)
