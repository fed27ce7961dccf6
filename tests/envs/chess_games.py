"""Chess positions in batches, the planes of their actions, and games beside pgx's."""

import functools

import jax
import numpy as np
import pytest

import envs

BATCH = 64  # states stepped in one call, so that one shape is compiled

ENV = envs.make("chess")


@functools.cache
def batched_step(env):
    return jax.jit(jax.vmap(env.step))


def stack(states):
    """States as one batch, filled up with copies of the first."""
    padded = [*states, *[states[0]] * (BATCH - len(states))]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *padded)


def row_of(states, row):
    """One of batched states."""
    return jax.tree.map(lambda leaf: leaf[row], states)


def starts(env):
    """A batch of the start of the game."""
    return stack([jax.tree.map(np.asarray, env.init())])


def step(env, states, actions):
    """The states after actions, on the host."""
    stepped = batched_step(env)(states, np.resize(actions, BATCH).astype(np.int32))
    return jax.tree.map(np.asarray, stepped)


def moves(env, state, *names):
    """The state after moves by name."""
    for name in names:
        action = env.text_to_action(state, name)
        state = row_of(step(env, stack([state]), [action]), 0)
    return state


def planes(size: int) -> list[tuple[int, int]]:
    """The planes of the actions as (files, ranks), by the layout that pgx publishes."""
    steps = [*range(1 - size, 0), *range(1, size)]
    return [
        *[(0, 1), (1, 1), (-1, 1)] * 3,
        *[(0, n) for n in steps],
        *[(n, 0) for n in steps],
        *[(n, n) for n in steps],
        *[(n, -n) for n in steps],
        *[(-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2)],
    ]


@functools.cache
def _pgx(name):
    """`init` and `step` of batches of a game of pgx."""
    game = pytest.importorskip("pgx").make(name)
    return jax.jit(jax.vmap(game.init)), jax.jit(jax.vmap(game.step))


def play_beside_pgx(env, num_plies: int, seed: int) -> tuple[int, int]:
    """Plays a batch of random games, comparing every step.

    A game is followed up to our draw by repetition, if there is one.

    Returns:
      How many positions were compared, and how many games came to their ends.
    """
    random = np.random.default_rng(seed)
    compared = finished = 0
    with jax.legacy_prng_key("allow"), jax.numpy_rank_promotion("allow"):
        init, their_step = _pgx(env.id)
        theirs = init(jax.random.split(jax.random.key(seed), BATCH))
        white = np.asarray(theirs.current_player)
        ours = starts(env)
        live = np.ones(BATCH, bool)
        for _ in range(num_plies):
            for game in np.flatnonzero(live & ours.terminated):
                live[game] = env.ending(row_of(ours, game)) != "repetition"
            assert (ours.terminated == theirs.terminated)[live].all()
            rewards = np.asarray(theirs.rewards)
            turned = np.where(white[:, None] == 0, rewards, rewards[:, ::-1])
            assert (ours.rewards == turned)[live].all()
            finished += int((live & ours.terminated).sum())
            live &= ~ours.terminated
            mask = np.asarray(theirs.legal_action_mask)
            assert (ours.legal_action_mask == mask)[live].all()
            compared += int(live.sum())
            if not live.any():
                break
            chances = random.random(mask.shape) * ours.legal_action_mask
            actions = chances.argmax(axis=1).astype(np.int32)
            ours, theirs = step(env, ours, actions), their_step(theirs, actions)
    return compared, finished
