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
    nodes. A node lists only the children that it has visited, in the order of their
    first visit; the priors of its other actions wait in `unvisited_prior_probs`, the
    highest of them ready in `next_action` and `next_prior_prob`. That keeps a step of
    the descent small however many actions a game has.

    A finished position is a node without children; `discounts` is exactly 0 there. A
    slot whose simulation opened no node has the parent `NO_PARENT`.

    `raw_values` and `value_sums` are from the view of the player to move at the node;
    `rewards` and `qvalues` from the view of the player who moved into it.
    """

    # Of each node.
    visits: jax.Array  # [B, N] int32: visits of the node and of the edge into it
    raw_values: jax.Array  # [B, N] float: the evaluator's value
    value_sums: jax.Array  # [B, N] float: raw value plus all returns from below
    num_children: jax.Array  # [B, N] int32: children visited
    children: jax.Array  # [B, N, K] int32: the nodes of the children visited
    unvisited_prior_probs: jax.Array  # [B, N, A] float: 0 where illegal or visited
    next_action: jax.Array  # [B, N] int32: the unvisited action of highest prior
    next_prior_prob: jax.Array  # [B, N] float: its prior, 0 if none is left
    embeddings: Any  # [B, N, ...]: the model's state
    # Of the edge into each node.
    parents: jax.Array  # [B, N] int32
    actions: jax.Array  # [B, N] int32: the action that leads into the node
    prior_probs: jax.Array  # [B, N] float
    rewards: jax.Array  # [B, N] float
    discounts: jax.Array  # [B, N] float
    qvalues: jax.Array  # [B, N] float: mean of reward + discount * return
    # Of the actions at the root.
    root_prior_probs: jax.Array  # [B, A] float: 0 where illegal
    root_children: jax.Array  # [B, A] int32: node or NO_CHILD
    root_visit_counts: jax.Array  # [B, A] int32
    root_qvalues: jax.Array  # [B, A] float

    ROOT: ClassVar[int] = 0
    NO_PARENT: ClassVar[int] = -1
    NO_CHILD: ClassVar[int] = -1

    @property
    def num_actions(self) -> int:
        return self.root_children.shape[-1]

    @property
    def num_simulations(self) -> int:
        return self.visits.shape[-1] - 1

    @property
    def root_finished(self) -> jax.Array:
        """[B] bool: the root has no legal action, so nothing was searched."""
        return jnp.all(self.root_prior_probs == 0, axis=-1)

    def summary(self) -> SearchSummary:
        """Statistics of the roots, as mctx's `search_tree.summary()`."""
        visit_counts = self.root_visit_counts.astype(self.root_qvalues.dtype)
        total = jnp.sum(visit_counts, axis=-1, keepdims=True)
        return SearchSummary(
            visit_counts=visit_counts,
            visit_probs=jnp.where(
                total > 0, visit_counts / jnp.maximum(total, 1), 1 / self.num_actions
            ),
            value=self.value_sums[:, self.ROOT]
            / jnp.maximum(self.visits[:, self.ROOT], 1),
            qvalues=self.root_qvalues,
        )
