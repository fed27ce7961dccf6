"""Counts of games by known answers, and the command that prints them."""

import sys

import jax
import numpy as np
import pytest

import envs
from envs.perft import Ply, divide, perft
from envs.perft.__main__ import main
from envs.perft.merge import Merged
from tests.envs.positions import record

FOUR, THREE = envs.make("connect_four"), envs.make("tic_tac_toe")
CONNECT_FOUR, TIC_TAC_TOE = record("connect4"), record("tictactoe")
BATCH = 256


def count(env, depth, text=None, **options):
    state = env.init() if text is None else env.from_text(text)
    return envs.perft(env, state, depth, batch=BATCH, **options)


@pytest.mark.parametrize("merge", [False, True], ids=["depth first", "merged"])
def test_all_games_of_tic_tac_toe_are_counted(merge):
    counted = count(THREE, 9, merge=merge, play_last=True)
    known = TIC_TAC_TOE
    assert [ply.games for ply in counted.plies] == known["sequences_per_ply"]
    ended = [sum(ply.ended.values()) for ply in counted.plies]
    assert {str(n): games for n, games in enumerate(ended) if games} == known[
        "games_by_length"
    ]
    assert counted.leaves == known["games_total"] and counted.games == ended[9]
    results = [sum(ply.ended[reward] for ply in counted.plies) for reward in (1, -1, 0)]
    assert results == [known["outcomes"][name] for name in ("first", "second", "draw")]
    positions = [ply.positions for ply in counted.plies]
    if merge:
        assert positions == known["distinct_positions_per_ply"]
    else:
        assert positions == known["sequences_per_ply"]


def test_connect_four_has_the_known_counts():
    plies = count(FOUR, 8, merge=True).plies
    for ply in range(1, 9):
        assert plies[ply].games == CONNECT_FOUR["perft_sequences"][str(ply)]
    for ply in range(1, 8):
        assert plies[ply].positions == CONNECT_FOUR["distinct_positions"][str(ply)]
    assert plies[7].ended == {1.0: CONNECT_FOUR["wins_completed_at_ply"]["7"]}
    assert plies[8] == Ply(CONNECT_FOUR["perft_sequences"]["8"], None, None)


@pytest.mark.slow
def test_connect_four_has_the_known_counts_to_ply_10():
    state, known = FOUR.init(), CONNECT_FOUR
    merged = perft(FOUR, state, 10, merge=True, play_last=True)
    walked = perft(FOUR, state, 10)
    for ply in range(1, 11):
        games = known["perft_sequences"][str(ply)]
        assert merged.plies[ply].games == walked.plies[ply].games == games
        assert merged.plies[ply].positions == known["distinct_positions"][str(ply)]
        won = known["wins_completed_at_ply"].get(str(ply), 0)
        assert sum(merged.plies[ply].ended.values()) == won
    assert walked.leaves == walked.games + sum(
        known["wins_completed_at_ply"][str(ply)] for ply in (7, 8, 9)
    )


def test_nim_has_as_many_games_as_a_count_by_hand():
    #  1 2  ->  . 2   1 1   1 .        first moves
    #           2: . 1, . .            second moves: ends after two plies, or goes on
    #           1 1: . 1, 1 .
    #           1 .: . .
    counted = count(envs.make("nim", heaps=(1, 2)), 3, play_last=True)
    assert [ply.games for ply in counted.plies] == [1, 3, 5, 3]
    # The first player takes the last object at ply 3, the second at ply 2.
    assert [ply.ended for ply in counted.plies] == [{}, {}, {-1.0: 2}, {1.0: 3}]
    assert (counted.games, counted.leaves) == (3, 5)


@pytest.mark.parametrize("batch", [1, 3, 64])
@pytest.mark.parametrize("merge", [False, True], ids=["depth first", "merged"])
def test_batch_size_does_not_change_the_counts(batch, merge):
    state = THREE.from_text("X.O/.../...")
    counted = perft(THREE, state, 3, batch=batch, merge=merge, play_last=True)
    assert [ply.games for ply in counted.plies] == [1, 7, 42, 210]


def test_last_moves_played_or_counted_are_as_many():
    counted = count(THREE, 5)
    played = count(THREE, 5, play_last=True)
    assert counted.plies[:5] == played.plies[:5]
    assert counted.games == played.games == 15120
    assert counted.plies[5].ended is None
    assert played.plies[5].ended == {1.0: 1440}


def test_depth_zero_is_the_position_alone():
    assert count(THREE, 0).plies == (Ply(1, 1, {}),)
    over = count(THREE, 0, "XXX/OO./...")
    assert over.plies == (Ply(1, 1, {1.0: 1}),)
    assert (over.games, over.leaves) == (1, 1)


@pytest.mark.parametrize("merge", [False, True], ids=["depth first", "merged"])
def test_finished_position_has_no_games_but_itself(merge):
    over = count(THREE, 3, "XXX/OO./...", merge=merge)
    assert [ply.games for ply in over.plies] == [1, 0, 0, 0]
    assert (over.games, over.leaves) == (0, 1)


