"""The replay window: outcomes carried back to positions, insertion, sampling."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.learn import replay
from jaxsearch.learn.replay import Plies


def make_plies(players, rewards, terminated, truncated=None, mark=None):
    """Plies [T, B]; the observation is a number that tells one from another."""
    players = np.asarray(players, np.int32)
    shape = players.shape
    mark = np.arange(players.size).reshape(shape) if mark is None else mark
    return Plies(
        observation=jnp.asarray(mark, jnp.float32)[..., None],
        legal_action_mask=jnp.ones((*shape, 2), bool),
        policy_target=jnp.full((*shape, 2), 0.5),
        search_value=jnp.zeros(shape),
        player=jnp.asarray(players),
        rewards=jnp.asarray(rewards, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        truncated=jnp.zeros(shape, bool)
        if truncated is None
        else jnp.asarray(truncated, bool),
    )


def play_out(game, actions):
    """The plies [T, 1] of one game."""
    env = envs.make(game)
    state, players, rewards, ended = env.init(), [], [], []
    for action in actions:
        players.append([int(state.current_player)])
        state = env.step(state, action)
        rewards.append([np.asarray(state.rewards)])
        ended.append([bool(state.terminated)])
    return make_plies(players, rewards, ended)


def outcomes_of(plies, capacity=None):
    window = replay.empty_replay(
        plies, capacity or plies.player.size, len(plies.player)
    )
    return replay.outcomes(replay.insert(window, plies))


# X wins with 0, 1, 2 on the top row; the other game fills the board.
@pytest.mark.parametrize(
    ("actions", "expected"),
    [([0, 3, 1, 4, 2], [1, -1, 1, -1, 1]), ([0, 1, 2, 4, 3, 5, 7, 6, 8], [0] * 9)],
    ids=["win", "draw"],
)
def test_outcome_is_from_the_view_of_each_mover(actions, expected):
    result = outcomes_of(play_out("tic_tac_toe", actions))
    np.testing.assert_array_equal(result.known[:, 0], True)
    np.testing.assert_array_equal(result.value[:, 0], expected)


def test_outcome_follows_the_player_to_move_and_not_the_parity_of_the_ply():
    win = [[[0, 0]], [[0, 0]], [[0, 0]], [[-1, 1]]]
    result = outcomes_of(make_plies([[0], [0], [1], [1]], win, [[0], [0], [0], [1]]))
    np.testing.assert_array_equal(result.value[:, 0], [-1, -1, 1, 1])


def test_rewards_on_the_way_add_up_from_each_ply_on():
    rewards = [[[0.5, -0.5]], [[-0.25, 0.25]], [[1, -1]]]
    result = outcomes_of(make_plies([[0], [1], [0]], rewards, [[0], [0], [1]]))
    np.testing.assert_allclose(result.value[:, 0], [1.25, -0.75, 1.0])


def test_running_and_truncated_games_have_no_outcome():
    zeros = np.zeros((4, 2, 2))
    zeros[1, 0] = [1, -1]
    plies = make_plies(
        [[0, 0], [1, 1], [0, 0], [1, 1]],
        zeros,
        terminated=[[0, 0], [1, 0], [0, 0], [0, 0]],
        truncated=[[0, 0], [0, 0], [0, 1], [0, 0]],
    )
    known = outcomes_of(plies).known
    np.testing.assert_array_equal(known[:, 0], [True, True, False, False])
    np.testing.assert_array_equal(known[:, 1], False)


def reference_outcomes(rows):
    """Plain Python over the plies of one column, oldest first."""
    result = []
    for start, (player, *_) in enumerate(rows):
        total = 0.0
        for _, rewards, terminated, truncated in rows[start:]:
            total += rewards[player]
            if terminated or truncated:
                result.append((total, bool(terminated)))
                break
        else:
            result.append((0.0, False))
    return result


def test_outcomes_in_a_ring_equal_a_plain_reference():
    random = np.random.default_rng(0)
    inserted, count, batch_size = [], 3, 5
    window = None
    for step in range(9):
        ended = random.random((count, batch_size))
        plies = make_plies(
            random.integers(0, 2, (count, batch_size)),
            random.integers(-2, 3, (count, batch_size, 2)),
            terminated=ended < 0.25,
            truncated=(ended > 0.9),
            mark=step * 100 + np.arange(count * batch_size).reshape(count, batch_size),
        )
        if window is None:
            window = replay.empty_replay(plies, 12 * batch_size, count)
        window = replay.insert(window, plies)
        inserted.append(plies)
        # The ring holds the last 12 rows.
        rows = jax.tree.map(lambda *x: np.concatenate(x)[-12:], *inserted)
        result = replay.outcomes(window)
        found = {
            float(mark): (float(value), bool(known))
            for mark, value, known in zip(
                window.plies.observation[..., 0].ravel(),
                result.value.ravel(),
                result.known.ravel(),
                strict=True,
            )
        }
        for column in range(batch_size):
            fields = (rows.player, rows.rewards, rows.terminated, rows.truncated)
            columns = [np.asarray(field)[:, column] for field in fields]
            reference = reference_outcomes(list(zip(*columns, strict=True)))
            for mark, (value, known) in zip(
                rows.observation[:, column, 0], reference, strict=True
            ):
                assert found[float(mark)] == (value if known else 0.0, known)


def test_capacity_is_rounded_up_to_whole_insertions():
    plies = make_plies(np.zeros((4, 3)), np.zeros((4, 3, 2)), np.zeros((4, 3)))
    assert replay.empty_replay(plies, 25, 4).plies.player.shape == (12, 3)
    assert replay.empty_replay(plies, 1, 4).plies.player.shape == (4, 3)


def test_sample_draws_evenly_and_known_outcomes_only():
    # Column 0 ends at row 1, column 1 runs on; half of the ring is not written.
    ended = [[0, 0], [1, 0], [0, 0], [0, 0]]
    plies = make_plies(np.zeros((4, 2)), np.zeros((4, 2, 2)), ended)
    window = replay.insert(replay.empty_replay(plies, 16, 4), plies)
    result = replay.outcomes(window)
    drawn, _ = replay.sample(jax.random.key(0), window, result, 4000)
    marks, counts = np.unique(drawn.observation[:, 0], return_counts=True)
    np.testing.assert_array_equal(marks, [0, 2])
    assert abs(counts[0] - 2000) < 5 * np.sqrt(1000)  # five standard deviations


def test_sample_returns_the_outcome_of_its_plies():
    plies = play_out("tic_tac_toe", [0, 3, 1, 4, 2])
    window = replay.insert(replay.empty_replay(plies, 5, 5), plies)
    drawn, value = replay.sample(
        jax.random.key(1), window, replay.outcomes(window), 100
    )
    np.testing.assert_array_equal(value, np.where(drawn.player == 0, 1, -1))
