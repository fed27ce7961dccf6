"""How much memory a search tree takes, before anything is compiled."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.backend import device_bytes
from jaxsearch.search.tree import Tree


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """The size of a search tree in bytes. The model's own memory is not in it."""

    bytes_per_node: int  # of one row, embedding included
    tree_bytes: int  # of all rows and nodes, and what a row has besides its nodes


_MOST_NODES = 2**31  # an index of a node is an int32


class TreeTooLargeError(ValueError):
    """A search tree that the memory of the devices cannot hold."""


def of_tree(tree: Tree) -> MemoryEstimate:
    """The estimate for a tree, or for the shapes of one (`jax.eval_shape`)."""
    batch_size, capacity = tree.visits.shape
    of_nodes = {
        name: leaf
        for name, leaf in _leaves(tree).items()
        if leaf.shape[:2] == (batch_size, capacity) and name != ".root_prior_probs"
    }
    node_bytes = sum(map(_size, of_nodes.values())) // (batch_size * capacity)
    return MemoryEstimate(
        bytes_per_node=node_bytes,
        tree_bytes=sum(map(_size, _leaves(tree).values())),
    )


def check_fits(tree: Tree) -> None:
    """Raises TreeTooLargeError if the tree is larger than the memory there is."""
    batch_size, capacity = tree.visits.shape
    if batch_size * capacity >= _MOST_NODES:
        raise TreeTooLargeError(
            f"{batch_size} rows x {capacity} nodes are more than the {_MOST_NODES} "
            "nodes that a search can count: search with fewer simulations or a smaller "
            "batch"
        )
    available = device_bytes()
    estimate = of_tree(tree)
    if estimate.tree_bytes > available:
        raise TreeTooLargeError(
            f"the search tree takes {estimate.tree_bytes / 1e9:.1f} GB ({batch_size} "
            f"rows x {capacity} nodes x {estimate.bytes_per_node} bytes), but there "
            f"are {available / 1e9:.1f} GB of memory: search with fewer "
            "simulations, a smaller batch, a lower max_children or "
            "prior_dtype=jnp.bfloat16"
        )


def _leaves(tree) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _size(leaf) -> int:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.eval_shape(jax.random.key_data, leaf)
    return leaf.size * leaf.dtype.itemsize
