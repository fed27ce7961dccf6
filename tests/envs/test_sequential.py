"""The sequential view of games in which all players choose at once."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.match import play_match
from jaxsearch.arena.players import random_player, uct_player
from tests.envs.positions import jitted_step

GAMES = [
    envs.make("sequential:goofspiel_4"),
    envs.Sequential(envs.make("goofspiel_3", prizes="ascending", ties="carry")),
    envs.make("sequential:tron_5x5"),
]
every_view = pytest.mark.parametrize("env", GAMES, ids=repr)


@every_view
def test_view_keeps_the_contract(env):
    envs.check_env(env, games=8)


@every_view
def test_turn_is_the_step_of_the_game(env):
    rng = np.random.default_rng(0)
    step, whole = jitted_step(env), jitted_step(env.game)
    for key in jax.random.split(jax.random.key(0), 4):
        state, position = env.init(key), env.game.init(key)
        while not position.terminated:
            actions = []
            for player in (0, 1):
                assert int(state.current_player) == player
                np.testing.assert_array_equal(
                    state.legal_action_mask, position.legal_action_mask[player]
                )
                np.testing.assert_array_equal(
                    env.observe(state), env.game.observe(position, player)
                )
                legal = np.flatnonzero(state.legal_action_mask)
                actions.append(rng.choice(legal))
                state = step(state, actions[-1])
                np.testing.assert_array_equal(
                    state.rewards * (1 - player), np.zeros(2)
                )  # nothing is paid before both have chosen
            position = whole(position, np.array(actions))
            jax.tree.map(np.testing.assert_array_equal, state.position, position)
            np.testing.assert_array_equal(state.rewards, position.rewards)
        assert state.terminated and not state.legal_action_mask.any()


@every_view
def test_second_player_does_not_see_what_the_first_chose(env):
    start = env.init(jax.random.key(0))
    after = [jitted_step(env)(start, action) for action in (0, 1)]
    np.testing.assert_array_equal(env.observe(after[0]), env.observe(after[1]))
    assert env.to_svg(after[0]) == env.to_svg(start)


@every_view
def test_position_within_a_turn_reads_back_leaf_by_leaf(env):
    state = jitted_step(env)(env.init(jax.random.key(3)), 1)
    assert int(state.current_player) == 1
    read = env.from_text(env.to_text(state))
    jax.tree.map(np.testing.assert_array_equal, read, state)
    leaves = [jax.tree.leaves(tree) for tree in (read, state)]
    assert all(a.aval == b.aval for a, b in zip(*leaves, strict=True))


@pytest.mark.parametrize("player", [0, 1])
def test_illegal_choice_loses_at_once(player):
    env = GAMES[0]
    state = env.init(jax.random.key(0))
    for _ in range(player):
        state = jitted_step(env)(state, 2)
    after = jitted_step(env)(state, 4)
    assert after.terminated
    np.testing.assert_array_equal(after.rewards, [1, -1] if player else [-1, 1])
    assert env.to_text(after) == env.to_text(state)


def test_text_names_the_choice_of_the_turn():
    env = envs.make("sequential:goofspiel_5")
    state = env.from_text("3:2-4 1:5-1 5 2 4 > 3")
    assert int(state.current_player) == 1
    assert env.to_text(state) == "3:2-4 1:5-1 5 2 4 > 3"
    assert env.draw(state).splitlines()[-1] == "player 0 chose 3"
    assert env.action_to_text(state, 4) == "5"
    assert env.text_to_action(state, "5") == 4
    after = jitted_step(env)(state, 4)
    assert env.to_text(after) == "3:2-4 1:5-1 5:3-5 2 4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3 > 4", "goofspiel_3: '4' is not a legal move here"),
        ("1 2 3 > 1 > 2", "has 2 choices of one turn; the last of 2 players is still"),
        ("1 2 > 1", "goofspiel_3: got '1 2'; a position is 3 prizes"),
        ("1:1-1 2:2-2 3:3-3 > 1", "no move '1', the game is over"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        envs.make("sequential:goofspiel_3").from_text(text)


def test_view_has_the_name_and_options_of_its_game():
    env = envs.make("sequential:goofspiel_7", ties="carry")
    assert env.id == "sequential:goofspiel_7"
    assert env.options == envs.make("goofspiel_7", ties="carry").options
    assert repr(envs.make(env.id, **env.options)) == repr(env)
    assert env.symmetries is env.game.symmetries


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sequential:nim", "got <nim v0 .*>: its players move in turn"),
        ("sequential:sequential:tron_4x4", "its players move in turn"),
        ("sequential:chess960", "unknown game 'chess960'"),
        ("sequentail:tron_10x10", "did you mean 'sequential:tron_10x10'"),
    ],
)
def test_view_of_no_such_game_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name)


def test_names_in_turn_are_all_but_the_games_of_simultaneous_moves():
    left_out = set(envs.names()) - set(envs.names(in_turn=True))
    assert left_out == {"goofspiel_5", "tron_10x10"}
    assert {f"sequential:{name}" for name in left_out} < set(envs.names(in_turn=True))
    for name in envs.names(in_turn=True):
        assert isinstance(envs.make_in_turn(name), envs.Env)


@pytest.mark.parametrize("name", ["goofspiel_8", "tron_4x4"])
def test_game_of_simultaneous_moves_is_refused_where_players_move_in_turn(name):
    with pytest.raises(
        ValueError, match=f"take its sequential view, sequential:{name}"
    ):
        envs.make_in_turn(name)


# Where each has one best bid whatever the other does, peeking in the tree is no harm:
# in descending order of three prizes the highest card first (see the recorded value).
def test_search_on_the_view_beats_random_play():
    env = envs.make("sequential:goofspiel_3", prizes="descending")
    match = play_match(
        env,
        uct_player(env, num_simulations=32),
        random_player(),
        games=60,
        opening_plies=0,
        key=jax.random.key(0),
    )
    assert match.total.wins > 2 * match.total.losses


def test_state_takes_as_many_bytes_as_the_game_s_and_a_few():
    for env in GAMES:
        own, game = (
            sum(leaf.nbytes for leaf in jax.tree.leaves(one.init()))
            for one in (env, env.game)
        )
        assert own == game + 2 + env.num_actions + 8 * 2


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OddOneOutState(envs.SimultaneousState):
    coins: jax.Array  # [3] int8: -1 is not shown yet


class OddOneOut(envs.SimultaneousEnv[OddOneOutState]):
    """Three show a coin; who alone shows a side wins. Observation: is it over?"""

    id, version, action_format = "odd_one_out", "v0", "heads or tails"
    num_players, num_actions, observation_shape = 3, 2, (1, 1)

    def init(self, key=None):
        return self._position(jnp.full(3, -1, jnp.int8))

    def _play(self, state, actions, key):
        return self._position(actions.astype(jnp.int8))

    def _position(self, coins):
        shown = coins[0] >= 0
        same = (coins[:, None] == coins[None, :]).sum(axis=1)
        rewards = jnp.where(same == 1, 1.0, -0.5) * (shown & (same == 1).any())
        return OddOneOutState(
            coins=coins,
            legal_action_mask=jnp.broadcast_to(~shown, (3, 2)),
            rewards=rewards.astype(jnp.float32),
            terminated=shown,
            truncated=jnp.zeros_like(shown),
        )

    def observe(self, state, player):
        return state.terminated[None, None]

    def to_text(self, state):
        return "".join("HT."[coin] for coin in np.asarray(state.coins))

    def from_text(self, text):
        if len(text) != 3 or not (text == "..." or set(text) <= {*"HT"}):
            raise ValueError(f"odd_one_out: got {text!r}")
        return self._position(jnp.array(["HT".find(coin) for coin in text], jnp.int8))

    def _action_name(self, state, player, action):
        return ("heads", "tails")[action]


def test_three_players_choose_one_after_the_other():
    game = OddOneOut()
    envs.check_env(game)
    env = envs.Sequential(game)
    envs.check_env(env)
    state, texts = env.init(), []
    for player, name in enumerate(("heads", "tails", "heads")):
        assert int(state.current_player) == player and not state.terminated
        state = jitted_step(env)(state, env.text_to_action(state, name))
        texts.append(env.to_text(state))
    assert texts == ["... > heads", "... > heads > tails", "HTH"]
    np.testing.assert_array_equal(state.rewards, [-0.5, 1, -0.5])
