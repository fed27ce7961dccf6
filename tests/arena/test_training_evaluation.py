"""Evaluations in training: who is promoted, Elo, and that nothing is compiled anew."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
import train
from jaxsearch.arena import match
from jaxsearch.arena.solved_game import solve_game
from jaxsearch.arena.training_evaluation import TrainingEvaluation
from jaxsearch.learn.agent import Agent

POWERS = 3 ** np.arange(9)


def evaluate(params, key, states):
    """A net that knows `params` much of which moves keep the outcome."""
    del key
    strength, table = params
    code = (states.board.astype(jnp.int32) + 1) @ jnp.asarray(POWERS, jnp.int32)
    return strength * table[code], jnp.zeros(len(code))


@pytest.fixture(scope="module")
def nets():
    """Nets of tic-tac-toe by their strength."""
    game = solve_game(envs.make("tic_tac_toe"))
    table = np.asarray(np.random.default_rng(0).random((3**9, 9)), np.float32)
    codes = (np.asarray(game.states.board, int) + 1) @ POWERS
    table[codes] += 3 * game.keeps_outcome
    wrong = np.random.default_rng(1).random((3**9, 9)).astype(np.float32)
    return lambda strength: (
        jnp.float32(1),
        jnp.asarray(strength * table + (1 - strength) * wrong),
    )


@pytest.fixture
def evaluation(nets):
    def evaluation(**flags):
        config = train.Config(
            env="tic_tac_toe", evaluate_every=2, evaluate_simulations=2, **flags
        )
        agent = Agent(
            config=config,
            env=envs.make("tic_tac_toe"),
            params=nets(0.0),
            net=lambda *_: None,  # pyright: ignore[reportArgumentType]
            evaluate=evaluate,
        )
        return TrainingEvaluation(agent, agent.params)

    return evaluation


def test_only_a_net_that_wins_often_enough_is_promoted(evaluation, nets):
    gated = evaluation(gate=0.55)
    same = gated.measure(2, nets(0.0))
    assert (same["score"], same["promoted"]) == (0.5, 0)
    assert same["elo"] == pytest.approx(0, abs=1e-3)
    assert plays(gated, nets(0.0))
    assert [gated.is_due(iteration) for iteration in (2, 3, 4)] == [True, False, True]
    better = gated.measure(4, nets(1.0))
    assert better["score_low"] > 0.55 and better["promoted"] == 1
    assert better["elo"] > 4 * better["elo_error"] > 0
    assert better["accuracy_raw"] == better["accuracy_search"] == 1.0
    assert plays(gated, nets(1.0))
    worse = gated.measure(6, nets(0.2))
    assert worse["score_high"] < 0.5 and worse["promoted"] == 0
    assert worse["elo"] < better["elo"]
    assert plays(gated, nets(1.0))


def plays(evaluation, net):
    return bool((evaluation.player[1] == net[1]).all())


def test_ladder_finds_the_order_of_nets_and_keeps_an_anchor(evaluation, nets):
    ladder = evaluation(evaluate_games=200)
    strengths = (0.0, 0.3, 0.4, 0.5, 1.0)
    figures = [
        ladder.measure(2 * number, nets(strength))
        for number, strength in enumerate(strengths, 1)
    ]
    elo = [f["elo"] for f in figures]
    assert elo == sorted(elo)
    assert all(f["promoted"] == 1 for f in figures)
    assert ladder.player is None  # without a gate the newest average plays
    assert elo[-1] - elo[0] > 4 * figures[-1]["elo_error"] > 0
    promoted, anchor = ladder.ladder.iterations
    assert promoted == 10 and 2 < anchor < 10


# The first net was measured before another one was told, and after that nothing is new.
def test_evaluations_compile_once_and_depend_on_nothing_before(evaluation, nets):
    first = evaluation()
    before = match._take_turn._cache_size()
    measured = first.measure(2, nets(0.5))
    parts = jax.tree.map(jnp.copy, first.parts)
    once = first.measure(4, nets(1.0))
    assert match._take_turn._cache_size() == before + 1
    again = evaluation()
    again.restore(parts)
    twice = again.measure(4, nets(1.0))
    for figures in (once, twice):
        assert figures.pop("evaluation_seconds") > 0
    assert once == twice
    assert once["elo"] != measured["elo"]


def test_openings_are_shorter_in_a_short_game():
    config = train.Config(env="nim", evaluate_every=1)
    agent = Agent(
        config=config,
        env=envs.make("nim", heaps=(1, 1)),
        params=jnp.zeros(2),
        net=lambda *_: None,  # pyright: ignore[reportArgumentType]
        evaluate=lambda params, key, states: (
            jnp.zeros_like(states.legal_action_mask, jnp.float32),
            jnp.zeros_like(states.terminated, jnp.float32),
        ),
    )
    figures = TrainingEvaluation(agent, agent.params).measure(1, agent.params)
    assert figures["score"] == 0.5  # there is one game, up to the names of heaps
    assert "accuracy_raw" not in figures
