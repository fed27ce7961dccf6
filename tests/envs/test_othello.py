import jax
import numpy as np
import pytest

import envs
from tests.envs.positions import jitted_step, play, record

ENV = envs.make("othello")
RECORDS = record("othello_perft")
GOLDEN = record("golden_games")["sets"]["othello"]["games"]
PASS = 64
START = "......../......../......../...OX.../...XO.../......../......../........"


def _legal(state, env=ENV):
    actions = np.flatnonzero(state.legal_action_mask).tolist()
    return {env.action_to_text(state, action) for action in actions}


def test_start_has_the_known_board_and_moves():
    state = ENV.init()
    assert ENV.to_text(state) == f"{START} X"
    assert START.replace("/", "").replace(".", "-") == RECORDS["start_board"]
    assert _legal(state) == {"d3", "c4", "f5", "e6"}


@pytest.mark.parametrize("game", GOLDEN, ids=lambda game: f"ends_{game['returns']}")
def test_recorded_games_have_the_known_mask_sizes_and_results(game):
    state, counts = ENV.init(), []
    for action in game["actions"]:
        assert not state.terminated and not state.rewards.any()
        counts.append(int(state.legal_action_mask.sum()))
        state = jitted_step(ENV)(state, action)
    assert counts == game["legal_counts"]
    assert state.terminated and not state.legal_action_mask.any()
    np.testing.assert_array_equal(state.rewards, game["returns"])


@pytest.mark.parametrize("moves", RECORDS["shortest_games"]["sequences"], ids="".join)
def test_side_without_discs_has_lost(moves):
    state = play(ENV, [ENV._cell(move) for move in moves])
    assert state.terminated and not state.discs[1].any()
    np.testing.assert_array_equal(state.rewards, [1, -1])
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text("".join(moves)), state)


@pytest.mark.parametrize("moves", RECORDS["earliest_passes"]["sequences"], ids="".join)
def test_pass_is_the_one_move_of_who_cannot_place_a_disc(moves):
    state = play(ENV, [ENV._cell(move) for move in moves])
    assert np.flatnonzero(state.legal_action_mask).tolist() == [PASS]
    assert ENV.draw(state).endswith("● to move and must pass")
    passed = jitted_step(ENV)(state, PASS)
    assert not passed.terminated and not passed.rewards.any()
    assert passed.current_player == 1 and not passed.legal_action_mask[PASS]
    np.testing.assert_array_equal(passed.discs, state.discs)
    lost = jitted_step(ENV)(state, ENV._cell("a8"))
    np.testing.assert_array_equal(lost.rewards, [-1, 1])


def test_pass_is_illegal_while_a_disc_can_be_placed():
    lost = jitted_step(ENV)(ENV.init(), PASS)
    assert lost.terminated
    np.testing.assert_array_equal(lost.rewards, [-1, 1])
    np.testing.assert_array_equal(lost.discs, ENV.init().discs)


@pytest.mark.parametrize(
    ("first_row", "rewards"),
    [("XXXXOOOO", [0, 0]), ("XXXXXOOO", [1, -1]), ("OOOXOOOO", [-1, 1])],
    ids=["draw", "black", "white"],
)
def test_full_board_goes_to_the_most_discs(first_row, rewards):
    rows = [first_row] + ["XXXXXXXX", "OOOOOOOO"] * 3 + ["XXXXOOOO"]
    state = ENV.from_text("/".join(rows) + " X")
    assert state.terminated and not state.truncated
    np.testing.assert_array_equal(state.rewards, rewards)


def test_game_ends_when_neither_can_move_though_cells_are_empty():
    # Two corners of one colour each, far apart: nobody encloses anything.
    rows = ["XX......", *["........"] * 6, "......OO"]
    for mover in "XO":
        state = ENV.from_text("/".join(rows) + f" {mover}")
        assert state.terminated and not state.legal_action_mask.any()
        np.testing.assert_array_equal(state.rewards, [0, 0])
        assert ENV.draw(state).endswith("draw")
        assert ENV.step(state, PASS).terminated


