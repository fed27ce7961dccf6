"""What players teach: policies and values, alone and together."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.noiseless_search import noiseless_search
from jaxsearch.arena.players import random_player, raw_player, search_player
from jaxsearch.arena.teachers import (
    check_memory,
    ensemble,
    lessons_of_games,
    lessons_on,
    read_positions,
)
from jaxsearch.learn.lessons import load_lessons, save_lessons
from jaxsearch.learn.packing import Packing
from jaxsearch.vector import is_finished
from tests.arena.agents import net_agent

KEY = jax.random.key(0)


def lessons_and_states(env, teachers, positions, batch_size):
    lessons = lessons_on(
        env, teachers, positions, batch_size=batch_size, key=KEY, progress=print
    )
    return lessons, jax.vmap(Packing(env).unpack)(lessons.position)


def some_positions(env):
    """All 81 positions after one and two moves; 15 up to symmetry."""
    texts = []
    for x, o in itertools.product(range(9), repeat=2):
        cells = ["."] * 9
        cells[o], cells[x] = "O", "X"  # the same cell: O has not moved
        texts.append("/".join("".join(cells[row : row + 3]) for row in (0, 3, 6)))
    return [env.from_text(text) for text in texts]


def test_ensemble_teaches_the_means_of_what_its_members_say():
    agents = [net_agent("tic_tac_toe", seed) for seed in (1, 2)]
    env = agents[0].env
    together = ensemble([raw_player(agent) for agent in agents])
    lessons, states = lessons_and_states(env, together, some_positions(env), 16)
    assert len(lessons) == 15
    legal = np.asarray(states.legal_action_mask)
    policies, values = [], []
    for agent in agents:
        logits, value = agent.evaluate(agent.params, None, states)
        weights = np.where(legal, np.exp(np.asarray(logits, np.float64)), 0)
        policies.append(weights / weights.sum(axis=1, keepdims=True))
        values.append(np.asarray(value))
    assert abs(policies[0] - policies[1]).max() > 0.1
    np.testing.assert_allclose(lessons.policy_target, sum(policies) / 2, atol=1e-6)
    np.testing.assert_allclose(lessons.value_target, sum(values) / 2, atol=1e-6)


def test_search_teaches_its_weights_and_the_value_of_its_root():
    agent = net_agent("tic_tac_toe")
    env = agent.env
    player = search_player(agent, num_simulations=8)
    lessons, states = lessons_and_states(
        env, ensemble([player]), some_positions(env), 64
    )
    run = noiseless_search(env, agent.evaluate, search="puct", num_simulations=8)
    output = jax.jit(run)(agent.params, jax.random.key(7), states)
    np.testing.assert_allclose(lessons.policy_target, output.action_weights, atol=1e-6)
    value = output.search_tree.summary().value
    np.testing.assert_allclose(lessons.value_target, value, atol=1e-6)
    assert np.ptp(lessons.value_target) > 0.1


def test_games_of_the_teachers_give_different_positions_with_what_they_say():
    agent = net_agent("tic_tac_toe")
    env, teachers, shares = agent.env, ensemble([raw_player(agent)]), []
    lessons = lessons_of_games(
        env,
        teachers,
        games=60,
        batch_size=16,
        opening_plies=3,
        temperature=1.0,
        key=KEY,
        progress=shares.append,
    )
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    states = jax.vmap(Packing(env).unpack)(lessons.position)
    assert not np.asarray(is_finished(states)).any()
    seen = np.asarray(jax.vmap(env.observe)(states))
    assert len(np.unique(seen, axis=0)) == len(lessons) > 60
    policy, value = teachers.teach(teachers.params, KEY, states)
    np.testing.assert_allclose(lessons.policy_target, policy, atol=1e-6)
    np.testing.assert_allclose(lessons.value_target, value, atol=1e-6)


def test_best_moves_alone_repeat_one_game():
    agent = net_agent("tic_tac_toe")
    lessons = lessons_of_games(
        agent.env,
        ensemble([raw_player(agent)]),
        games=20,
        batch_size=8,
        opening_plies=0,
        temperature=0.0,
        key=KEY,
        progress=print,
    )
    stones = seen_stones(agent.env, lessons)
    assert sorted(stones) == [*range(len(lessons))]


def seen_stones(env, lessons):
    states = jax.vmap(Packing(env).unpack)(lessons.position)
    seen = jax.vmap(env.observe)(states)
    return np.asarray(jnp.sum(seen, axis=range(1, seen.ndim))).tolist()


def test_player_without_knowledge_teaches_nothing():
    with pytest.raises(ValueError, match="the player 'random' has nothing to teach"):
        ensemble([random_player()])


def test_search_that_no_memory_holds_is_refused_before_it_runs():
    agent = net_agent("tic_tac_toe")
    teachers = ensemble([search_player(agent, num_simulations=2**20)])
    with pytest.raises(ValueError, match="lower --teacher-batch or the sims"):
        check_memory(agent.env, teachers, 2**20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".../.../...\n\nXX./.../...\n", "positions.txt line 3: tic_tac_toe: 'XX"),
        ("XXX/OO./...\n", "positions.txt line 1: the game is over in 'XXX/OO./...'"),
        (" \n", "positions.txt holds no position"),
        (b"\xff", "positions.txt cannot be read: it is no text in UTF-8"),
        (None, "positions.txt cannot be read: No such file"),
    ],
    ids=ascii,
)
def test_file_without_positions_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "positions.txt"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read_positions(envs.make("tic_tac_toe"), path)


def test_lessons_come_back_from_their_file_as_they_were(tmp_path):
    agent, path = net_agent("tic_tac_toe"), tmp_path / "lessons.npz"
    env = agent.env
    teachers = ensemble([raw_player(agent)])
    lessons, _ = lessons_and_states(env, teachers, some_positions(env), 64)
    save_lessons(path, lessons)
    jax.tree.map(np.testing.assert_array_equal, lessons, load_lessons(path, env))
    with pytest.raises(ValueError, match=r"lessons\.npz cannot be read: it is of anot"):
        load_lessons(path, envs.make("connect_four"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"lessons\.npz cannot be read"):
        load_lessons(path, env)
