"""How much memory a search tree takes, before anything is compiled."""

import os
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.search.tree import Tree


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """The size of a search tree in bytes. The model's own memory is not in it."""

    bytes_per_node: int  # of one row, embedding included
    tree_bytes: int  # of all rows and nodes, and what a row has besides its nodes


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


def check_fits(tree: Tree, device_bytes: int) -> None:
    """Raises ValueError if the tree is larger than the memory there is."""
    estimate = of_tree(tree)
    if estimate.tree_bytes > device_bytes:
        batch_size, capacity = tree.visits.shape
        raise ValueError(
            f"the search tree takes {estimate.tree_bytes / 1e9:.1f} GB ({batch_size} "
            f"rows x {capacity} nodes x {estimate.bytes_per_node} bytes), but there "
            f"are {device_bytes / 1e9:.1f} GB of memory: search with fewer "
            "simulations, a smaller batch, a lower max_children or "
            "prior_dtype=jnp.bfloat16"
        )


def device_bytes() -> int:
    """The memory of all local devices together; of the host for CPU devices."""
    stats = [device.memory_stats() or {} for device in jax.local_devices()]
    limits = [each["bytes_limit"] for each in stats if "bytes_limit" in each]
    return sum(limits) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _leaves(tree) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _size(leaf) -> int:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.eval_shape(jax.random.key_data, leaf)
    return leaf.size * leaf.dtype.itemsize
