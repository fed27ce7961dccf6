"""Searches with the solver on solved positions: exact where proven, never weaker."""

import jax
import numpy as np
import pytest

import envs
from jaxsearch import gumbel_policy, puct_policy, two_player_model
from jaxsearch.arena.hashed_evaluation import hashed_evaluate
from jaxsearch.arena.playouts import playout_evaluate
from jaxsearch.arena.positions import solved_positions
from tests.arena.minimax import moves, outcome

POLICIES = {
    "puct": (puct_policy, {"dirichlet_fraction": 0, "temperature": 0}),
    "gumbel": (gumbel_policy, {"gumbel_scale": 0}),
}


def tic_tac_toe_positions():
    """All positions [n] that go on, and which moves keep the outcome [n, 9]."""
    env = envs.make("tic_tac_toe")
    positions, pending = [], {("." * 9, 0)}
    while pending:
        position = pending.pop()
        if after := moves(*position):
            positions.append(position)
            pending |= set(after.values()) - set(positions)
    best = np.array([outcome(*position) for position in positions])
    keeps = np.zeros((len(positions), 9), bool)
    for row, position in enumerate(positions):
        for cell, after in moves(*position).items():
            keeps[row, cell] = -outcome(*after) == best[row]
    states = [env.from_text(text(board)) for board, _ in positions]
    return env, jax.tree.map(lambda *leaves: np.stack(leaves), *states), best, keeps


def text(board):
    marks = board.replace("0", "X").replace("1", "O")
    return "/".join(marks[row : row + 3] for row in (0, 3, 6))


def search_with(policy, model, states, num_simulations, **options):
    """The actions, whether the roots are proven, and their values."""
    policy, quiet = POLICIES[policy]

    @jax.jit
    def run(states):
        root = model.root_fn(None, jax.random.key(0), states)
        output = policy(
            None,
            jax.random.key(1),
            root,
            model.recurrent_fn,
            num_simulations,
            ~states.legal_action_mask,
            **quiet,
            **options,
        )
        tree = output.search_tree
        proven = tree.proofs and tree.proofs.proven[:, tree.ROOT]
        return output.action, proven, tree.summary().value

    return jax.device_get(run(states))


def kept(keeps, action):
    return keeps[np.arange(len(action)), action]


@pytest.mark.parametrize("policy", POLICIES)
def test_solver_is_exact_and_never_weaker_in_tic_tac_toe(policy):
    env, states, best, keeps = tic_tac_toe_positions()
    assert len(best) == 4520
    model = two_player_model(env, hashed_evaluate(env))
    action, proven, value = search_with(policy, model, states, 48, solve=True)
    assert 0.5 < proven.mean() < 1
    np.testing.assert_array_equal(value[proven], best[proven])
    assert kept(keeps, action)[proven].all()
    without, _, _ = search_with(policy, model, states, 48)
    assert kept(keeps, action).sum() > kept(keeps, without).sum()


# Each simulation is evaluated by one random game, as a player without a net does.
@pytest.mark.slow
@pytest.mark.parametrize("num_simulations", [16, 64, 256])
@pytest.mark.parametrize("policy", POLICIES)
def test_solver_is_never_weaker_in_connect_four(policy, num_simulations):
    env = envs.make("connect_four")
    states, keeps, _ = solved_positions(env)
    model = two_player_model(env, playout_evaluate(env))
    with_solver, proven, _ = search_with(
        policy, model, states, num_simulations, solve=True
    )
    without, _, _ = search_with(policy, model, states, num_simulations)
    assert kept(keeps, with_solver)[proven].all()
    assert kept(keeps, with_solver).sum() >= kept(keeps, without).sum()
