"""The rules of chess, against known answers."""

import jax
import numpy as np
import pytest

import envs
from tests.envs.chess_games import (
    BATCH,
    ENV,
    batched_step,
    moves,
    row_of,
    stack,
    starts,
    step,
)
from tests.envs.positions import record

# Counts of move sequences know no draw but stalemate.
COUNTED = envs.make(
    "chess", repetitions=None, move_rule=100, insufficient_material=False
)
RULES = record("chess_rules")["cases"]
GAMES = record("chess_games")


def read(text, env=ENV):
    return jax.tree.map(np.asarray, env.from_text(text))


def names(state, env=ENV):
    legal = np.flatnonzero(state.legal_action_mask)
    return {env.action_to_text(state, action) for action in legal}


def perft(state, depth):
    """The number of move sequences of a length."""

    def count(states, depth):
        if depth == 1:
            return int(states.legal_action_mask.sum())
        rows, actions = np.nonzero(states.legal_action_mask)
        total = 0
        for first in range(0, len(rows), BATCH):
            part = slice(first, first + BATCH)
            number = len(rows[part])
            padded = np.resize(rows[part], BATCH)
            parents = jax.tree.map(lambda leaf: leaf[padded], states)  # noqa: B023
            children = step(COUNTED, parents, actions[part])
            kept = jax.tree.map(lambda leaf: leaf[:number], children)  # noqa: B023
            total += count(kept, depth - 1)
        return total

    return count(jax.tree.map(lambda leaf: leaf[None], state), depth)


PERFT = record("chess_perft")["positions"]


@pytest.mark.parametrize("position", PERFT, ids=lambda p: p["name"])
def test_move_sequences_have_the_known_counts(position):
    state = read(position["fen"], COUNTED)
    depths = [depth for depth, n in enumerate(position["perft"], 1) if n < 60_000]
    found = [perft(state, depth) for depth in depths]
    assert len(depths) >= 2 and found == position["perft"][: len(depths)]


@pytest.mark.slow
@pytest.mark.parametrize("position", PERFT, ids=lambda p: p["name"])
def test_long_move_sequences_have_the_known_counts(position):
    # A count takes as many steps as there are sequences one move shorter.
    state = read(position["fen"], COUNTED)
    counts = position["perft"]
    depth = max(d for d in range(2, len(counts) + 1) if counts[d - 2] < 250_000)
    assert depth >= 4 or counts[-1] == 99
    assert perft(state, depth) == counts[depth - 1]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case["name"])
def test_rule_cases_have_the_known_answers(case):
    state = moves(ENV, read(case["fen"]), *case.get("moves", ()))
    if case["kind"] == "legal_moves":
        legal = names(state)
        assert set(case["legal"]) <= legal and not set(case["illegal"]) & legal
        assert len(legal) == case["num_legal"]
    elif case["kind"] == "fen_after":
        assert ENV.to_text(state) == case["fen_after"]
    elif case["kind"] == "insufficient_material":
        assert state.terminated == case["insufficient"]
        ending = "insufficient material" if case["insufficient"] else ""
        assert ENV.ending(state) == ending
    else:
        rewards = {"white": [1, -1], "black": [-1, 1]}.get(case["result"], [0, 0])
        np.testing.assert_array_equal(state.rewards, rewards)
        assert state.terminated == (case["result"] != "none")
        assert not state.truncated
        reasons = {"threefold": "repetition", "fifty_moves": "the 50-move rule"}
        assert ENV.ending(state) == reasons.get(case["reason"], case["reason"])


def test_all_mates_in_one_move_and_the_keys_of_mates_are_found():
    for position in record("chess_mates")["positions"]:
        state = read(position["fen"])
        assert position["key"] in names(state)
        for san in position["line_san"]:  # SAN is read as well
            assert not state.terminated
            mover = state.current_player
            state = moves(ENV, state, san)
        assert state.terminated and state.rewards[mover] == 1, position
        assert ENV.ending(state) == "checkmate"
        if position["mate_in"] == 1:
            assert ENV.draw(state).endswith("wins by checkmate")


def test_recorded_games_go_as_recorded():
    games = record("golden_games")["sets"]["chess"]["games"]
    assert len(games) == 5
    states = starts(ENV)
    for ply in range(max(len(game["moves"]) for game in games) + 1):
        actions = np.zeros(BATCH, np.int32)
        for row, game in enumerate(games):
            state = row_of(states, row)
            if ply < len(game["moves"]):
                assert state.legal_action_mask.sum() == game["legal_counts"][ply]
                actions[row] = ENV.text_to_action(state, game["moves"][ply])
            elif ply == len(game["moves"]):
                assert ENV.to_text(state) == game["final_fen"]
                assert state.terminated == (game["result"] != "none")
                np.testing.assert_array_equal(state.rewards, [0, 0])
        states = step(ENV, states, actions)


SHUFFLE = ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"]


def test_start_position_counts_for_repetition():
    state = jax.tree.map(np.asarray, ENV.init())
    for ply, name in enumerate(SHUFFLE, 1):
        state = moves(ENV, state, name)
        assert state.terminated == (ply == 8)
    assert ENV.ending(state) == "repetition"
    assert ENV.draw(state).endswith("draw by repetition")


