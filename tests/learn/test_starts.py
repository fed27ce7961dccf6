"""Games that start from the positions of a file."""

import jax
import numpy as np
import pytest

import envs
import train
from jaxsearch.learn import self_play
from jaxsearch.learn.starts import any_of, read_starts

ENV = envs.make("tic_tac_toe")
TEXTS = "X../.../...", "XO./.../..X", ".../.X./..."
SMALL = [
    *("--env", "tic_tac_toe", "--net", "mlp", "--width", "8", "--depth", "1"),
    *("--search", "puct", "--simulations", "2", "--games", "8", "--plies", "4"),
    *("--batch", "8", "--updates", "1", "--positions", "64", "--no-evaluate"),
]


def test_games_start_from_each_position_as_often(tmp_path):
    file = tmp_path / "openings.txt"
    file.write_text(f"# three\n{TEXTS[0]}\n\n  {TEXTS[1]}\n{TEXTS[2]}\n")
    games = self_play.start_games(
        ENV,
        jax.random.split(jax.random.key(0), 600),
        opening_plies=0,
        init=any_of(read_starts(ENV, file)),
    )
    assert not games.ply.any()
    boards = np.asarray(jax.vmap(ENV.observe)(games.states)).reshape(600, -1)
    found, counts = np.unique(boards, axis=0, return_counts=True)
    expected = [np.asarray(ENV.observe(ENV.from_text(text))).ravel() for text in TEXTS]
    np.testing.assert_array_equal(found, np.unique(expected, axis=0))
    assert (abs(counts - 200) < 5 * np.sqrt(200)).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff", "cannot be read: "),
        (b"# none\n\n", "holds no position: write one a line"),
        (f"{TEXTS[0]}\nX./X\n".encode(), ", line 2: "),
        (b"\nXXX/OO./...", ", line 2: the game is over in 'XXX/OO./...'"),
    ],
)
def test_file_without_sense_is_refused_in_one_line(tmp_path, capsys, text, message):
    file = tmp_path / "openings.txt"
    if text is not None:
        file.write_bytes(text)
    flags = [*SMALL, "--run", str(tmp_path / "run"), "--openings", str(file)]
    assert train.main(flags) == 2
    captured = capsys.readouterr()
    assert f"--openings {file}" in captured.err and message in captured.err
    assert captured.err.count("\n") == 1 and captured.out == ""
    assert not (tmp_path / "run").exists()


def test_run_keeps_its_openings(tmp_path, capsys):
    file, run = tmp_path / "openings.txt", tmp_path / "run"
    file.write_text(TEXTS[0])
    flags = ["--run", str(run), "--openings", str(file), "--opening-plies", "0"]
    assert train.main([*SMALL, *flags, "--iterations", "2"]) == 0
    file.unlink()
    assert train.main(["--run", str(run), "--resume", "--iterations", "3"]) == 0
    assert (run / "openings.txt").read_text() == TEXTS[0]
    assert "going on from iteration 2" in capsys.readouterr().out
