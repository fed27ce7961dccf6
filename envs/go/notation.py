"""Go positions, points and game records as text."""

import re
from typing import Any, NamedTuple

import numpy as np

COLUMNS = "ABCDEFGHJKLMNOPQRST"  # GTP leaves out the I
PLAYERS = "XO"  # Black and White
NO_POINT = "-"
MAX_SIZE = 19
MAX_KOMI = MAX_SIZE * MAX_SIZE
SETUP = ("AB", "AW", "AE", "PL")  # properties of SGF; those of a whole record:
ROOT = ("AP", "CA", "FF", "GM", "HA", "KM", "ST", "SZ")


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


def is_komi(komi: float) -> bool:
    """Whether a game may have this number as its komi."""
    return abs(komi) <= MAX_KOMI and 2 * komi % 1 == 0


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

    Of the properties those that the board and the moves depend on are read, and have to
    be where SGF has them.

    Raises:
      ValueError: it is not SGF, or not one that can be a game of Go; says in which
        node, the root being node 1, what was there, and what was expected.
    """
    from sgfmill import sgf_grammar

    try:
        tree = sgf_grammar.parse_sgf_game(text.encode())
    except ValueError as error:
        raise ValueError(f"not a game in SGF: {error}") from error
    line = list(sgf_grammar.main_sequence_iter(tree))
    root = _Node(1, line[0], MAX_SIZE)
    if root.get("GM", 1) != 1:
        raise root.fault("GM")
    size = root.get("SZ", MAX_SIZE)
    if not 2 <= size <= MAX_SIZE:
        raise root.fault("SZ")
    nodes = [_Node(number, values, size) for number, values in enumerate(line, 1)]
    root = nodes[0]
    komi, handicap = root.get("KM"), root.get("HA")
    if komi is not None and not is_komi(komi):
        raise root.fault("KM")
    if handicap is not None and (handicap < 0 or handicap == 1):
        raise root.fault("HA")
    cells = _read_setup(root)
    stones = int((cells == 1).sum())
    if handicap and handicap != stones:
        expected = f"{handicap} black stones set up (AB), got {stones}"
        raise root.fault("HA", expected=expected)
    moves = _read_moves(nodes)
    first = root.get("PL")
    if first is not None and moves and "bw".index(first) != moves[0][0]:
        mover = "BW"[moves[0][0]]
        raise root.fault("PL", expected=f"{mover}, who makes the first move")
    first = first or ("w" if handicap else "b")
    return Record(
        size=size,
        komi=komi,
        handicap=handicap or None,
        cells=cells,
        player=moves[0][0] if moves else "bw".index(first),
        moves=moves,
        result=root.get("RE"),
    )


class _Node(NamedTuple):
    """A node of a record; the root is node 1."""

    number: int
    values: dict[str, list[bytes]]
    size: int

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a property as sgfmill reads it."""
        from sgfmill.sgf_properties import Presenter

        if name not in self.values:
            return default
        try:
            return Presenter(self.size, "UTF-8").interpret(name, self.values[name])
        except ValueError as error:
            raise self.fault(name) from error

    def fault(self, *names: str, expected: str | None = None) -> ValueError:
        """The error that tells properties of this node, and what was expected."""
        raw = [(name, b"][".join(self.values[name]).decode()) for name in names]
        got = " ".join(
            f"{name}[{value if len(value) < 40 else value[:40] + '...'}]"
            for name, value in raw
        )
        if expected is None:
            letters = f"two letters, a to {chr(ord('a') + self.size - 1)}"
            points = f"points of {letters} each"
            move = f"one move, {letters}, or nothing for a pass"
            expected = {
                **dict.fromkeys(("AB", "AW", "AE"), points),
                **dict.fromkeys("BW", move),
                "GM": "1, which is Go",
                "HA": "a number of stones, 0 or 2 and more",
                "KM": f"a multiple of 1/2 from -{MAX_KOMI} to {MAX_KOMI}",
                "PL": "B or W",
                "RE": "one result",
                "SZ": f"a size from 2 to {MAX_SIZE}",
            }[names[0]]
        return ValueError(f"node {self.number}, {got}: expected {expected}")


def _read_setup(root: _Node) -> np.ndarray:
    """The stones that a root sets up, [N, N] int8."""
    size = root.size
    cells = np.zeros((size, size), np.int8)
    setter: dict[int, str] = {}
    for name, cell in (("AB", 1), ("AW", -1), ("AE", 0)):
        for point in root.get(name, ()):
            action = _action(point, size)
            if action in setter:
                other, where = setter[action], vertex(action, size)
                expected = f"each point once, got {where} in both"
                raise root.fault(other, name, expected=expected)
            setter[action] = name
            cells.flat[action] = cell
    return cells


def _read_moves(nodes: list[_Node]) -> list[tuple[int, int]]:
    """The moves of a record, each with its player."""
    moves = []
    for node in nodes:
        setup = [name for name in SETUP if name in node.values]
        found = [name for name in "BW" if name in node.values]
        for name in (*setup, *ROOT):
            if node.number > 1 and name in node.values:
                raise node.fault(name, expected="it in the root only, node 1")
        if found and setup:
            expected = "setup stones and moves in nodes of their own"
            raise node.fault(setup[0], found[0], expected=expected)
        if len(found) == 2:
            raise node.fault("B", "W", expected="one move in a node")
        moves += [("BW".index(n), _action(node.get(n), node.size)) for n in found]
    return moves


def _point(action: Any, size: int) -> tuple[int, int]:
    """The row from below and the column, as sgfmill has them."""
    row, column = divmod(int(action), size)
    return size - 1 - row, column


def _action(point: tuple[int, int] | None, size: int) -> int:
    if point is None:
        return size * size
    return (size - 1 - point[0]) * size + point[1]
