"""Searches of chess positions with a net that knows nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import NO_ACTION, puct_policy, two_player_model
from tests.envs.chess_games import ENV, moves

pytestmark = pytest.mark.slow


def search(state, num_simulations):
    """The visits [A] and values [A] of the root's moves, without noise."""
    summary = run(state, num_simulations).search_tree.summary()
    return np.asarray(summary.visit_counts[0]), np.asarray(summary.qvalues[0])


def run(state, num_simulations, **options):
    """A search with a net that knows nothing."""

    def evaluate(params, key, states):
        batch_size = states.current_player.shape[0]
        return jnp.zeros((batch_size, ENV.num_actions)), jnp.zeros(batch_size)

    model = two_player_model(ENV, evaluate)
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    root = model.root_fn(None, jax.random.key(0), states)
    return jax.jit(
        lambda root, illegal, options: puct_policy(
            None,
            jax.random.key(1),
            root,
            model.recurrent_fn,
            num_simulations,
            illegal,
            dirichlet_fraction=0.0,
            **options,
        )
    )(root, ~states.legal_action_mask, options)


def read(text):
    return jax.tree.map(np.asarray, ENV.from_text(text))


def test_second_occurrence_does_not_save_from_mate():
    # Black repeats once by b8c8, and is then mated by c6c8.
    state = moves(ENV, read("k1r5/8/K1R5/8/8/8/8/8 w - - 0 1"), "c6b6", "c8b8", "b6c6")
    visits, values = search(state, 500)
    repeat = ENV.text_to_action(state, "b8c8")
    # The mate is the tenth of White's moves; once it is seen, b8c8 is left alone.
    assert values[repeat] < 0
    others = np.flatnonzero(state.legal_action_mask & (np.arange(4672) != repeat))
    assert (values[others] == 0).all() and (visits[others] > 2 * visits[repeat]).all()


def test_only_capture_is_found_before_the_fifty_moves_are_over():
    state = read("k7/8/K7/8/8/7b/Q7/n7 w - - 98 1")
    visits, _ = search(state, 2000)
    assert ENV.action_to_text(state, visits.argmax()) == "a2a1"


# Case R14: the only legal move, and no move in a game that repetition has ended.
def test_only_move_is_played_and_none_after_a_repetition():
    state = read("8/p4k2/1p2pn2/8/8/2N2b1P/PP3PrK/3R1R2 w - - 0 1")
    assert run(state, 16).action == ENV.text_to_action(state, "h2h1")

    shuffle = ["g1f3", "g8f6", "f3g1", "f6g8"]
    before = moves(ENV, read(ENV.start), *shuffle, *shuffle[:3])
    last = ENV.text_to_action(before, "f6g8")
    tree = run(before, 64).search_tree.advance(jnp.array([last]))
    ended = moves(ENV, before, "f6g8")
    assert ENV.ending(ended) == "repetition"
    for options in ({}, {"tree": tree}):
        output = run(ended, 64, **options)
        assert output.action == NO_ACTION
        assert not np.asarray(output.action_weights).any()
