"""Players: what they choose, and their names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.player_names import make_player, parse_player
from jaxsearch.arena.players import (
    random_player,
    raw_player,
    search_player,
    uct_player,
)
from jaxsearch.search.policy_names import policy_names
from tests.arena.agents import net_agent


def states_of(env, texts):
    return jax.tree.map(lambda *x: jnp.stack(x), *[env.from_text(t) for t in texts])


def choices(player, states, seeds=(0,)):
    choose = jax.jit(player.choose)
    return [np.asarray(choose(player.params, jax.random.key(s), states)) for s in seeds]


# Nothing is left of the noise of self-play.
@pytest.mark.parametrize("search", policy_names())
def test_search_player_chooses_the_same_whatever_the_seed(search):
    agent = net_agent("connect_four")
    states = states_of(agent.env, ["44", "443355", "1234567", "1122"])
    player = search_player(agent, num_simulations=24, search=search)
    first, *others = choices(player, states, seeds=range(20))
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_raw_player_takes_the_highest_legal_prior():
    agent = net_agent("connect_four")
    states = states_of(agent.env, ["", "444444", "1", "12"])
    logits, _ = agent.evaluate(agent.params, None, states)
    legal = np.asarray(states.legal_action_mask)
    expected = np.where(legal, logits, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(choices(raw_player(agent), states)[0], expected)


def test_random_player_plays_legal_moves_evenly():
    env = envs.make("connect_four")
    state = env.from_text("444444")
    states = jax.tree.map(lambda x: jnp.repeat(x[None], 3000, axis=0), state)
    actions = choices(random_player(), states)[0]
    counts = np.bincount(actions, minlength=7)
    assert counts[3] == 0
    assert (abs(np.delete(counts, 3) - 500) < 5 * np.sqrt(417)).all()


# . . . . . . .   X to move wins at 4 ("112233"), O must block there ("11223").
@pytest.mark.parametrize("moves", ["112233", "11223", "4x"])
def test_uct_wins_at_once_and_blocks(moves):
    if moves == "4x":  # tic-tac-toe: X has 0 and 1, O must block at 2
        env, text, expected = envs.make("tic_tac_toe"), "XX./O../...", 2
    else:
        env, text, expected = envs.make("connect_four"), moves, 3
    player = uct_player(env, num_simulations=400)
    actions = choices(player, states_of(env, [text] * 8))[0]
    np.testing.assert_array_equal(actions, expected)


def test_names_are_read():
    name = parse_player("runs/c4?search=puct&sims=64&c_puct=1.5")
    assert (name.run, name.search) == ("runs/c4", "puct")
    assert parse_player("uct:sims=400").run is None
    env = envs.make("tic_tac_toe")
    player = make_player(parse_player("uct:sims=20&c=0.5"), env, None)
    assert player.name == "uct:sims=20&c=0.5"


def test_run_plays_by_default_with_proofs_and_a_constant():
    agent = net_agent("connect_four")
    key = jax.random.key(0)
    states = random_openings(agent.env, count=256, num_plies=24, key=key).states

    def moves(options):
        name = parse_player(f"runs/c4?sims=24{options}")
        return choices(make_player(name, agent.env, agent), states)[0]

    usual = moves("")
    np.testing.assert_array_equal(usual, moves("&solve=1&c_puct=1.5"))
    for other in ("&solve=0", "&c_puct=mctx"):
        assert (usual != moves(other)).any()


def test_name_of_a_player_tells_its_options():
    agent = net_agent("tic_tac_toe")
    for text in ("runs/c4?search=puct&sims=64&solve=0&c_puct=mctx&temperature=0.5",):
        assert make_player(parse_player(text), agent.env, agent).name == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs/c4?solve=2", "solve must be 1 to prove outcomes or 0 not to, got '2'"),
        ("runs/c4?search=mctx-puct&solve=1", "mctx-puct has no option 'solve'"),
        ("runs/c4?c_puct=mct", "at most 1e[+]30, or mctx for its own formula"),
        ("", "names no player"),
        ("uct:sims=0", "sims"),
        ("uct:sims=many", "sims"),
        ("uct:sims=٣", "sims must be a whole number"),
        ("uct:sims=1_0", "sims must be a whole number"),
        ("uct:c=٣.0", "c must be a number"),
        ("uct:c=1_0", "c must be a number"),
        ("uct:simz=4", "simz"),
        ("random:sims=4", "sims"),
        ("runs/c4?search=minimax", "unknown search 'minimax'"),
        ("runs/c4?sims", "not of the form name=value"),
        ("runs/c4?sims=4&sims=5", "twice"),
        ("runs/c4?search=raw&sims=4", "sims"),
        ("runs/c4?c_puct=nan", "c_puct"),
    ],
)
def test_bad_names_say_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        parse_player(text)
