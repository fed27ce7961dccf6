"""Options that all policies share, and their checks."""

from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from jaxsearch.search.arguments import check_count, check_types
from jaxsearch.search.stopping import EarlyStop
from jaxsearch.search.tree import Tree


class SearchOptions(TypedDict, total=False):
    """Options that all policies share.

    max_children: K, the actions that a node keeps: the K legal ones of highest prior.
      Where a node has more, the others are never visited and the priors of those kept
      are scaled up to the same sum; elsewhere nothing changes. The root of a tree to
      go on with keeps those that were visited as well. None for all.
    prior_dtype: of the priors that wait in the tree, most of its memory, such as
      `jnp.bfloat16`. None for that of the values, float32 at least.
    capacity: M, the nodes that a row has room for; `num_simulations + 1` by default.
      More leaves room for searches that go on with the tree. In a full tree
      simulations go on without new nodes, see `Tree.not_stored`.
    tree: of an earlier search, to go on with: `search_tree`, or
      `search_tree.advance(action)` after a move. Its options must be those of this
      search, but for `capacity`, which is the tree's. The root's priors are those of
      this search; that `root` is the position of the tree is not checked. None to
      start anew.
    budgets: [B] int, simulations of each row; more than `num_simulations` count as
      that, 0 leaves the choice to the priors. None for `num_simulations`.
    early_stop: when a row stops before its budget, see `EarlyStop`. None for never.
    refill_terminals: whether simulations that end at a finished (or proven) position
      are made at once, until each row has a position for the model to evaluate. The
      results are the same unless the model draws from its key; the model is called
      fewer times.
    solve: whether exact outcomes are proven, see `jaxsearch.search.proofs`: for games
      whose only reward is the outcome, -1, 0 or 1, at the end. A descent ends at a
      proven position, a proven row stops, a lost move is visited only if there is no
      other; at Gumbel's root also where the halving is due at it alone. Gumbel's
      completed values are those of the moves that are not lost.
    """

    max_children: int | None
    prior_dtype: Any
    capacity: int | None
    tree: Tree | None
    budgets: jax.Array | None
    early_stop: EarlyStop | None
    refill_terminals: bool
    solve: bool


def check_options(
    root: mctx.RootFnOutput, num_simulations: int, options: SearchOptions
) -> None:
    """Raises ValueError or TypeError for options that do not fit together."""
    known = SearchOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(
                f"this search has no option {name!r}: besides those in its signature "
                f"there are {', '.join(known)}"
            )
    check_types(
        tree=(options.get("tree"), Tree),
        early_stop=(options.get("early_stop"), EarlyStop),
        solve=(options.get("solve"), bool),
        refill_terminals=(options.get("refill_terminals"), bool),
    )
    batch_size, num_actions = np.shape(root.prior_logits)
    if (max_children := options.get("max_children")) is not None:
        check_count("max_children", max_children)
    if (dtype := options.get("prior_dtype")) is not None and not jnp.issubdtype(
        dtype, jnp.floating
    ):
        raise ValueError(
            f"prior_dtype is {dtype}, expected a floating dtype such as jnp.bfloat16"
        )
    tree, capacity = options.get("tree"), options.get("capacity")
    if capacity is not None:
        check_count("capacity", capacity)
        if tree is None and capacity < num_simulations + 1:
            raise ValueError(
                f"capacity is {capacity}, too small for {num_simulations} simulations, "
                f"which need up to {num_simulations + 1} nodes with the root: give at "
                "least that many, or none"
            )
        if tree is not None and capacity != tree.capacity:
            raise ValueError(
                f"capacity is {capacity}, but the given tree has room for "
                f"{tree.capacity} nodes a row: leave capacity out"
            )
    budgets = options.get("budgets")
    if budgets is not None:
        if np.shape(budgets) != (batch_size,):
            raise ValueError(
                f"budgets has shape {np.shape(budgets)}, expected ({batch_size},): "
                "the simulations of each row"
            )
        if not jnp.issubdtype(jnp.asarray(budgets).dtype, jnp.integer):
            raise ValueError(
                f"budgets has the dtype {jnp.asarray(budgets).dtype}, expected whole "
                "numbers"
            )
    if tree is not None and tree.root_prior_probs.shape != (batch_size, num_actions):
        raise ValueError(
            f"tree is of {tree.root_prior_probs.shape[0]} searches with "
            f"{tree.num_actions} actions, root.prior_logits has shape "
            f"{(batch_size, num_actions)}"
        )


def row_budgets(
    root: mctx.RootFnOutput, num_simulations: int, options: SearchOptions
) -> jax.Array:
    """The simulations [B] int32 that each row may make."""
    budgets = options.get("budgets")
    if budgets is None:
        return jnp.full_like(jnp.asarray(root.value), num_simulations, jnp.int32)
    return jnp.clip(jnp.asarray(budgets), 0, num_simulations).astype(jnp.int32)


def check_same_kind(tree: Tree, fresh: Tree) -> None:
    """Raises ValueError where a tree to go on with was made with other options."""

    def describe(tree: Tree) -> dict[str, Any]:
        leaves = jax.tree_util.tree_leaves_with_path(tree)
        return {jax.tree_util.keystr(k): (v.shape, str(v.dtype)) for k, v in leaves}

    old, new = describe(tree), describe(fresh)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            raise ValueError(
                f"the given tree does not fit this search: tree{name} is "
                f"{old.get(name, 'absent')}, this search needs "
                f"{new.get(name, 'none')}: search with the options and dtypes that "
                "made it (max_children, solve, variances, precision)"
            )
