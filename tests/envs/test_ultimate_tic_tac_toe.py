import jax
import numpy as np
import pytest

import envs
from envs.ultimate_tic_tac_toe import _full, _has_line, _in_a_row
from tests.envs.batches import (
    Rival,
    check_golden_game,
    count_games,
    differences_from,
)
from tests.envs.positions import jitted_step, record

ENV = envs.make("ultimate_tic_tac_toe")
MOST = envs.make("ultimate_tic_tac_toe", most_boards=True)
PERFT = record("uttt")["perft"]
GAMES = record("golden_games")["sets"]["uttt"]["games"]
WHOLE = ("marks", "boards", "last")  # a position with all that its moves depend on
LINES = [0b111, 0b111000, 0b111000000, 0b1001001, 0b10010010, 0b100100100]
LINES += [0b100010001, 0b001010100]


def _ours(action: int) -> int:
    """Our action for one that counts board * 9 + cell, both in reading order."""
    board, cell = divmod(action, 9)
    return (board // 3 * 3 + cell // 3) * 9 + board % 3 * 3 + cell % 3


@pytest.mark.parametrize("most_boards", [False, True])
def test_counts_of_games_are_the_known_ones(most_boards):
    env = MOST if most_boards else ENV
    counts, _ = count_games(env, 4 if most_boards else 5, WHOLE)
    assert counts == {ply: PERFT[str(ply)] for ply in counts}


@pytest.mark.slow
def test_deep_counts_of_games_are_the_known_ones():
    counts, _ = count_games(ENV, 7, WHOLE)
    assert counts == {ply: PERFT[str(ply)] for ply in range(1, 8)}


def test_golden_games_are_played():
    assert len(GAMES) == 8
    for game in GAMES:
        check_golden_game(ENV, game, _ours)


def test_all_small_boards_have_the_lines_of_tic_tac_toe():
    """Every board of nine bits, in each of the three places of a word."""
    boards = np.arange(512, dtype=np.uint32)
    expected = np.array([any(b & line == line for line in LINES) for b in boards])
    np.testing.assert_array_equal(_has_line(boards.astype(np.uint16)), expected)
    rows = [boards & 7, boards >> 3 & 7, boards >> 6]
    for place in range(3):
        word = sum(row << 9 * number for number, row in enumerate(rows)) << 3 * place
        np.testing.assert_array_equal(_in_a_row(word), expected.astype(int) << place)
        np.testing.assert_array_equal(_full(word), (boards == 511).astype(int) << place)
        # Marks in the other two boards change nothing, a row of three least of all.
        others = np.uint32(2**27 - 1 - (0b111 << 18 | 0b111 << 9 | 0b111 << 0) * 8**place)
        seen = _in_a_row(word | others) >> place & 1
        np.testing.assert_array_equal(seen, expected)


def test_cell_sends_to_its_board_and_a_closed_board_frees_the_choice():
    state = ENV.from_text("B2c1")
    assert _boards_of_moves(state) == {"C1"}
    state = ENV.from_text("B2c1 C1a3")
    assert _boards_of_moves(state) == {"A3"}
    # X wins the middle board, then O is sent there: any of the other eight is open.
    moves = "B2a1 A1b2 B2b2 B2c1 C1b2 B2a3 A3b2 B2a2 A2b2 B2c3 C3b2 B2c2 C2b2 B2b3"
    won = ENV.from_text("B2b2 B2a1 A1b2 B2a2 A2b2 B2a3")
    assert won.boards.tolist() == [0, 1 << 4, 0]
    freed = ENV.step(won, ENV.text_to_action(won, "A3b2"))
    assert _boards_of_moves(freed) == {*(c + r for c in "ABC" for r in "123")} - {"B2"}
    free = 81 - 9 - int((_marks(freed) != ".").sum()) + int((_marks(won)[3:6, 3:6] != ".").sum())
    assert int(freed.legal_action_mask.sum()) == free
    with pytest.raises(ValueError, match="move 8 of .* A3a1, is on|B2"):
        ENV.from_text(moves)


def _boards_of_moves(state):
    actions = np.flatnonzero(state.legal_action_mask)
    return {ENV.action_to_text(state, action)[:2] for action in actions}


def _marks(state):
    rows = ENV.to_text(state).split()[0].split("/")
    return np.array([list(row) for row in rows])
