"""Games as the files that other programs of a game read: SGF of Go, PGN of chess."""

from collections.abc import Sequence
from typing import Any

from envs.chess import Chess, pgn
from envs.go import Go


def write_record(
    env: Any, states: Sequence[Any], actions: Sequence[int], result: str
) -> tuple[str, str] | None:
    """A game from its start, as the ending of a file's name and a text; or None.

    Such texts one after the other are a file of several games.

    Args:
      states: the positions before each action.
      actions: what was played in them.
      result: "1-0" where the first player won, "0-1", "1/2-1/2", or "*" if unknown.
    """
    if isinstance(env, Go):
        return "sgf", env.to_sgf(actions)
    if isinstance(env, Chess):
        return "pgn", pgn.write(env, states, actions, result) + "\n"
    return None
