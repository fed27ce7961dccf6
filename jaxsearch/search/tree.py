"""The search tree: one structure of arrays for a whole batch of searches.

Letters in the shapes: B searches side by side, N nodes a search (the root and one slot
a simulation), A actions, K children a node can have (the smaller of A and N).
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
class Tree:
    """Statistics of B searches. Node 0 is the root, node i comes from simulation i - 1.

    An edge is stored with the node that it enters, so there are no more edges than
    nodes. A node lists only the children that it has visited, from the newest to the
    oldest: `last_child`, its `previous_sibling` and so on. The priors of the other
    actions wait in `unvisited_prior_probs`. That keeps a choice small however many
    actions a game has.

    A finished position is a node without children; `discounts` is exactly 0 there. A
    slot whose simulation opened no node has the parent `NO_PARENT` and no visits.

    `raw_values` and `value_sums` are from the view of the player to move at the node;
    `rewards` and `qvalues` from the view of the player who moved into it.
    """

    # Of each node.
    visits: jax.Array  # [B, N] int32: visits of the node and of the edge into it
    raw_values: jax.Array  # [B, N] float: the evaluator's value
    value_sums: jax.Array  # [B, N] float: raw value plus all returns from below
    num_children: jax.Array  # [B, N] int32: children visited
    last_child: jax.Array  # [B, N] int32: the newest child, or NO_CHILD
    # 0 where illegal or visited; at the root the numbers of `root_order`, if given.
    unvisited_prior_probs: jax.Array  # [B, N, A] float
    next_action: jax.Array  # [B, N] int32: the unvisited action of highest prior
    next_prior_prob: jax.Array  # [B, N] float: its prior, 0 if none is left
    selected: jax.Array  # [B, N] int32: the child to go to next, or NO_CHILD: a new one
    embeddings: Any  # [B, N, ...]: the model's state
    # Of the edge into each node.
    previous_sibling: jax.Array  # [B, N] int32: the child opened before, or NO_CHILD
    parents: jax.Array  # [B, N] int32
    actions: jax.Array  # [B, N] int32: the action that leads into the node
    prior_probs: jax.Array  # [B, N] float
    rewards: jax.Array  # [B, N] float
    discounts: jax.Array  # [B, N] float
    qvalues: jax.Array  # [B, N] float: mean of reward + discount * return
    # Of the search.
    root_prior_probs: jax.Array  # [B, A] float: 0 where illegal
    failed: jax.Array  # [B] bool: stopped at a number that is not finite

    ROOT: ClassVar[int] = 0
    NO_PARENT: ClassVar[int] = -1
    NO_CHILD: ClassVar[int] = -1

    @property
    def num_actions(self) -> int:
        return self.root_prior_probs.shape[-1]

    @property
    def num_simulations(self) -> int:
        return self.visits.shape[-1] - 1

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

    def or_fallback(self, action_weights: jax.Array) -> jax.Array:
        """Weights [B, A]; where a search failed its priors, at a finished root 0."""
        failed, finished = self.failed[:, None], self.root_finished[:, None]
        weights = jnp.where(failed, self.root_prior_probs, action_weights)
        return jnp.where(finished, 0, weights)

    def summary(self) -> SearchSummary:
        """Statistics of the roots, as mctx's `search_tree.summary()`."""
        children = self.root_children
        visited = children != self.NO_CHILD

        def of_children(values):
            picked = jax.vmap(lambda row, child: row[child])(values, children)
            return jnp.where(visited, picked, 0)

        visit_counts = of_children(self.visits).astype(self.qvalues.dtype)
        total = jnp.sum(visit_counts, axis=-1, keepdims=True)
        return SearchSummary(
            visit_counts=visit_counts,
            visit_probs=jnp.where(
                total > 0, visit_counts / jnp.maximum(total, 1), 1 / self.num_actions
            ),
            value=self.value_sums[:, self.ROOT]
            / jnp.maximum(self.visits[:, self.ROOT], 1),
            qvalues=of_children(self.qvalues),
        )
