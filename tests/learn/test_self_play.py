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
from jaxsearch.learn.packing import Packing
from jaxsearch.learn.self_play import NOBODY, Resignation, Searches
from jaxsearch.search.policy_names import policy_named, policy_names

ENV = envs.make("tic_tac_toe")
GAMES, PLIES = 6, 16
ROW_KEYS = jax.random.split(jax.random.key(0), GAMES)
step, observe = jax.jit(ENV.step), jax.jit(ENV.observe)


def evaluate(params, key, states):
    """Logits that depend on the row's own key alone, and no values."""
    del params
    if not key.ndim:  # mctx has one for all
        key = jax.random.split(key, states.current_player.shape[0])
    logits = jax.vmap(lambda one: jax.random.normal(one, (9,)))(key)
    return logits, jnp.zeros(len(logits))


def search_named(name, num_simulations=8, **options):
    def search(params, keys, root, recurrent_fn, invalid_actions, ply, **more):
        return policy_named(name)(
            params,
            keys[0] if name.startswith("mctx") else keys,
            root,
            recurrent_fn,
            num_simulations,
            invalid_actions,
            **options,
            **more,
        )

    return search


def start(env=ENV, row_keys=ROW_KEYS, opening_plies=0, play_on_share=0.0):
    return self_play.start_games(
        env, row_keys, opening_plies=opening_plies, play_on_share=play_on_share
    )


def play(games, search, *, env=ENV, full=None, num_plies=PLIES, fast=None, **options):
    """Plays on, and unpacks the positions of the plies."""
    full = np.ones(num_plies, bool) if full is None else np.asarray(full)
    model = two_player_model(env, evaluate)
    run = functools.partial(
        self_play.play, env, model, Searches(full=search, fast=fast), None, **options
    )
    games, plies, counts = jax.jit(run)(games, full)
    states = jax.vmap(jax.vmap(Packing(env).unpack))(plies.position)
    return games, plies, counts, states


@functools.cache
def played(search="puct"):
    games = start(opening_plies=3)
    return games, *play(games, search_named(search), opening_plies=3)


def boards_of(states, env=ENV):
    return np.asarray(jax.vmap(jax.vmap(env.observe))(states))


@pytest.mark.parametrize("search", policy_names())
def test_records_follow_the_rules_of_the_game(search):
    games, final, plies, counts, recorded = jax.device_get(played(search))
    boards, course = boards_of(recorded), plies.course
    for game in range(GAMES):
        state = jax.tree.map(lambda x: x[game], games.states)  # noqa: B023
        for ply in range(PLIES):
            record = jax.tree.map(lambda x: x[ply, game], course)  # noqa: B023
            target = plies.policy_target[ply, game]
            np.testing.assert_array_equal(boards[ply, game], observe(state))
            mask = recorded.legal_action_mask[ply, game]
            np.testing.assert_array_equal(mask, state.legal_action_mask)
            assert record.player == state.current_player
            np.testing.assert_allclose(target.sum(), 1, rtol=1e-5)
            assert not target[~mask].any()
            following = [
                moved
                for action in np.flatnonzero(mask)
                if same(moved := step(state, int(action)), record)
            ]
            board = final_board(final.states, boards, ply, game)
            if record.terminated:
                assert following  # some legal move ended the game so
                state = start_from(board)
                assert board.sum() <= 3  # a new game, up to 3 random moves in
            else:
                state = next(
                    moved
                    for moved in following
                    if np.array_equal(observe(moved), board)
                )
    assert int(counts.plies) == int(counts.full_searches) == GAMES * PLIES
    ended, first = course.terminated, course.rewards[..., 0]
    assert int(counts.games) == ended.sum()
    assert int(counts.wins_first) == (ended & (first > 0)).sum()
    assert int(counts.wins_second) == (ended & (first < 0)).sum()
    assert int(counts.draws) == (ended & (first == 0)).sum()
    np.testing.assert_array_equal(final.moves, PLIES)
    assert int(counts.evaluations) == GAMES * PLIES * (1 + 8)
    assert GAMES * PLIES < int(counts.useful) < int(counts.evaluations)


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
    states = start(row_keys=ROW_KEYS[:2]).states
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
    games = start(row_keys=ROW_KEYS[:2])
    _, plies, counts, states = play(games, scripted(), num_plies=6, opening_plies=0)
    rewards = np.zeros((6, 2, 2))
    rewards[4, 0] = [1, -1]
    np.testing.assert_array_equal(plies.course.rewards, rewards)
    np.testing.assert_array_equal(plies.course.terminated, rewards.any(axis=2))
    assert int(counts.games) == int(counts.wins_first) == 1

    boards = boards_of(states)
    before = start_from(boards[4, 0])
    last = step(before, int(plies.policy_target[4, 0].argmax()))
    assert ENV.to_text(last) == "XXX/OO./..."
    assert last.terminated
    assert not boards[5, 0].any()  # a new game stands in its place
    assert boards[5, 1].sum() == 5  # the other one goes on


