"""The games by name."""

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any

from envs.chess import Chess, GardnerChess
from envs.connect_four import ConnectFour
from envs.env import Env
from envs.nim import Nim
from envs.tic_tac_toe import TicTacToe

_GAMES: dict[str, Callable[..., Env[Any]]] = {
    "chess": Chess,
    "connect_four": ConnectFour,
    "gardner_chess": GardnerChess,
    "nim": Nim,
    "tic_tac_toe": TicTacToe,
}

# Games whose name tells their size: one name as an example, the game, and the option
# that is the number in the name.
_SIZED: dict[str, tuple[Callable[..., Env[Any]], str]] = {}


def names() -> tuple[str, ...]:
    """The names that `make` knows, sorted; one for each game that comes in sizes."""
    return tuple(sorted([*_GAMES, *_SIZED]))


def make(name: str, **options: Any) -> Env[Any]:
    """Makes a game by its name: `make("nim", heaps=(3, 5, 7), misere=True)`.

    Where a name tells the size, as in "go_9x9", any other size may stand there.

    Args:
      name: one of `names()`.
      **options: the arguments of the game's class.

    Raises:
      ValueError: an unknown name, or an option or value that the game does not take.
    """
    found = _find(name) if isinstance(name, str) else None
    if found is None:
        near = difflib.get_close_matches(str(name), names(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        games = ", ".join(f"{n} (any size)" if n in _SIZED else n for n in names())
        raise ValueError(f"unknown game {name!r}: {hint}the games are {games}")
    game, told = found
    allowed = inspect.signature(game).parameters.values()
    unknown = sorted(set(options) - {option.name for option in allowed})
    if unknown:
        takes = ", ".join(f"{option.name}={option.default!r}" for option in allowed)
        raise ValueError(
            f"{name} has no option {unknown[0]!r}; "
            + (f"its options: {takes}" if takes else "it takes none")
        )
    for option, number in told.items():
        if options.get(option, number) != number:
            raise ValueError(
                f"{name} has {option} {number}, but {option}={options[option]!r} was "
                "given: leave it out, or change the name"
            )
    return game(**told, **{k: v for k, v in options.items() if k not in told})


def _find(name: str) -> tuple[Callable[..., Env[Any]], dict[str, int]] | None:
    """The game of a name, and the options that the name tells."""
    if name in _GAMES:
        return _GAMES[name], {}
    for example, (game, option) in _SIZED.items():
        # "go_9x9" becomes "go_(number)x(the same number)"
        stem, _, size = example.rpartition("_")
        same = re.sub(r"\d+", r"\\1", re.sub(r"\d+", r"([0-9]{1,3})", size, count=1))
        if match := re.fullmatch(f"{stem}_{same}", name):
            return game, {option: int(match[1])}
    return None
