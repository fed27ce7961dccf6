"""Games of chess as PGN."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envs.chess import notation

if TYPE_CHECKING:
    from envs.chess.game import Chess, ChessState


def write(
    env: "Chess", states: Sequence["ChessState"], actions: Sequence[int], result: str
) -> str:
    """A game from the start of chess as PGN, in SAN without signs of check.

    Args:
      states: the positions before each action.
      actions: legal in them.
      result: "1-0", "0-1", "1/2-1/2", or "*" where it is unknown.
    """
    roster = {"Event": "?", "Site": "?", "Date": "????.??.??", "Round": "?"}
    roster |= {"White": "?", "Black": "?", "Result": result}
    tags = "".join(f'[{name} "{value}"]\n' for name, value in roster.items())
    words = []
    for ply, (state, action) in enumerate(zip(states, actions, strict=True)):
        words += [f"{ply // 2 + 1}."] if ply % 2 == 0 else []
        words.append(san(env, state, action))
    return f"{tags}\n{textwrap.fill(' '.join([*words, result]), 80)}\n"


def san(env: "Chess", state: "ChessState", action: int) -> str:
    """The shortest SAN that means a legal action, without signs of check and mate."""
    rows, player = env._rows(state), env._player(state)
    legal = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()

    def means(text):
        return notation.find(env._actions, rows, player, legal, text) == [action]

    name = env.action_to_text(state, action)
    start, target, promotion = name[:2], name[2:4], name[4:].upper()

    def at(square):
        return rows[len(rows) - int(square[1])]["abcdefgh".index(square[0])]

    piece = at(start).upper()
    if piece == "K" and start[0] == "e" and target[0] in "cg":
        castling = "O-O" if target[0] == "g" else "O-O-O"
        if means(castling):
            return castling
    takes = (
        "x" if at(target).isalpha() or (piece == "P" and start[0] != target[0]) else ""
    )
    end = f"{takes}{target}{'=' + promotion if promotion else ''}"
    if piece == "P":
        return f"{start[0] if takes else ''}{end}"
    hints = ("", start[0], start[1], start)
    return next(text for hint in hints if means(text := f"{piece}{hint}{end}"))
