"""Searching for a given time, by a clock that the test turns."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxsearch import TimedSearch, gumbel_policy, puct_policy
from tests.search.table_model import random_tables, recurrent_fn, root_of

CHUNK, CAPACITY = 10, 35
KEY = jax.random.key(0)
quiet_puct = partial(puct_policy, dirichlet_fraction=0.0, temperature=0.0)


class Clock:
    """Seconds that pass with every look: one a chunk, none before the first."""

    def __init__(self, seconds_a_look=1.0):
        self.now, self.step = 0.0, seconds_a_look

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture(scope="module")
def game():
    tables = random_tables(np.random.default_rng(0), 3, 4)
    return tables, root_of(tables)


def timed_search(policy=quiet_puct, **options):
    options = {"chunk": CHUNK, "capacity": CAPACITY, "clock": Clock(), **options}
    return TimedSearch(policy, recurrent_fn, **options)


def test_chunks_make_the_search_that_one_call_makes(game):
    tables, root = game
    search = timed_search(clock=Clock(0.0), capacity=100)
    output, made, _ = search(tables, KEY, root, seconds=1.0, max_simulations=45)
    assert made == 40
    search_40 = jax.jit(lambda root: quiet_puct(tables, KEY, root, recurrent_fn, 40))
    expected = search_40(root)
    for got, of_one_call in zip(
        (output.action, output.action_weights, output.search_tree.visits[:, :41]),
        (expected.action, expected.action_weights, expected.search_tree.visits),
        strict=True,
    ):
        np.testing.assert_array_equal(got, of_one_call)


@pytest.mark.parametrize("policy", [quiet_puct, gumbel_policy])
def test_move_is_that_of_the_priors_if_no_chunk_fits(game, policy):
    tables, root = game
    search = timed_search(partial(policy))
    output, made, _ = search(tables, KEY, root, seconds=0.0)
    assert made == 0
    priors = output.search_tree.root_prior_probs
    np.testing.assert_allclose(output.action_weights, priors, rtol=1e-6)
    if policy is quiet_puct:
        np.testing.assert_array_equal(output.action, np.argmax(priors, axis=1))


# A look takes a second: one at the start, one after the move of the priors, and one
# after each chunk.
def test_no_chunk_is_begun_that_would_end_too_late(game):
    tables, root = game
    search = timed_search()
    assert search.warm_up(tables, KEY, root) == 1.0
    for seconds, chunks in ((1.5, 0), (2.5, 1), (4.5, 3), (6.5, 5)):
        _, made, took = search(tables, KEY, root, seconds=seconds)
        assert (made, took <= seconds) == (chunks * CHUNK, True)


def test_full_tree_is_searched_on(game):
    tables, root = game
    search = timed_search(clock=Clock(0.0))
    output, made, _ = search(tables, KEY, root, seconds=1.0, max_simulations=60)
    tree = output.search_tree
    assert made == 60
    np.testing.assert_array_equal(tree.num_nodes, CAPACITY)
    np.testing.assert_array_equal(tree.visits[:, 0], 61)
    np.testing.assert_array_equal(tree.summary().visit_counts.sum(axis=1), 60)
    assert np.all(tree.not_stored > 0)


def test_bad_numbers_are_refused(game):
    with pytest.raises(ValueError, match="chunk must be a whole number"):
        timed_search(chunk=0)
    with pytest.raises(ValueError, match="capacity is 10, expected more than the 10"):
        timed_search(capacity=CHUNK)(*game[:1], KEY, game[1], seconds=1.0)
    with pytest.raises(ValueError, match="seconds must be a number from 0"):
        timed_search()(*game[:1], KEY, game[1], seconds=-1.0)
