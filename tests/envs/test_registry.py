import pathlib
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import envs


def test_every_game_file_is_registered():
    games = {
        kind.__module__
        for kind in vars(envs).values()
        if isinstance(kind, type) and issubclass(kind, envs.Env)
    } - {"envs.env"}
    assert {type(envs.make(name)).__module__ for name in envs.names()} == games
    folder = pathlib.Path(envs.__file__).parent
    subclasses = {
        ".".join(["envs", *path.relative_to(folder).with_suffix("").parts])
        for path in folder.rglob("*.py")
        if re.search(r"\((envs\.)?Env\[", path.read_text())
    }
    assert subclasses == games


@pytest.mark.parametrize("name", envs.names())
def test_id_and_options_make_the_same_game(name):
    options = {"nim": {"heaps": (2, 5), "misere": True}}.get(name, {})
    env = envs.make(name, **options)
    again = envs.make(env.id, **env.options)
    assert env.id == name and repr(again) == repr(env)
    jax.tree.map(np.testing.assert_array_equal, again.init(), env.init())


def test_options_survive_json():
    assert envs.make("nim", heaps=[2, 5]).options == {"heaps": (2, 5), "misere": False}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("conect_four", {}, "did you mean 'connect_four'. the games are "),
        ("shogi", {}, "unknown game 'shogi': the games are "),
        ("", {}, "unknown game ''"),
        (["nim"], {}, r"unknown game \['nim'\]"),
        ("nim", {"heap": 3}, r"no option 'heap'; its options: heaps=\(3, 4, 5\), mis"),
        ("tic_tac_toe", {"size": 4}, "tic_tac_toe has no option 'size'; it takes none"),
    ],
)
def test_unknown_names_and_options_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        envs.make(name, **options)


def test_import_starts_no_backend():
    # In a fresh interpreter, since this one has started JAX long ago.
    code = (
        "import envs; from jax._src import xla_bridge; "
        "assert not xla_bridge.backends_are_initialized()"
    )
    root = pathlib.Path(envs.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)
