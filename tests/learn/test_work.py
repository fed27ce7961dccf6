"""How many of the net's evaluations in self-play were of use."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from tests.learn.test_self_play import ENV, GAMES, play, search_named, start


# X to move, one cell is left: every leaf is finished, and the first one proves it.
@pytest.mark.parametrize(
    ("options", "text", "evaluations", "useful"),
    [
        pytest.param({}, "XOX/XOO/.XO", 1 + 8, 1, id="all leaves finished"),
        pytest.param({"solve": True}, "XOX/XOO/.XO", 1 + 1, 1, id="proven at once"),
        pytest.param({}, ".../.../...", 1 + 8, 1 + 8, id="all leaves new"),
    ],
)
def test_useful_evaluations_are_those_of_new_unfinished_positions(
    options, text, evaluations, useful
):
    states = jax.tree.map(lambda x: jnp.stack([x] * GAMES), ENV.from_text(text))
    games = dataclasses.replace(start(), states=states)
    search = search_named("puct", **options)
    counts = play(games, search, num_plies=1, opening_plies=0)[2]
    assert float(counts.evaluations) == GAMES * evaluations
    assert float(counts.useful) == GAMES * useful


def test_positions_of_a_tree_that_is_reused_are_not_counted_again():
    search = search_named("puct", capacity=17)
    counts = play(start(), search, num_plies=3, opening_plies=0, reuse_tree=True)[2]
    assert float(counts.useful) == float(counts.evaluations) == GAMES * 3 * (1 + 8)
