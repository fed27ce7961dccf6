"""Self-play: what is recorded is what was played."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

import envs
from jaxsearch import two_player_model
from jaxsearch.learn import self_play
from jaxsearch.search.policy_names import policy_named, policy_names

ENV = envs.make("tic_tac_toe")
GAMES, PLIES = 6, 16
step, observe = jax.jit(ENV.step), jax.jit(ENV.observe)


def evaluate(params, key, states):
    batch_size = states.current_player.shape[0]
    return jax.random.normal(key, (batch_size, 9)), jnp.zeros(batch_size)


@functools.cache
def played(search="puct"):
    def run(params, key, root, recurrent_fn, invalid_actions):
        policy = policy_named(search)
        return policy(params, key, root, recurrent_fn, 8, invalid_actions)

    start_key, play_key = jax.random.split(jax.random.key(0))
    states = self_play.start_games(ENV, start_key, GAMES, 3)
    model = two_player_model(ENV, evaluate)
    play = functools.partial(self_play.play, ENV, model, run)
    result = jax.jit(functools.partial(play, num_plies=PLIES, opening_plies=3))(
        None, play_key, states
    )
    return states, *result


@pytest.mark.parametrize("search", policy_names())
def test_records_follow_the_rules_of_the_game(search):
    states, final, plies, counts = jax.device_get(played(search))
    boards = np.asarray(plies.observation)
    for game in range(GAMES):
        state = jax.tree.map(lambda x: x[game], states)  # noqa: B023
        for ply in range(PLIES):
            record = jax.tree.map(lambda x: x[ply, game], plies)  # noqa: B023
            np.testing.assert_array_equal(record.observation, observe(state))
            np.testing.assert_array_equal(
                record.legal_action_mask, state.legal_action_mask
            )
            assert record.player == state.current_player
            np.testing.assert_allclose(record.policy_target.sum(), 1, rtol=1e-5)
            illegal = ~np.asarray(record.legal_action_mask)
            assert not np.asarray(record.policy_target)[illegal].any()
            following = [
                moved
                for action in np.flatnonzero(~illegal)
                if same(moved := step(state, int(action)), record)
            ]
            if record.terminated:
                assert following  # some legal move ended the game so
                board = final_board(final, boards, ply, game)
                state = start_from(board)
                assert board.sum() <= 3  # a new game, up to 3 random moves in
            else:
                board = final_board(final, boards, ply, game)
                state = next(
                    moved
                    for moved in following
                    if np.array_equal(observe(moved), board)
                )
    assert int(counts.plies) == GAMES * PLIES
    ended = np.asarray(plies.terminated)
    first = np.asarray(plies.rewards)[..., 0]
    assert int(counts.games) == ended.sum()
    assert int(counts.wins_first) == (ended & (first > 0)).sum()
    assert int(counts.wins_second) == (ended & (first < 0)).sum()
    assert int(counts.draws) == (ended & (first == 0)).sum()


def same(moved, record):
    return bool(moved.terminated) == bool(record.terminated) and np.array_equal(
        moved.rewards, record.rewards
    )


def final_board(final, boards, ply, game):
    """The observation after a ply: of the next ply, or of the state at the end."""
    if ply + 1 < len(boards):
        return boards[ply + 1, game]
    state = jax.tree.map(lambda x: x[game], final)
    return np.asarray(observe(state))


def start_from(board):
    """The state that shows this observation to its player to move."""
    mine, theirs = board[..., 0].ravel(), board[..., 1].ravel()
    x, o = (mine, theirs) if mine.sum() == theirs.sum() else (theirs, mine)
    cells = np.where(x, "X", np.where(o, "O", ".")).reshape(3, 3)
    return ENV.from_text("/".join("".join(row) for row in cells))


# In game 0 the first player fills the top row with the fifth move, game 1 goes on.
#
#   X X X      X O X
#   O O .      . X .
#   . . .      . O .
LINES = np.array([[0, 3, 1, 4, 2, 5], [4, 1, 0, 7, 2, 8]])


def test_reward_of_the_last_move_is_delivered_once_and_the_board_stays():
    model = two_player_model(ENV, evaluate)
    recurrent_fn = jax.jit(model.recurrent_fn)
    states = self_play.start_games(ENV, jax.random.key(0), 2, 0)
    boards = []
    for number, actions in enumerate(LINES.T, start=1):
        output, states = recurrent_fn(None, jax.random.key(0), actions, states)
        boards.append(jax.vmap(observe)(states))
        rewards, ended = ([1, -1], True) if number == 5 else ([0, 0], number > 5)
        np.testing.assert_array_equal(states.rewards, [rewards, [0, 0]])
        np.testing.assert_array_equal(states.terminated, [ended, False])
        np.testing.assert_array_equal(output.discount, [0 if ended else -1, -1])
        np.testing.assert_array_equal(output.reward, [rewards[0], 0])
    assert ENV.to_text(jax.tree.map(lambda x: x[0], states)) == "XXX/OO./..."
    np.testing.assert_array_equal(boards[5][0], boards[4][0])


# Self-play keeps no finished board; the record before it and the move give it.
def test_reward_of_a_replaced_game_is_recorded_once():
    def scripted(params, key, root, recurrent_fn, invalid_actions):
        action = jax.vmap(lambda line, number: line[number])(
            jnp.asarray(LINES), invalid_actions.sum(axis=1)
        )
        summary = SimpleNamespace(value=root.value)
        return mctx.PolicyOutput(
            action=action,
            action_weights=jax.nn.one_hot(action, 9),
            search_tree=SimpleNamespace(summary=lambda: summary),
        )

    states = self_play.start_games(ENV, jax.random.key(0), 2, 0)
    model = two_player_model(ENV, evaluate)
    play = functools.partial(self_play.play, ENV, model, scripted, None)
    _, plies, counts = jax.jit(functools.partial(play, num_plies=6, opening_plies=0))(
        jax.random.key(1), states
    )
    rewards = np.zeros((6, 2, 2))
    rewards[4, 0] = [1, -1]
    np.testing.assert_array_equal(plies.rewards, rewards)
    np.testing.assert_array_equal(plies.terminated, rewards.any(axis=2))
    assert int(counts.games) == int(counts.wins_first) == 1

    before = start_from(np.asarray(plies.observation[4, 0]))
    last = step(before, int(plies.policy_target[4, 0].argmax()))
    assert ENV.to_text(last) == "XXX/OO./..."
    assert last.terminated
    assert not plies.observation[5, 0].any()  # a new game stands in its place
    assert plies.observation[5, 1].sum() == 5  # the other one goes on


class Capped(type(ENV)):
    """Tic-tac-toe that stops after four marks, before anyone has won."""

    def _play(self, state, action, key):
        played = super()._play(state, action, key)
        full = jnp.sum(played.board >= 0) == 4
        return dataclasses.replace(
            played,
            legal_action_mask=played.legal_action_mask & ~full,
            truncated=full,
        )


def test_capped_games_are_replaced_and_counted_apart():
    env = Capped()

    def run(params, key, root, recurrent_fn, invalid_actions):
        policy = policy_named("puct")
        return policy(params, key, root, recurrent_fn, 2, invalid_actions)

    play = functools.partial(
        self_play.play, env, two_player_model(env, evaluate), run, None
    )
    states = self_play.start_games(env, jax.random.key(0), 3, 0)
    _, plies, counts = jax.jit(functools.partial(play, num_plies=8, opening_plies=0))(
        jax.random.key(1), states
    )
    for row in range(8):  # the fourth and the eighth move end all games
        np.testing.assert_array_equal(plies.truncated[row], row in (3, 7))
        marks = np.asarray(plies.observation[row]).sum(axis=(1, 2, 3))
        np.testing.assert_array_equal(marks, row % 4)
    assert int(counts.games) == int(counts.truncated) == 6
    assert int(counts.draws) == int(counts.wins_first) == int(counts.wins_second) == 0


@pytest.mark.parametrize("search", policy_names())
def test_search_value_is_from_the_view_of_the_mover(search):
    # The net knows nothing, so that a value comes from ends of games alone.
    plies = played(search)[2]
    won = np.asarray(plies.rewards).max(axis=-1) > 0
    assert won.sum() > 5
    assert np.asarray(plies.search_value)[won].mean() > 0.1


start_games = jax.jit(self_play.start_games, static_argnums=(0, 2, 3))


def test_openings_have_every_length():
    states = start_games(ENV, jax.random.key(0), 2000, 4)
    marks = 9 - np.asarray(states.legal_action_mask).sum(axis=1)
    counts = np.bincount(marks)
    assert len(counts) == 5  # lengths 0 to 4, a fifth of the games each
    assert (abs(counts - 400) < 5 * np.sqrt(2000 * 0.2 * 0.8)).all()


def test_openings_finish_no_game():
    states = start_games(ENV, jax.random.key(0), 2000, 9)
    assert not np.asarray(states.terminated).any()
    assert not np.asarray(states.rewards).any()
    marks = 9 - np.asarray(states.legal_action_mask).sum(axis=1)
    assert marks.max() == 8


def test_no_opening_plies_start_at_the_start():
    states = self_play.start_games(ENV, jax.random.key(0), 4, 0)
    np.testing.assert_array_equal(states.legal_action_mask, True)
