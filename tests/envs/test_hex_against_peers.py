"""Random games of Hex, step by step beside other programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.vector import random_actions
from tests.envs.batches import choose_any, differences_from, open_spiel


@pytest.mark.parametrize(
    "num_games", [256, pytest.param(10_000, marks=pytest.mark.slow)]
)
def test_every_step_equals_pgx(num_games):
    # pgx has 11 x 11 only: its Hex of another size does not start.
    pgx = pytest.importorskip("pgx")
    ours = envs.make("hex_11x11")
    with jax.legacy_prng_key("allow"):
        theirs = pgx.make("hex")

    def differences(state, reference, first):
        """Which fields differ, with pgx's players turned so that player 0 began."""
        live = ~state.terminated
        masks = state.legal_action_mask != reference.legal_action_mask
        rewards = jnp.where(first == 0, reference.rewards, reference.rewards[::-1])
        shown = ours.observe(state) != reference.observation
        return {
            "mask": live & masks.any(),
            "rewards": (state.rewards != rewards).any(),
            "terminated": state.terminated != reference.terminated,
            "player": state.current_player != (reference.current_player ^ first),
            "observation": shown.any(),
        }

    def ply(carry, key):
        states, references, first = carry
        actions = random_actions(key, states)
        # A swap is one of 121 moves: let half of the games have one.
        swaps = states.legal_action_mask[:, -1] & (np.arange(num_games) % 2 == 0)
        actions = jnp.where(swaps, 121, actions)
        states = jax.vmap(ours.step)(states, actions)
        references = jax.vmap(theirs.step)(references, actions)
        found = jax.vmap(differences)(states, references, first)
        counts = jax.tree.map(lambda leaf: leaf.sum(), found)
        return (states, references, first), (counts, swaps.sum())

    @jax.jit
    def play(key):
        keys = jax.random.split(key, num_games)
        states, references = jax.vmap(ours.init)(keys), jax.vmap(theirs.init)(keys)
        first = references.current_player
        carry = (states, references, first)
        # One ply more than the longest game: every game is also stepped past its end.
        carry, (counts, swaps) = jax.lax.scan(ply, carry, jax.random.split(key, 123))
        ended = carry[0].terminated.all()
        return jax.tree.map(lambda leaf: leaf.sum(), counts), swaps.sum(), ended

    with jax.legacy_prng_key("allow"):
        totals, num_swaps, all_ended = play(jax.random.key(3))
    assert {name: int(count) for name, count in totals.items()} == dict.fromkeys(
        totals, 0
    )
    assert all_ended and num_swaps == num_games // 2


def _sample(default, slow):
    return [
        *[pytest.param(size, swap, count) for size, swap, count in default],
        *[
            pytest.param(size, swap, count, marks=pytest.mark.slow)
            for size, swap, count in slow
        ],
    ]


@pytest.mark.parametrize(
    ("size", "swap", "num_games"),
    _sample(
        [(4, True, 64), (7, False, 16)],
        [
            (3, True, 2000),
            (5, False, 2000),
            (9, True, 2000),
            (13, False, 500),
            (19, True, 200),
        ],
    ),
)
def test_every_step_equals_open_spiel(size, swap, num_games):
    rival = open_spiel("hex", lambda text: text.split(), board_size=size, swap=swap)
    swaps = []

    def choose(rng, mask):
        # A swap is one of many moves: let half of the games have one.
        if swap and mask[-1] and rng.random() < 0.5:
            swaps.append(size**2)
            return size**2
        return choose_any(rng, mask)

    env = envs.Hex(size=size, swap=swap)
    assert differences_from(rival, env, _cells, num_games, size, choose) == []
    assert len(swaps) > num_games // 3 if swap else not swaps


def _cells(state):
    """The cells as OpenSpiel writes them."""
    return np.array([".", "x", "o"])[np.sign(state.labels)].tolist()
