"""Go's text, game records, drawings, symmetries and options."""

import xml.etree.ElementTree as ElementTree

import jax
import numpy as np
import pytest

import envs
from tests.envs.go_games import cells, go, legal_names, rows
from tests.envs.positions import jitted_step

KO = "A3 B3 B4 C4 B2 C2 E1 D3 C3"  # . . . . . / . X O . . / X . X O . / . X O . .
KO_TEXT = "...../.XO../X.XO./.XO../....X O B3 0 9 C3"


@pytest.mark.parametrize(
    "options",
    [
        {"size": 3},
        {"size": 4, "ko": "simple", "suicide": True, "komi": 2},
        {"size": 2, "ko": "situational", "suicide": True, "max_plies": 20},
        pytest.param({"size": 9, "handicap": 3}, marks=pytest.mark.slow),
        pytest.param({"size": 5, "ko": "situational"}, marks=pytest.mark.slow),
        pytest.param({"size": 7, "ko": "simple"}, marks=pytest.mark.slow),
        pytest.param({"size": 19}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_contract_is_kept(options):
    envs.check_env(envs.Go(**options), games=4 if options["size"] < 5 else 8)


def test_names_of_all_sizes_make_the_game():
    for size in range(2, 20):
        env = envs.make(f"go_{size}x{size}", komi=0)
        assert (env.size, env.num_actions, env.id) == (
            size,
            size**2 + 1,
            f"go_{size}x{size}",
        )
    assert envs.make("go_9x9").options == {
        "size": 9,
        "komi": 7.5,
        "ko": "positional",
        "suicide": False,
        "handicap": 0,
        "max_plies": None,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 1}, "size is 2 to 19, got 1"),
        ({"size": 20}, "size is 2 to 19, got 20"),
        ({"size": 9.0}, "size is 2 to 19, got 9.0"),
        ({"size": True}, "size is 2 to 19, got True"),
        ({"komi": "7.5"}, "komi is a multiple of 1/2 from -361 to 361, got '7.5'"),
        ({"komi": float("nan")}, "komi is a multiple of 1/2 from -361 to 361, got nan"),
        ({"komi": 9.0000001}, "komi is a multiple of 1/2 .*, got 9.0000001"),
        ({"komi": 1e-9}, "komi is a multiple of 1/2 from -361 to 361, got 1e-09"),
        ({"komi": 10**400}, "komi is a multiple of 1/2 from -361 to 361, got 1000"),
        ({"komi": 400}, "komi is a multiple of 1/2 from -361 to 361, got 400"),
        ({"ko": "super"}, "ko is one of simple, positional, situational, got 'super'"),
        ({"ko": None}, "ko is one of simple"),
        ({"suicide": 1}, "suicide is True or False, got 1"),
        ({"handicap": 1}, "a handicap has two stones or more, got 1"),
        ({"handicap": 10}, "handicap on 9x9 is 0 to 9, got 10"),
        ({"size": 8, "handicap": 5}, "handicap on 8x8 is 0 to 4, got 5"),
        ({"size": 5, "handicap": 2}, "handicap on 5x5 is 0 to 0, got 2"),
        ({"max_plies": 0}, "max_plies is 1 to 32767, got 0"),
        ({"max_plies": "9"}, "max_plies is 1 to 32767, got '9'"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        envs.Go(**options)


def test_points_have_the_names_of_gtp():
    env = go(19)
    state = env.init()
    names = {
        0: "A19",
        18: "T19",
        72: "Q16",
        288: "D4",
        342: "A1",
        360: "T1",
        361: "pass",
    }
    for action, name in names.items():
        assert env.action_to_text(state, action) == name
        assert env.text_to_action(state, name) == action
    assert not any("I" in env.action_to_text(state, action) for action in range(361))
    with pytest.raises(ValueError, match="'I9' is not a legal move here"):
        env.text_to_action(state, "I9")


def test_text_is_that_of_the_docstring():
    state = go(3).from_text("B2 A1 C2 C1")
    assert go(3).to_text(state) == ".../.XX/O.O X - 0 4 C1"


def test_text_keeps_ko_passes_plies_and_last_move():
    env = go(5)
    state = env.from_text(KO)
    assert env.to_text(state) == KO_TEXT
    read = env.from_text(KO_TEXT.lower().replace("b3", "B3").replace("c3", "C3"))
    for name in ("chains", "ko", "last_move", "passes", "ply", "legal_action_mask"):
        if name == "chains":
            np.testing.assert_array_equal(read.chains.stones, state.chains.stones)
            np.testing.assert_array_equal(read.chains.in_atari, state.chains.in_atari)
        else:
            np.testing.assert_array_equal(getattr(read, name), getattr(state, name))
    passed = env.from_text("C3 pass")
    assert env.to_text(passed) == "...../...../..X../...../..... X - 1 2 pass"
    over = env.from_text("...../...../..X../...../..... X - 2 3 pass")
    assert over.terminated and not over.legal_action_mask.any()
    np.testing.assert_array_equal(over.rewards, [1, -1])
    capped = env.from_text("...../...../..X../...../..... X - 0 50")
    assert capped.truncated and not capped.terminated
    short = env.from_text("...../...../..x../...../.....")
    assert env.to_text(short) == "...../...../..X../...../..... X - 0 0 -"


EMPTY = "...../...../...../...../....."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("..../...../...../...../.....", "row 5 from below is '....'"),
        ("...../...../.....", "has 3 rows, the board has 5"),
        ("...../...../..?../...../.....", "row 3 from below is '..\\?..'"),
        (f"{EMPTY} B", "'B' is not who is to move, X or O"),
        (f"{EMPTY} X I3", "'I3' is no point: a point is a column A to E"),
        (f"{EMPTY} X A6", "'A6' is no point"),
        (f"{EMPTY} X - 3", "'3' is not a number of passes"),
        (f"{EMPTY} X - 0 x", "'x' is not the number of plies"),
        (f"{EMPTY} X - 0 51", "51 plies are more than 50"),
        (f"{EMPTY} X - 1 1 A1", "1 passes in a row, but the last move is 'A1'"),
        (f"{EMPTY} X - 0 1 pass", "0 passes in a row, but the last move is 'pass'"),
        (f"{EMPTY} X - 2 1 pass", "2 passes in a row after 1 plies in all"),
        (f"{EMPTY} X - 0 1 A1 x", "'x' is too much"),
        (f"{EMPTY} X A1", "A1 is no ko point"),
        ("XO.../O..../...../...../.....", "the chain of A5 has no liberty"),
        ("C3 C9", "move 2, 'C9' is no point"),
        ("C3 C3", "move 2, White C3, is illegal"),
        ("pass pass C3", "move 3, Black C3, comes after the end"),
        ("(;FF[4", "not a game in SGF"),
        ("(;GM[1]SZ[9])", "the game is on 9x9: read it with envs.make\\('go_9x9'\\)"),
        ("(;SZ[5]KM[5.5])", "the komi is 5.5 and here 7.5"),
        ("(;SZ[5]HA[2];W[aa])", "HA.2.: expected 2 black stones set up .AB., got 0"),
        ("(;SZ[5];B[aa];B[bb])", "move 2, Black B4, comes when White is to move"),
        ("(;SZ[5];B[aa];W[aa])", "move 2, White A5, is illegal"),
        ("(;SZ[5]AB[zz])", "node 1, AB.zz.: expected points of two letters, a to e"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        go(5).from_text(text)


def test_record_of_a_game_reads_back_as_it_was():
    env = go(9, komi=0.5, handicap=3)
    moves = "E5 D3 pass D4 pass pass"
    sgf = env.to_sgf(moves)
    again = envs.Go.of_sgf(sgf)
    assert again.options == env.options
    state = again.from_text(sgf)
    jax.tree.map(np.testing.assert_array_equal, state, env.from_text(moves))
    assert state.terminated
    sgf = sgf.replace("\n", "")
    for part in ("SZ[9]", "KM[0.5]", "HA[3]", "PL[W]", "AB[cc][cg][gc]"):
        assert part in sgf
    assert ";W[ee];B[dg];W[tt];B[df];W[tt];B[tt])" in sgf
    assert f"RE[B+{float(env.score(state)):g}]" in sgf
    actions = [env.text_to_action(env.init(), name) for name in moves.split()]
    assert env.to_sgf(actions, result="W+R").replace("\n", "") == sgf.replace(
        f"RE[B+{float(env.score(state)):g}]", "RE[W+R]"
    )


def test_record_without_an_end_has_no_result():
    sgf = go(5).to_sgf("C3 pass")
    assert "RE[" not in sgf and "HA[" not in sgf and "AB[" not in sgf
    assert "RE[W+7.5]" in go(5).to_sgf("pass pass")
    assert "RE[0]" in go(5, komi=0).to_sgf("pass pass")
    with pytest.raises(ValueError, match="move 2, White C3, is illegal"):
        go(5).to_sgf("C3 C3")


def test_record_of_another_program_is_read():
    # Free handicap stones, a variation, comments, and a pass as it was written of old.
    sgf = """(;GM[1]FF[4]CA[UTF-8]SZ[9]KM[0.5]HA[2]PW[a]PB[b]AB[ee][ce]
    (;W[gc]C[first];B[tt];W[cc](;B[dd])(;B[hh]))(;W[aa]))"""
    env = envs.Go.of_sgf(sgf)
    assert (env.komi, env.handicap) == (0.5, 0)
    state = env.from_text(sgf)
    assert env.to_text(state) == (
        "........./........./..O...O../...X...../..X.X..../........./........./"
        "........./......... O - 0 4 D6"
    )


def test_handicap_stones_stand_on_the_points_of_gtp():
    nineteen = ["D4", "Q16", "D16", "Q4", "D10", "Q10", "K4", "K16", "K10"]
    for number in range(2, 10):
        env = go(19, handicap=number)
        stones = nineteen[:number]
        if number in (5, 7):
            stones = [*nineteen[: number - 1], "K10"]
        (points,) = np.nonzero(cells(env.init()))
        assert {env.action_to_text(None, int(p)) for p in points} == set(stones)
    nine = go(9, handicap=4).init()
    assert rows(nine)[2] == rows(nine)[6] == ". . X . . . X . ."
    assert nine.current_player == 1 and nine.legal_action_mask.sum() == 82 - 4


def test_symmetries_move_a_stone_and_its_move_alike_and_keep_the_pass():
    env = go(9)
    symmetries = env.symmetries
    assert (
        len({tuple(row) for row in symmetries.cells.tolist()}) == len(symmetries) == 8
    )
    state = jitted_step(env)(env.init(), 1)
    shown = np.asarray(env.observe(state)).reshape(81, -1)
    for cells_map, actions in zip(symmetries.cells, symmetries.actions, strict=True):
        marked, passing = np.zeros(82), np.zeros(82)
        marked[1] = passing[81] = 1
        (image,) = np.flatnonzero(marked[actions])
        assert np.flatnonzero(shown[cells_map][:, 1]).tolist() == [image]
        assert np.flatnonzero(passing[actions]).tolist() == [81]
        inverse = np.argsort(actions)
        np.testing.assert_array_equal(marked[actions][inverse], marked)
    # Three stones in corners leave one mirror, two in opposite ones four symmetries.
    numbers = [
        len(go(9, handicap=number).symmetries) for number in (0, 2, 3, 4, 5, 6, 8)
    ]
    assert numbers == [8, 4, 2, 8, 8, 4, 8]


def test_observation_planes_are_those_of_the_docstring():
    env = go(5)
    state = env.from_text(KO)  # White to move, ko at B3
    planes = np.moveaxis(np.asarray(env.observe(state)), -1, 0)
    assert planes.shape == (9, 5, 5) and planes.dtype == bool

    def shown(plane):
        points = np.flatnonzero(planes[plane]).tolist()
        return " ".join(env.action_to_text(state, point) for point in points)

    assert shown(0) == "C4 D3 C2"
    assert shown(1) == "B4 A3 C3 B2 E1"
    assert shown(2) == ""
    assert shown(3) == "C3"
    assert set(shown(4).split()) == legal_names(env, state) - {"pass"}
    assert shown(5) == "C3" and shown(6) == "B3"
    assert not planes[7].any() and planes[8].all()
    passed = np.asarray(env.observe(env.from_text("C3 pass")))
    assert (
        passed[..., 7].all() and not passed[..., 5].any() and not passed[..., 8].any()
    )


def test_drawing_shows_board_hoshi_and_last_move():
    assert go(7).draw(go(7).from_text("D4 C5")) == (
        "   A B C D E F G\n"
        " 7 · · · · · · · 7\n"
        " 6 · · · · · · · 6\n"
        " 5 · ·(○)· + · · 5\n"
        " 4 · · · ● · · · 4\n"
        " 3 · · + · + · · 3\n"
        " 2 · · · · · · · 2\n"
        " 1 · · · · · · · 1\n"
        "   A B C D E F G\n"
        "Black to move"
    )
    over = go(5).from_text("C3 pass pass")
    assert go(5).draw(over).endswith("Black wins: B+17.5")


def test_svg_has_stones_coordinates_last_move_and_ko():
    root = ElementTree.fromstring(go(5).to_svg(go(5).from_text(KO)))
    space = "{http://www.w3.org/2000/svg}"
    circles = root.findall(f"{space}circle")
    fills = [circle.get("fill") for circle in circles]
    assert fills.count("#1a1a1a") == 5 and fills.count("#fafafa") == 3
    assert fills.count("none") == 1  # the last move
    names = [text.text for text in root.findall(f"{space}text")]
    assert names[-1] == "White to move"
    assert sorted(names[:-1]) == sorted([*"ABCDE", *"12345"] * 2)
    assert len(root.findall(f"{space}rect")) == 3  # wood, ko point, strip below
    nine = ElementTree.fromstring(go(9).to_svg(go(9).init()))
    assert len(nine.findall(f"{space}circle")) == 9


@pytest.mark.parametrize(
    ("size", "simple", "positional"), [(9, 497, 2085), (19, 1369, 7757)]
)
def test_state_has_the_documented_size(size, simple, positional):
    for ko, number in (("simple", simple), ("positional", positional)):
        state = jax.eval_shape(go(size, ko=ko).init)
        leaves = jax.tree.leaves(state)
        assert sum(leaf.size * leaf.dtype.itemsize for leaf in leaves) == number
    text = " ".join(envs.Go.__doc__.split())
    assert simple < 2048 and f"{simple} and {positional}" in text
