"""pgx's games behind our contract."""

import base64
import dataclasses
import sys
import xml.etree.ElementTree as ElementTree
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.match import play_match
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.players import random_player
from tests.envs.positions import jitted_step

pgx = pytest.importorskip("pgx")

# Backgammon, shogi and the games of MinAtar take minutes, for their drawings above all.
SAMPLE = ("kuhn_poker", "tic_tac_toe")
REST = (
    "2048",
    "animal_shogi",
    "connect_four",
    "go_9x9",
    "hex",
    "leduc_holdem",
    "othello",
)
GAMES = [*SAMPLE, *(pytest.param(name, marks=pytest.mark.slow) for name in REST)]


def start(name, seed=0):
    env = envs.make(f"pgx:{name}")
    return env, env.init(jax.random.key(seed))


@pytest.mark.parametrize("name", GAMES)
def test_game_keeps_the_contract(name):
    envs.check_env(envs.make(f"pgx:{name}"), games=2)


def test_every_step_is_pgx_s():
    env = envs.make("pgx:connect_four")
    with jax.legacy_prng_key("allow"):
        theirs = pgx.make("connect_four")
    keys = jax.random.split(jax.random.key(0), 64)
    states, references = jax.vmap(env.init)(keys), jax.vmap(theirs.init)(keys)
    step, their_step = jax.jit(jax.vmap(env.step)), jax.jit(jax.vmap(theirs.step))
    observe = jax.jit(jax.vmap(env.observe))
    random = np.random.default_rng(0)
    begun = np.asarray(states.current_player)
    assert 0 < begun.mean() < 1
    for _ in range(43):
        np.testing.assert_array_equal(states.current_player, references.current_player)
        np.testing.assert_array_equal(states.rewards, references.rewards)
        np.testing.assert_array_equal(states.terminated, references.terminated)
        np.testing.assert_array_equal(observe(states), references.observation)
        live = ~np.asarray(states.terminated)
        mask = np.asarray(references.legal_action_mask) & live[:, None]
        np.testing.assert_array_equal(states.legal_action_mask, mask)
        for name, field in states.position.items():
            theirs_now = getattr(references, name)
            jax.tree.map(np.testing.assert_array_equal, field, theirs_now)
        actions = (random.random(mask.shape) * mask).argmax(axis=1)
        states, references = step(states, actions), their_step(references, actions)
    assert states.terminated.all()


def test_state_holds_no_observation():
    _, state = start("go_9x9")
    assert "observation" not in state.position
    with jax.legacy_prng_key("allow"):
        theirs = jax.eval_shape(pgx.make("go_9x9").init, jax.random.key(0))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    whole = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(theirs))
    assert size == whole - 9 * 9 * 17


def test_illegal_action_ends_the_game_by_our_rules():
    env, state = start("tic_tac_toe")
    step = jitted_step(env)
    state = step(state, 4)
    mover = int(state.current_player)
    for action in (4, -1, 9):
        lost = step(state, action)
        assert lost.terminated and not lost.legal_action_mask.any()
        assert lost.rewards[mover] == -1 and lost.rewards[1 - mover] == 1
        jax.tree.map(np.testing.assert_array_equal, lost.position, state.position)


def test_whole_numbers_are_observed_as_float32():
    env = envs.make("pgx:backgammon")
    shown = jax.eval_shape(lambda key: env.observe(env.init(key)), jax.random.key(0))
    assert shown.dtype == jnp.float32
    assert env.observation_shape == shown.shape == (34,)


def test_game_with_chance_moves_asks_for_a_key():
    env = envs.make("pgx:2048")
    state = jax.eval_shape(env.init, jax.random.key(0))
    with pytest.raises(ValueError, match="pgx:2048 has chance moves: give step a key"):
        jax.eval_shape(env.step, state, 0)
    after = jax.eval_shape(env.step, state, 0, jax.random.key(1))
    assert after.rewards.shape == (1,)


def test_text_holds_the_whole_state():
    env, state = start("tic_tac_toe", seed=3)
    for action in (4, 0, 8):
        state = jitted_step(env)(state, action)
    text = env.to_text(state)
    assert text.startswith("pgx:tic_tac_toe v0 ")
    jax.tree.map(np.testing.assert_array_equal, env.from_text(text), state)
    lost = jitted_step(env)(state, 4)
    jax.tree.map(np.testing.assert_array_equal, env.from_text(env.to_text(lost)), lost)


