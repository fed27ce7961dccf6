"""Game records of Go that contradict themselves, or are of something else."""

import jax
import numpy as np
import pytest

import envs
from tests.envs.go_games import go

LETTERS = "two letters, a to i"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        # Contradictions
        (";SZ[9];B[ee]W[cc]", "node 2, B[ee] W[cc]: expected one move in a node"),
        (";SZ[9];B[ee]B[cc]", "node 2, B[ee][cc]: expected one move"),
        (
            ";SZ[9]AB[aa]AW[aa]",
            "node 1, AB[aa] AW[aa]: expected each point once, got A9",
        ),
        (";SZ[9]AB[aa:bb]AE[ba]", "node 1, AB[aa:bb] AE[ba]: expected each point once"),
        (";SZ[9]AB[aa]B[ee]", "node 1, AB[aa] B[ee]: expected setup stones and moves"),
        (
            ";SZ[9]HA[5]AB[cg][gc];W[ee]",
            "node 1, HA[5]: expected 5 black stones set up (AB), got 2",
        ),
        (";SZ[9]PL[W];B[ee]", "node 1, PL[W]: expected B, who makes the first move"),
        (";SZ[9]KM[7.5]KM[5.5]", "node 1, KM[7.5][5.5]: expected a multiple of 1/2"),
        # Properties of the root elsewhere
        (";SZ[9];B[ee];KM[3];W[cc]", "node 3, KM[3]: expected it in the root only"),
        (";SZ[9];B[ee];SZ[5];W[cc]", "node 3, SZ[5]: expected it in the root only"),
        (";SZ[9];B[ee];AB[cc]", "node 3, AB[cc]: expected it in the root only"),
        (";SZ[9];B[ee](;W[aa]PL[B])(;W[bb])", "node 3, PL[B]: expected it in the root"),
        # Other games
        (";GM[2]SZ[9];B[ee]", "node 1, GM[2]: expected 1, which is Go"),
        (";GM[Go]SZ[9];B[ee]", "node 1, GM[Go]: expected 1, which is Go"),
        (";GM[2]SZ[8:10]", "node 1, GM[2]: expected 1, which is Go"),
        # Values that are none
        (";SZ[9];B[e]", f"node 2, B[e]: expected one move, {LETTERS}, or nothing"),
        (";SZ[9];B[zz]", f"node 2, B[zz]: expected one move, {LETTERS}, or nothing"),
        (";SZ[9];B[ee];W[EE]", f"node 3, W[EE]: expected one move, {LETTERS}"),
        (";SZ[9]AW[a]", f"node 1, AW[a]: expected points of {LETTERS} each"),
        (";SZ[9]HA[x]", "node 1, HA[x]: expected a number of stones, 0 or 2 and more"),
        (";SZ[9]HA[1]", "node 1, HA[1]: expected a number of stones, 0 or 2 and more"),
        (f";SZ[9]HA[{'9' * 5000}]", f"node 1, HA[{'9' * 40}...]: expected a number"),
        (";SZ[9]KM[x]", "node 1, KM[x]: expected a multiple of 1/2 from -361 to 361"),
        (";SZ[9]KM[7.5000001]", "node 1, KM[7.5000001]: expected a multiple of 1/2"),
        (";SZ[9]PL[X]", "node 1, PL[X]: expected B or W"),
        (";SZ[x]", "node 1, SZ[x]: expected a size from 2 to 19"),
        (";SZ[26]", "node 1, SZ[26]: expected a size from 2 to 19"),
    ],
)
def test_records_that_are_no_game_are_refused(record, message):
    env = envs.make("go_9x9")
    with pytest.raises(ValueError) as caught:
        env.from_text(f"({record})")
    assert str(caught.value).startswith(f"{env.id}: in '(;")
    assert message in str(caught.value)
    with pytest.raises(ValueError) as caught:
        envs.Go.of_sgf(f"({record})")
    assert message in str(caught.value)


def test_what_a_record_may_leave_out_or_say_of_old_is_read():
    env = go(9)
    played = env.from_text("E5 pass C7")
    for text in (
        "(;SZ[9];B[ee];W[];B[cc])",
        "(;GM[1]FF[3]SZ[9]KM[7.5]HA[0]PL[B];B[ee];W[tt];B[cc])",
        "(;SZ[9]B[ee];W[tt]C[a comment];;B[cc];GN[a game])",
    ):
        read = env.from_text(text)
        jax.tree.map(np.testing.assert_array_equal, read, played)


@pytest.mark.parametrize("komi", [-361, -0.5, 0, 0.5, 7, 7.5, 360.5])
def test_komi_comes_back_from_a_record(komi):
    env = go(3, komi=komi)
    sgf = env.to_sgf("B2 pass pass")
    assert envs.Go.of_sgf(sgf).options == env.options
    assert env.from_text(sgf).terminated


@pytest.mark.parametrize("action", [None, 12.5, "C3", -1, 82, True, [1]], ids=str)
def test_a_record_is_of_actions(action):
    with pytest.raises(ValueError) as caught:
        go(9).to_sgf([40, action])
    assert f"go_9x9 has actions 0 to 81, got {action!r}" in str(caught.value)
    moves = np.array([40, 81], np.int32)
    assert go(9).to_sgf(moves) == go(9).to_sgf([40, 81]) == go(9).to_sgf("E5 pass")
