"""The trees that mctx publishes with its tests come out node for node.

They are read from the installed package. A tree holds all that its search was told:
priors, values and rewards of every position that was visited. Anywhere else the model
answers NaN, which would end the search of the row.
"""

import json
from functools import partial
from importlib import resources
from typing import Any

import jax
import mctx
import numpy as np
import pytest

from jaxsearch import (
    gumbel_policy,
    puct_policy,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from tests.search.table_model import Tables, recurrent_fn, root_of

TREES = resources.files(mctx) / "_src" / "tests" / "test_data"
NAMES = (
    "muzero_tree",
    "muzero_qtransform_tree",
    "gumbel_muzero_tree",
    "gumbel_muzero_reward_tree",
)


def qtransform_by_min_max(node, *, min_value, max_value):
    """mctx's: Q on a scale that is known."""
    return (node.qvalues - min_value) / (max_value - min_value)


QTRANSFORMS = {
    "qtransform_by_min_max": qtransform_by_min_max,
    "qtransform_by_parent_and_siblings": qtransform_by_parent_and_siblings,
    "qtransform_completed_by_mix_value": qtransform_completed_by_mix_value,
}
POLICIES = {"muzero": puct_policy, "gumbel_muzero": gumbel_policy}


@pytest.mark.skipif(not TREES.is_dir(), reason="this mctx comes without its trees")
@pytest.mark.parametrize("name", NAMES)
def test_published_tree_is_reproduced(name):
    published = json.loads((TREES / f"{name}.json").read_text())
    nodes = nodes_of(published["tree"])
    options = dict(published["algorithm_config"])
    qtransform = partial(
        QTRANSFORMS[options.pop("qtransform")], **options.pop("qtransform_kwargs")
    )
    tables = tables_of(nodes, published["env_config"]["discount"])

    @jax.jit
    def search(tables):
        return POLICIES[published["algorithm"]](
            tables,
            jax.random.key(1),
            root_of(tables),
            recurrent_fn,
            len(nodes) - 1,
            qtransform=qtransform,
            **options,
        ).search_tree

    tree = jax.device_get(search(tables))
    assert not tree.failed[0]
    np.testing.assert_array_equal(tree.visits[0], [node["visit"] for node in nodes])
    np.testing.assert_array_equal(
        tree.actions[0, 1:], [node["action"] for node in nodes[1:]]
    )
    np.testing.assert_allclose(
        tree.value_sums[0] / tree.visits[0],
        [node["value_view"] for node in nodes],
        atol=1e-5,
    )
    np.testing.assert_allclose(
        tree.rewards[0, 1:], [node["reward"] for node in nodes[1:]], atol=1e-6
    )


def nodes_of(root: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes that were evaluated, in that order."""
    found, waiting = {}, [root]
    while waiting:
        node = waiting.pop()
        if "visit" in node:
            found[node["evaluation_index"]] = node
            waiting += node["child_stats"]
    return [found[index] for index in range(len(found))]


def tables_of(nodes: list[dict[str, Any]], discount: float) -> Tables:
    """The model of those nodes; what was not visited leads to a last state of NaN."""
    num_states, num_actions = len(nodes) + 1, len(nodes[0]["child_stats"])
    next_states = np.full((num_states, num_actions), len(nodes), np.int32)
    rewards = np.full((num_states, num_actions), np.nan)
    values = np.full(num_states, np.nan)
    probs = np.full((num_states, num_actions), np.nan)
    for state, node in enumerate(nodes):
        values[state] = node["raw_value_view"]
        for action, child in enumerate(node["child_stats"]):
            assert child["action"] == action
            probs[state, action] = child["prior"]
            if "visit" in child:
                next_states[state, action] = child["evaluation_index"]
                rewards[state, action] = child["reward"]
    with np.errstate(invalid="ignore"):
        prior_logits = np.log(probs)
    return Tables(
        next_states=next_states[None],
        rewards=rewards[None].astype(np.float32),
        discounts=np.full_like(rewards, discount)[None].astype(np.float32),
        values=values[None].astype(np.float32),
        prior_logits=prior_logits[None].astype(np.float32),
    )