def test_divided_counts_sum_to_the_whole():
    parts = dict(divide(THREE, THREE.init(), 5, batch=BATCH))
    assert list(parts) == [str(cell) for cell in range(1, 10)]
    assert sum(part.games for part in parts.values()) == 15120
    corner, side, middle = (parts[name].games for name in "125")
    assert corner * 4 + side * 4 + middle == 15120
    # More first moves than fit in a batch.
    few = dict(divide(THREE, THREE.init(), 5, batch=4))
    assert {k: v.games for k, v in few.items()} == {
        k: v.games for k, v in parts.items()
    }


@pytest.mark.parametrize(
    ("depth", "options", "message"),
    [
        (-1, {}, "depth is a whole number from 0, got -1"),
        (2.0, {}, "depth is a whole number from 0, got 2.0"),
        (1, {"batch": 0}, "batch is a whole number from 1, got 0"),
    ],
)
def test_bad_numbers_are_refused(depth, options, message):
    with pytest.raises(ValueError, match=message):
        perft(THREE, THREE.init(), depth, **options)
    if depth == -1:
        with pytest.raises(ValueError, match="depth is a whole number from 1, got -1"):
            next(divide(THREE, THREE.init(), depth))


def test_more_games_than_can_be_counted_are_refused():
    env = envs.make("nim", heaps=(14, 14, 14))
    with pytest.raises(
        ValueError, match=r"more games of 19 plies .* depth of 18 at most"
    ):
        perft(env, env.init(), 29, merge=True, batch=512)


def test_batched_state_is_refused():
    states = jax.vmap(lambda _: THREE.init())(np.arange(3))
    tron = envs.make("tron_6x6")
    with pytest.raises(ValueError, match="its sequential view, sequential:tron_6x6"):
        envs.perft(tron, tron.init(), 2)
    with pytest.raises(ValueError, match=r"one state .* got a mask of shape \(3, 9\)"):
        perft(THREE, states, 2)


def test_equal_states_are_put_together_whatever_their_hashes(monkeypatch):
    # Two batches with one state in common, a bool and bytes of odd lengths.
    def states(*numbers):
        board = np.array([[n, 0, -n] for n in numbers], np.int8)
        return {"board": board, "flag": np.array([[n > 2] * 9 for n in numbers])}

    def merge():
        merged = Merged(states(0), len_limit=1)
        merged.add(states(1, 2, 1), np.array([5, 1, 2]))
        merged.add(states(3, 2, 9), np.array([4, 10]))  # the last one does not count
        found = {}
        for batch, games in merged.batches(2):
            assert batch["board"].shape == (2, 3) and batch["flag"].dtype == bool
            for row, count in enumerate(games):
                number = int(batch["board"][row, 0])
                assert (batch["flag"][row] == (number > 2)).all()
                assert batch["board"][row].tolist() == [number, 0, -number]
                found[number] = int(count)
        return found

    assert merge() == {1: 7, 2: 11, 3: 4}
    # A multiplier of zero gives every row the same hash.
    monkeypatch.setattr(sys.modules[Merged.__module__], "_MULTIPLIER", np.uint64(0))
    assert merge() == {1: 7, 2: 11, 3: 4}


def test_command_prints_the_counts(capsys):
    assert main(["tic_tac_toe", "X.O/.../...", "2", "--batch", "16"]) == 0
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    assert ["0", "1", "1", "0"] in lines and ["1", "7", "7", "0"] in lines
    assert ["2", "42"] in lines
    assert "games a second (cpu, batch 16)" in printed


def test_command_divides_and_takes_options(capsys):
    options = ["--option", "heaps=(1, 2)", "--option", "misere=True", "--batch", "8"]
    assert main(["nim", "2", "--divide", "--merge", *options]) == 0
    printed = capsys.readouterr().out
    assert "the last object loses" in printed
    rows = [line.split() for line in printed.splitlines() if line.count(" ") > 8]
    assert rows == [["1:1", "2"], ["2:1", "2"], ["2:2", "1"], ["all", "5"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["go_9by9", "2"], "unknown game 'go_9by9'"),
        (["tic_tac_toe", "X.O/...", "2"], "got 'X.O/...'; a position is three rows"),
        (["tic_tac_toe", "-1"], "depth is a whole number from 0, got -1"),
        (["tic_tac_toe", "0", "--divide"], "depth is a whole number from 1, got 0"),
        (["nim", "2", "--option", "heaps"], "an option is NAME=VALUE, got 'heaps'"),
        (["nim", "2", "--option", "heaps=x"], "heaps is one or more whole numbers"),
    ],
)
def test_command_says_what_is_wrong(capsys, arguments, message):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("perft: ") and message in captured.err
    assert captured.err.count("\n") == 1


def test_game_with_chance_moves_is_refused():
    pytest.importorskip("pgx")
    env = envs.make("pgx:2048")
    with pytest.raises(ValueError, match="chance moves: give step a key"):
        perft(env, env.init(), 2, batch=4)
