import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import envs
from envs import registry

NOT_GAMES = {"envs.env", "envs.game", "envs.pgx_adapter", "envs.simultaneous"}


def test_every_game_file_is_registered():
    games = {
        kind.__module__
        for kind in vars(envs).values()
        if isinstance(kind, type) and issubclass(kind, envs.Game)
    } - NOT_GAMES
    assert {type(envs.make(name)).__module__ for name in envs.names()} == games
    folder = pathlib.Path(envs.__file__).parent
    subclasses = {
        ".".join(["envs", *path.relative_to(folder).with_suffix("").parts])
        for path in folder.rglob("*.py")
        if re.search(r"\((envs\.)?(Simultaneous)?Env\[", path.read_text())
    }
    assert subclasses - NOT_GAMES == games


@pytest.mark.parametrize("name", envs.names())
def test_id_and_options_make_the_same_game(name):
    options = {
        "nim": {"heaps": (2, 5), "misere": True},
        "goofspiel_5": {"prizes": "descending", "ties": "carry"},
        "sequential:goofspiel_5": {"returns": "point_difference"},
    }.get(name, {})
    env = envs.make(name, **options)
    assert options.items() <= env.options.items()
    again = envs.make(env.id, **env.options)
    assert env.id == name and repr(again) == repr(env)
    jax.tree.map(np.testing.assert_array_equal, again.init(), env.init())


def test_options_survive_json():
    assert envs.make("nim", heaps=[2, 5]).options == {"heaps": (2, 5), "misere": False}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("conect_four", {}, "did you mean 'connect_four'. the games are .*nim, "),
        ("shogi", {}, "unknown game 'shogi': the games are .*nim, "),
        ("", {}, "unknown game ''"),
        ("hex", {}, "did you mean 'hex_11x11'. the games are"),
        ("hex_3x3", {"size": 3.0}, "hex_3x3 has size 3, but size=3.0 was given"),
        ("nim", {"name": 5}, "nim has no option 'name'"),
        (
            "sequential:" * 1500 + "tron_4x4",
            {},
            "'sequential:sequ.* is a view: its players move in turn",
        ),
        ("go", {}, "and with pgx installed 'pgx:NAME'"),
        (["nim"], {}, r"unknown game \['nim'\]"),
        ("nim", {"heap": 3}, r"no option 'heap'; its options: heaps=\(3, 4, 5\), mis"),
        ("tic_tac_toe", {"size": 4}, "tic_tac_toe has no option 'size'; it takes none"),
    ],
)
def test_unknown_names_and_options_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


class Sized(envs.TicTacToe):
    """A game whose name tells its size."""

    def __init__(self, size: int, komi: float = 6.5):
        if size > 19:
            raise ValueError(f"size is at most 19, got {size}")
        self.id = f"sized_{size}x{size}"
        self.size, self.komi = size, komi


@pytest.fixture
def sized(monkeypatch):
    """A registry with games that come in sizes, square and not."""
    sizes = {"sized_9x9": (Sized, "size"), "line_5": (Sized, "size")}
    monkeypatch.setattr(registry, "_SIZED", sizes)


@pytest.mark.usefixtures("sized")
@pytest.mark.parametrize(
    ("name", "size"),
    [("sized_9x9", 9), ("sized_7x7", 7), ("line_5", 5), ("line_12", 12)],
)
def test_name_tells_the_size(name, size):
    assert (envs.make(name).size, envs.make(name).komi) == (size, 6.5)
    assert envs.make(name, size=size, komi=0.5).komi == 0.5


@pytest.mark.usefixtures("sized")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "sized_9x7",
            "sized_9",
            "sized_x9",
            "sized_9x9x9",
            "sized_-9x-9",
            "sized_09x09",
            "sized_9x9 ",
        ),
        *(
            "sized_٣x٣",
            "sized_1000x1000",
            "xsized_9x9",
            "line_5x5",
            "line_",
            "line_5.0",
        ),
    ],
)
def test_name_that_tells_no_size_is_unknown(name):
    with pytest.raises(ValueError, match="unknown game"):
        envs.make(name)


@pytest.mark.usefixtures("sized")
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("sized_9x9", {"size": 7}, "sized_9x9 has size 9, but size=7 was given"),
        ("sized_99x99", {}, "size is at most 19, got 99"),
        ("sized_9x9", {"kom": 1}, "no option 'kom'; its options: size=.*, komi=6.5"),
        ("sizd_9x9", {}, "did you mean 'sized_9x9'. .*in any size .*sized_9x9"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


@pytest.mark.usefixtures("sized")
def test_names_have_one_of_each_size():
    assert {"sized_9x9", "line_5", "nim"} <= set(envs.names())
    assert list(envs.names()) == sorted(envs.names())


def test_import_starts_no_backend():
    # In a fresh interpreter, since this one has started JAX long ago.
    code = (
        "import envs; from jax._src import xla_bridge; "
        "assert not xla_bridge.backends_are_initialized()"
    )
    root = pathlib.Path(envs.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)


@pytest.mark.parametrize("name", [n for n in envs.names(in_turn=True) if ":" not in n])
def test_names_of_moves_read_in_capitals_unless_case_matters(name):
    env = envs.make(name)
    state = env.init()
    action = int(np.flatnonzero(state.legal_action_mask)[-1])
    text = env.action_to_text(state, action)
    assert env.text_to_action(state, text) == action
    if not env.case_matters:
        assert env.text_to_action(state, text.swapcase()) == action
    elif text.swapcase() != text:
        with pytest.raises(ValueError, match="not a legal move here"):
            env.text_to_action(state, text.swapcase())
