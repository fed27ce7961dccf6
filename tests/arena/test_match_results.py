"""What is made of the games of a match: counts, seats, scores, warnings."""

import jax
import numpy as np

import envs
from jaxsearch.arena import match
from jaxsearch.arena.match import GamePairs, match_result, play_match
from tests.arena.agents import scripted_player

FIRST, SECOND = scripted_player([1, 2, 3]), scripted_player([3, 2, 1])


def result_of(points, truncated=None):
    """The result of pairs with these points of the first player, all different."""
    points = np.array(points)
    pairs = GamePairs(
        points=points,
        truncated=np.zeros(points.shape, bool) if truncated is None else truncated,
        moves=np.arange(points.size).reshape(2, -1, 1),
        position=np.arange(points.shape[1]),
    )
    return match_result(envs.make("tic_tac_toe"), FIRST, SECOND, pairs, 2)


# Three wins, one loss, two draws, seen from either side.
def test_counts_stand_under_their_names_from_both_sides():
    points = np.array([[1, 1, 0.5], [1, 0, 0.5]])
    total = result_of(points).total
    assert (total.wins, total.losses, total.draws, total.games) == (3, 1, 2, 6)
    seats = result_of(points)
    assert (seats.moving_first.wins, seats.moving_first.draws) == (2, 1)
    assert (seats.moving_second.wins, seats.moving_second.losses) == (1, 1)
    other = result_of(1 - points[::-1]).total
    assert (other.wins, other.losses, other.draws, other.games) == (1, 3, 2, 6)


def test_truncated_game_is_no_draw_and_its_pair_is_not_scored():
    truncated = np.array([[False, True], [False, False]])
    result = result_of([[1, 0.5], [0.5, 0]], truncated)
    assert (result.total.draws, result.total.truncated) == (1, 1)
    assert result.moving_first.truncated == 1
    assert result.scored_pairs == 1
    assert result.estimate.score == 0.75
    assert any("move cap" in line for line in result.warnings)


def test_match_of_truncated_games_has_no_score():
    result = result_of([[0.5], [0.5]], np.ones((2, 1), bool))
    assert result.estimate is None


def test_equal_games_count_once_in_the_interval():
    moves = np.zeros((2, 4, 1), int)
    pairs = GamePairs(
        points=np.array([[1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5]]),
        truncated=np.zeros((2, 4), bool),
        moves=moves,
        position=np.array([0, 0, 0, 1]),
    )
    repeated = match_result(envs.make("tic_tac_toe"), FIRST, SECOND, pairs, 1)
    assert (repeated.distinct_openings, repeated.distinct_games) == (2, 4)
    distinct = result_of(pairs.points)
    assert repeated.estimate.score == distinct.estimate.score
    assert repeated.estimate.score_low < distinct.estimate.score_low


def test_each_player_is_compiled_once():
    env = envs.make("tic_tac_toe")
    ranks = scripted_player([1, 2, 3, 4, 5, 6, 7, 8, 9])
    others = scripted_player([9, 8, 7, 6, 5, 4, 3, 2, 1])
    before = match._take_turn._cache_size()
    for seed in range(3):
        key = jax.random.key(seed)
        play_match(env, ranks, others, games=8, opening_plies=1, key=key)
    assert match._take_turn._cache_size() == before + 2
