"""Ultimate tic-tac-toe as text: moves such as "B2c1", rows of marks, a drawing."""

import re

import numpy as np

BOARDS = ("A1", "B1", "C1", "A2", "B2", "C2", "A3", "B3", "C3")
BIG_MARKS = {"X": ("\\   /", "  X  ", "/   \\"), "O": ("╭───╮", "│   │", "╰───╯")}


def read_square(words: list[str], text: str) -> str:
    rows = re.split(r"[/\s]+", " ".join(words).upper())
    for number, row in enumerate(rows, 1):
        if len(row) != 9 or set(row) - set("XO."):
            raise ValueError(
                f"ultimate_tic_tac_toe: row {number} from the top of {text!r} is "
                f"{row!r}; a row is nine of X, O and '.'"
            )
    if len(rows) != 9:
        raise ValueError(
            f"ultimate_tic_tac_toe: {text!r} has {len(rows)} rows; a position is nine "
            "rows from the top and the last move, or the moves from the start, such as "
            "'B2c1 C1a3'"
        )
    return "".join(rows)


def marks_of(cells: str) -> np.ndarray:
    """The marks of both players in a text of 81 cells: [2, 3] uint32."""
    marked = np.array([[cell == mark for cell in cells] for mark in "XO"])
    bits = np.uint32(1) << np.arange(27, dtype=np.uint32)
    return (marked.reshape(2, 3, 27) * bits).sum(axis=2, dtype=np.uint32)


def read_move(name: str, where: str) -> int:
    """The action of a name such as "B2c1"."""
    match = re.fullmatch(r"([A-C])([1-3])([a-c])([1-3])", name)
    if not match:
        raise ValueError(
            f"ultimate_tic_tac_toe: {where} is no move: a move is a board and a cell "
            "of it, A1a1 to C3c3"
        )
    board = BOARDS.index(match[1] + match[2])
    return action_at(board, BOARDS.index((match[3] + match[4]).upper()))


def move_name(action: int) -> str:
    return BOARDS[board_of(action)] + BOARDS[cell_of(action)].lower()


def board_of(action: int) -> int:
    return action // 27 * 3 + action % 9 // 3


def cell_of(action: int) -> int:
    """The cell of an action in its board, which is the board that it sends to."""
    return action // 9 % 3 * 3 + action % 3


def action_at(board: int, cell: int) -> int:
    return (board // 3 * 3 + cell // 3) * 9 + board % 3 * 3 + cell % 3


def draw_square(cells: str, legal: list[bool], owners: list[str]) -> str:
    """The nine boards: dots may be marked, and a won board is one big mark.

    Args:
      cells: the 81 cells as X, O or ".".
      legal: which of them may be marked.
      owners: X, O or another text for each board.
    """
    pairs = zip(cells, legal, strict=True)
    looks = [cell if cell != "." else " ·"[may] for cell, may in pairs]
    lines = ["       A       B       C", "     a b c   a b c   a b c"]
    for row in range(9):
        boards = []
        for column in range(3):
            first = 9 * row + 3 * column
            big = BIG_MARKS.get(owners[row // 3 * 3 + column])
            boards.append(big[row % 3] if big else " ".join(looks[first : first + 3]))
        label = str(row // 3 + 1) if row % 3 == 1 else " "
        lines.append(f"{label} {row % 3 + 1}  {' │ '.join(boards)}".rstrip())
        if row in (2, 5):
            lines.append("    ───────┼───────┼───────")
    return "\n".join(lines)
