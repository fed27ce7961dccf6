"""Matches: paired openings, seats, named results."""

import jax
import numpy as np
import pytest

import envs
from jaxsearch.arena.match import play_match
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.players import random_player, raw_player, uct_player
from tests.arena.agents import net_agent, scripted_player

KEY = 0


def match(env, first, second, games, opening_plies):
    return play_match(
        env,
        first,
        second,
        games=games,
        opening_plies=opening_plies,
        key=jax.random.key(KEY),
    )


# Whoever moves first and plays 1, 1, 1, 1 wins against 2, 2, 2.
def test_columns_decide_and_both_seats_are_told_apart():
    env = envs.make("connect_four")
    left = scripted_player([7, 6, 5, 4, 3, 2, 1])
    right = scripted_player([1, 2, 3, 4, 5, 6, 7])
    result = match(env, left, right, 2, 0)
    assert (result.moving_first.wins, result.moving_first.losses) == (1, 0)
    assert (result.moving_second.wins, result.moving_second.losses) == (0, 1)
    assert result.total.games == 2
    assert result.estimate.score == 0.5


# The same player on both sides.
def test_player_against_itself_scores_one_half():
    env = envs.make("connect_four")
    result = match(env, random_player(), random_player(), 100, 2)
    assert result.estimate.score == 0.5
    assert result.moving_first.wins == result.moving_second.losses
    assert result.moving_first.losses == result.moving_second.wins
    assert result.total.games == 100
    assert result.total.wins == result.total.losses


# Without openings two deterministic players have two games to play.
def test_repeated_games_are_counted_and_warned_of():
    agent, other = net_agent("connect_four", 0), net_agent("connect_four", 1)
    players = raw_player(agent, name="a"), raw_player(other, name="b")
    result = match(agent.env, *players, 40, 0)
    assert result.distinct_games == 2
    assert any("2 of 40 games are different" in line for line in result.warnings)
    varied = match(agent.env, *players, 40, 4)
    assert varied.distinct_openings == 20
    assert varied.distinct_games == 40
    assert not varied.warnings


def test_openings_are_distinct_unfinished_and_of_the_length_asked_for():
    env = envs.make("tic_tac_toe")
    openings = random_openings(env, count=72, num_plies=2, key=jax.random.key(1))
    assert openings.num_distinct == 72  # all there are: 9 * 8
    boards = np.asarray(jax.vmap(env.observe)(openings.states)).reshape(72, -1)
    assert len(np.unique(boards, axis=0)) == 72
    assert (boards.sum(axis=1) == 2).all()


def test_uct_beats_random_clearly():
    env = envs.make("connect_four")
    result = match(env, uct_player(env, num_simulations=50), random_player(), 60, 2)
    assert result.total.wins > 50
    assert result.estimate.elo_low > 200


@pytest.mark.parametrize(
    ("games", "opening_plies", "message"),
    [(3, 0, "even number"), (0, 0, "even number"), (2, -1, "0 or more")],
)
def test_bad_numbers_are_refused(games, opening_plies, message):
    env = envs.make("tic_tac_toe")
    with pytest.raises(ValueError, match=message):
        match(env, random_player(), random_player(), games, opening_plies)