def test_pass_after_which_the_other_side_moves_on():
    # a1 X, b1 O: X encloses b1 from c1; O can never move on this row.
    rows = ["XO......", *["........"] * 7]
    state = ENV.from_text("/".join(rows) + " O")
    assert _legal(state) == {"pass"}
    state = jitted_step(ENV)(jitted_step(ENV)(state, PASS), ENV._cell("c1"))
    assert state.terminated
    assert ENV.to_text(state) == "/".join(["XXX.....", *rows[1:]]) + " O"


def test_eight_directions_turn_and_no_line_runs_round_the_edge():
    # X plays d4: every O between d4 and an X turns, in all eight directions.
    #   . . . . . . . .       . . . . . . . .
    #   . X . X . X . .       . X . X . X . .
    #   . . O O O . . .       . . X X X . . .
    #   . X O . O O X .  ->   . X X X X X X .
    #   . . O O O . . .       . . X X X . . .
    #   . X . X . X . .       . X . X . X . .
    rows = "......../.X.X.X../..OOO.../.XO.OOX./..OOO.../.X.X.X../......../........"
    state = jitted_step(ENV)(ENV.from_text(rows + " X"), ENV._cell("d4"))
    assert ENV.to_text(state).split()[0] == (
        "......../.X.X.X../..XXX.../.XXXXXX./..XXX.../.X.X.X../......../........"
    )
    # g1, h1 O and a2 X are next to each other in memory, not on the board.
    wrapped = ENV.from_text("......OO/X......./" + "/".join(["........"] * 6) + " X")
    assert wrapped.terminated


@pytest.mark.parametrize("entry", [*RECORDS["ffo"], *RECORDS["endgames"]])
def test_recorded_endgames_have_the_known_moves(entry):
    state = ENV.from_text(f"{entry['board']} {entry['to_play']}")
    assert _legal(state) == set(entry["scores"])
    if "moves_from_start" in entry:
        moves = entry["moves_from_start"]
        with_passes = ENV.from_text(" ".join(moves))
        jax.tree.map(np.testing.assert_array_equal, with_passes, state)
        if moves[-1] != "pass":
            without = ENV.from_text("".join(move for move in moves if move != "pass"))
            jax.tree.map(np.testing.assert_array_equal, without, state)


def test_observation_shows_the_mover_first():
    state = ENV.from_text("d3")  # O to move
    mine, yours = np.moveaxis(np.asarray(ENV.observe(state)), -1, 0)
    assert ENV.observe(state).dtype == bool
    assert np.argwhere(mine).tolist() == [[4, 4]]
    assert np.argwhere(yours).tolist() == [[2, 3], [3, 3], [3, 4], [4, 3]]


def test_symmetries_keep_the_start_and_move_the_policy_with_the_board():
    maps = ENV.symmetries
    assert len(maps) == len({tuple(row) for row in maps.cells.tolist()}) == 4
    shown = np.asarray(ENV.observe(ENV.init())).reshape(64, 2)
    mark, one_hot, passing = np.arange(64) == 1, np.arange(65) == 1, np.arange(65) == 64
    for cells, actions in zip(maps.cells, maps.actions, strict=True):
        np.testing.assert_array_equal(shown[cells], shown)
        np.testing.assert_array_equal(one_hot[actions][:64], mark[cells])
        np.testing.assert_array_equal(passing[actions], passing)
        for inverse in (cells[cells], actions[actions]):  # each is its own inverse
            np.testing.assert_array_equal(inverse, np.arange(len(inverse)))
    # The quarter turn, which is left out, exchanges the colours.
    turned = np.rot90(np.arange(64).reshape(8, 8)).reshape(-1)
    np.testing.assert_array_equal(shown[turned], shown[:, ::-1])


