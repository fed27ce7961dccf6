"""The step that all games share, and text in and out for every game."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from tests.envs.positions import jitted_step, play

GAMES = [
    envs.make("tic_tac_toe"),
    envs.make("connect_four"),
    envs.make("nim"),
    envs.make("nim", heaps=(2, 3, 2), misere=True),
]
# Games that are cheap to compile, one of each kind of step.
SHARDED = (
    "connect_four",
    "tic_tac_toe",
    "nim",
    "gomoku_5x5",
    "ultimate_tic_tac_toe",
    "oware",
    "othello_6x6",
    "hex_5x5",
    "go_5x5",
    "gardner_chess",
    "chess",
    "sequential:tron_4x4",
)
every_game = pytest.mark.parametrize("env", GAMES, ids=repr)


def _assert_equal(state, other):
    jax.tree.map(np.testing.assert_array_equal, state, other)


@every_game
def test_game_keeps_the_contract(env):
    envs.check_env(env)


@every_game
def test_first_player_begins_and_players_take_turns(env):
    state = env.init()
    for ply in range(4):
        assert int(state.current_player) == ply % 2
        state = jitted_step(env)(state, int(np.argmax(state.legal_action_mask)))


@every_game
def test_keys_of_every_kind_work(env):
    step, start = jitted_step(env), env.init()
    after = step(start, 1)
    batched = jax.jit(
        jax.vmap(lambda key, action: env.step(env.init(key), action, key))
    )
    for key in (None, jax.random.key(3), jax.random.PRNGKey(3)):
        _assert_equal(env.init(key), start)
        _assert_equal(step(start, 1, key), after)
        if key is not None:
            states = batched(jnp.stack([key, key]), jnp.array([1, 1]))
            _assert_equal(jax.tree.map(lambda leaf: leaf[1], states), after)


@every_game
@pytest.mark.parametrize("dtype", ["int8", "uint32"])
def test_actions_of_every_integer_type_work(env, dtype):
    step, state = jitted_step(env), env.init()
    _assert_equal(step(state, jnp.asarray(1, dtype)), step(state, 1))


@every_game
def test_action_out_of_range_loses_and_leaves_the_board(env):
    step, before = jitted_step(env), play(env, [1])  # the second player is to move
    for action in (-1, -2, env.num_actions, 10**6, -(2**31), 2**31 - 1):
        after = step(before, action)
        assert after.terminated and not after.truncated
        assert not after.legal_action_mask.any()
        np.testing.assert_array_equal(after.rewards, [1, -1])
        np.testing.assert_array_equal(env.observe(after), env.observe(before))
        assert env.to_text(after) == env.to_text(before)

        again = step(after, 0)
        np.testing.assert_array_equal(again.rewards, [0, 0])
        _assert_equal(step(again, action), again)


def test_largest_unsigned_action_is_illegal():
    env = GAMES[0]
    assert jitted_step(env)(env.init(), jnp.uint32(2**32 - 1)).terminated


# Cut down to 32 bits, all of them would be action 0.
@pytest.mark.parametrize(
    "action",
    [2**32, -(2**32), 2**70, np.int64(2**32), np.uint64(2**63), np.array(2**32)],
    ids=repr,
)
def test_action_beyond_32_bits_is_illegal(action):
    after = GAMES[0].step(GAMES[0].init(), action)
    assert after.terminated
    np.testing.assert_array_equal(after.rewards, [-1, 1])


def test_action_beyond_32_bits_is_illegal_with_64_bits_switched_on():
    step, start = jitted_step(GAMES[0]), GAMES[0].init()
    with jax.enable_x64(True):
        for action in (2**32, -(2**32), 2**40 + 4):
            assert step(start, jnp.int64(action)).terminated
        assert not step(start, jnp.int64(4)).terminated


@every_game
def test_truncated_state_is_absorbing(env):
    state = dataclasses.replace(
        env.init(),
        truncated=jnp.bool_(True),
        legal_action_mask=jnp.zeros(env.num_actions, bool),
    )
    _assert_equal(jitted_step(env)(state, 1), state)


@every_game
def test_positions_read_back_leaf_by_leaf(env):
    rng = np.random.default_rng(1)
    step = jax.jit(lambda state, action: env.step(state, action))
    for _ in range(10):
        state = env.init()
        while True:
            read = env.from_text(env.to_text(state))
            _assert_equal(read, state)
            assert all(
                a.aval == b.aval
                for a, b in zip(
                    jax.tree.leaves(read), jax.tree.leaves(state), strict=True
                )
            )
            if state.terminated:
                break
            legal = np.flatnonzero(state.legal_action_mask)
            state = step(state, int(rng.choice(legal)))
    assert step._cache_size() == 1


@every_game
def test_batched_call_is_refused(env):
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 3))
    with pytest.raises(ValueError, match=r"got actions of shape \(3,\) and states of "):
        env.step(states, jnp.zeros(3, jnp.int32))
    with pytest.raises(ValueError, match=r"for a batch use jax.vmap\(env.step\)"):
        env.step(env.init(), jnp.zeros(3, jnp.int32))


@every_game
@pytest.mark.parametrize("action", [1.0, True, "3", None])
def test_action_that_is_not_an_integer_is_refused(env, action):
    with pytest.raises(ValueError, match="an action is an integer, got"):
        env.step(env.init(), action)


@pytest.mark.parametrize(
    ("env", "position", "text", "message"),
    [
        (
            GAMES[0],
            "X../.../...",
            "1",
            "'1' is not a legal move here; a move is a cell",
        ),
        (GAMES[0], "X../.../...", "a1", "legal here: 2 3 4 5 6 7 8 9"),
        (GAMES[1], "444444", "4", "a column, 1 to 7; legal here: 1 2 3 5 6 7"),
        (GAMES[1], "1213141", "1", "no move '1', the game is over"),
        (GAMES[2], "0 1 1", "1:1", "HEAP:TAKE, such as .*; legal here: 2:1 3:1"),
    ],
)
def test_text_of_an_illegal_move_is_refused(env, position, text, message):
    with pytest.raises(ValueError, match=f"{env.id}: .*{message}"):
        env.text_to_action(env.from_text(position), text)


@pytest.mark.parametrize("action", [-1, 7, 1.7, True, 2**70, "1", None])
def test_name_of_no_action_is_refused(action):
    with pytest.raises(ValueError, match=f"actions 0 to 6, got {action!r}"):
        GAMES[1].action_to_text(GAMES[1].init(), action)


@pytest.mark.parametrize("game", SHARDED)
def test_sharded_batch_is_stepped(game):
    # Explicit sharding, JAX's default: some of the games on each device.
    env = envs.make(game)
    mesh = jax.make_mesh((2,), ("data",))
    rows = jax.NamedSharding(mesh, jax.P("data"))
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 4))
    legal = np.flatnonzero(np.asarray(states.legal_action_mask)[0])
    actions = np.array([*legal[:3], 0], np.int32)  # 0 is illegal in some games
    expected = jax.jit(jax.vmap(env.step))(states, actions)
    with jax.set_mesh(mesh):
        got = jax.jit(jax.vmap(env.step))(*jax.device_put((states, actions), rows))
        shown = jax.jit(jax.vmap(env.observe))(got)
    _assert_equal(got, expected)
    np.testing.assert_array_equal(shown, jax.jit(jax.vmap(env.observe))(expected))
