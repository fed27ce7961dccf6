"""Go by the records of tests/data/rules and by known games."""

import jax
import numpy as np
import pytest

from envs.go import bits
from envs.go.area import areas as areas_of
from tests.envs.go_games import batched, cells, go, legal_names, rows, text
from tests.envs.positions import jitted_step, play, record

COUNTS = record("go_counts")
EDGE_CASES = record("go_edge_cases")["cases"]
LEGALITY = [case for case in EDGE_CASES if case["kind"] == "legality"]
SCORES = [case for case in EDGE_CASES if case["kind"] == "area_score"]
TACTICS = record("go_tactics_9x9")["positions"]
GAMES = record("golden_games")["sets"]
RULES = {
    "simple": {"ko": "simple"},
    "psk": {"ko": "positional"},
    "ssk": {"ko": "situational"},
    "simple_all_suicide": {"ko": "simple", "suicide": True},
    "tromp_taylor": {"ko": "positional", "suicide": True},
}
CHUNK = 512  # boards expanded in one call


def perft(env, depth):
    """How many games of 1, 2 ... `depth` plies there are."""
    init, step = batched(env)
    states = jax.tree.map(np.asarray, init(1))
    counts = []
    while True:
        row, action = np.nonzero(states.legal_action_mask)
        counts.append(len(row))
        if len(counts) == depth:
            return counts
        children = []
        for start in range(0, len(row), CHUNK):
            some = np.resize(np.arange(start, min(start + CHUNK, len(row))), CHUNK)
            parents = jax.tree.map(lambda leaf: leaf[row[some]], states)  # noqa: B023
            moved = step(parents, action[some].astype(np.int32))
            number = min(CHUNK, len(row) - start)
            children.append(jax.tree.map(lambda x: np.asarray(x)[:number], moved))  # noqa: B023
        states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *children)


def counted(rule):
    return [
        pytest.param(
            size,
            rule,
            marks=[]
            if (size, rule) in ((2, "psk"), (3, "psk"), (2, "simple_ko"))
            else pytest.mark.slow,
        )
        for size in (2, 3, 4, 5, 9)
    ]


@pytest.mark.parametrize(("size", "rule"), counted("psk") + counted("simple_ko"))
def test_games_have_the_known_counts(size, rule):
    known = COUNTS["perft"][rule][str(size)]
    env = go(size, ko="positional" if rule == "psk" else "simple")
    assert perft(env, len(known)) == known


def test_all_legal_positions_of_two_by_two_are_reached():
    env = go(2, ko="simple", max_plies=60)
    _, step = batched(env)
    start = jax.tree.map(np.asarray, env.init())
    found, todo = {(0, 0, 0, 0)}, jax.tree.map(lambda leaf: leaf[None], start)
    known = set()
    while todo.legal_action_mask.any():
        row, action = np.nonzero(todo.legal_action_mask)
        assert len(row) <= CHUNK
        some = np.resize(np.arange(len(row)), CHUNK)
        parents = jax.tree.map(lambda leaf: leaf[row[some]], todo)  # noqa: B023
        todo = jax.tree.map(np.asarray, step(parents, action[some].astype(np.int32)))
        new = []
        for number, board in enumerate(map(tuple, cells(todo).tolist())):
            found.add(board)
            player = int(todo.current_player[number])
            state = (board, *todo.ko[number], int(todo.passes[number]), player)
            if state not in known:
                known.add(state)
                new.append(number)
        todo = jax.tree.map(lambda leaf: leaf[new], todo)  # noqa: B023
    assert len(found) == COUNTS["legal_positions"]["2"] == 57


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        (case, rule)
        for case in LEGALITY
        for rule in case["legal"]
        if rule in RULES and (case["name"], rule) != ("send_two_second_cycle", "ssk")
    ],
    ids=lambda value: value if isinstance(value, str) else value["name"],
)
def test_edge_case_is_legal_as_the_rule_says(case, rule):
    env = go(case["size"], **RULES[rule])
    state = env.init()
    for name in case["setup_moves"]:
        state = jitted_step(env)(state, env.text_to_action(state, name))
    assert rows(state) == case["board"]
    assert int(state.current_player) == "XO".index(case["to_play"])
    assert (case["move"] in legal_names(env, state)) == case["legal"][rule]
    needed = case["result"]["needs_suicide"]
    if case["legal"][rule] and (needed is None or env.suicide):
        after = jitted_step(env)(state, env.text_to_action(state, case["move"]))
        assert rows(after) == case["result"]["board_after"]


def test_stone_that_comes_back_repeats_a_position_without_taking_any():
    # . . . . O     Black sent two stones, A1 after B1, White took both at C1, and Black
    # . . . . .     took that one back at B1. White passes. With A1 the position after
    # . . . . .     the seventh ply would come again, White to move: the record plays
    # O O X . .     on here, but the rule of situational superko forbids it already.
    # . X . X .
    (case,) = (case for case in LEGALITY if case["name"] == "send_two_second_cycle")
    *moves, a1, _ = case["setup_moves"]
    assert a1 == case["setup_moves"][6] == "A1" and moves[-1] == "pass"
    for rule, legal in (("simple", True), ("ssk", False)):
        env = go(5, **RULES[rule])
        state = env.from_text(" ".join(moves))
        assert ("A1" in legal_names(env, state)) == legal


