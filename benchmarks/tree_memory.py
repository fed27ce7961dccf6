"""The memory of search trees, ours and mctx's, and of a process that searches."""

import math
from pathlib import Path
from typing import Any

import jax

from benchmarks.models import Model
from jaxsearch import memory_estimate
from jaxsearch.search.policy_names import policy_named


def bytes_per_node(model: Model, num_simulations: int, **options: Any) -> int:
    """Of our tree, by `memory_estimate`."""
    root, _ = jax.eval_shape(model.root_fn, model.params, model.states)
    return memory_estimate(root, num_simulations, **options).bytes_per_node


def mctx_bytes_per_node(model: Model, num_simulations: int) -> float:
    """Of mctx's tree: all its arrays with an entry for each node of each row."""

    def search(params, key, states):
        root, mask = model.root_fn(params, states)
        policy = policy_named("mctx-puct")
        output = policy(params, key, root, model.recurrent_fn, num_simulations, mask)
        return output.search_tree

    key = jax.random.key(0)
    tree = jax.eval_shape(search, model.params, key, model.states)
    of_nodes = tree.node_visits.shape
    sizes = [
        math.prod(leaf.shape) * leaf.dtype.itemsize
        for leaf in jax.tree.leaves(tree)
        if leaf.shape[:2] == of_nodes
    ]
    return sum(sizes) / math.prod(of_nodes)


def live_bytes() -> int:
    """The arrays that JAX holds: as the device tells it, or else by counting them."""
    stats = jax.devices()[0].memory_stats() or {}
    counted = sum(array.nbytes for array in jax.live_arrays())
    return stats.get("bytes_in_use", counted)


def resident_bytes() -> int | None:
    """The memory of this process, where Linux tells it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    for line in status.read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return None
