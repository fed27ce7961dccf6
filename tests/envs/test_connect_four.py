import jax
import numpy as np
import pytest

import envs
from envs.connect_four import _has_four
from tests.envs.positions import play, record

ENV = envs.make("connect_four")
COUNTS = record("connect4")

# No four in a row for 41 plies; the 42nd, in the last free cell, wins for O.
WON_ON_THE_LAST_CELL = "211131416572345677654327654322345677654321"


def test_positions_and_games_have_the_known_counts():
    plies = envs.perft(ENV, ENV.init(), 8, merge=True, play_last=True).plies
    for ply in range(1, 9):
        assert plies[ply].games == COUNTS["perft_sequences"][str(ply)]
        assert plies[ply].positions == COUNTS["distinct_positions"][str(ply)]
        wins = COUNTS["wins_completed_at_ply"].get(str(ply), 0)
        mover = 1 if ply % 2 else -1
        assert plies[ply].ended == ({mover: wins} if wins else {})


@pytest.mark.parametrize("position", COUNTS["positions"], ids=lambda p: p["moves"])
def test_solved_positions_have_the_known_legal_and_winning_moves(position):
    state = ENV.from_text(position["moves"])
    assert int(state.current_player) == ("first", "second").index(position["to_move"])
    columns = [str(a + 1) for a in np.flatnonzero(state.legal_action_mask)]
    assert columns == list(position["scores"])
    after = _ALL_MOVES(state, np.arange(7, dtype=np.int32))
    won = after.rewards[:, state.current_player] == 1
    best_score = (43 - (position["ply"] + 1)) // 2
    winning = [int(c) - 1 for c, s in position["scores"].items() if s == best_score]
    assert np.flatnonzero(won & state.legal_action_mask).tolist() == winning
    assert bool(winning) == position["immediate_win"]


_ALL_MOVES = jax.jit(jax.vmap(ENV.step, (None, 0)))


def test_win_on_the_last_cell_is_a_win():
    before = play(ENV, [int(column) - 1 for column in WON_ON_THE_LAST_CELL[:-1]])
    assert not before.terminated and before.legal_action_mask.sum() == 1
    state = ENV.step(before, int(WON_ON_THE_LAST_CELL[-1]) - 1)
    assert state.terminated and not state.truncated
    np.testing.assert_array_equal(state.rewards, [-1, 1])
    assert ENV.draw(state).endswith("○ wins")


def _fours():
    """Every four in a row, as cells (row from below, column): 24 + 21 + 12 + 12."""
    for up, right in ((0, 1), (1, 0), (1, 1), (-1, 1)):
        for row in range(6):
            for column in range(7):
                cells = [(row + k * up, column + k * right) for k in range(4)]
                if all(0 <= r < 6 and 0 <= c < 7 for r, c in cells):
                    yield cells


def test_exactly_the_69_fours_in_a_row_win():
    fours = list(_fours())
    assert len(fours) == 69
    rng = np.random.default_rng(0)
    boards = rng.random((4000, 6, 7)) < 0.45
    for number, four in enumerate(fours):
        boards[number] = False
        boards[number][tuple(np.transpose(four))] = True
    bits = (boards.astype(np.uint8) << np.arange(6, dtype=np.uint8)[None, :, None]).sum(
        axis=1, dtype=np.uint8
    )
    expected = [
        any(all(board[cell] for cell in four) for four in fours) for board in boards
    ]
    assert 0.2 < np.mean(expected) < 0.8
    np.testing.assert_array_equal(jax.vmap(_has_four)(bits), expected)
    np.testing.assert_array_equal([_has_four(board) for board in bits], expected)


def test_full_column_is_illegal_and_loses():
    # Column 4 is filled by turns, X first.
    state = ENV.from_text("444444")
    assert state.legal_action_mask.tolist() == [True] * 3 + [False] + [True] * 3
    lost = ENV.step(state, 3)
    assert lost.terminated
    np.testing.assert_array_equal(lost.rewards, [-1, 1])
    np.testing.assert_array_equal(lost.stones, state.stones)
    assert ENV.draw(lost).endswith("○ wins")


