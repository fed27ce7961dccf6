"""A perfect player of tic-tac-toe, from a plain minimax, as the yardstick."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import envs
from jaxsearch.arena.match import play_match
from jaxsearch.arena.players import Player, random_player, uct_player

# 0 1 2
# 3 4 5
# 6 7 8
LINES = ("012", "345", "678", "036", "147", "258", "048", "246")
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


@functools.cache
def outcome(board, player):
    """1, 0 or -1 for the player to move; a board is 9 of ".", "0" and "1"."""
    if lost(board, player):
        return -1
    after = moves(board, player)
    return max((-outcome(*position) for position in after.values()), default=0)


def moves(board, player):
    """The boards and movers that legal moves lead to, by cell."""
    if lost(board, player):
        return {}
    return {
        cell: (board[:cell] + str(player) + board[cell + 1 :], 1 - player)
        for cell in range(9)
        if board[cell] == "."
    }


def lost(board, player):
    other = str(1 - player)
    return any(all(board[int(cell)] == other for cell in line) for line in LINES)


def code(board):
    return int(np.dot([".01".index(mark) for mark in board], POWERS))
