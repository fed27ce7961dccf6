"""One simulation costs the same however large the tree: nothing copies all of it.

The compiled program is read for copies of the large arrays, with an entry for each
action of each node. Sizes are chosen so that only those have the shape [12, 41, 23].
"""

import re

import jax
import numpy as np
import pytest

from jaxsearch import mctx_puct_policy, puct_policy
from tests.search.table_model import make_tables, recurrent_fn, root_of

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 12, 23, 40
WHOLE_TREE = f"{BATCH_SIZE},{NUM_SIMULATIONS + 1},{NUM_ACTIONS}"
COPY = re.compile(rf"= \w+\[{WHOLE_TREE}\]\S* (?:copy|select)\(.*")


def whole_tree_copies(policy) -> list[str]:
    """The instructions that copy an array of the whole tree, or select over it."""
    tables = make_tables(np.zeros((2, NUM_ACTIONS), np.int32), batch_size=BATCH_SIZE)

    def search(tables, key):
        output = policy(tables, key, root_of(tables), recurrent_fn, NUM_SIMULATIONS)
        return output.action_weights

    compiled = jax.jit(search).lower(tables, jax.random.key(0)).compile()
    return COPY.findall(compiled.as_text())


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads a CPU's program")
def test_no_instruction_copies_the_whole_tree():
    assert whole_tree_copies(puct_policy) == []


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads a CPU's program")
def test_copies_of_the_whole_tree_are_found_where_there_are_some():
    assert len(whole_tree_copies(mctx_puct_policy)) > 4
