"""Go positions, points and game records as text."""

import re
from typing import Any, NamedTuple

import numpy as np

COLUMNS = "ABCDEFGHJKLMNOPQRST"  # GTP leaves out the I
PLAYERS = "XO"  # Black and White
NO_POINT = "-"


class Position(NamedTuple):
    """What the text of a position says."""

    cells: np.ndarray  # [N, N] int8: 1 Black, -1 White, 0 empty; the top row first
    player: int
    ko: int  # an action, or -1
    passes: int  # passes since the last stone
    ply: int
    last_move: int  # an action, or -1


class Record(NamedTuple):
    """What a game record in SGF says."""

    size: int
    komi: float | None
    handicap: int | None
    cells: np.ndarray  # [N, N] int8: the setup stones
    player: int  # who moves first
    moves: list[tuple[int, int]]  # player and action
    result: str | None  # "B+3.5", "W+R", "0"


def vertex(action: int, size: int) -> str:
    """The GTP name of an action: "D4", "pass"."""
    if action == size * size:
        return "pass"
    row, column = divmod(action, size)
    return f"{COLUMNS[column]}{size - row}"


def read_vertex(name: str, size: int) -> int:
    """The action of a GTP name.

    Raises:
      ValueError: it names no point of the board.
    """
    if name.lower() == "pass":
        return size * size
    match = re.fullmatch(r"([A-HJ-T])([1-9][0-9]?)", name.upper())
    if match:
        column, number = COLUMNS.index(match[1]), int(match[2])
        if column < size and number <= size:
            return (size - number) * size + column
    raise ValueError(
        f"{name!r} is no point: a point is a column A to {COLUMNS[size - 1]} without I "
        f"and a row 1 to {size} from below, such as {vertex(0, size)}; or pass"
    )


def write_position(position: Position) -> str:
    size = len(position.cells)
    rows = "/".join("".join(".XO"[cell] for cell in row) for row in position.cells)
    points = [
        NO_POINT if action < 0 else vertex(action, size)
        for action in (position.ko, position.last_move)
    ]
    return (
        f"{rows} {PLAYERS[position.player]} {points[0]} {position.passes} "
        f"{position.ply} {points[1]}"
    )


def read_position(text: str, size: int) -> Position:
    """Reads the rows of a board and up to five words after them.

    Raises:
      ValueError: says what is wrong, and where.
    """
    board, *words = text.split()
    rows = board.upper().split("/")
    if len(rows) != size:
        raise ValueError(f"{board!r} has {len(rows)} rows, the board has {size}")
    for number, row in zip(range(size, 0, -1), rows, strict=True):
        if len(row) != size or set(row) - set(".XO"):
            raise ValueError(
                f"row {number} from below is {row!r}; a row is {size} of X (Black), "
                "O (White) and '.'"
            )
    cells = np.array([[".XO".index(c) for c in row] for row in rows], np.int8)
    cells[cells == 2] = -1
    if len(words) > 5:
        raise ValueError(
            f"{words[5]!r} is too much: after the board come who is to move, the ko "
            "point, the passes in a row, the plies played and the last move"
        )
    player, ko, passes, ply, last = (*words, *("X", "-", "0", "0", "-")[len(words) :])
    if player.upper() not in ("X", "O"):
        raise ValueError(f"{player!r} is not who is to move, X or O")
    if passes not in ("0", "1", "2"):
        raise ValueError(f"{passes!r} is not a number of passes in a row, 0 to 2")
    if not re.fullmatch(r"[0-9]{1,5}", ply):
        raise ValueError(f"{ply!r} is not the number of plies played")
    ko_action = -1 if ko == NO_POINT else read_vertex(ko, size)
    last_action = -1 if last == NO_POINT else read_vertex(last, size)
    return Position(
        cells=cells,
        player=PLAYERS.index(player.upper()),
        ko=ko_action,
        passes=int(passes),
        ply=int(ply),
        last_move=last_action,
    )


def result(score: float) -> str:
    """A score as SGF has it: "B+1.5", "W+7.5", or "0" for a draw."""
    return f"{'B' if score > 0 else 'W'}+{abs(score):g}" if score else "0"


def write_record(record: Record) -> str:
    """A game as SGF. Source: https://www.red-bean.com/sgf/go.html"""
    from sgfmill import sgf

    size = record.size
    game = sgf.Sgf_game(size=size)
    root = game.get_root()
    root.set("AP", ("jaxsearch", "0"))
    if record.komi is not None:
        root.set("KM", record.komi)
    if record.handicap:
        root.set("HA", record.handicap)
    black, white = (
        {_point(p, size) for p in np.flatnonzero(record.cells == c)} for c in (1, -1)
    )
    if black or white:
        root.set_setup_stones(black, white)
    if record.player == 1:
        root.set("PL", "w")
    if record.result is not None:
        root.set("RE", record.result)
    for player, action in record.moves:
        point = None if action == size * size else _point(action, size)
        game.extend_main_sequence().set_move("bw"[player], point)
    return game.serialise().decode()


def read_record(text: str) -> Record:
    """Reads a game, its first variation.

    Raises:
      ValueError: it is not SGF, or not one that can be a game of Go.
    """
    from sgfmill import sgf, sgf_moves

    try:
        game = sgf.Sgf_game.from_string(text)
        size = game.get_size()
        board, moves = sgf_moves.get_setup_and_moves(game)
        root = game.get_root()
        komi = game.get_komi() if root.has_property("KM") else None
        handicap = game.get_handicap()
        first = root.get("PL") if root.has_property("PL") else None
    except ValueError as error:
        why = str(error) or "a property has a value that it cannot have"
        raise ValueError(f"not a game in SGF: {why}") from error
    cells = np.zeros((size, size), np.int8)
    for colour, (row, column) in board.list_occupied_points():
        cells[size - 1 - row, column] = 1 if colour == "b" else -1
    if moves:
        first = moves[0][0]
    elif first is None:
        first = "w" if handicap else "b"
    return Record(
        size=size,
        komi=komi,
        handicap=handicap,
        cells=cells,
        player="bw".index(first),
        moves=[("bw".index(colour), _action(point, size)) for colour, point in moves],
        result=root.get("RE") if root.has_property("RE") else None,
    )


def _point(action: Any, size: int) -> tuple[int, int]:
    """The row from below and the column, as sgfmill has them."""
    row, column = divmod(int(action), size)
    return size - 1 - row, column


def _action(point: tuple[int, int] | None, size: int) -> int:
    if point is None:
        return size * size
    return (size - 1 - point[0]) * size + point[1]
