"""Names of moves: UCI out and in, SAN in. On the host.

Boards are given as `envs.chess.fen.rows`.
"""

import re

from envs.chess.actions import FIRST_LINE, UNDERPROMOTIONS, Actions
from envs.chess.fen import square_name

_SAN = re.compile(
    r"(?P<piece>[KQRBN]?)(?P<file>[a-h]?)(?P<rank>[1-8]?)[x:]?"
    r"(?P<target>[a-h][1-8])(?:=?(?P<promotion>[QRBN]))?"
)
_CASTLING = {"OO": 2, "OOO": -2}


def uci(actions: Actions, rows: list[str], player: int, action: int) -> str:
    """The name of an action; one that leaves the board is named by that."""
    start, target = actions.squares(action, player)
    name = square_name(*start)
    if not (0 <= target[0] < len(rows) and 0 <= target[1] < len(rows)):
        return f"{name} off the board"
    return name + square_name(*target) + _promotion(actions, rows, player, action)


def find(
    actions: Actions, rows: list[str], player: int, legal: list[int], text: str
) -> list[int]:
    """The legal actions that a text may mean: UCI, king takes rook, or SAN.

    UCI is read in capitals as well, unless it is SAN so: "B2c3" is a bishop's move.
    """
    names = {uci(actions, rows, player, action): action for action in legal}
    if text in names:
        return [names[text]]
    king, home = "Kk"[player], square_name(4, 7 * player)
    castling = {
        files: names[f"{home}{'cg'[files > 0]}{1 + 7 * player}"]
        for files in (-2, 2)
        if f"{home}{'cg'[files > 0]}{1 + 7 * player}" in names
        and _piece(rows, (4, 7 * player)) == king
    }
    for files, action in castling.items():
        if text.lower() == f"{home}{'ah'[files > 0]}{1 + 7 * player}":
            return [action]
    bare = text.rstrip("+#!?")
    files = _CASTLING.get(bare.replace("-", "").replace("0", "O").upper())
    if files is not None:
        return [castling[files]] if files in castling else []
    match = _SAN.fullmatch(bare)
    if not match:
        return [names[text.lower()]] if text.lower() in names else []
    found = []
    for name, action in names.items():
        start, _ = actions.squares(action, player)
        if (
            _piece(rows, start).upper() == (match["piece"] or "P")
            and match["file"] in ("", name[0])
            and match["rank"] in ("", name[1])
            and match["target"] == name[2:4]
            and (match["promotion"] or "").lower() == name[4:]
            and action not in castling.values()
        ):
            found.append(action)
    return found


def _promotion(actions: Actions, rows: list[str], player: int, action: int) -> str:
    plane = action % actions.planes
    if plane < FIRST_LINE:
        return UNDERPROMOTIONS[plane // 3]
    start, target = actions.squares(action, player)
    last = 0 if player else len(rows) - 1
    pawn = _piece(rows, start) == "Pp"[player]
    return "q" if pawn and target[1] == last and abs(start[1] - last) == 1 else ""


def _piece(rows: list[str], place: tuple[int, int]) -> str:
    file, rank = place
    return rows[len(rows) - 1 - rank][file]
