"""Solved positions, sweeps and the comparison of searches."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.compare import compare_searches
from jaxsearch.arena.hashed_evaluation import hashed_evaluate
from jaxsearch.arena.players import Player, random_player, uct_player
from jaxsearch.arena.positions import (
    evaluate_positions,
    solved_positions,
    wilson_interval,
)
from jaxsearch.arena.sweep import save_sweep, sweep_match, sweep_positions
from tests.arena.agents import net_agent

ENV = envs.make("connect_four")


def test_random_moves_keep_a_third_of_the_outcomes():
    positions = solved_positions(ENV)
    legal = np.asarray(positions.states.legal_action_mask)
    share = (positions.keeps_outcome.sum(axis=1) / legal.sum(axis=1)).mean()
    assert round(100 * share, 1) == 32.8  # as the file says
    result = evaluate_positions(ENV, random_player())
    assert result.low < share < result.high
    assert sum(part.positions for part in result.by_plies) == result.positions == 600


def test_perfect_moves_keep_all_outcomes():
    positions = solved_positions(ENV)
    boards = jax.vmap(ENV.observe)(positions.states).reshape(600, -1)
    best = jnp.asarray(positions.keeps_outcome).argmax(axis=1)

    def choose(params, key, states):
        del key
        boards, best = params
        seen = jax.vmap(ENV.observe)(states).reshape(len(states.terminated), -1)
        same = (seen[:, None, :] == boards[None, :, :]).all(axis=-1)
        return best[same.argmax(axis=1)].astype(jnp.int32)

    oracle = Player(name="oracle", params=(boards, best), choose=choose)
    assert evaluate_positions(ENV, oracle, batch_size=250).share == 1.0


def test_playouts_keep_more_outcomes_than_chance():
    assert evaluate_positions(ENV, uct_player(ENV, num_simulations=100)).share > 0.6


def test_positions_of_another_game_are_refused():
    with pytest.raises(ValueError, match="tic_tac_toe only, got a player of nim"):
        evaluate_positions(envs.make("nim"), random_player())


def test_wilson_interval_is_that_of_the_formula():
    np.testing.assert_allclose(wilson_interval(8, 10), (0.4902, 0.9433), atol=1e-4)


def test_sweep_in_one_batch_equals_its_points_alone(tmp_path):
    agent = net_agent("connect_four")
    key = jax.random.key(0)
    grid = sweep_positions(agent, simulations=(4, 8), c_puct=(0.5, 4.0), key=key)
    alone = sweep_positions(agent, simulations=(8,), c_puct=(4.0,), key=key)
    assert [(p.simulations, p.c_puct) for p in grid.points] == [
        *((4, 0.5), (4, 4.0), (8, 0.5), (8, 4.0))
    ]
    # A net rounds otherwise in another batch: a position or two may be that close.
    assert abs(grid.points[-1].value - alone.points[0].value) <= 2 / 600
    assert len({point.value for point in grid.points}) > 1
    for path in save_sweep(grid, tmp_path / "new"):
        assert path.exists()
    lines = (tmp_path / "new" / "sweep.jsonl").read_text().splitlines()
    assert len(lines) == 4
    assert json.loads(lines[0])["simulations"] == 4
    assert (tmp_path / "new" / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_sweep_against_an_opponent_measures_every_setting():
    agent = net_agent("tic_tac_toe")
    result = sweep_match(
        agent,
        random_player(),
        simulations=(32,),
        c_puct=(0.5, 2.0),
        games=40,
        opening_plies=1,
        key=jax.random.key(0),
    )
    assert result.measure == "score against random"
    assert result.values.shape == (1, 2)
    # 32 simulations see a line of three coming.
    assert all(0.5 < p.low <= p.value <= p.high for p in result.points)


# PUCT costs no more than twice as much as Gumbel; here it costs less.
def test_our_visits_equal_those_of_mctx_in_less_time_and_memory():
    result = compare_searches(
        ENV,
        hashed_evaluate(ENV),
        None,
        simulations=16,
        batch=64,
        plies=6,
        repeats=3,
        key=jax.random.key(0),
    )
    assert result.equal_rows == 1.0
    ours, *others = result.costs
    assert [cost.search for cost in others] == ["gumbel", "mctx-puct", "mctx-gumbel"]
    for other in others:
        assert ours.seconds < 2 * other.seconds
    for other in others[1:]:
        assert ours.tree_bytes < other.tree_bytes
        assert ours.bytes_per_node == ours.tree_bytes / (64 * 17)
