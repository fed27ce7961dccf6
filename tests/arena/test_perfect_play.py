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


@functools.cache
def outcome(board, player):
    """1, 0 or -1 for the player to move; a board is 9 of ".", "0" and "1"."""
    if any(all(board[int(c)] == str(1 - player) for c in line) for line in LINES):
        return -1
    return max(
        (-outcome(after, 1 - player) for after in afterwards(board, player).values()),
        default=0,
    )


def afterwards(board, player):
    return {
        cell: board[:cell] + str(player) + board[cell + 1 :]
        for cell in range(9)
        if board[cell] == "."
    }


def perfect_player():
    """Plays the first move of the best outcome, looked up by the code of the board."""
    table = np.zeros(3**9, np.int32)
    pending, seen = [("." * 9, 0)], set()
    while pending:
        board, player = pending.pop()
        moves = afterwards(board, player)
        if board in seen or not moves or outcome(board, player) == -1:
            # A lost or finished position: any move does.
            table[code(board)] = min(moves, default=0)
        else:
            values = {m: -outcome(b, 1 - player) for m, b in moves.items()}
            table[code(board)] = max(values, key=values.get)
        if board not in seen:
            seen.add(board)
            pending += [(after, 1 - player) for after in moves.values()]

    def choose(params, key, states):
        del key
        return params[(states.board.astype(jnp.int32) + 1) @ POWERS]

    return Player(name="perfect", params=table, choose=choose)


def code(board):
    return int(sum((".01".index(cell)) * p for cell, p in zip(board, POWERS)))


def play(opponent, games):
    env = envs.make("tic_tac_toe")
    key = jax.random.key(0)
    return play_match(
        env, perfect_player(), opponent(env), games=games, opening_plies=0, key=key
    )
