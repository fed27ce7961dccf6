"""One simulation costs the same however large the tree: nothing copies all of it.

The compiled program is read for copies of arrays with an entry for each node, or for
each action of each node, inside its loops. Sizes are chosen so that only those have the
shapes [12, 41] and [12, 41, 23].
"""

import itertools
import re
import statistics
import time

import jax
import numpy as np
import pytest

from jaxsearch import (
    gumbel_policy,
    mctx_gumbel_policy,
    mctx_puct_policy,
    puct_policy,
)
from tests.search.table_model import make_tables, random_tables, recurrent_fn, root_of

BATCH_SIZE, NUM_ACTIONS, NUM_SIMULATIONS = 12, 23, 40
NODES = f"{BATCH_SIZE},{NUM_SIMULATIONS + 1}"
EDGES = f"{NODES},{NUM_ACTIONS}"
FLAT = BATCH_SIZE * (NUM_SIMULATIONS + 1)
COPY = re.compile(
    rf"= \w+\[(?:{NODES}|{FLAT})(?:,{NUM_ACTIONS})?\]\S* copy\(.*"
    rf"|= \w+\[{EDGES}\]\S* select\(.*"
)


def whole_tree_copies(policy) -> list[str]:
    """The instructions that copy arrays of the tree, or select over them, in loops."""
    tables = make_tables(np.zeros((2, NUM_ACTIONS), np.int32), batch_size=BATCH_SIZE)

    def search(tables, key):
        output = policy(tables, key, root_of(tables), recurrent_fn, NUM_SIMULATIONS)
        return output.action_weights

    compiled = jax.jit(search).lower(tables, jax.random.key(0)).compile()
    in_loops = compiled.as_text().partition("\nENTRY ")[0]
    return COPY.findall(in_loops)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads a CPU's program")
@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_no_instruction_copies_the_whole_tree(policy):
    assert whole_tree_copies(policy) == []


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads a CPU's program")
def test_copies_of_the_whole_tree_are_found_where_there_are_some():
    assert len(whole_tree_copies(mctx_puct_policy)) > 4


# All take turns, so that a slow spell of the machine strikes them alike.
@pytest.mark.slow
def test_time_stays_below_twice_gumbel_and_grows_less_than_the_actions():
    sizes = (7, 82, 362)
    searches = {}
    for num_actions in sizes:
        tables = random_tables(np.random.default_rng(0), 64, num_actions)
        for policy in (puct_policy, mctx_gumbel_policy):
            searches[policy, num_actions] = compiled_search(policy, tables)
    turns = [
        {name: seconds_of(search) for name, search in searches.items()}
        for _ in range(15)
    ]

    def median_ratio(one, other):
        return statistics.median(turn[one] / turn[other] for turn in turns)

    for num_actions in sizes:
        ours, gumbel = (puct_policy, num_actions), (mctx_gumbel_policy, num_actions)
        assert median_ratio(ours, gumbel) < 2
    for fewer, more in itertools.pairwise(sizes):
        growth = median_ratio((puct_policy, more), (puct_policy, fewer))
        assert growth < more / fewer


def compiled_search(policy, tables):
    """Runs 32 simulations of every row."""

    def search(tables, key):
        output = policy(tables, key, root_of(tables), recurrent_fn, 32)
        return output.action_weights

    arguments = jax.device_put((tables, jax.random.key(0)))
    compiled = jax.jit(search).lower(*arguments).compile()
    return lambda: jax.block_until_ready(compiled(*arguments))


def seconds_of(search):
    start = time.perf_counter()
    search()
    return time.perf_counter() - start