def test_text_takes_rows_lines_one_run_and_moves():
    state = play(ENV, [ENV._cell(move) for move in ("d3", "c5", "d6")])
    text = "......../......../...X..../...XX.../..OXO.../...X..../......../........ O"
    assert ENV.to_text(state) == text
    others = (text.lower(), text.replace("/", "\n"), text.replace("/", ""))
    for other in (*others, text.replace(".", "-"), "d3c5d6", " D3 c5\nd6 "):
        jax.tree.map(np.testing.assert_array_equal, ENV.from_text(other), state)
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(""), ENV.init())
    moves = RECORDS["earliest_passes"]["sequences"][0]
    read = ENV.from_text(" ".join([*moves, "pass"]))
    assert read.current_player == 1 and not read.legal_action_mask[PASS]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "d4",
            "move 1 of 'd4', d4, is not a legal move of X; legal there: d3 c4 f5 e6",
        ),
        ("d3d3", "move 2 of 'd3d3', d3, is not a legal move of O"),
        ("d3c9", "move 2 of 'd3c9', c9, is not a legal"),
        ("d0", "d0, is not a legal"),
        ("i1", "i1, is not a legal"),
        ("d3pass", "move 2 of 'd3pass', pass, is not allowed"),
        ("d3c3b3d2e1d6d7e3f4a1", "move 10 of .* comes after the game has ended"),
        (START, "X or O to move"),
        (START + " Z", "X or O to move"),
        (START.replace("X", "Y") + " X", "8 rows of 8 X, O and"),
        (START[:-1] + " X", "8 rows of 8"),
        (START[9:] + " X", "8 rows of 8"),
        (START + "/........ X", "8 rows of 8"),
        ("." * 63 + " X", "8 rows of 8"),
        ("d", "8 rows of 8"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ENV.from_text(text)


def test_unknown_move_names_are_refused_with_the_legal_ones():
    with pytest.raises(ValueError, match=r"'a1' is not a legal move.*: d3 c4 f5 e6"):
        ENV.text_to_action(ENV.init(), "a1")


@pytest.mark.parametrize("size", [2, 3, 7, 16, 0, -8, "8", 8.0, True, None])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match="even number from 4 to 14, got"):
        envs.make("othello", size=size)


def test_names_tell_the_size():
    assert envs.make("othello_8x8").id == "othello"
    for size in (4, 6, 10, 14):
        env = envs.make(f"othello_{size}x{size}")
        assert (env.id, env.size) == (f"othello_{size}x{size}", size)
        assert env.num_actions == size * size + 1
    with pytest.raises(ValueError, match="even number"):
        envs.make("othello_7x7")
    with pytest.raises(ValueError, match="unknown game"):
        envs.make("othello_6x8")


def test_drawing_shows_discs_and_where_one_can_be_placed():
    assert ENV.draw(ENV.from_text("d3")) == (
        "  a b c d e f g h\n"
        "1 · · · · · · · ·\n"
        "2 · · · · · · · ·\n"
        "3 · · + ● + · · ·\n"
        "4 · · · ● ● · · ·\n"
        "5 · · + ● ○ · · ·\n"
        "6 · · · · · · · ·\n"
        "7 · · · · · · · ·\n"
        "8 · · · · · · · ·\n"
        "● 4  ○ 1  ○ to move"
    )


def test_svg_shows_every_disc_and_legal_cell():
    drawing = ENV.to_svg(ENV.from_text("d3"))
    assert drawing.count('fill="#111111"') == 4
    assert drawing.count('fill="#fafafa"') == 1
    assert drawing.count('fill="none"') == 3  # c3, e3 and c5
    assert "4  ○ 1  ○ to move" in drawing


@pytest.mark.parametrize(("size", "expected"), [(4, 39), (6, 67), (8, 95), (10, 147)])
def test_state_takes_the_documented_bytes(size, expected):
    state = envs.Othello(size=size).init()
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == expected
    assert expected == 15 + size * size + 8 * -(-size * size // 32)
    assert "15 + N * N bytes and 8 for each 32 cells" in envs.Othello.__doc__


@pytest.mark.parametrize("size", [4, 8])
def test_contract_holds(size):
    envs.check_env(envs.Othello(size=size), games=8)