def test_observation_has_the_top_row_first_and_the_mover_first():
    # . . . O . . .
    # . . . X X . .     O to move
    planes = np.asarray(ENV.observe(ENV.from_text("445")))
    assert planes.shape == (6, 7, 2) and planes.dtype == bool
    assert np.argwhere(planes[..., 0]).tolist() == [[4, 3]]
    assert np.argwhere(planes[..., 1]).tolist() == [[5, 3], [5, 4]]


def test_mirror_reverses_the_policy_and_moves_the_stones_along():
    symmetries = ENV.symmetries
    assert len(symmetries) == 2
    policy = np.arange(7) / 21
    np.testing.assert_array_equal(policy[symmetries.actions[1]], policy[::-1])
    np.testing.assert_array_equal(policy[symmetries.actions[0]], policy)
    for action in range(7):  # the marked move lies under the stone that it drops
        shown = ENV.observe(ENV.step(ENV.init(), action))
        image = np.asarray(shown).reshape(42, 2)[symmetries.cells[1]].reshape(6, 7, 2)
        marked = np.arange(7) == action
        assert np.array_equal(image[5, :, 1], marked[symmetries.actions[1]])
        assert image.sum() == 1
    for maps in (symmetries.cells[1], symmetries.actions[1]):
        np.testing.assert_array_equal(maps[maps], np.arange(len(maps)))


def test_text_takes_a_board_or_the_moves_from_the_start():
    state = play(ENV, [3, 3, 4])
    text = "......./......./......./......./...O.../...XX.."
    assert ENV.to_text(state) == text
    for other in ("445", text, text.lower(), text.replace("/", "\n") + "\n"):
        read = ENV.from_text(other)
        jax.tree.map(np.testing.assert_array_equal, read, state)
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(""), ENV.init())
    won = ENV.from_text("1213141")  # X has column 1
    assert won.terminated
    np.testing.assert_array_equal(won.rewards, [1, -1])


EMPTY_ROWS = "......./......./......./......./"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("448", "move 3 of '448', column 8, does not exist"),
        ("4444444", "move 7 of '4444444', column 4, is full"),
        ("12131415", "move 8 of '12131415', column 5, comes after X has won"),
        ("44x", "got '44X'; a position is six rows"),
        (EMPTY_ROWS + ".......", "six rows"),
        (EMPTY_ROWS + "....../.......", "six rows"),
        (EMPTY_ROWS + "......./..z....", "six rows"),
        (EMPTY_ROWS + "...X.../.......", "X in column 4, row 2 from below, has no"),
        (EMPTY_ROWS + "......./..XX...", "2 X and 0 O"),
        (EMPTY_ROWS + "OOO..../XXXX..O", "X has four in a row and yet O moved last"),
        (EMPTY_ROWS + "OOO..../XXXXOOO", "4 X and 6 O"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ENV.from_text(text)


def test_two_fours_without_a_common_stone_are_refused():
    # X . . . . . X      no last move of X made both columns four high
    # X . . . . . X
    # X O . . O O X
    # X O O . O O X
    rows = "......./......./X.....X/X.....X/XO..OOX/XOO.OOX"
    with pytest.raises(ValueError, match="no last move of X"):
        ENV.from_text(rows)


def test_drawing_shows_the_board():
    assert ENV.draw(ENV.from_text("445")) == (
        "│ · · · · · · · │\n"
        "│ · · · · · · · │\n"
        "│ · · · · · · · │\n"
        "│ · · · · · · · │\n"
        "│ · · · ○ · · · │\n"
        "│ · · · ● ● · · │\n"
        "└───────────────┘\n"
        "  1 2 3 4 5 6 7\n"
        "○ to move"
    )


def test_state_takes_35_bytes():
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(ENV.init())) == 35
    assert "35 bytes" in envs.ConnectFour.__doc__
