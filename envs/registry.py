"""The games by name."""

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any

from envs.chess import Chess, GardnerChess
from envs.connect_four import ConnectFour
from envs.env import Env
from envs.game import Game
from envs.go import Go
from envs.gomoku import Gomoku
from envs.goofspiel import Goofspiel
from envs.hex import Hex
from envs.nim import Nim
from envs.othello import Othello
from envs.oware import Oware
from envs.pgx_adapter import PGX_PREFIX, PgxEnv
from envs.sequential import SEQUENTIAL_PREFIX, Sequential
from envs.simultaneous import SimultaneousEnv
from envs.tic_tac_toe import TicTacToe
from envs.tron import Tron
from envs.ultimate_tic_tac_toe import UltimateTicTacToe

_GAMES: dict[str, Callable[..., Game[Any]]] = {
    "chess": Chess,
    "connect_four": ConnectFour,
    "gardner_chess": GardnerChess,
    "nim": Nim,
    "othello": Othello,
    "oware": Oware,
    "tic_tac_toe": TicTacToe,
    "ultimate_tic_tac_toe": UltimateTicTacToe,
}

# Games whose name tells their size: one name as an example, the game, and the option
# that is the number in the name.
_SIZED: dict[str, tuple[Callable[..., Game[Any]], str]] = {
    "go_9x9": (Go, "size"),
    "gomoku_15x15": (Gomoku, "size"),
    "goofspiel_5": (Goofspiel, "num_cards"),
    "hex_11x11": (Hex, "size"),
    "othello_6x6": (Othello, "size"),
    "tron_10x10": (Tron, "size"),
}


def names(*, in_turn: bool = False) -> tuple[str, ...]:
    """The names that `make` knows, sorted; one for each game that comes in sizes.

    A game of simultaneous moves is there twice, as itself and as its sequential view.

    Args:
      in_turn: only games whose players move in turn, so without the games of
        simultaneous moves themselves.
    """
    games = _GAMES | {name: game for name, (game, _) in _SIZED.items()}
    at_once = [name for name, game in games.items() if _is_simultaneous(game)]
    views = [SEQUENTIAL_PREFIX + name for name in at_once]
    return tuple(sorted((games.keys() - (at_once if in_turn else [])) | {*views}))


def make_in_turn(name: str, /, **options: Any) -> Env[Any]:
    """`make` for what plays games whose players move in turn.

    Args:
      name: as for `make`.
      **options: as for `make`.

    Returns:
      An `Env`.

    Raises:
      ValueError: as `make`, or a game of simultaneous moves; names its sequential view.
    """
    game = make(name, **options)
    if isinstance(game, SimultaneousEnv):
        raise ValueError(
            f"in {name} both players move at once, but here they must move in turn: "
            f"take its sequential view, {SEQUENTIAL_PREFIX + name}"
        )
    return game


def make(name: str, /, **options: Any) -> Any:
    """Makes a game by its name: `make("nim", heaps=(3, 5, 7), misere=True)`.

    Where a name tells the size, as in "go_9x9", any other size may stand there. The
    name "pgx:go_9x9" makes pgx's game go_9x9, if pgx is installed.

    Args:
      name: one of `names()`, or "pgx:" and the name of a game of pgx.
      **options: the arguments of the game's class.

    Returns:
      An `Env`; for a game of simultaneous moves a `SimultaneousEnv`, whose sequential
      view, such as "sequential:goofspiel_5", is an `Env`.

    Raises:
      ValueError: an unknown name, or an option or value that the game does not take.
    """
    if isinstance(name, str) and name.startswith(SEQUENTIAL_PREFIX):
        game = name.removeprefix(SEQUENTIAL_PREFIX)
        if game.startswith(SEQUENTIAL_PREFIX):
            raise ValueError(f"{game[:40]!r} is a view: its players move in turn")
        return Sequential(make(game, **options))
    found = _find(name) if isinstance(name, str) else None
    if found is None:
        longer = [known for known in names() if known.startswith(f"{name}_")]
        near = longer or difflib.get_close_matches(str(name), names(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"unknown game {name!r}: {hint}the games are {', '.join(sorted(_GAMES))}, "
            f"in any size {', '.join(sorted(_SIZED))}, and with pgx installed "
            f"'{PGX_PREFIX}NAME'"
        )
    game, told = found
    allowed = inspect.signature(game).parameters.values()
    passed_on = any(option.kind is option.VAR_KEYWORD for option in allowed)
    unknown = sorted(set(options) - {option.name for option in allowed})
    if unknown and not passed_on:
        takes = ", ".join(f"{option.name}={option.default!r}" for option in allowed)
        raise ValueError(
            f"{name} has no option {unknown[0]!r}; "
            + (f"its options: {takes}" if takes else "it takes none")
        )
    for option, number in told.items():
        given = options.get(option, number)
        if type(given) is not type(number) or given != number:
            raise ValueError(
                f"{name} has {option} {number}, but {option}={options[option]!r} was "
                "given: leave it out, or change the name"
            )
    return game(**told, **{k: v for k, v in options.items() if k not in told})


def _is_simultaneous(game: Callable[..., Game[Any]]) -> bool:
    return isinstance(game, type) and issubclass(game, SimultaneousEnv)


def _find(name: str) -> tuple[Callable[..., Game[Any]], dict[str, Any]] | None:
    """The game of a name, and the options that the name tells."""
    if name.startswith(PGX_PREFIX):
        return PgxEnv, {"game": name.removeprefix(PGX_PREFIX)}
    if name in _GAMES:
        return _GAMES[name], {}
    for example, (game, option) in _SIZED.items():
        # "go_9x9" becomes "go_(number)x(the same number)"
        start, *rest = re.split(r"\d+", example)
        number, same = r"(0|[1-9][0-9]{0,2})", r"\1"
        if match := re.fullmatch(start + number + same.join(rest), name):
            return game, {option: int(match[1])}
    return None