def scripted(values=None):
    """Plays LINES by the number of marks; the search's value is given, or the root's.

    Args:
      values: [9, 2], by the number of marks and row.
    """

    def search(params, keys, root, recurrent_fn, invalid_actions, ply):
        marks = invalid_actions.sum(axis=1)
        lines = jnp.asarray(np.pad(LINES, ((0, 0), (0, 3)), constant_values=6))
        action = jax.vmap(lambda line, number: line[number])(lines, marks)
        value = root.value
        if values is not None:
            value = jax.vmap(lambda row, n: row[n])(jnp.asarray(values).T, marks)
        summary = SimpleNamespace(value=value)
        return mctx.PolicyOutput(
            action=action,
            action_weights=jax.nn.one_hot(action, 9),
            search_tree=SimpleNamespace(
                summary=lambda: summary,
                num_simulations=0,
                node_visits=jnp.ones((len(action), 1)),
                embeddings=jax.tree.map(lambda x: x[:, None], root.embedding),
            ),
        )

    return search


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
    games = start(env, ROW_KEYS[:3])
    _, plies, counts, states = play(
        games, search_named("puct", 2), env=env, num_plies=8, opening_plies=0
    )
    for row in range(8):  # the fourth and the eighth move end all games
        np.testing.assert_array_equal(plies.course.truncated[row], row in (3, 7))
        marks = boards_of(states)[row].sum(axis=(1, 2, 3))
        np.testing.assert_array_equal(marks, row % 4)
    assert int(counts.games) == int(counts.truncated) == 6
    assert int(counts.draws) == int(counts.wins_first) == int(counts.wins_second) == 0


@pytest.mark.parametrize("search", policy_names())
def test_search_value_is_from_the_view_of_the_mover(search):
    # The net knows nothing, so that a value comes from ends of games alone.
    course = played(search)[2].course
    won = np.asarray(course.rewards).max(axis=-1) > 0
    assert won.sum() > 5
    assert np.asarray(course.search_value)[won].mean() > 0.1


@pytest.mark.parametrize("search", ["gumbel", "puct"])
def test_row_of_games_does_not_depend_on_the_others(search):
    _, final, plies, _, _ = played(search)
    order = np.array([4, 1, 5])
    games = start(row_keys=ROW_KEYS[order], opening_plies=3)
    some = play(games, search_named(search), opening_plies=3)
    for alone, whole in zip(
        jax.tree.leaves((some[1].course, some[1].position)),
        jax.tree.leaves((plies.course, plies.position)),
        strict=True,
    ):
        np.testing.assert_array_equal(alone, whole[:, order])
    np.testing.assert_array_equal(some[0].moves, final.moves[order])


def test_fast_searches_play_and_are_not_learned_from():
    full = np.array([True, False, False, True, False, True])
    fast = search_named("puct", 3, dirichlet_fraction=0.0)
    _, plies, counts, _ = play(
        start(),
        search_named("puct", 8),
        fast=fast,
        full=full,
        num_plies=6,
        opening_plies=0,
    )
    np.testing.assert_array_equal(plies.learned, full[:, None] & np.ones(GAMES, bool))
    assert int(counts.full_searches) == 3 * GAMES
    shares = np.asarray(plies.policy_target)
    for row, number in enumerate(np.where(full, 8, 3)):
        visits = shares[row] * number
        np.testing.assert_allclose(visits, np.round(visits), atol=1e-4)


def test_surprise_is_the_divergence_of_the_target_from_the_net():
    _, plies, _, states = play(
        start(row_keys=ROW_KEYS[:2]), scripted(), num_plies=2, opening_plies=0
    )
    # The script puts all weight on one move: the surprise is minus its log-prior.
    draws = jax.vmap(jax.random.fold_in)(ROW_KEYS[:2], jnp.zeros(2, jnp.int32))
    root_keys = jax.vmap(lambda key: jax.random.split(key, 4)[0])(draws)
    logits, _ = evaluate(None, root_keys, jax.tree.map(lambda x: x[0], states))
    log_prior = jax.nn.log_softmax(logits, axis=1)
    expected = -log_prior[np.arange(2), LINES[:, 0]]
    np.testing.assert_allclose(plies.surprise[0], expected, rtol=1e-5)


