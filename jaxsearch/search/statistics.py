"""What a search found out, in numbers: of its roots' actions and of its trees.

All functions are pure and work on the whole batch. In the shapes B is the number of
searches, N of nodes and A of actions. A row whose root is finished has no visits and
no children. A row that failed has what it had gathered when it stopped; all of it is
finite.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxsearch.search.arguments import LARGEST, TINY, check_count, check_numbers
from jaxsearch.search.moves import NO_ACTION, best_of, lcb_action
from jaxsearch.search.puct import PuctRule
from jaxsearch.search.qtransforms import qtransform_fixed_scale
from jaxsearch.search.select import root_statistics
from jaxsearch.search.tree import Tree


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class ActionStatistics:
    """What a search knows of each action of its B roots."""

    visit_counts: jax.Array  # [B, A] int32
    qvalues: jax.Array  # [B, A] float: mean return, mover's view; 0 where unvisited
    prior_probs: jax.Array  # [B, A] float: as searched, with any noise; 0 where illegal
    exploration: jax.Array  # [B, A] float: what PUCT adds to the value score


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class TreeSizes:
    """How large and how deep B trees are. The depth of a root is 0."""

    node_counts: jax.Array  # [B] int32: the root included
    max_depths: jax.Array  # [B] int32
    mean_depths: jax.Array  # [B] float: over all nodes


def action_statistics(
    tree: Tree,
    *,
    pb_c_init: ArrayLike = 1.25,
    pb_c_base: ArrayLike = 19652,
    c_puct: ArrayLike | None = None,
) -> ActionStatistics:
    """Statistics of the actions of the roots, with the exploration term of PUCT.

    That term is c * P(a) * sqrt(N) / (1 + N(a)) for the tree as it is now, which is
    what the next simulation would see.

    Args:
      pb_c_init, pb_c_base, c_puct: the constant c, as `puct_policy` takes it and with
        the same defaults.

    Raises:
      ValueError: a number out of range.
    """
    check_numbers(
        pb_c_init=(pb_c_init, 0, LARGEST),
        pb_c_base=(pb_c_base, TINY, LARGEST),
        c_puct=(c_puct, 0, LARGEST),
    )
    if c_puct is not None:
        c_puct = jnp.broadcast_to(c_puct, tree.failed.shape)
    root = root_statistics(tree, c_puct)
    rule = PuctRule(qtransform_fixed_scale, pb_c_init=pb_c_init, pb_c_base=pb_c_base)
    return ActionStatistics(
        visit_counts=root.visit_counts,
        qvalues=root.qvalues,
        prior_probs=root.prior_probs,
        exploration=rule.exploration(root) / (1 + root.visit_counts),
    )


def principal_variation(tree: Tree, length: int) -> jax.Array:
    """The actions [B, length] int32 that follow the most visited child from each root.

    Of equal visits it is the child of the higher Q, then of the higher prior, then of
    the lowest action. `NO_ACTION` fills the rest of a line that ends in a leaf. A
    Gumbel search plays the best of its most visited actions by another score, so that
    its action may be another one than the first of the line.

    Raises:
      ValueError: a length that is no whole number of at least 1.
    """
    check_count("length", length)

    def of_row(parents, actions, visits, qvalues, prior_probs):
        def step(node, _):
            best = best_of(parents == node, visits, qvalues, prior_probs, -actions)
            child = jnp.argmax(best).astype(node.dtype)
            exists = jnp.any(best)
            action = jnp.where(exists, actions[child], NO_ACTION)
            return jnp.where(exists, child, len(parents)), action

        root = jnp.full_like(parents[0], Tree.ROOT)
        return jax.lax.scan(step, root, length=length)[1]

    return jax.vmap(of_row)(
        tree.parents, tree.actions, tree.visits, tree.qvalues, tree.prior_probs
    )


def tree_sizes(tree: Tree) -> TreeSizes:
    """Counts and depths of the nodes."""

    def depths_of_row(parents):
        """The depth [N] of each node, 0 for empty slots."""
        has_parent = parents != Tree.NO_PARENT
        ancestors = jnp.where(has_parent, parents, jnp.arange(tree.capacity))

        def double(_, carry):
            depths, ancestors = carry
            return depths + depths[ancestors], ancestors[ancestors]

        # Every turn looks twice as far up.
        carry = has_parent.astype(jnp.int32), ancestors
        return jax.lax.fori_loop(0, tree.capacity.bit_length(), double, carry)[0]

    depths = jax.vmap(depths_of_row)(tree.parents)
    return TreeSizes(
        node_counts=tree.num_nodes,
        max_depths=jnp.max(depths, axis=1),
        mean_depths=jnp.sum(depths, axis=1) / jnp.maximum(tree.num_nodes, 1),
    )


def return_stdevs(tree: Tree, *, prior_stdev: ArrayLike = 0.5) -> jax.Array:
    """Standard deviations [B, A] float of the returns of the roots' actions.

    They are estimated from the visits of an action (with n - 1 in the denominator); an
    action that ends the game has 0.

    Args:
      prior_stdev: scalar, what an action of fewer than two visits has. The default is
        about that of returns spread evenly over [-1, 1].

    Raises:
      ValueError: the search kept no squares; or a number out of range.
    """
    square_sums = tree.square_sums
    if square_sums is None:
        raise ValueError(
            "the tree has no square_sums, from which the standard deviations of the "
            "returns follow; search with puct_policy(..., keep_squares=True)"
        )
    check_numbers(prior_stdev=(prior_stdev, 0, LARGEST))
    visits = jnp.maximum(tree.visits, 1)
    mean = tree.value_sums / visits
    variance = jnp.maximum(square_sums / visits - mean**2, 0)
    variance = variance * visits / jnp.maximum(visits - 1, 1)
    stdevs = jnp.abs(tree.discounts) * jnp.sqrt(variance)
    stdevs = jnp.where(tree.visits < 2, prior_stdev, stdevs)
    stdevs = jnp.where(tree.discounts == 0, 0, stdevs)
    children = tree.root_children
    of_children = jax.vmap(lambda row, child: row[child])(stdevs, children)
    return jnp.where(children != Tree.NO_CHILD, of_children, prior_stdev)


def root_lcb_action(
    tree: Tree,
    *,
    z: ArrayLike = 5.0,
    min_visit_share: ArrayLike = 0.1,
    prior_stdev: ArrayLike = 0.5,
) -> jax.Array:
    """The actions [B] int32 that `lcb_action` chooses at the roots.

    A row that failed gives its legal action of highest prior, a finished root
    `NO_ACTION`.

    Args:
      z, min_visit_share: see `lcb_action`.
      prior_stdev: see `return_stdevs`.

    Raises:
      ValueError: the search kept no squares; or a number out of range.
    """
    stdevs = return_stdevs(tree, prior_stdev=prior_stdev)
    summary = tree.summary()
    action = lcb_action(
        summary.visit_counts,
        summary.qvalues,
        stdevs,
        z=z,
        min_visit_share=min_visit_share,
    )
    likeliest = jnp.argmax(tree.root_prior_probs, axis=-1).astype(jnp.int32)
    action = jnp.where(tree.failed, likeliest, action)
    return jnp.where(tree.root_finished, NO_ACTION, action)