def test_castling_moves_the_rook_and_capture_of_a_rook_ends_its_right():
    start = jax.tree.map(np.asarray, ENV.init())
    line = ["e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5", "e1g1", "e8g8"]
    castled = moves(ENV, start, *line)
    assert len(names(castled)) == 30 and "f1e1" in names(castled)
    assert len(names(moves(ENV, castled, "f1e1", "f8e8"))) == 32
    fen = "rnbqkbnr/pppppp1p/8/8/1P4p1/8/PBPPPPPP/RN1QKBNR w KQkq - 0 1"
    assert ENV.to_text(moves(ENV, read(fen), "b2h8")).split()[2] == "KQq"


def test_position_with_an_en_passant_capture_is_another_one():
    game = GAMES["chesslib_39"]
    state = moves(ENV, jax.tree.map(np.asarray, ENV.init()), *game["uci"])
    assert ENV.to_text(state) == game["fen_end"]
    assert not state.terminated
    # The short form: only the first of three equal placements allows g5xf6.
    state = read("4R3/4b2p/3kn1p1/1p3pP1/5P2/3KP3/7P/8 w - f6 0 48")
    assert "g5f6" in names(state)
    line = ["e8b8", "d6c6", "b8e8", "c6d6"]
    state = moves(ENV, state, *line, *line)
    assert not state.terminated
    assert moves(ENV, state, "e8b8").terminated  # Kd6, Rb8 for the third time


def test_second_occurrence_is_no_draw():
    state = read("k1r5/8/K1R5/8/8/8/8/8 w - - 0 1")
    state = moves(ENV, state, *["c6b6", "c8b8", "b6c6", "b8c8"])
    assert not state.terminated
    mated = moves(ENV, state, "c6c8")
    assert mated.terminated
    np.testing.assert_array_equal(mated.rewards, [1, -1])


def test_mate_on_the_hundredth_ply_wins_and_other_moves_draw():
    state = read("7k/8/5KQ1/8/8/8/8/8 w - - 99 80")
    mated = moves(ENV, state, "g6g7")
    assert mated.clock == 100 and ENV.ending(mated) == "checkmate"
    np.testing.assert_array_equal(mated.rewards, [1, -1])
    drawn = moves(ENV, state, "g6g5")
    assert drawn.terminated and not drawn.legal_action_mask.any()
    assert ENV.ending(drawn) == "the 50-move rule"
    np.testing.assert_array_equal(drawn.rewards, [0, 0])


def test_counts_of_a_long_game_are_those_of_its_last_fen():
    game = GAMES["seblague_183"]
    state = moves(ENV, read(game["start"]), *game["uci"])
    assert ENV.to_text(state) == game["fen_end"]


def test_218_legal_moves_are_all_in_the_mask():
    state = read("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1")
    assert state.legal_action_mask.sum() == 218
    black = read("Kbnn1kb1/PP1q4/q4q2/2q4q/4q3/1q4q1/3q4/r6r b - - 0 1")
    np.testing.assert_array_equal(black.legal_action_mask, state.legal_action_mask)


def test_pawn_gives_four_pieces_and_each_gives_what_it_is():
    state = read("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    assert {name for name in names(state) if name.startswith("a7")} == {
        f"a7a8{piece}" for piece in "qrbn"
    }
    for piece in "qrn":
        promoted = moves(ENV, state, f"a7a8{piece}")
        assert ENV.to_text(promoted).startswith(f"{piece.upper()}7/7k/")


OTHER = envs.make("chess", repetitions=5, move_rule=75, max_plies=200)


def test_fivefold_repetition_and_75_moves_are_options():
    state = jax.tree.map(np.asarray, OTHER.init())
    for ply, name in enumerate(SHUFFLE * 2, 1):
        state = moves(OTHER, state, name)
        assert state.terminated == (ply == 16)
    state = read("7k/8/5KQ1/8/8/8/8/8 w - - 148 80", OTHER)
    state = moves(OTHER, state, "g6g5")
    assert not state.terminated and state.clock == 149
    state = moves(OTHER, state, "h8h7")
    assert state.terminated and OTHER.ending(state) == "the 75-move rule"


def test_cap_truncates_without_a_result():
    state = read("7k/8/5K2/8/8/8/8/Q7 w - - 10 100", OTHER)  # ply 198
    state = moves(OTHER, state, "a1a2")
    assert not state.truncated
    state = moves(OTHER, state, "h8h7")
    assert state.truncated and not state.terminated
    assert not state.legal_action_mask.any()
    np.testing.assert_array_equal(state.rewards, [0, 0])
    assert OTHER.draw(state).endswith("stopped by the cap on plies")
    # What the rules end is no longer capped.
    mated = moves(OTHER, read("7k/8/6K1/8/8/8/8/R7 w - - 0 100", OTHER), "a1a8")
    assert mated.terminated and not mated.truncated


def test_step_is_compiled_once():
    moves(ENV, read("8/P6k/8/8/8/8/8/K7 w - - 0 1"), "a7a8n")
    moves(ENV, jax.tree.map(np.asarray, ENV.init()), "e2e4")
    assert batched_step(ENV)._cache_size() == 1
    assert stack([ENV.init()]).board.shape == (BATCH, 8, 2)
