"""Random openings: different, as many as there are, by each player."""

import jax
import numpy as np
import pytest

import envs
from jaxsearch.arena.openings import random_openings

ENV = envs.make("tic_tac_toe")


def openings_of(count, num_plies, env=ENV, **options):
    key = jax.random.key(count)
    return random_openings(env, count=count, num_plies=num_plies, key=key, **options)


# Marks in a corner, on a side or in the middle; then the others, folded onto each
# other where the first mark leaves a symmetry: 5 after a corner, 5 after a side, 2.
@pytest.mark.parametrize(("num_plies", "distinct"), [(0, 1), (1, 3), (2, 12)])
def test_images_are_one_opening_if_so_asked(num_plies, distinct):
    openings = openings_of(20, num_plies, up_to_symmetry=True)
    assert openings.num_distinct == distinct
    np.testing.assert_array_equal(openings.position, np.arange(20) % distinct)
    boards = np.asarray(openings.states.board)[:distinct]
    images = boards[:, ENV.symmetries.cells].tolist()  # [distinct, 8, 9]
    smallest = {min(map(tuple, rows)) for rows in images}
    assert len(smallest) == distinct


def test_images_are_different_openings_by_default():
    assert openings_of(80, 2).num_distinct == 72
    assert openings_of(20, 1).num_distinct == 9


def test_openings_tell_who_began():
    np.testing.assert_array_equal(openings_of(5, 3).first, np.zeros(5))


def test_openings_are_the_same_for_the_same_key():
    boards = [np.asarray(openings_of(30, 3).states.board) for _ in range(2)]
    np.testing.assert_array_equal(*boards)


@pytest.mark.parametrize(
    ("count", "num_plies", "message"),
    [
        (0, 2, "count of at least 1 and plies of at least 0, got 0 openings of 2"),
        (2, -1, "got 2 openings of -1 plies"),
        (2, 9, "random play of tic_tac_toe is over before 9 plies"),
    ],
)
def test_openings_that_cannot_be_are_refused(count, num_plies, message):
    with pytest.raises(ValueError, match=message):
        openings_of(count, num_plies)


def test_game_whose_players_move_at_once_is_refused():
    with pytest.raises(ValueError, match="its sequential view, sequential:tron_6x6"):
        openings_of(4, 2, env=envs.make("tron_6x6"))


@pytest.mark.parametrize(("count", "num_plies"), [(2.5, 1), ("2", 1), (2, 1.5)])
def test_numbers_that_are_not_whole_are_refused(count, num_plies):
    with pytest.raises(ValueError, match="openings need a count of at least 1"):
        random_openings(ENV, count=count, num_plies=num_plies, key=jax.random.key(0))
