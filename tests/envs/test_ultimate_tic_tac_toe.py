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
        others = np.uint32(2**27 - 1 - (0b111 << 18 | 0b111 << 9 | 0b111) * 8**place)
        seen = _in_a_row(word | others) >> place & 1
        np.testing.assert_array_equal(seen, expected)


def test_cell_sends_to_its_board_and_a_closed_board_frees_the_choice():
    state = ENV.from_text("B2c1")
    assert _boards_of_moves(state) == {"C1"}
    state = ENV.from_text("B2c1 C1a3")
    assert _boards_of_moves(state) == {"A3"}
    # O wins the middle board, and then is sent there.
    #
    #   . . .   O . .
    #   . X .   O X .    A3, and X in the middle of A1 and A2
    #   . . .   O . .
    won = ENV.from_text("B2b2 B2a1 A1b2 B2a2 A2b2 B2a3")
    assert won.boards.tolist() == [0, 1 << 4, 0] and _boards_of_moves(won) == {"A3"}
    freed = jitted_step(ENV)(won, ENV.text_to_action(won, "A3b2"))
    others = {column + row for column in "ABC" for row in "123"} - {"B2"}
    assert _boards_of_moves(freed) == others
    assert int(freed.legal_action_mask.sum()) == 81 - 9 - 3


def _boards_of_moves(state):
    actions = np.flatnonzero(state.legal_action_mask)
    return {ENV.action_to_text(state, action)[:2] for action in actions}


# Small boards: won by X, won by O, full with one more X, full with one more O.
SMALL = {"X": "XXXOO....", "O": "OOOXX....", "+": "XOXXOOOXX", "-": "OXOOXXXOO"}


