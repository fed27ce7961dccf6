import dataclasses

import jax
import numpy as np
import pytest

import envs
from tests.envs.batches import (
    check_golden_game,
    differences_from,
    open_spiel,
    starts,
    step_all,
)
from tests.envs.positions import jitted_step, play, record

ENV = envs.make("gomoku_15x15")
EXACT = envs.make("gomoku_15x15", exactly_five=True)
SMALL = envs.make("gomoku_7x7")
CASES = record("gomoku")["cases"]
GOLDEN = record("golden_games")["sets"]


@pytest.mark.parametrize("env", [ENV, EXACT], ids=["freestyle", "exact_five"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_lines_win_or_not(case, env):
    """The record's last stone is set last; the rest is read as text."""
    black = [cell for cell in case["black"] if cell != case["last_move"]]
    white = case["white"]
    board = np.full((15, 15), ".")
    for mark, cells in (("X", black), ("O", white)):
        board[tuple(np.transpose(cells))] = mark
    assert len(black) == len(white)
    before = env.from_text("/".join("".join(row) for row in board))
    action = case["last_move"][0] * 15 + case["last_move"][1]
    state = jitted_step(env)(before, action)
    won = case["expect"]["exact_five" if env.exactly_five else "freestyle"] == "win"
    assert bool(state.terminated) == won and not state.truncated
    np.testing.assert_array_equal(state.rewards, [1, -1] if won else [0, 0])
    read = env.from_text(env.to_text(state))
    jax.tree.map(np.testing.assert_array_equal, read, state)


@pytest.mark.parametrize("size", [9, 15])
def test_golden_games_are_played(size):
    games = GOLDEN[f"gomoku{size}_freestyle"]["games"]
    assert len(games) == {9: 4, 15: 2}[size]
    for game in games:
        check_golden_game(envs.make(f"gomoku_{size}x{size}"), game)


def _longest(board, row, column):
    """The stones in a row through a point, each way: by walking, one at a time."""
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = 1
        for sign in (1, -1):
            r, c = row + sign * down, column + sign * right
            while 0 <= r < len(board) and 0 <= c < len(board) and board[r, c]:
                length, r, c = length + 1, r + sign * down, c + sign * right
        yield length


@pytest.mark.parametrize(("size", "exactly"), [(5, False), (15, True), (19, False)])
def test_dense_random_boards_win_where_walking_says(size, exactly):
    env = envs.make(f"gomoku_{size}x{size}", exactly_five=exactly)
    number = 1024
    rng = np.random.default_rng(size)
    density = rng.choice([0.4, 0.6, 0.75], (number, 1, 1))
    boards = rng.random((number, size, size)) < density
    actions = rng.integers(size * size, size=number)
    edge = rng.random(number) < 0.3  # the last stone in the top or bottom row
    actions = np.where(
        edge, actions % size + size * (size - 1) * (actions % 2), actions
    )
    rows, columns = np.divmod(actions, size)
    boards[np.arange(number), rows, columns] = False
    players = rng.integers(2, size=number).astype(np.int32)
    bits = (boards << np.arange(size)).sum(axis=2).astype(np.uint32)
    stones = np.zeros((number, 2, size), np.uint32)
    stones[np.arange(number), players] = bits
    states = dataclasses.replace(
        starts(env, number), stones=stones, current_player=players
    )
    after = step_all(env, states, actions)
    found = [
        list(_longest(*where)) for where in zip(boards, rows, columns, strict=True)
    ]
    won = [5 in lengths if exactly else max(lengths) >= 5 for lengths in found]
    assert 0.1 < np.mean(won) < 0.9
    full = boards.sum(axis=(1, 2)) == size * size - 1
    np.testing.assert_array_equal(after.terminated, won | full)
    np.testing.assert_array_equal(
        after.rewards[np.arange(number), players], np.float32(won)
    )


def test_five_and_overline_at_once_win_by_the_five():
    # X on d4 makes six in its row and five in its column.
    moves = []
    row = ["a4", "b4", "c4", "e4", "f4"]
    column = ["d3", "d2", "d5", "d6"]
    others = ["a1", "c1", "e1", "g1", "b7", "d7", "f7", "a6", "g6"]
    for x, o in zip(row + column, others, strict=True):
        moves += [x, o]
    for exactly in (False, True):
        env = envs.make("gomoku_7x7", exactly_five=exactly)
        before = env.from_text(" ".join(moves))
        assert not before.terminated
        state = env.step(before, env.text_to_action(before, "d4"))
        assert state.terminated
        np.testing.assert_array_equal(state.rewards, [1, -1])


# No five in a row, any way:
#
#   X X O O X
#   O O X X O
#   X X O O X
#   O O X X O
#   X X O O X
FULL = "XXOOX/OOXXO/XXOOX/OOXXO/XXOOX"


def test_full_board_is_a_draw_and_a_win_on_the_last_point_is_a_win():
    env = envs.make("gomoku_5x5")
    state = env.step(env.from_text(FULL[:-1] + "."), 24)
    assert state.terminated and not state.truncated and not state.rewards.any()
    assert env.draw(state).endswith("draw")
    # X X X X .     the last free point makes five
    # O O O O X
    # X X X O O
    # O O X O X
    # O X X O O
    rows = "XXXX./OOOOX/XXXOO/OOXOX/OXXOO"
    won = env.step(env.from_text(rows), 4)
    assert won.terminated
    np.testing.assert_array_equal(won.rewards, [1, -1])


def test_moves_are_named_from_the_bottom_left_with_no_letter_left_out():
    state = ENV.init()
    names = [ENV.action_to_text(state, action) for action in (0, 14, 112, 210, 224)]
    assert names == ["a15", "o15", "h8", "a1", "o1"]
    assert ENV.action_to_text(state, 8) == "i15"
    assert ENV.text_to_action(state, "h8") == 112


def test_text_takes_rows_or_the_moves_from_the_start():
    env = envs.make("gomoku_5x5")
    # 3  . . X O .     c3 was the last move
    # 2  . X . . .
    state = play(env, [16, 13, 12])
    text = "...../...../..XO./.X.../..... c3"
    assert env.to_text(state) == text
    for other in (text, text.lower(), "b2 d3 c3", "B2d3C3", "b2, d3, c3"):
        jax.tree.map(np.testing.assert_array_equal, env.from_text(other), state)
    rows = env.from_text(text[:-3])
    assert int(rows.last) == -1 and env.to_text(rows) == text[:-3]
    jax.tree.map(np.testing.assert_array_equal, env.from_text(""), env.init())
    np.testing.assert_array_equal(rows.stones, state.stones)


BLANK = "......./" * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h8", "move 1 of 'h8', h8, is no point of the board: points are a1 to g7"),
        ("a1 a0", "move 2 of 'a1 a0', a0, is no point"),
        ("a1 b2 a1", "move 3 of 'a1 b2 a1', a1, is on a stone"),
        ("a1a2b1b2c1c2d1d2e1 f2", "move 10 of .*, f2, comes after X has won"),
        (BLANK + "......./.....", "row 7 from the top of .* is '.....'; a row is 7"),
        (BLANK + ".......", "has 6 rows; a position is 7 rows"),
        (BLANK + "......./..z....", "row 7 from the top of"),
        (BLANK + "......./..XX...", "has 2 X and 0 O; X moves first"),
        (BLANK + "......./..X.... d2", "X moved last and has no stone on d2"),
        (BLANK + "......./..X.... d9", "the last move of .* d9., d9, is no point"),
        (BLANK + "OOOOO../XXXX...", "5 O; X moves first"),
        (BLANK + "OOOO.O./XXXXX..", "X has five in a row and yet O moved last"),
        (BLANK + "OOOO.OO/XXXXXX.", "X has five in a row and yet O moved last"),
        (BLANK + "OOOO.../XXXXX.. a2", "X moved last and has no stone on a2"),
        # Two fives without a common stone, and a six whose last stone made no five.
        (BLANK[16:] + "XXXXX../OOOO.OO/XXXXX../OOO....", "X had five in a row before"),
        (BLANK + "OOOO.O./XXXXXX. f1", "X had five in a row before the last move"),
        (BLANK + ".......", "7 rows from the top and the last move, or the moves"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        SMALL.from_text(text)


def test_overline_is_read_where_its_last_stone_joined_it():
    env = envs.make("gomoku_7x7", exactly_five=True)
    rows = BLANK + "OOOO.O./XXXXXX."
    assert not env.from_text(f"{rows} c1").terminated  # two and three became six
    assert not env.from_text(rows).terminated
    with pytest.raises(ValueError, match="X had five in a row before the last move"):
        env.from_text(f"{rows} a1")  # five became six: it was won before
    assert SMALL.from_text(f"{rows} c1").terminated  # free-style


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 4}, "size is a whole number from 5 to 19, got 4"),
        ({"size": 20}, "from 5 to 19, got 20"),
        ({"size": "15"}, "got '15'"),
        ({"size": 15.0}, "got 15.0"),
        ({"size": True}, "got True"),
        ({"exactly_five": 1}, "exactly_five is True or False, got 1"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        envs.Gomoku(**options)
    with pytest.raises(ValueError, match="gomoku_15x15 has size 15, but size=9"):
        envs.make("gomoku_15x15", size=9)


def test_name_tells_the_size():
    for size in (5, 9, 19):
        env = envs.make(f"gomoku_{size}x{size}", exactly_five=True)
        assert env.id == f"gomoku_{size}x{size}" and env.num_actions == size * size
        assert env.options == {"size": size, "exactly_five": True}
    for name in ("gomoku", "gomoku_9x10", "gomoku_9"):
        with pytest.raises(ValueError, match=f"unknown game '{name}'"):
            envs.make(name)
    with pytest.raises(ValueError, match="from 5 to 19, got 25"):
        envs.make("gomoku_25x25")


def test_illegal_moves_by_name_are_refused():
    state = SMALL.from_text("d4")
    for name in ("d4", "D4", "h1", "a8", "44", ""):
        with pytest.raises(ValueError, match="is not a legal move here; a move"):
            SMALL.text_to_action(state, name)


def test_observation_has_the_top_row_first_and_the_mover_first():
    # 7  . X O . . . .     X to move
    planes = np.asarray(SMALL.observe(SMALL.from_text("b7 c7")))
    assert planes.shape == (7, 7, 2) and planes.dtype == bool
    assert np.argwhere(planes).tolist() == [[0, 1, 0], [0, 2, 1]]


def test_stones_move_along_with_the_policy_in_all_eight_symmetries():
    symmetries = SMALL.symmetries
    assert len({tuple(row) for row in symmetries.cells.tolist()}) == 8
    seen = set()
    state = SMALL.step(SMALL.init(), 1)  # on b7, row 0 and column 1
    shown = np.asarray(SMALL.observe(state)).reshape(49, 2)
    policy = np.arange(49) == 1
    for cells, actions in zip(symmetries.cells, symmetries.actions, strict=True):
        image = shown[cells].reshape(7, 7, 2)
        assert np.array_equal(image[..., 1], policy[actions].reshape(7, 7))
        seen.add(tuple(np.argwhere(image[..., 1])[0].tolist()))
        back = np.argsort(actions)
        assert np.array_equal(policy[actions][back], policy)
    corners = {(0, 1), (0, 5), (1, 0), (5, 0), (6, 1), (6, 5), (1, 6), (5, 6)}
    assert seen == corners


def test_drawings_show_stones_coordinates_and_the_last_move():
    env = envs.make("gomoku_5x5")
    state = env.from_text("b2 d3 c3")
    assert env.draw(state) == (
        " 5 · · · · ·\n"
        " 4 · · · · ·\n"
        " 3 · · ● ○ ·\n"
        " 2 · ● · · ·\n"
        " 1 · · · · ·\n"
        "   a b c d e\n"
        "○ to move"
    )
    drawing = env.to_svg(state)
    assert drawing.count('r="18"') == 3  # stones
    assert 'cx="140" cy="140" r="6" fill="#ffffff"' in drawing  # on c3
    assert drawing.count(">e</text>") == drawing.count(">5</text>") == 2
    assert 'r="6"' not in env.to_svg(env.init())


@pytest.mark.parametrize("size", [5, 15, 19])
def test_state_takes_the_bytes_it_says(size):
    state = envs.make(f"gomoku_{size}x{size}").init()
    leaves = jax.tree.leaves(state)
    assert sum(leaf.nbytes for leaf in leaves) == size * size + 8 * size + 16
    assert "N * N + 8 * N + 16 bytes, 361 for N = 15" in envs.Gomoku.__doc__


@pytest.mark.parametrize("options", [{"size": 6}, {"size": 8, "exactly_five": True}])
def test_contract_is_kept(options):
    envs.check_env(envs.Gomoku(**options))


def _rows_of_text(text):
    return "/".join(line for line in text.split("\n") if len(line) > 1)


def _rows(state):
    """The rows as OpenSpiel writes them, from the top with b and w for the stones."""
    columns = np.arange(state.stones.shape[1], dtype=np.uint32)
    x, o = state.stones[:, :, None] >> columns & 1 != 0
    cells = np.where(x, "b", np.where(o, "w", "."))
    return "/".join("".join(row) for row in cells)


@pytest.mark.parametrize(
    ("size", "num_games"),
    [(15, 12), (9, 24), pytest.param(15, 2000, marks=pytest.mark.slow)],
)
def test_every_step_equals_open_spiel(size, num_games):
    rival = open_spiel("gomoku", _rows_of_text, size=size)
    env = envs.make(f"gomoku_{size}x{size}")
    assert differences_from(rival, env, _rows, num_games, seed=size) == []
