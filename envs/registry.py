"""The games by name."""

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from envs.connect_four import ConnectFour
from envs.env import Env
from envs.nim import Nim
from envs.tic_tac_toe import TicTacToe

_GAMES: dict[str, Callable[..., Env[Any]]] = {
    "connect_four": ConnectFour,
    "nim": Nim,
    "tic_tac_toe": TicTacToe,
}


def names() -> tuple[str, ...]:
    """The names that `make` knows, sorted."""
    return tuple(sorted(_GAMES))


def make(name: str, **options: Any) -> Env[Any]:
    """Makes a game by its name: `make("nim", heaps=(3, 5, 7), misere=True)`.

    Args:
      name: one of `names()`.
      **options: the arguments of the game's class.

    Raises:
      ValueError: an unknown name, or an option or value that the game does not take.
    """
    if not isinstance(name, str) or name not in _GAMES:
        near = difflib.get_close_matches(str(name), _GAMES, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"unknown game {name!r}: {hint}the games are {', '.join(names())}"
        )
    game = _GAMES[name]
    allowed = inspect.signature(game).parameters.values()
    unknown = sorted(set(options) - {option.name for option in allowed})
    if unknown:
        takes = ", ".join(f"{option.name}={option.default!r}" for option in allowed)
        raise ValueError(
            f"{name} has no option {unknown[0]!r}; "
            + (f"its options: {takes}" if takes else "it takes none")
        )
    return game(**options)