@pytest.mark.parametrize("case", SCORES, ids=lambda case: case["name"])
def test_area_of_a_position_is_known(case):
    board = np.array([[".XO".index(c) for c in r.split()] for r in case["board"]])
    areas = bits.spread_out(areas_of(bits.packed(np.stack([board == 1, board == 2]))))
    known = case["black_area"], case["white_area"]
    assert (areas[0].sum(), areas[1].sum()) == known
    assert sum(known) + case["neutral"] == case["size"] ** 2
    env = go(case["size"])
    if case["name"] == "full_minus_one_5":  # Black's chain has no liberty
        with pytest.raises(ValueError, match="the chain of A5 has no liberty"):
            env.from_text(text(case["board"]))
        return
    state = env.from_text(text(case["board"]))
    assert env.score(state) == case["score_black_minus_white"] - 7.5
    for _ in range(2):
        state = jitted_step(env)(state, case["size"] ** 2)
    assert state.terminated
    assert "XO"[int(np.argmax(state.rewards))] == case["winner_at_komi_7_5"]


@pytest.mark.parametrize("position", TACTICS, ids=lambda position: position["id"])
def test_key_move_of_a_tactic_is_legal(position):
    env = go(9)
    state = env.from_text(text(position["board"], position["to_play"]))
    row, column = position["best_rc"]
    assert env.text_to_action(state, position["best"]) == 9 * row + column
    assert rows(state) == position["board"]


GOLDEN = [
    pytest.param(
        size, number, marks=[] if size < 13 and number < 2 else pytest.mark.slow
    )
    for size in (5, 9, 13, 19)
    for number in range(len(GAMES[f"go{size}_psk"]["games"]))
]


@pytest.mark.parametrize(("size", "number"), GOLDEN)
def test_recorded_game_has_the_known_masks_board_and_score(size, number):
    env, game = go(size), GAMES[f"go{size}_psk"]["games"][number]
    state = env.init()
    for action, legal in zip(game["actions"], game["legal_counts"], strict=True):
        assert state.legal_action_mask.sum() == legal
        assert state.legal_action_mask[action]
        state = jitted_step(env)(state, action)
    assert rows(state) == game["final_rows"]
    owned = np.asarray(env.ownership(state))
    counts = {"black": (owned == 1).sum(), "white": (owned == -1).sum()}
    assert {**counts, "neutral": (owned == 0).sum()} == game["score"]
    assert bool(state.truncated) == (game["ended"] == "ply_cap")
    assert bool(state.terminated) == (game["ended"] != "ply_cap")
    lead = game["score"]["black"] - game["score"]["white"]
    winner = 0 if lead > 7.5 else 1
    assert state.rewards[winner] == 1 and state.rewards[1 - winner] == -1


def test_suicide_of_two_stones_is_as_the_option_says():
    # O . X      White at B9 fills the last liberty of its own corner
    # X X .
    moves = [2, 0, 9, 80, 10]
    assert not play(go(9), moves).legal_action_mask[1]
    env = go(9, suicide=True)
    state = play(env, moves)
    assert state.legal_action_mask[1]
    after = jitted_step(env)(state, 1)
    assert rows(after)[0].startswith(". . X") and rows(after)[1].startswith("X X .")


def test_suicide_of_one_stone_repeats_the_board():
    # . X .
    # X . .      White at A9
    moves = [1, 80, 9]
    for options in ({}, {"suicide": True}):
        assert not play(go(9, **options), moves).legal_action_mask[0]


def test_ko_is_closed_for_one_exchange():
    #   A B C
    # 9 . X O .     White's stone at B8 took Black's at C8, which may not take back
    # 8 X O . O     the other way round: White may not play B8 at once
    # 7 . X O .
    moves = [1, 2, 9, 12, 19, 20, 80, 10, 11]
    env = go(9)
    state = play(env, moves)
    assert env.to_text(state).split()[2] == "B8"
    assert not state.legal_action_mask[10]
    for action in (79, 78):
        state = jitted_step(env)(state, action)
    assert state.legal_action_mask[10]


def test_game_is_scored_without_taking_dead_stones_off():
    # 7x7, komi 7: Black 14, White 13 and 22 neutral points.
    names = (
        "dd cd ce de cf dc ed ec cc fd ee cb bc fe ef bb bd ff fg ab ac gf db eb eg gg"
    )
    actions = [7 * (ord(name[1]) - 97) + ord(name[0]) - 97 for name in names.split()]
    fc = 7 * 2 + 5
    env = go(7, komi=7)
    state = play(env, [*actions, 49, fc, 49, 49])
    assert state.terminated
    owned = np.asarray(env.ownership(state))
    assert [(owned == colour).sum() for colour in (1, -1, 0)] == [14, 13, 22]
    assert env.score(state) == -6
    np.testing.assert_array_equal(state.rewards, [-1, 1])


def test_equal_scores_are_a_draw():
    # X X . O O on each of five rows: ten points each; the middle is nobody's.
    board = "/".join(["XX.OO"] * 5) + " X - 1 9 pass"
    for komi, rewards in ((0, [0, 0]), (0.5, [-1, 1]), (-0.5, [1, -1])):
        env = go(5, komi=komi)
        state = jitted_step(env)(env.from_text(board), 25)
        assert state.terminated
        np.testing.assert_array_equal(state.rewards, rewards)


def test_cap_truncates_and_gives_the_area_result():
    env = go(3, max_plies=5)
    state = play(env, [4, 0, 1, 9])
    assert not state.truncated
    capped = jitted_step(env)(state, 3)  # Black takes the corner: all of the board
    assert capped.truncated and not capped.terminated
    assert not capped.legal_action_mask.any()
    np.testing.assert_array_equal(capped.rewards, [1, -1])
    passed = jitted_step(env)(jitted_step(env)(play(env, [4, 0, 1]), 9), 9)
    assert passed.terminated and not passed.truncated  # at the cap, but by two passes