def _square(owners: str) -> str:
    """Nine rows in which the small boards, in reading order, are those of `SMALL`."""
    boards = [SMALL[owner] for owner in owners]
    rows = [
        "".join(boards[3 * (row // 3) + k][row % 3 * 3 :][:3] for k in range(3))
        for row in range(9)
    ]
    return "/".join(rows)


@pytest.mark.parametrize(
    ("owners", "last", "default", "most"),
    [
        ("XOXXOO+X-", "B3c1", [0, 0], [1, -1]),  # 4 and 3 boards
        ("OXOOXX+O+", "B1c1", [0, 0], [-1, 1]),  # 3 and 4, though X moved last
        ("XOXXOOOX+", "A1c1", [0, 0], [0, 0]),  # 4 and 4
        ("XXXOO++OO", "A1c1", [1, -1], [1, -1]),  # 3 in a row beat 4 boards
        ("+-+-+-+-+", "A1a1", [0, 0], [0, 0]),
    ],
)
def test_all_boards_closed_is_decided_by_the_option(owners, last, default, most):
    for env, rewards in ((ENV, default), (MOST, most)):
        # The last move is also taken back and played, so that the step decides.
        final = env.from_text(f"{_square(owners)} {last}")
        assert final.current_player == 1
        stepped = _before(env, owners, int(final.last))
        for state in (final, stepped):
            assert state.terminated and not state.truncated
            assert not state.legal_action_mask.any()
            np.testing.assert_array_equal(state.rewards, rewards)
        jax.tree.map(np.testing.assert_array_equal, stepped, final)


def _before(env, owners, last):
    """The state after `last` is taken back from a closed square and played again."""
    cells = list(_square(owners).replace("/", ""))
    cells[last] = "."
    rows = ["".join(cells[9 * row : 9 * row + 9]) for row in range(9)]
    # Any move of O that sends X to the board of `last` will do as the move before.
    board = last // 27 * 3 + last % 9 // 3
    for number in range(9):
        before = _ours(9 * number + board)
        text = f"{'/'.join(rows)} {env.action_to_text(env.init(), before)}"
        try:
            state = env.from_text(text)
        except ValueError:
            continue
        return jitted_step(env)(state, last)
    raise AssertionError("no move before")


def test_moves_are_named_by_board_and_cell():
    state = ENV.init()
    names = [ENV.action_to_text(state, action) for action in (0, 8, 40, 41, 30, 80)]
    assert names == ["A1a1", "C1c1", "B2b2", "B2c2", "B2a1", "C3c3"]
    assert all(
        ENV.text_to_action(state, ENV.action_to_text(state, action)) == action
        for action in range(81)
    )


def test_text_takes_rows_or_the_moves_from_the_start():
    moves = "B2c1 C1a3 A3a3"
    state = ENV.init()
    for action in (32, 24, 72):
        state = jitted_step(ENV)(state, action)
    text = (
        "........./........./......O../"
        ".....X.../........./........./"
        "........./........./X........ A3a3"
    )
    assert ENV.to_text(state) == text
    for other in (moves, moves.replace(" ", ","), text, text.replace("/", "\n")):
        jax.tree.map(np.testing.assert_array_equal, ENV.from_text(other), state)
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(""), ENV.init())
    blank = "/".join(["........."] * 9)
    assert ENV.to_text(ENV.init()) == blank
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(blank), ENV.init())


ROWS = "/........." * 8
BEFORE = "B2b2 B2a1 A1b2 B2a2 A2b2 B2a3 A3b2 "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("B2c4", "move 1 of 'B2c4', B2c4, is no move: a move is a board and a cell"),
        ("b2C1", "move 1 of .* is no move"),
        ("B2c1 B2c1", "move 2 of .*, B2c1, is on a mark"),
        ("B2c1 B2c2", "B2c2, is not in C1, where B2c1 sent its player"),
        (BEFORE + "B2c1", "move 8 of .*, B2c1, is in B2, a closed board"),
        ("XX......." + ROWS, "2 X and 0 O; X moves first"),
        ("X........" + ROWS, "has no last move, which tells the next board"),
        ("X........" + ROWS + " A1b1", "X moved last and has no mark on A1b1"),
        ("X........" + ROWS + " A1d1", "the last move of .*, A1d1, is no move"),
        ("X........" + ROWS[10:] + " A1a1", "has 8 rows; a position is nine rows"),
        ("X......." + ROWS + " A1a1", "row 1 from the top of .* is 'X.......'"),
        ("Z........" + ROWS + " A1a1", "row 1 from the top"),
        ("XXX.OOO.." + ROWS + " A1a1", "O moved last and has no mark on A1a1"),
        (_square("XXXOO++OO") + " C2a1", "C2a1, comes after the end of the game"),
        (_square("XOXXOO+X-") + " B1a2", "B1a2, is in B1, a closed board"),
        ("XXXX...../OOO......" + ROWS[10:] + " B1a1", "three in a row of both"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ENV.from_text(text)


def test_illegal_moves_by_name_are_refused():
    state = ENV.from_text("B2c1")
    with pytest.raises(ValueError, match="'B2b2' is not a legal move here; a move"):
        ENV.text_to_action(state, "B2b2")


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_most_boards_that_is_not_a_bool_is_refused(value):
    with pytest.raises(ValueError, match="most_boards is True or False, got"):
        envs.UltimateTicTacToe(most_boards=value)


def test_observation_has_marks_won_boards_and_legal_cells():
    state = ENV.from_text("B2b2 B2a1 A1b2 B2a2 A2b2 B2a3")  # X to move
    planes = np.asarray(ENV.observe(state))
    assert planes.shape == (9, 9, 5) and planes.dtype == bool
    assert np.argwhere(planes[..., 0]).tolist() == [[1, 1], [4, 1], [4, 4]]
    assert np.argwhere(planes[..., 1]).tolist() == [[3, 3], [4, 3], [5, 3]]
    assert not planes[..., 2].any()
    middle = np.zeros((9, 9), bool)
    middle[3:6, 3:6] = True  # O won it
    np.testing.assert_array_equal(planes[..., 3], middle)
    np.testing.assert_array_equal(planes[..., 4].ravel(), state.legal_action_mask)
    after = ENV.observe(jitted_step(ENV)(state, 63))  # now O sees it as its own
    np.testing.assert_array_equal(after[..., 2], middle)
    assert not after[..., 3].any()


def test_marks_move_along_with_the_policy_in_all_eight_symmetries():
    symmetries = ENV.symmetries
    assert len({tuple(row) for row in symmetries.cells.tolist()}) == 8
    shown = np.asarray(ENV.observe(jitted_step(ENV)(ENV.init(), 1))).reshape(81, 5)
    policy = np.arange(81) == 1
    for cells, actions in zip(symmetries.cells, symmetries.actions, strict=True):
        assert np.array_equal(shown[cells][:, 1], policy[actions])
        assert np.array_equal(policy[actions][np.argsort(actions)], policy)
        # A small board stays one: its nine cells have one board in the image too.
        boards = np.arange(81) // 27 * 3 + np.arange(81) % 9 // 3
        assert len({(a, b) for a, b in zip(boards, boards[cells], strict=True)}) == 9


def test_drawings_show_big_marks_and_the_cells_that_are_free():
    state = ENV.from_text("B2b2 B2a1 A1b2 B2a2 A2b2 B2a3")
    assert ENV.draw(state) == (
        "       A       B       C\n"
        "     a b c   a b c   a b c\n"
        "  1        │       │\n"
        "1 2    X   │       │\n"
        "  3        │       │\n"
        "    ───────┼───────┼───────\n"
        "  1        │ ╭───╮ │\n"
        "2 2    X   │ │   │ │\n"
        "  3        │ ╰───╯ │\n"
        "    ───────┼───────┼───────\n"
        "  1  · · · │       │\n"
        "3 2  · · · │       │\n"
        "  3  · · · │       │\n"
        "X to move"
    )
    drawing = ENV.to_svg(state)
    assert drawing.count("<circle") == 3 + 1  # marks, and the won board
    assert drawing.count("<line") == 2 * 3
    assert drawing.count('fill="#d9f0d3"') == 9
    assert drawing.count('fill="#ffd75e"') == 1


def test_state_takes_126_bytes():
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(ENV.init())) == 126
    assert "126 bytes" in envs.UltimateTicTacToe.__doc__


def test_contract_is_kept():
    envs.check_env(MOST)


def _open_spiel():
    """OpenSpiel's game, where a free choice is a ply of its own: a board, then a cell.

    A board without a line is nobody's there, and no line of boards is a draw.
    """
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game("ultimate_tic_tac_toe")

    def chooses(state):
        return not state.is_terminal() and "Forced board: any" in str(state)

    def look(state):
        mask = np.zeros(81, bool)
        text = str(state).split("Current player")[0]
        if not state.is_terminal():
            told = str(state).rsplit(" ", 1)[1]
            boards = state.legal_actions() if chooses(state) else [int(told)]
            for board in boards:
                inside = state.child(board) if chooses(state) else state
                mask[[_ours(9 * board + cell) for cell in inside.legal_actions()]] = (
                    True
                )
        return mask, state.current_player(), "".join(text.split())

    def play(state, action):
        if chooses(state):
            state.apply_action(int(action // 27 * 3 + action % 9 // 3))
        state.apply_action(int(action // 9 % 3 * 3 + action % 3))

    return Rival(
        start=game.new_initial_state,
        look=look,
        play=play,
        result=lambda state: (state.is_terminal(), np.array(state.returns())),
    )


def _marks(state):
    """The marks as OpenSpiel writes them, in one line."""
    bits = state.marks[:, :, None] >> np.arange(27, dtype=np.uint32) & 1
    x, o = bits.reshape(2, 81) != 0
    return "".join(np.where(x, "x", np.where(o, "o", ".")))


@pytest.mark.parametrize("num_games", [24, pytest.param(2000, marks=pytest.mark.slow)])
def test_every_step_equals_open_spiel(num_games):
    assert differences_from(_open_spiel(), ENV, _marks, num_games, seed=1) == []
