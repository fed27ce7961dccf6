"""Games in which all players choose at once: their step, `check_env`, random play."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.vector import random_actions
from tests.envs.positions import jitted_step

GOOFSPIEL = envs.make("goofspiel_4")
TRON = envs.make("tron_4x4")
GAMES = [
    GOOFSPIEL,
    envs.make("goofspiel_3", prizes="descending", ties="carry"),
    envs.make("goofspiel_6", returns="point_difference"),
    TRON,
    envs.make("tron_17x17"),
]
both_games = pytest.mark.parametrize("env", [GOOFSPIEL, TRON], ids=repr)


def _assert_equal(state, other):
    jax.tree.map(np.testing.assert_array_equal, state, other)


@pytest.mark.parametrize("env", GAMES, ids=repr)
def test_game_keeps_the_contract(env):
    envs.check_env(env, games=8)


@both_games
def test_illegal_action_of_one_player_loses(env):
    step, start = jitted_step(env), env.init(jax.random.key(0))
    for bad in (-1, -2, env.num_actions, 10**6, -(2**31), 2**31 - 1):
        for actions, rewards in (
            ([bad, 1], [-1, 1]),
            ([1, bad], [1, -1]),
            ([bad, bad], [0, 0]),
            ([bad, -1], [0, 0]),
        ):
            after = step(start, np.array(actions, np.int32))
            assert after.terminated and not after.truncated
            assert not after.legal_action_mask.any()
            np.testing.assert_array_equal(after.rewards, rewards)
            assert env.to_text(after) == env.to_text(start)
            again = step(after, np.array([0, 1], np.int32))
            np.testing.assert_array_equal(again.rewards, [0, 0])
            _assert_equal(step(again, np.array(actions, np.int32)), again)


@both_games
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
def test_actions_of_every_integer_type_work(env, dtype):
    step, start = jitted_step(env), env.init(jax.random.key(0))
    wanted = step(start, np.array([1, 3], np.int32))
    _assert_equal(step(start, np.array([1, 3], dtype)), wanted)
    _assert_equal(env.step(start, [1, 3]), wanted)


def test_action_beyond_32_bits_is_illegal():
    after = TRON.step(TRON.init(), np.array([1, 2**32]))
    np.testing.assert_array_equal(after.rewards, [1, -1])


@both_games
def test_actions_that_are_not_one_a_player_are_refused(env):
    start = env.init(jax.random.key(0))
    for actions in (1, [1], [1, 2, 3], [[1, 2]]):
        with pytest.raises(ValueError, match=r"an action a player, of shape \(2,\)"):
            env.step(start, np.array(actions, np.int32))
    with pytest.raises(ValueError, match="an action is an integer, got dtype float32"):
        env.step(start, np.array([1, 2], np.float32))
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 3))
    with pytest.raises(ValueError, match=r"for a batch use jax.vmap\(env.step\)"):
        env.step(states, np.zeros((3, 2), np.int32))


@both_games
def test_truncated_state_is_absorbing(env):
    start = env.init(jax.random.key(0))
    state = dataclasses.replace(
        start,
        truncated=jnp.bool_(True),
        legal_action_mask=jnp.zeros_like(start.legal_action_mask),
    )
    _assert_equal(jitted_step(env)(state, np.array([1, 2], np.int32)), state)


@both_games
def test_positions_read_back_leaf_by_leaf(env):
    rng, step = np.random.default_rng(1), jax.jit(lambda s, a: env.step(s, a))
    for game in range(10):
        state = env.init(jax.random.key(game))
        while True:
            read = env.from_text(env.to_text(state))
            _assert_equal(read, state)
            leaves = [jax.tree.leaves(tree) for tree in (read, state)]
            assert all(a.aval == b.aval for a, b in zip(*leaves, strict=True))
            if state.terminated:
                break
            mask = np.asarray(state.legal_action_mask)
            state = step(read, np.argmax(rng.random(mask.shape) * mask, axis=1))
    assert step._cache_size() == 1


@both_games
def test_observation_takes_the_player_as_any_integer(env):
    state = env.init(jax.random.key(0))
    for player in (0, 1):
        wanted = env.observe(state, player)
        assert wanted.shape == env.observation_shape
        for form in (np.int8(player), jnp.int32(player)):
            np.testing.assert_array_equal(env.observe(state, form), wanted)


def test_forfeit_of_some_of_three_players_is_shared_by_the_others():
    class ForThree(envs.Tron):
        num_players = 3

    forfeit = ForThree()._forfeit
    for lost, rewards in (
        ([1, 0, 0], [-1, 0.5, 0.5]),
        ([1, 1, 0], [-1, -1, 2]),
        ([1, 1, 1], [0, 0, 0]),
    ):
        np.testing.assert_array_equal(forfeit(jnp.array(lost, bool)), rewards)


@both_games
def test_random_actions_are_legal_and_alike_for_both_players(env):
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 4000))
    step = jax.jit(jax.vmap(env.step))
    first = random_actions(jax.random.key(1), states)
    assert first.shape == (4000, 2) and first.dtype == jnp.int32
    counts = np.zeros((4, 4), int)
    np.add.at(counts, tuple(np.asarray(first).T), 1)
    # 250 for each pair of actions, with a standard deviation of 15.
    assert counts.min() > 170 and counts.max() < 330
    states = step(states, first)
    second = np.asarray(random_actions(jax.random.key(2), states))
    live = ~np.asarray(states.terminated)
    legal = np.take_along_axis(
        np.asarray(states.legal_action_mask), second[..., None], axis=2
    )
    assert legal[live].all() and not second[~live].any()


class FirstMaskServesBoth(envs.Tron):
    def init(self, key=None):
        state = super().init(key)
        mask = state.legal_action_mask[0]
        return dataclasses.replace(state, legal_action_mask=mask)


class SecondPlayerCannotMove(envs.Tron):
    def _play(self, state, actions, key):
        after = super()._play(state, actions, key)
        mask = after.legal_action_mask.at[1].set(False)
        return dataclasses.replace(after, legal_action_mask=mask)


class IllegalActionOfBothLosesForTheFirst(envs.Tron):
    def _forfeit(self, lost):
        return envs.win_rewards(lost.any(), lost[0].astype(jnp.int32))


class IllegalActionOfTheSecondIsForgiven(envs.Tron):
    def step(self, state, actions, key=None):
        after = super().step(state, actions, key)
        forgiven = ((actions[1] < 0) | (actions[1] > 3)) & ~state.terminated
        return jax.tree.map(lambda x, y: jnp.where(forgiven, x, y), state, after)


class ObservationIsInteger(envs.Tron):
    def observe(self, state, player):
        return super().observe(state, player).astype(jnp.int32)


class SecondNamesAreOneOff(envs.Tron):
    def _action_name(self, state, player, action):
        return super()._action_name(state, player, action // (1 + player))


class MirroredMovesAreNotExchanged(envs.Tron):
    @property
    def symmetries(self):
        right = envs.Tron().symmetries
        still = np.broadcast_to(right.actions[:1], right.actions.shape)
        return envs.Symmetries(cells=right.cells, actions=still)


class StateIsOfAGameInTurn(envs.Tron):
    def init(self, key=None):
        return envs.make("nim").init()


class MovesAreLost(envs.Tron):
    def _play(self, state, actions, key):
        return state


CAUGHT = {
    FirstMaskServesBoth: r"must be bool of shape \(2, 4\), got bool of shape \(4,\)",
    SecondPlayerCannotMove: "while it is unfinished, of every player",
    IllegalActionOfBothLosesForTheFirst: "all players must end the game as a draw",
    IllegalActionOfTheSecondIsForgiven: "must end the game with -1 for its mover",
    ObservationIsInteger: "observe must give finite bool or float32",
    SecondNamesAreOneOff: "action 0 is called 'up', which reads back as 1",
    MirroredMovesAreNotExchanged: "played through symmetry 1 must show the image",
    StateIsOfAGameInTurn: "a subclass of envs.SimultaneousState, got NimState",
    MovesAreLost: "a legal action must change the state",
}


@pytest.mark.parametrize("game", CAUGHT, ids=lambda game: game.__name__)
def test_faulty_game_is_caught(game):
    with pytest.raises(ValueError, match=rf"check_env\(tron_10x10\): .*{CAUGHT[game]}"):
        envs.check_env(game(), games=4, max_plies=60)


@pytest.mark.parametrize("player", [-1, 2, 5, "up"])
def test_players_that_there_are_not_are_refused(player):
    env = envs.make("tron_4x4")
    with pytest.raises(ValueError, match="tron_4x4 has players 0 to 1, got"):
        env.text_to_action(env.init(), player, "up")
    with pytest.raises(ValueError, match="tron_4x4 has players 0 to 1, got"):
        env.action_to_text(env.init(), player, 0)
