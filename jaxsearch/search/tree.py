"""The search tree: one structure of arrays for a whole batch of searches.

Letters in the shapes: B searches side by side, M nodes a search has room for (its
capacity), A actions, K actions that a node keeps (`max_children`, or all).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class SearchSummary:
    """Statistics of the B roots, with the fields and meanings of mctx's summary."""

    visit_counts: jax.Array  # [B, A] float, as in mctx
    visit_probs: jax.Array  # [B, A] float: uniform where nothing was visited
    value: jax.Array  # [B] float: mean value of the root, its mover's view
    qvalues: jax.Array  # [B, A] float: mean return, 0 where unvisited


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Proofs:
    """What is known of exact outcomes, -1, 0 or 1 (see `jaxsearch.search.proofs`).

    `lower` and `upper` bound the outcome of the move into each node, in the view of the
    player who made it; at the root, column 0, the outcome of the position itself, in
    the view of the player to move. Whether that is known says `proven[:, 0]`, and what
    it is `lower[:, 0]`.
    """

    lower: jax.Array  # [B, M] int8: the outcome is no less
    upper: jax.Array  # [B, M] int8: the outcome is no more
    # Of the legal actions of each node, those that are not visited included.
    may_win: jax.Array  # [B, M] int32: whose outcome may be 1
    may_draw: jax.Array  # [B, M] int32: whose outcome may be 0 or 1

    @property
    def proven(self) -> jax.Array:
        """[B, M] bool: the outcome is known."""
        return self.lower == self.upper


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """Statistics of B searches. Node 0 is the root, the others come in order of time.

    An edge is stored with the node that it enters, so there are no more edges than
    nodes. A node lists only the children that it has visited, from the newest to the
    oldest: `last_child`, its `previous_sibling` and so on. The priors of the other
    actions wait in `unvisited_prior_probs`. That keeps a choice small however many
    actions a game has.

    A finished position is a node without children; `discounts` is exactly 0 there.
    Slots from `num_nodes` on are free: they have the parent `NO_PARENT` and no visits.

    `raw_values` and `value_sums` are from the view of the player to move at the node;
    `rewards` and `qvalues` from the view of the player who moved into it.
    """

    # Of each node.
    visits: jax.Array  # [B, M] int32: visits of the node and of the edge into it
    raw_values: jax.Array  # [B, M] float: the evaluator's value
    value_sums: jax.Array  # [B, M] float: raw value plus all returns from below
    square_sums: jax.Array | None  # [B, M] float: the same of their squares, if kept
    num_children: jax.Array  # [B, M] int32: children visited
    last_child: jax.Array  # [B, M] int32: the newest child, or NO_CHILD
    # 0 where illegal or visited; at the root the numbers of `root_order`, if given.
    unvisited_prior_probs: jax.Array  # [B, M, K] float
    slot_actions: jax.Array | None  # [B, M, K] int: the actions; None if K = A
    next_slot: jax.Array  # [B, M] int32: the unvisited action of highest prior
    next_prior_prob: jax.Array  # [B, M] float: its prior, 0 if none is left
    selected: jax.Array  # [B, M] int32: the child to go to next, or NO_CHILD: a new one
    embeddings: Any  # [B, M, ...]: the model's state
    # Of the edge into each node.
    previous_sibling: jax.Array  # [B, M] int32: the child opened before, or NO_CHILD
    parents: jax.Array  # [B, M] int32
    actions: jax.Array  # [B, M] int32: the action that leads into the node
    prior_probs: jax.Array  # [B, M] float
    rewards: jax.Array  # [B, M] float
    discounts: jax.Array  # [B, M] float
    qvalues: jax.Array  # [B, M] float: mean of reward + discount * return
    # Of the search.
    root_prior_probs: jax.Array  # [B, A] float: 0 where illegal
    num_nodes: jax.Array  # [B] int32: slots in use, the root's included
    simulations: jax.Array  # [B] int32: made by the last search
    not_stored: jax.Array  # [B] int32: simulations that found no free slot
    failed: jax.Array  # [B] bool: stopped at a number that is not finite
    qvalue_range: jax.Array | None  # [B, 2] float: the lowest and highest Q, if kept
    proofs: Proofs | None  # if asked for

    ROOT: ClassVar[int] = 0
    NO_PARENT: ClassVar[int] = -1
    NO_CHILD: ClassVar[int] = -1

    @property
    def num_actions(self) -> int:
        return self.root_prior_probs.shape[-1]

    @property
    def capacity(self) -> int:
        return self.visits.shape[-1]

    @property
    def root_finished(self) -> jax.Array:
        """[B] bool: the root has no legal action, so nothing was searched."""
        return jnp.all(self.root_prior_probs == 0, axis=-1)

    @property
    def root_children(self) -> jax.Array:
        """[B, A] int32: the node that each action of the root leads to, or NO_CHILD."""

        def of_row(parents, actions):
            nodes = jnp.arange(len(parents), dtype=jnp.int32)
            action = jnp.where(parents == self.ROOT, actions, self.num_actions)
            none = jnp.full(self.num_actions, self.NO_CHILD, jnp.int32)
            return none.at[action].set(nodes, mode="drop")

        return jax.vmap(of_row)(self.parents, self.actions)

    def _of_root_children(self, values: jax.Array, default: Any) -> jax.Array:
        """The values [B, M] of the nodes that the root's actions [B, A] lead to."""
        children = self.root_children
        picked = jax.vmap(lambda row, child: row[child])(values, children)
        return jnp.where(children != self.NO_CHILD, picked, default)

    def or_fallback(self, action_weights: jax.Array) -> jax.Array:
        """Shares [B, A] of weights, the priors' where a row failed or none is positive.

        Where outcomes are proven only of `playable` actions; at a finished root 0.
        """
        weights = jnp.where(self.failed[:, None], 0, action_weights)
        weights = jnp.where(self.playable, weights, 0)
        total = jnp.sum(weights, axis=1, keepdims=True)
        priors = jnp.where(self.playable, self.root_prior_probs, 0)
        if self.proofs is not None:
            prior_total = jnp.sum(priors, axis=1, keepdims=True)
            priors = priors / jnp.where(prior_total > 0, prior_total, 1)
        shares = weights / jnp.where(total > 0, total, 1)
        return jnp.where(total > 0, shares, priors)

    @property
    def playable(self) -> jax.Array:
        """[B, A] bool: the legal actions that may keep the best outcome.

        All legal ones, unless outcomes are proven: then those that may be no loss, and
        at a proven root those of its outcome. All if each of them is a loss.
        """
        legal = self.root_prior_probs > 0
        if self.proofs is None:
            return legal
        lower = self._of_root_children(self.proofs.lower, -1)
        upper = self._of_root_children(self.proofs.upper, 1)
        outcome = self.proofs.lower[:, self.ROOT, None]
        proven = self.proofs.proven[:, self.ROOT, None]
        playable = legal & jnp.where(proven, lower == outcome, upper > -1)
        none = ~jnp.any(playable, axis=1, keepdims=True)
        return jnp.where(none, legal, playable)

    def advance(self, actions: jax.Array, reset: jax.Array | None = None) -> "Tree":
        """The trees below the `actions` [B], see `jaxsearch.search.reuse.advance`."""
        # Imported here, since the function works on trees.
        from jaxsearch.search.reuse import advance

        return advance(self, actions, reset)

    def summary(self) -> SearchSummary:
        """Statistics of the roots, as mctx's `search_tree.summary()`."""
        visit_counts = self._of_root_children(self.visits, 0).astype(self.qvalues.dtype)
        total = jnp.sum(visit_counts, axis=-1, keepdims=True)
        return SearchSummary(
            visit_counts=visit_counts,
            visit_probs=jnp.where(
                total > 0, visit_counts / jnp.maximum(total, 1), 1 / self.num_actions
            ),
            value=self.value_sums[:, self.ROOT]
            / jnp.maximum(self.visits[:, self.ROOT], 1),
            qvalues=self._of_root_children(self.qvalues, 0),
        )
