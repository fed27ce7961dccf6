"""Games in batches: random moves, auto-reset, rollouts."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from scipy import stats

import envs
from jaxsearch.vector import (
    auto_reset,
    is_finished,
    random_actions,
    rollout,
    select_rows,
    start_all,
    step_all,
)

ENV = envs.make("tic_tac_toe")
choose = jax.jit(random_actions)


class Masks:
    """States of which a random player looks at the masks alone."""

    def __init__(self, legal_action_mask):
        self.legal_action_mask = legal_action_mask


jax.tree_util.register_pytree_node(
    Masks, lambda states: ([states.legal_action_mask], None), lambda _, x: Masks(*x)
)


@pytest.mark.parametrize("num_actions", [1, 9, 31, 32, 33, 64, 65, 362, 4672])
def test_random_actions_are_legal_and_equally_likely(num_actions):
    draws, random = 40_000, np.random.default_rng(num_actions)
    mask = random.random(num_actions) < 0.3
    mask[random.integers(num_actions)] = True
    masks = Masks(jnp.asarray(np.tile(mask, (draws, 1))))
    actions = np.asarray(choose(jax.random.key(1), masks))
    assert actions.dtype == np.int32
    counts = np.bincount(actions, minlength=num_actions)
    assert len(counts) == num_actions and counts[~mask].sum() == 0
    if mask.sum() > 1:
        assert stats.chisquare(counts[mask]).pvalue > 1e-4


@pytest.mark.parametrize("num_actions", [1, 2, 31, 32, 33, 63, 64, 65, 82, 4672])
def test_only_legal_action_is_chosen_wherever_it_is(num_actions):
    some = {0, 1, 30, 31, 32, 33, 62, 63, 64, num_actions - 2, num_actions - 1}
    alone = np.array(sorted(action for action in some if 0 <= action < num_actions))
    masks = Masks(jnp.asarray(alone[:, None] == np.arange(num_actions)[None, :]))
    for seed in range(3):
        actions = choose(jax.random.key(seed), masks)
        np.testing.assert_array_equal(actions, alone)


def test_all_actions_at_block_borders_are_chosen():
    # Two legal actions, one on each side of a border, and the ends of the range.
    pairs = np.array([[31, 32], [63, 64], [0, 64], [0, 1], [32, 63]])
    mask = (np.arange(65)[None, None, :] == pairs[:, :, None]).any(axis=1)
    masks = Masks(jnp.asarray(np.repeat(mask, 2000, axis=0)))
    actions = np.asarray(choose(jax.random.key(0), masks)).reshape(5, 2000)
    for pair, chosen in zip(pairs, actions, strict=True):
        found, counts = np.unique(chosen, return_counts=True)
        assert found.tolist() == pair.tolist()
        assert abs(counts[0] - 1000) < 5 * np.sqrt(500)


def test_action_of_a_finished_state_is_zero():
    mask = np.array([[False] * 40, [True] * 40, [False] * 39 + [True]])
    actions = np.asarray(choose(jax.random.key(0), Masks(jnp.asarray(mask))))
    assert actions[0] == 0 and actions[2] == 39


@pytest.mark.parametrize("share", [0.0, 1 - 2**-24, 1.0])
def test_no_number_leads_past_the_last_action(monkeypatch, share):
    # Uniform numbers are below 1, but a product with them is rounded.
    monkeypatch.setattr(
        jax.random, "uniform", lambda key, shape: jnp.full(shape, share)
    )
    mask = np.ones((3, 4672), bool)
    mask[1, 4000:] = mask[2, :4671] = False
    actions = np.asarray(random_actions(jax.random.key(0), Masks(jnp.asarray(mask))))
    assert actions.tolist() == ([0, 0, 4671] if share == 0 else [4671, 3999, 4671])


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit], ids=str)
def test_random_actions_are_the_same_over_a_mesh(axis_type):
    mask = jnp.asarray(np.random.default_rng(0).random((16, 70)) < 0.2)
    expected = np.asarray(choose(jax.random.key(0), Masks(mask)))
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(axis_type,))
    with jax.set_mesh(mesh):
        masks = jax.device_put(Masks(mask), NamedSharding(mesh, jax.P("batch")))
        actions = jax.jit(random_actions)(jax.random.key(0), masks)
    np.testing.assert_array_equal(actions, expected)


def test_random_actions_of_groups_of_games_are_mapped():
    mask = jnp.asarray(np.random.default_rng(0).random((3, 5, 70)) < 0.2)
    keys = jax.random.split(jax.random.key(0), 3)
    together = jax.jit(jax.vmap(random_actions))(keys, Masks(mask))
    for group in range(3):
        alone = choose(keys[group], Masks(mask[group]))
        np.testing.assert_array_equal(together[group], alone)


def test_rows_are_selected_in_leaves_of_any_rank():
    ones = {"a": jnp.ones(3), "b": jnp.ones((3, 2, 2), jnp.int8)}
    zeros = jax.tree.map(jnp.zeros_like, ones)
    picked = select_rows(jnp.array([True, False, True]), ones, zeros)
    np.testing.assert_array_equal(picked["a"], [1, 0, 1])
    np.testing.assert_array_equal(picked["b"].sum(axis=(1, 2)), [4, 0, 4])
    assert picked["b"].dtype == jnp.int8


# X X X      Row 0 is won by X at ply 5. In row 1 nobody has a line by then.
# O O .
# . . .
LINES = np.array([[0, 0], [3, 1], [1, 2], [4, 4], [2, 3], [7, 5], [8, 7]])


def test_final_rewards_and_board_are_seen_once_and_a_new_game_begins():
    step = jax.jit(auto_reset(ENV))
    states, key = start_all(ENV, jax.random.key(0), 2), jax.random.key(1)
    rewards = []
    for ply, actions in enumerate(LINES, 1):
        moved = step(states, jnp.asarray(actions), jax.random.fold_in(key, ply))
        rewards.append(np.asarray(moved.after.rewards).tolist())
        ended = np.asarray(is_finished(moved.after)).tolist()
        assert ended == [ply == 5, False]
        if ply == 5:
            boards = np.asarray(moved.after.board)
            assert boards[0].tolist() == [0, 0, 0, 1, 1, -1, -1, -1, -1]
            assert not moved.after.legal_action_mask[0].any()
            begun = jax.tree.map(lambda leaf: leaf[0], moved.states)
            jax.tree.map(np.testing.assert_array_equal, begun, ENV.init())
        else:
            jax.tree.map(np.testing.assert_array_equal, moved.after, moved.states)
        states = moved.states
    assert rewards[4] == [[1, -1], [0, 0]]
    assert not np.any(rewards[:4]) and not np.any(rewards[5:])
    # Row 0 is two plies into its new game, row 1 seven into its first.
    assert (np.asarray(states.board) != -1).sum(axis=1).tolist() == [2, 7]


def test_without_auto_reset_a_finished_board_stays_and_pays_nothing():
    states, key = start_all(ENV, jax.random.key(0), 2), jax.random.key(1)
    for actions in LINES[:5]:
        states = step_all(ENV, states, jnp.asarray(actions), key)
    won = states
    assert won.rewards.tolist() == [[1, -1], [0, 0]]
    states = step_all(ENV, states, jnp.asarray(LINES[5]), key)
    assert states.rewards.tolist() == [[0, 0], [0, 0]]
    np.testing.assert_array_equal(states.board[0], won.board[0])
    assert states.terminated.tolist() == [True, False]


def test_new_games_start_where_the_caller_says():
    def start(key, batch_size):
        states = start_all(ENV, key, batch_size)
        return jax.vmap(ENV.step)(states, jnp.full(batch_size, 4))

    step = auto_reset(ENV, start)
    states = jax.tree.map(
        lambda *rows: jnp.stack(rows),
        ENV.from_text("XX./OO./..."),
        ENV.from_text("XX./OO./..."),
    )
    moved = step(states, jnp.array([2, 8]), jax.random.key(0))
    assert (
        ENV.to_text(jax.tree.map(lambda leaf: leaf[0], moved.states)) == ".../.X./..."
    )
    assert (
        ENV.to_text(jax.tree.map(lambda leaf: leaf[1], moved.states)) == "XX./OO./..X"
    )


def test_rollout_to_the_end_gives_the_results_of_all_games():
    played = jax.jit(
        lambda key: rollout(ENV, start_all(ENV, key, 2000), jax.random.fold_in(key, 1))
    )(jax.random.key(0))
    assert bool(is_finished(played.states).all())
    marks = (np.asarray(played.states.board) != -1).sum(axis=1)
    np.testing.assert_array_equal(played.plies, marks)
    returns = np.asarray(played.returns)
    np.testing.assert_array_equal(returns.sum(axis=1), 0)
    # Of random games 58.49% are won by X, 28.81% by O (the sums over all games of the
    # products of the chances of their moves).
    for value, chance in ((1, 0.5849), (-1, 0.2881)):
        share = (returns[:, 0] == value).mean()
        assert abs(share - chance) < 4 * np.sqrt(chance * (1 - chance) / 2000)


def test_rollout_of_some_plies_stops_there_and_follows_the_policy():
    def first_legal(key, states):
        return jnp.argmax(states.legal_action_mask, axis=1)

    starts = start_all(ENV, jax.random.key(0), 3)
    run = functools.partial(rollout, ENV, starts, jax.random.key(0))
    played = run(policy_fn=first_legal, num_plies=3)
    board = [0, 1, 0, -1, -1, -1, -1, -1, -1]
    np.testing.assert_array_equal(played.states.board, [board] * 3)
    np.testing.assert_array_equal(played.plies, [3] * 3)
    # X O X / O X O / X . .: X wins at ply 7, and nothing comes after it.
    for num_plies in (7, 12, None):
        played = run(policy_fn=first_legal, num_plies=num_plies)
        np.testing.assert_array_equal(played.returns, [[1, -1]] * 3)
        np.testing.assert_array_equal(played.plies, [7] * 3)
    assert run(num_plies=0).plies.tolist() == [0, 0, 0]


def test_rollout_of_games_that_are_over_plays_nothing():
    over = jax.tree.map(lambda leaf: leaf[None], ENV.from_text("XXX/OO./..."))
    played = rollout(ENV, over, jax.random.key(0))
    np.testing.assert_array_equal(played.returns, [[0, 0]])
    assert played.plies.tolist() == [0]


def test_truncated_games_are_finished_but_not_terminated():
    class Capped(envs.ConnectFour):
        """A cap of ten plies."""

        def _play(self, state, action, key):
            after = super()._play(state, action, key)
            stones = jax.lax.population_count(after.stones).sum()
            capped = (stones >= 10) & ~after.terminated
            return dataclasses.replace(
                after,
                truncated=capped,
                legal_action_mask=after.legal_action_mask & ~capped,
            )

    env = Capped()
    played = jax.jit(lambda key: rollout(env, start_all(env, key, 200), key))(
        jax.random.key(0)
    )
    truncated = np.asarray(played.states.truncated)
    assert 0 < truncated.sum() < 200
    np.testing.assert_array_equal(truncated, ~np.asarray(played.states.terminated))
    assert not np.asarray(played.returns)[truncated].any()
    assert (np.asarray(played.plies)[truncated] == 10).all()


@pytest.fixture(scope="module")
def midgame():
    """Sixteen games after four plies, and a move in each."""
    key = jax.random.key(0)
    starts = start_all(ENV, key, 16)
    states = jax.jit(functools.partial(rollout, ENV, num_plies=4))(starts, key).states
    return states, choose(key, states)


def test_rollout_over_a_mesh_is_the_same(midgame):
    states, _ = midgame
    play = jax.jit(functools.partial(rollout, ENV))
    expected = jax.device_get(play(states, jax.random.key(1)))
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Explicit,))
    with jax.set_mesh(mesh):
        spread = jax.device_put(states, NamedSharding(mesh, jax.P("batch")))
        played = jax.jit(functools.partial(rollout, ENV))(spread, jax.random.key(1))
    jax.tree.map(np.testing.assert_array_equal, played, expected)


def test_auto_reset_works_on_every_device(midgame):
    states, actions = midgame
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))
    batch = jax.P("batch")
    step = jax.shard_map(
        auto_reset(ENV), mesh=mesh, in_specs=(batch, batch, jax.P()), out_specs=batch
    )
    moved = jax.jit(step)(states, actions, jax.random.key(1))
    expected = jax.jit(auto_reset(ENV))(states, actions, jax.random.key(1))
    jax.tree.map(np.testing.assert_array_equal, moved, expected)
    assert 0 < int(is_finished(moved.after).sum()) < 16


# A game that does not look at its key begins alike on all devices, and goes on unlike.
def test_games_begin_and_go_on_inside_shard_map():
    mesh = jax.make_mesh((8,), ("batch",), axis_types=(AxisType.Auto,))
    batch, step = jax.P("batch"), auto_reset(ENV)

    def play(keys):
        start_key, rollout_key, play_key = jax.random.split(keys[0], 3)
        states = start_all(ENV, start_key, 2)

        def ply(states, key):
            action_key, step_key = jax.random.split(key)
            moved = step(states, random_actions(action_key, states), step_key)
            return moved.states, is_finished(moved.after)

        ended = jax.lax.scan(ply, states, jax.random.split(play_key, 12))[1]
        return rollout(ENV, states, rollout_key).plies, ended.any(axis=0)

    spread = jax.shard_map(play, mesh=mesh, in_specs=batch, out_specs=batch)
    plies, ended = jax.jit(spread)(jax.random.split(jax.random.key(0), 8))
    assert ended.all() and plies.min() >= 5 and len(np.unique(plies)) > 1