def test_changed_text_is_refused():
    env, state = start("tic_tac_toe")
    head, text = env.to_text(state).rsplit(" ", 1)

    def packed(state):
        leaves = [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]
        return base64.urlsafe_b64encode(zlib.compress(b"".join(leaves))).decode()

    jax.tree.map(np.testing.assert_array_equal, env.from_text(f"{head} {text}"), state)
    jax.tree.map(
        np.testing.assert_array_equal, env.from_text(f"{head} {packed(state)}"), state
    )
    middle = len(text) // 2
    other = "A" if text[middle] != "A" else "B"
    longer = base64.urlsafe_b64encode(zlib.compress(bytes(10**6))).decode()
    cases = {
        "": "got ''; a position is 'pgx:tic_tac_toe v0 ' and what to_text gave",
        text: "a position is 'pgx:tic_tac_toe v0 '",
        f"pgx:hex v0 {text}": "a position is 'pgx:tic_tac_toe v0 '",
        f"{head} {text[:-4]}": "is cut short, changed, or of other options",
        f"{head} {text[:middle]}{other}{text[middle + 1 :]}": "changed",
        f"{head} {text[:middle]}*{text[middle + 1 :]}": "changed",
        f"{head} {longer}": "changed",
        f"{head} ÄÖ": "changed",
    }
    player = dataclasses.replace(state, current_player=jnp.int32(2))
    cases[f"{head} {packed(player)}"] = "no state of a game: player 2 is to move"
    ended = dataclasses.replace(state, terminated=jnp.asarray(True))
    cases[f"{head} {packed(ended)}"] = "no state of a game: .* with 9 legal actions"
    neither = dataclasses.replace(state, terminated=jnp.uint8(7))
    cases[f"{head} {packed(neither)}"] = "no state: a bool is 0 or 1"
    for broken, message in cases.items():
        with pytest.raises(ValueError, match=message):
            env.from_text(broken)


def test_drawings_tell_who_is_to_move_and_how_it_ended():
    env, state = start("tic_tac_toe")
    mover = int(state.current_player)
    assert env.draw(state) == (
        f"pgx:tic_tac_toe after 0 plies: player {mover} to move, 9 legal actions"
    )
    for action in (0, 3, 1, 4, 2):
        state = jitted_step(env)(state, action)
    rewards = "1, -1" if mover == 0 else "-1, 1"
    assert env.draw(state).endswith(f"after 5 plies: finished, rewards {rewards}")
    root = ElementTree.fromstring(env.to_svg(state))
    assert root.attrib["viewBox"] == "0 0 240.0 240.0"


def test_options_are_passed_on():
    env = envs.make("pgx:go_9x9", komi=5.5, max_terminal_steps=10)
    assert env.options == {"game": "go_9x9", "komi": 5.5, "max_terminal_steps": 10}
    again = envs.make(env.id, **env.options)
    assert repr(again) == repr(env)
    state = env.init(jax.random.key(0))
    for _ in range(2):
        state = jitted_step(env)(state, 81)  # both pass: an empty board, White wins
    white = 1 - int(env.init(jax.random.key(0)).current_player)
    assert state.rewards[white] == 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "pgx:go_8x8",
            {},
            "no game 'go_8x8': did you mean 'pgx:go_9x9'. its games are",
        ),
        ("pgx:", {}, "pgx has no game ''"),
        ("pgx:mahjong", {}, "did you mean 'pgx:sparrow_mahjong'"),
        ("pgx:hex", {"komi": 5}, "pgx:hex has no option 'komi'; its options: size=11"),
        ("pgx:chess", {"size": 5}, "pgx:chess has no option 'size'; it takes none"),
        ("pgx:go_9x9", {"size": 5}, "no option 'size'; its options: komi=7.5, history"),
        ("pgx:go_9x9", {"game": "hex"}, "has game go_9x9, but game='hex' was given"),
    ],
)
def test_unknown_games_and_options_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


def test_missing_library_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)  # import pgx then fails
    with pytest.raises(ValueError, match="need the pgx library: pip install pgx"):
        envs.make("pgx:go_9x9")


def test_openings_are_begun_by_each_player_as_often():
    env = envs.make("pgx:tic_tac_toe")
    openings = random_openings(env, count=60, num_plies=2, key=jax.random.key(1))
    assert openings.num_distinct == 60
    # A board is one opening, whoever began.
    boards = np.asarray(jax.vmap(env.observe)(openings.states)).reshape(60, -1)
    assert len(np.unique(boards, axis=0)) == 60
    assert np.bincount(openings.first).tolist() == [30, 30]
    np.testing.assert_array_equal(openings.states.current_player, openings.first)


def test_match_seats_each_player_first_in_each_opening():
    env = envs.make("pgx:tic_tac_toe")
    player = random_player()
    result = play_match(
        env, player, player, games=200, opening_plies=1, key=jax.random.key(0)
    )
    assert result.estimate is not None and result.estimate.score == 0.5
    # Who begins wins more random games; 58 to 29 of a hundred.
    assert result.moving_first.wins > 1.3 * result.moving_first.losses
    assert result.moving_second.losses == result.moving_first.wins
