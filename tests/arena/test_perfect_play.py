"""A perfect player of tic-tac-toe, from a plain minimax, as the yardstick."""

import jax
import jax.numpy as jnp
import numpy as np

import envs
from jaxsearch.arena.match import play_match
from jaxsearch.arena.players import Player, random_player, uct_player
from tests.arena.minimax import moves, outcome

POWERS = 3 ** np.arange(9)


def test_perfect_player_never_loses_to_random_games():
    env = envs.make("tic_tac_toe")
    result = match(env, uct_player(env, num_simulations=400), 20)
    assert result.total.losses == 0
    assert result.total.draws >= 15  # the search is close to perfect, too


def test_perfect_player_beats_random_moves():
    result = match(envs.make("tic_tac_toe"), random_player(), 100)
    assert result.total.losses == 0
    assert result.total.wins > 80


def match(env, opponent, games):
    key = jax.random.key(0)
    return play_match(
        env, perfect_player(), opponent, games=games, opening_plies=0, key=key
    )


def perfect_player():
    """Looks the first move of the best outcome up by the code of the board."""
    table = np.zeros(3**9, np.int32)
    pending = {("." * 9, 0)}
    while pending:
        board, player = pending.pop()
        after = moves(board, player)
        if after:
            table[code(board)] = max(after, key=lambda m: -outcome(*after[m]))
        pending |= set(after.values())

    def choose(params, key, states):
        del key
        return params[(states.board.astype(jnp.int32) + 1) @ POWERS]

    return Player(name="perfect", params=table, choose=choose)


def code(board):
    return int(np.dot([".01".index(mark) for mark in board], POWERS))
