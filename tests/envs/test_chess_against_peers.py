"""Random games of chess beside pgx and OpenSpiel.

Where they differ, and what is compared:

- pgx counts an en passant square that no pawn can use in what tells positions apart,
  and its hash of the start was drawn by another version of JAX: it misses repetitions.
  Games are compared up to our draw by repetition.
- pgx lists at most 200 moves, which random games do not reach, and calls a game of 512
  plies a draw.
- OpenSpiel counts an en passant square when a pawn stands ready, even one that is
  pinned, so that few draws by repetition may differ. Its actions are numbered in
  another way: moves are compared by their names, each name at its first legal time
  while the rights to castle are the same, and all names of some positions.
"""

import numpy as np
import pytest

from tests.envs.chess_games import BATCH, ENV, play_beside_pgx, row_of, starts, step

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("part", range(4))
def test_every_step_equals_pgx(part):
    compared, finished = play_beside_pgx(ENV, 511, seed=part)
    assert compared > 100 * BATCH and finished > BATCH // 2


_NUMBERS = {}  # OpenSpiel's, of our actions where the rights to castle are the same


@pytest.mark.parametrize("part", range(40))
def test_every_step_equals_open_spiel(part):
    pyspiel = pytest.importorskip("pyspiel")
    random = np.random.default_rng(part)
    theirs = [pyspiel.load_game("chess").new_initial_state() for _ in range(50)]
    ours = starts(ENV)
    live, ply, differ = list(range(50)), 0, 0
    while live:
        actions = np.zeros(BATCH, np.int32)
        for game in list(live):
            state, other = row_of(ours, game), theirs[game]
            fen, known = ENV.to_text(state).split(), str(other).split()
            assert fen[:3] + fen[4:] == known[:3] + known[4:]
            if state.terminated or other.is_terminal():
                live.remove(game)
                if state.terminated != other.is_terminal():
                    assert ENV.ending(state) == "repetition" or (
                        other.is_repetition_draw()
                    )
                    differ += 1
                else:
                    assert state.rewards.tolist() == other.returns()[::-1]
                continue
            legal = np.flatnonzero(state.legal_action_mask).tolist()
            numbers = _NUMBERS.setdefault((fen[1], fen[2]), {})
            looked_up = ply % 50 == game
            for action in legal:
                if looked_up or action not in numbers:
                    name = ENV.action_to_text(state, action)
                    number = other.parse_move_to_action(name)
                    assert numbers.setdefault(action, number) == number
            named = [numbers[action] for action in legal]
            assert sorted(named) == sorted(other.legal_actions())
            if looked_up:
                sans = [other.action_to_string(number) for number in named]
                assert [ENV.text_to_action(state, san) for san in sans] == legal
            choice = random.integers(len(legal))
            actions[game] = legal[choice]
            other.apply_action(named[choice])
        ours, ply = step(ENV, ours, actions), ply + 1
    assert differ <= 2