# The second player of row 0 sees itself lost at its first two moves.
LOST = np.zeros((9, 2), np.float32)
LOST[[1, 3], 0] = -0.95
GIVES_UP = Resignation(value=0.9, plies=2, play_on_share=0.0)


def test_player_gives_up_after_so_many_hopeless_moves_of_its_own():
    games = start(row_keys=ROW_KEYS[:2])
    _, plies, counts, states = play(
        games, scripted(LOST), num_plies=5, opening_plies=0, resignation=GIVES_UP
    )
    rewards = np.zeros((5, 2, 2))
    rewards[3, 0] = [1, -1]
    np.testing.assert_array_equal(plies.course.rewards, rewards)
    np.testing.assert_array_equal(plies.course.terminated, rewards.any(axis=2))
    assert int(counts.games) == int(counts.resigned) == int(counts.wins_first) == 1
    assert int(counts.gave_up) == 0
    assert not boards_of(states)[4, 0].any()


@pytest.mark.parametrize(("row_loses", "wrong"), [(True, 0), (False, 1)])
def test_game_that_is_played_on_tells_whether_giving_up_was_right(row_loses, wrong):
    # The first player wins row 0. Either of them may have lost hope before.
    values = LOST if row_loses else np.roll(LOST, -1, axis=0)
    values = values.copy()
    games = start(row_keys=ROW_KEYS[:2], play_on_share=1.0)
    resignation = Resignation(value=0.9, plies=2, play_on_share=1.0)
    final, plies, counts, _ = play(
        games, scripted(values), num_plies=5, opening_plies=0, resignation=resignation
    )
    assert plies.course.terminated[4, 0] and int(counts.resigned) == 0
    assert int(counts.gave_up) == 1 and int(counts.wrongly) == wrong
    np.testing.assert_array_equal(final.gave_up, NOBODY)


def test_hope_that_comes_back_starts_the_count_anew():
    values = LOST.copy()
    values[3, 0] = 0.5
    values[5, 0] = -0.95
    _, plies, _, _ = play(
        start(row_keys=ROW_KEYS[:2]),
        scripted(values),
        num_plies=5,
        opening_plies=0,
        resignation=GIVES_UP,
    )
    assert plies.course.terminated[4, 0]  # by the fifth move, not before


@pytest.mark.parametrize("search", ["gumbel", "puct"])
def test_search_goes_on_with_the_tree_of_the_last_move(search):
    run = search_named(search, 12, capacity=40)
    games = start(row_keys=ROW_KEYS[:3])
    sizes = []

    def watched(*arguments, **options):
        output = run(*arguments, **options)
        if (tree := options.get("tree")) is not None:
            note = lambda n: sizes.append(np.asarray(n))  # noqa: E731
            jax.debug.callback(note, tree.num_nodes, ordered=True)
        return output

    _, plies, _, _ = play(games, watched, num_plies=8, opening_plies=0, reuse_tree=True)
    jax.effects_barrier()
    ended = np.asarray(plies.course.terminated)
    sizes = np.array(sizes)
    assert not sizes[0].any()
    new = np.vstack([np.ones((1, 3), bool), ended[:-1]])
    assert not sizes[new].any()
    assert (sizes[~new] > 1).mean() > 0.5


start_games = jax.jit(start, static_argnums=(0, 2))
MANY = jax.random.split(jax.random.key(0), 2000)


def test_openings_have_every_length():
    games = start_games(ENV, MANY, 4)
    states = games.states
    marks = 9 - np.asarray(states.legal_action_mask).sum(axis=1)
    np.testing.assert_array_equal(games.ply, marks)
    counts = np.bincount(marks)
    assert len(counts) == 5  # lengths 0 to 4, a fifth of the games each
    assert (abs(counts - 400) < 5 * np.sqrt(2000 * 0.2 * 0.8)).all()


def test_openings_finish_no_game():
    states = start_games(ENV, MANY, 9).states
    assert not np.asarray(states.terminated).any()
    assert not np.asarray(states.rewards).any()
    marks = 9 - np.asarray(states.legal_action_mask).sum(axis=1)
    assert marks.max() == 8


def test_no_opening_plies_start_at_the_start():
    states = start().states
    np.testing.assert_array_equal(states.legal_action_mask, True)
