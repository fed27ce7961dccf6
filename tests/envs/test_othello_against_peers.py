"""Random games of Othello, step by step beside other programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.vector import random_actions
from tests.envs.batches import choose_any, differences_from, open_spiel

ENV = envs.make("othello")
PASS = 64
NUM_PLIES = 70  # more than any game of 60 discs and its passes


@pytest.mark.parametrize(
    "num_games", [256, pytest.param(10_000, marks=pytest.mark.slow)]
)
def test_every_step_equals_pgx(num_games):
    # pgx goes on where neither side can place a disc, until both have passed. So it is
    # given two passes there, after which its result must be the one that we had.
    pgx = pytest.importorskip("pgx")
    with jax.legacy_prng_key("allow"):
        theirs = pgx.make("othello")

    def differences(state, reference, first):
        """Which fields differ, with pgx's players turned so that player 0 began."""
        live = ~(state.terminated | reference.terminated)
        masks = state.legal_action_mask != reference.legal_action_mask
        may_move = reference.legal_action_mask[:PASS].any()
        return {
            "mask": live & masks.any(),
            "board": (ENV.observe(state) != reference.observation).any() & live,
            "player": live & (state.current_player != reference.current_player ^ first),
            "ended too early": reference.terminated & ~state.terminated,
            "ended too late": state.terminated & ~reference.terminated & may_move,
        }

    def turned(rewards, first):
        return jnp.where((first == 0)[:, None], rewards, rewards[:, ::-1])

    def ply(carry, key):
        states, references, first, ours, pgx_s = carry
        actions = random_actions(key, states)
        actions = jnp.where(states.terminated, PASS, actions)
        states = jax.vmap(ENV.step)(states, actions)
        references = jax.vmap(theirs.step)(references, actions)
        found = jax.vmap(differences)(states, references, first)
        # Rewards come once, so that their sums are the results.
        ours += states.rewards
        pgx_s += turned(references.rewards, first)
        found["stuck"] = states.terminated & ~references.terminated
        counts = jax.tree.map(lambda leaf: leaf.sum(), found)
        return (states, references, first, ours, pgx_s), counts

    @jax.jit
    def play(key):
        keys = jax.random.split(key, num_games)
        states, references = jax.vmap(ENV.init)(keys), jax.vmap(theirs.init)(keys)
        first, results = references.current_player, jnp.zeros_like(states.rewards)
        carry = (states, references, first, results, results)
        carry, counts = jax.lax.scan(ply, carry, jax.random.split(key, NUM_PLIES))
        states, references, first, ours, pgx_s = carry
        ended = states.terminated & references.terminated
        return jax.tree.map(lambda leaf: leaf.sum(), counts), ended.all(), ours, pgx_s

    with jax.legacy_prng_key("allow"):
        counts, all_ended, ours, pgx_s = jax.tree.map(
            np.asarray, play(jax.random.key(2))
        )
    assert counts.pop("stuck") > 0 and all_ended
    assert counts == dict.fromkeys(counts, 0)
    np.testing.assert_array_equal(ours, pgx_s)
    assert set(np.unique(ours).tolist()) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("num_games", [32, pytest.param(2_000, marks=pytest.mark.slow)])
def test_every_step_equals_open_spiel(num_games):
    rival, chosen = open_spiel("othello", _board_of_text), set()

    def choose(rng, mask):
        action = choose_any(rng, mask)
        chosen.add(action)
        return action

    assert differences_from(rival, ENV, _board, num_games, 0, choose) == []
    assert PASS in chosen


def _board_of_text(text):
    """The cells of OpenSpiel's eight rows, without their numbers."""
    rows = text.splitlines()[-9:-1]
    return "".join(row[2:17] for row in rows).replace(" ", "")


def _board(state):
    """The cells as OpenSpiel draws them."""
    bits = state.discs[..., None] >> np.arange(32, dtype=np.uint32) & 1
    black, white = bits.reshape(2, 64) != 0
    return "".join(np.where(black, "x", np.where(white, "o", "-")))
