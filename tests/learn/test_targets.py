"""Returns: what the rest of its game gave the mover of each ply."""

import numpy as np
import pytest

from jaxsearch.learn import targets
from tests.learn.plies import make_course, play_out


def returns(course, **options):
    written = np.ones(len(course.player), bool)
    return targets.returns(course, written, **options)


# X wins with 0, 1, 2 on the top row; the other game fills the board.
@pytest.mark.parametrize(
    ("actions", "expected"),
    [([0, 3, 1, 4, 2], [1, -1, 1, -1, 1]), ([0, 1, 2, 4, 3, 5, 7, 6, 8], [0] * 9)],
    ids=["win", "draw"],
)
def test_return_is_from_the_view_of_each_mover(actions, expected):
    result = returns(play_out("tic_tac_toe", actions))
    np.testing.assert_array_equal(result.known[:, 0], True)
    np.testing.assert_array_equal(result.value[:, 0], expected)


def test_return_follows_the_player_to_move_and_not_the_parity_of_the_ply():
    win = [[[0, 0]], [[0, 0]], [[0, 0]], [[-1, 1]]]
    result = returns(make_course([[0], [0], [1], [1]], win, [[0], [0], [0], [1]]))
    np.testing.assert_array_equal(result.value[:, 0], [-1, -1, 1, 1])


def test_rewards_on_the_way_add_up_from_each_ply_on():
    rewards = [[[0.5, -0.5]], [[-0.25, 0.25]], [[1, -1]]]
    result = returns(make_course([[0], [1], [0]], rewards, [[0], [0], [1]]))
    np.testing.assert_allclose(result.value[:, 0], [1.25, -0.75, 1.0])


def test_plies_of_a_running_game_have_no_return():
    rewards = np.zeros((4, 1, 2))
    rewards[1, 0] = [1, -1]
    course = make_course([[0], [1], [0], [1]], rewards, [[0], [1], [0], [0]])
    result = returns(course)
    np.testing.assert_array_equal(result.known[:, 0], [True, True, False, False])
    np.testing.assert_array_equal(result.value[:, 0], [1, -1, 0, 0])


# The first player saw itself ahead when the cap came: no draw.
def test_capped_game_takes_the_last_value_of_the_search():
    values = [[0.1], [-0.3], [0.8]]
    course = make_course(
        [[0], [1], [0]], np.zeros((3, 1, 2)), np.zeros((3, 1)), [[0], [0], [1]], values
    )
    result = returns(course)
    np.testing.assert_array_equal(result.known, True)
    np.testing.assert_allclose(result.value[:, 0], [0.8, -0.8, 0.8])


def test_capped_game_that_is_scored_takes_its_score():
    rewards = np.zeros((2, 1, 2))
    rewards[1, 0] = [-1, 1]
    course = make_course([[0], [1]], rewards, [[0], [0]], [[0], [1]], [[0.9], [-0.9]])
    np.testing.assert_allclose(returns(course).value[:, 0], [-1, 1])


# Two plies on, the search's value stands for the rest; the second player is to move
# where the first one's value is taken, and the other way round.
def test_n_step_return_takes_the_value_n_plies_later_with_its_sign():
    values = [[0.5], [0.25], [-0.75], [0.125], [0.0]]
    course = play_out("tic_tac_toe", [0, 3, 1, 4, 2], values)
    result = returns(course, bootstrap_plies=2)
    np.testing.assert_allclose(result.value[:, 0], [-0.75, 0.125, 0.0, -1, 1])
    result = returns(course, bootstrap_plies=1)
    np.testing.assert_allclose(result.value[:, 0], [-0.25, 0.75, -0.125, 0.0, 1])
    np.testing.assert_allclose(
        returns(course, bootstrap_plies=5).value, returns(course).value
    )


def test_n_step_return_is_known_before_the_game_is_over():
    values = [[0.5], [0.25], [-0.75]]
    course = make_course(
        [[0], [1], [0]], np.zeros((3, 1, 2)), np.zeros((3, 1)), search_value=values
    )
    result = returns(course, bootstrap_plies=1)
    np.testing.assert_array_equal(result.known[:, 0], [True, True, False])
    np.testing.assert_allclose(result.value[:, 0], [-0.25, 0.75, 0])


def reference(rows, bootstrap_plies):
    """Plain Python over the plies of one column, oldest first."""
    result = []
    for start, (player, *_) in enumerate(rows):
        total, found = 0.0, None
        for ply, row in enumerate(rows[start:]):
            mover, rewards, value, terminated, truncated = row
            sign = 1 if mover == player else -1
            if bootstrap_plies and ply == bootstrap_plies:
                found = total + sign * value
                break
            total += rewards[player]
            if terminated or truncated:
                capped = truncated and not any(rewards)
                found = total + (sign * value if capped else 0)
                break
        result.append((0.0, False) if found is None else (found, True))
    return result


@pytest.mark.parametrize("bootstrap_plies", [0, 1, 3, 40])
def test_returns_equal_a_plain_reference(bootstrap_plies):
    random = np.random.default_rng(bootstrap_plies)
    shape = 30, 8
    gains = random.integers(-2, 3, shape) * (random.random(shape) < 0.4)
    ended = random.random(shape)
    terminated, truncated = ended < 0.15, ended > 0.9
    course = make_course(
        random.integers(0, 2, shape),
        np.stack([gains, -gains], axis=-1),
        terminated,
        truncated,
        random.uniform(-1, 1, shape),
    )
    result = returns(course, bootstrap_plies=bootstrap_plies)
    fields = course.player, course.rewards, course.search_value, terminated, truncated
    for column in range(shape[1]):
        rows = list(zip(*(np.asarray(f)[:, column] for f in fields), strict=True))
        for row, (value, known) in enumerate(reference(rows, bootstrap_plies)):
            assert result.known[row, column] == known
            np.testing.assert_allclose(result.value[row, column], value, atol=1e-5)


def test_games_are_numbered_apart():
    terminated = np.array([[0, 1], [1, 0], [0, 0], [1, 0]])
    course = make_course(np.zeros((4, 2)), np.zeros((4, 2, 2)), terminated)
    game = np.asarray(returns(course).game)
    assert game[0, 0] == game[1, 0] != game[2, 0] == game[3, 0]
    assert game[0, 1] != game[1, 1] == game[2, 1] == game[3, 1]
    assert len(np.unique(game)) == 4
