"""Random games of chess beside pgx and OpenSpiel.

Where they differ, and what is compared:

- pgx counts an en passant square that no pawn can use in what tells positions apart,
  and its hash of the start was drawn by another version of JAX: it misses repetitions.
  Games are compared up to our draw by repetition.
- pgx lists at most 200 moves, which random games do not reach, and calls a game of 512
  plies a draw.
- OpenSpiel counts an en passant square when a pawn stands ready, even one that is
  pinned, so that few draws by repetition may differ. Its actions are numbered in
  another way, and so moves are compared by their names.
"""

import jax
import numpy as np
import pytest

from tests.envs.chess_games import BATCH, ENV, stack, step

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", range(4))
def test_every_step_equals_pgx(part):
    pgx = pytest.importorskip("pgx")
    random = np.random.default_rng(part)
    compared = finished = 0
    with jax.legacy_prng_key("allow"), jax.numpy_rank_promotion("allow"):
        other = pgx.make("chess")
        keys = jax.random.split(jax.random.key(part), BATCH)
        theirs = jax.jit(jax.vmap(other.init))(keys)
        their_step = jax.jit(jax.vmap(other.step))
        white = np.asarray(theirs.current_player)
        ours = stack([jax.tree.map(np.asarray, ENV.init())])
        live = np.ones(BATCH, bool)
        for _ in range(511):
            for game in np.flatnonzero(live & ours.terminated):
                live[game] = ENV.ending(_row(ours, game)) != "repetition"
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
            ours, theirs = step(ENV, ours, actions), their_step(theirs, actions)
    assert compared > 100 * BATCH and finished > BATCH // 2


@pytest.mark.parametrize("part", range(40))
def test_every_step_equals_open_spiel(part):
    pyspiel = pytest.importorskip("pyspiel")
    random = np.random.default_rng(part)
    theirs = [pyspiel.load_game("chess").new_initial_state() for _ in range(50)]
    ours = stack([jax.tree.map(np.asarray, ENV.init())])
    live, ply, differ = list(range(50)), 0, 0
    while live:
        actions = np.zeros(BATCH, np.int32)
        for number in list(live):
            state, other = _row(ours, number), theirs[number]
            fen, known = ENV.to_text(state).split(), str(other).split()
            assert fen[:3] + fen[4:] == known[:3] + known[4:]
            if state.terminated or other.is_terminal():
                live.remove(number)
                if state.terminated != other.is_terminal():
                    assert ENV.ending(state) == "repetition" or (
                        other.is_repetition_draw()
                    )
                    differ += 1
                else:
                    assert state.rewards.tolist() == other.returns()[::-1]
                continue
            legal = np.flatnonzero(state.legal_action_mask).tolist()
            names = [ENV.action_to_text(state, action) for action in legal]
            named = [other.parse_move_to_action(name) for name in names]
            assert sorted(named) == sorted(other.legal_actions())
            if ply % 50 == number:
                sans = [other.action_to_string(action) for action in named]
                assert [ENV.text_to_action(state, san) for san in sans] == legal
            choice = random.integers(len(legal))
            actions[number] = legal[choice]
            other.apply_action(named[choice])
        ours = step(ENV, ours, actions)
        ply += 1
    assert differ <= 2


def _row(states, row):
    return jax.tree.map(lambda leaf: leaf[row], states)
