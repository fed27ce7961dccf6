"""Goofspiel's recorded equilibria, found again by backward induction over the game."""

import itertools

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

import envs
from tests.envs.positions import record

GAMES = record("goofspiel")["games"]


def _name(game):
    return f"{game['num_cards']}-{game['points_order']}-{game['returns']}"


def _results(env, orders):
    """The first player's reward by prize order and both sequences of bids."""
    plays = list(itertools.permutations(range(env.num_cards)))
    keys = list(itertools.product(orders, plays, plays))
    prizes = np.array([order for order, _, _ in keys], np.int8)
    moves = np.array([bids for _, *bids in keys], np.int32)  # [K, 2, N]
    start = env.init(jax.random.key(0))
    states = jax.vmap(env._position, (0, None))(prizes, start.bids)
    step = jax.jit(jax.vmap(env.step))
    for turn in range(env.num_cards):
        assert not states.terminated.any()
        states = step(states, moves[:, :, turn])
    assert states.terminated.all()
    np.testing.assert_array_equal(states.bids, moves + 1)  # no bid was refused
    return dict(zip(keys, np.asarray(states.rewards)[:, 0].tolist(), strict=True))


def _value(matrix):
    """The value of a matrix game for its first player, who chooses the row."""
    low, high = matrix.min(axis=1).max(), matrix.max(axis=0).min()
    if low == high:
        return float(low)
    if matrix.shape == (2, 2):  # both mix their two rows, or columns
        (a, b), (c, d) = matrix
        return float((a * d - b * c) / (a - b - c + d))
    # Maximise v with a strategy x: x @ matrix >= v in each column.
    rows, columns = matrix.shape
    found = linprog(
        np.append(np.zeros(rows), -1),
        A_ub=np.column_stack([-matrix.T, np.ones(columns)]),
        b_ub=np.zeros(columns),
        A_eq=[[1] * rows + [0]],
        b_eq=[1],
        bounds=[(0, None)] * rows + [(None, None)],
    )
    return float(-found.fun)


class _Solver:
    def __init__(self, env, orders):
        self.num_cards = env.num_cards
        self.orders = orders
        self.results = _results(env, orders)
        self.values = {}

    def matrix(self, prizes, mine, yours):
        """Values after each pair of bids for the last of the prizes turned up."""
        left = [sorted({*range(self.num_cards)} - {*bids}) for bids in (mine, yours)]
        return np.array(
            [
                [self.after(prizes, (*mine, a), (*yours, b)) for b in left[1]]
                for a in left[0]
            ]
        )

    def after(self, prizes, mine, yours):
        """The mean over the prizes that may be turned up next."""
        turn = len(prizes)
        if turn == self.num_cards:
            return self.results[prizes, mine, yours]
        following = {
            order[: turn + 1] for order in self.orders if order[:turn] == prizes
        }
        return np.mean([self.value(more, mine, yours) for more in following])

    def value(self, *position):
        if position not in self.values:
            self.values[position] = _value(self.matrix(*position))
        return self.values[position]


# The prizes to come are drawn at random: every order is as likely as any other.
@pytest.mark.parametrize("game", GAMES, ids=_name)
def test_equilibria_are_those_recorded(game):
    env = envs.make(
        f"goofspiel_{game['num_cards']}",
        prizes=game["points_order"],
        returns=game["returns"],
    )
    numbers = range(1, env.num_cards + 1)
    orders = {
        "random": list(itertools.permutations(numbers)),
        "ascending": [tuple(numbers)],
        "descending": [tuple(reversed(numbers))],
    }[game["points_order"]]
    solver = _Solver(env, orders)
    assert len(game["first_prize_root"]) == len({order[0] for order in orders})
    for first, root in game["first_prize_root"].items():
        matrix = solver.matrix((int(first),), (), ())
        np.testing.assert_allclose(matrix, root["root_matrix"], atol=2e-6)
        assert abs(_value(matrix) - root["value"]) < 1e-9
        strategy = np.array(root["an_equilibrium_strategy"])
        assert (strategy @ matrix).min() > -1e-5  # holds the value against all bids


def test_records_are_all_twelve():
    assert len({_name(game) for game in GAMES}) == 12
