"""Random games played side by side with pgx's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs

NUM_GAMES = 10_240


@pytest.mark.parametrize(("name", "length"), [("tic_tac_toe", 9), ("connect_four", 42)])
def test_every_step_equals_pgx(name, length):
    pgx = pytest.importorskip("pgx")
    ours = envs.make(name)
    with jax.legacy_prng_key("allow"):
        theirs = pgx.make(name)

    def differences(state, reference, first):
        """Which fields differ, with pgx's players turned so that player 0 began."""
        live = ~(state.terminated | state.truncated)
        masks = state.legal_action_mask != reference.legal_action_mask
        rewards = jnp.where(first == 0, reference.rewards, reference.rewards[::-1])
        return {
            "mask": (masks & live).any(),
            "rewards": (state.rewards != rewards).any(),
            "terminated": state.terminated != reference.terminated,
            "truncated": state.truncated != reference.truncated,
            "player": state.current_player != (reference.current_player ^ first),
            "observation": (ours.observe(state) != reference.observation).any(),
        }

    def ply(carry, key):
        states, references, first = carry
        chances = jax.random.uniform(key, (NUM_GAMES, ours.num_actions))
        actions = jnp.argmax(chances * states.legal_action_mask, axis=1)
        states = jax.vmap(ours.step)(states, actions)
        references = jax.vmap(theirs.step)(references, actions)
        found = jax.vmap(differences)(states, references, first)
        counts = jax.tree.map(lambda leaf: leaf.sum(), found)
        live = ~states.terminated
        return (states, references, first), (counts, live.sum())

    @jax.jit
    def play(key):
        keys = jax.random.split(key, NUM_GAMES)
        states, references = jax.vmap(ours.init)(keys), jax.vmap(theirs.init)(keys)
        first = references.current_player
        begun = jax.vmap(differences)(states, references, first)
        carry = (states, references, first)
        # One ply more than the longest game: every game is also stepped past its end.
        carry, (counts, live) = jax.lax.scan(
            ply, carry, jax.random.split(key, length + 1)
        )
        totals = jax.tree.map(lambda a, b: a.sum() + b.sum(), begun, counts)
        return totals, live, first

    totals, live, first = play(jax.random.key(2))
    assert {name: int(count) for name, count in totals.items()} == dict.fromkeys(
        totals, 0
    )
    assert 0 < np.mean(first) < 1  # pgx draws who begins
    assert live[-1] == 0 and live[length - 2] > 0  # full boards were played
