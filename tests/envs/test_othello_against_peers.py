"""Random games of Othello, step by step beside other programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.vector import random_actions

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

    def differences(state, after, ended, reference, first):
        """Which fields differ while both play, and the results once both have ended."""
        stuck = after.terminated & ~reference.terminated
        live = ~(after.terminated | reference.terminated)
        masks = after.legal_action_mask != reference.legal_action_mask
        passes = reference.legal_action_mask == (np.arange(65) == PASS)
        rewards = jnp.where(first == 0, reference.rewards, reference.rewards[::-1])
        both = after.terminated & reference.terminated
        new = both & ~state.terminated
        return {
            "mask": live & masks.any(),
            "stuck": stuck & ~passes.all(),
            "rewards": new & (after.rewards != rewards).any(),
            "late": both & ~new & ~ended & (state.discs != after.discs).any(),
            "early": reference.terminated & ~after.terminated,
            "player": live & (after.current_player != reference.current_player ^ first),
            "board": live & (ENV.observe(after) != reference.observation).any(),
        }

    def ply(carry, key):
        states, references, first, results, num_stuck = carry
        actions = random_actions(key, states)
        actions = jnp.where(states.terminated, PASS, actions)
        after = jax.vmap(ENV.step)(states, actions)
        before = references.terminated
        references = jax.vmap(theirs.step)(references, actions)
        found = jax.vmap(differences)(states, after, before, references, first)
        ended = after.terminated & ~states.terminated
        results = jnp.where(ended[:, None], after.rewards, results)
        # Where pgx ends later than we did, it must give the result that we gave.
        late = references.terminated & ~before & states.terminated
        theirs_now = jnp.where(
            (first == 0)[:, None], references.rewards, references.rewards[:, ::-1]
        )
        found["late"] = late & (theirs_now != results).any(axis=1)
        carry = (after, references, first, results, num_stuck + late.sum())
        return carry, jax.tree.map(lambda leaf: leaf.sum(), found)

    @jax.jit
    def play(key):
        keys = jax.random.split(key, num_games)
        states, references = jax.vmap(ENV.init)(keys), jax.vmap(theirs.init)(keys)
        first = references.current_player
        carry = (states, references, first, jnp.zeros_like(states.rewards), 0)
        carry, found = jax.lax.scan(ply, carry, jax.random.split(key, NUM_PLIES))
        ended = carry[0].terminated & carry[1].terminated
        return jax.tree.map(lambda leaf: leaf.sum(), found), ended.all(), carry[3:]

    with jax.legacy_prng_key("allow"):
        totals, all_ended, (results, num_stuck) = play(jax.random.key(2))
    assert {name: int(count) for name, count in totals.items()} == dict.fromkeys(
        totals, 0
    )
    assert all_ended and num_stuck > 0
    assert set(np.unique(np.asarray(results)).tolist()) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("num_games", [32, pytest.param(2_000, marks=pytest.mark.slow)])
def test_every_step_equals_open_spiel(num_games):
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game("othello")
    step = jax.jit(jax.vmap(ENV.step))
    random = np.random.default_rng(0)
    states = jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), num_games))
    theirs = [game.new_initial_state() for _ in range(num_games)]
    finished = np.zeros(num_games, bool)
    num_passes = 0
    while not finished.all():
        seen = jax.tree.map(np.asarray, states)
        boards = _boards(seen.discs)
        actions = np.zeros(num_games, np.int32)
        for row, state in enumerate(theirs):
            if finished[row]:
                continue
            legal = np.flatnonzero(seen.legal_action_mask[row]).tolist()
            assert bool(seen.terminated[row]) == state.is_terminal()
            lines = str(state).splitlines()
            cells = "".join(line[2:17] for line in lines[-9:-1]).replace(" ", "")
            assert "".join(boards[row]) == cells
            if state.is_terminal():
                finished[row] = True
                assert seen.rewards[row].tolist() == state.returns()
                continue
            assert int(seen.current_player[row]) == state.current_player()
            assert legal == state.legal_actions()
            actions[row] = random.choice(legal)
            num_passes += actions[row] == PASS
            state.apply_action(int(actions[row]))
        states = step(states, actions)
    assert num_passes > 0


def _boards(discs):
    """Cells [B, 64] as OpenSpiel draws them."""
    bits = discs[..., None] >> np.arange(32, dtype=np.uint32) & 1
    black, white = np.moveaxis(bits.reshape(len(discs), 2, 64) != 0, 1, 0)
    return np.where(black, "x", np.where(white, "o", "-"))
