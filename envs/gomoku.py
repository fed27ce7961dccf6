"""Gomoku: five in a row on a square board."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State, Symmetries, win_rewards
from envs.svg import Svg

MIN_SIZE, MAX_SIZE = 5, 19
LETTERS = "abcdefghijklmnopqrs"
STONES = ("X", "O")
NOWHERE = -1
REACH = 5  # how far from the last stone a line is looked at: six in a row counts
CENTRE = REACH + 1  # where the last stone's column is moved to, one bit to spare


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GomokuState(State):
    """The stones of a player are a word a row, top row first; bit 0 is column a.

    5  . . . . .
    4  . X . . .
    3  . . X O .     X is [0, 0b00010, 0b00100, 0, 0]
    2  . . . . .     O is [0, 0, 0b01000, 0, 0]
    1  . . . . .
       a b c d e
    """

    stones: jax.Array  # [2, N] uint32
    last: jax.Array  # int16: the last action, NOWHERE where it is not known


class Gomoku(Env[GomokuState]):
    """Players set stones on a board in turn; five in a row, any way, win.

    Player 0 is X, black, and moves first. Free-style: five or more in a row win. With
    `exactly_five` a row of six or more, an overline, is no win, for either player; a
    stone that makes an overline and a five at once wins by the five. A full board
    without a win is a draw. There is no swap and no forbidden move.

    Action row * N + column sets a stone, rows counted from the top and columns from the
    left, from 0. Observation [N, N, 2] bool: my stones, your stones. Rewards +1 and -1,
    or zeros for a draw. A state takes N * N + 8 * N + 16 bytes, 361 for N = 15.

    A move is a letter for the column, from the left and with none left out, and a
    number for the row, from 1 at the bottom, as in Gomoku and Renju: "h8" is the centre
    of the board of 15. As text a position is its rows from the top and the last move:
    "...../.X.../..XO./...../..... c3"; the empty board has no last move, and
    `from_text` does without. It also takes the moves from the start, "b4 d3 c3" or
    "b4d3c3". Rows are refused where no last move explains their lines; other than that
    they need not be reachable.

    Args:
      size: N, 5 to 19.
      exactly_five: whether six or more in a row are no win.

    Raises:
      ValueError: another size, or an exactly_five that is not a bool.
    """

    version = "v0"
    num_players = 2

    def __init__(self, size: int = 15, exactly_five: bool = False):
        whole = isinstance(size, int) and not isinstance(size, bool)
        if not whole or not MIN_SIZE <= size <= MAX_SIZE:
            raise ValueError(
                f"gomoku: size is a whole number from {MIN_SIZE} to {MAX_SIZE}, got "
                f"{size!r}"
            )
        if not isinstance(exactly_five, bool):
            raise ValueError(
                f"gomoku: exactly_five is True or False, got {exactly_five!r}"
            )
        self.size = size
        self.exactly_five = exactly_five
        self.id = f"gomoku_{size}x{size}"
        self.num_actions = size * size
        self.observation_shape = (size, size, 2)
        self.action_format = f"a free point, a1 to {LETTERS[size - 1]}{size}"

    @property
    def options(self) -> dict[str, Any]:
        return {"size": self.size, "exactly_five": self.exactly_five}

    def init(self, key: jax.Array | None = None) -> GomokuState:
        del key
        over = jnp.zeros((), bool)
        return GomokuState(
            stones=jnp.zeros((2, self.size), jnp.uint32),
            last=jnp.int16(NOWHERE),
            current_player=jnp.int32(0),
            legal_action_mask=jnp.ones(self.num_actions, bool),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=over,
            truncated=over,
        )

    def _play(
        self, state: GomokuState, action: jax.Array, key: jax.Array | None
    ) -> GomokuState:
        del key
        size, player = self.size, state.current_player
        point = action.astype(jnp.uint32)
        row, column = (point // size).astype(jnp.int32), point % size
        distance = jnp.arange(size, dtype=jnp.int32) - row  # [N], in rows
        stone = jnp.where(distance == 0, jnp.uint32(1) << column, 0)
        mine = jnp.where(player == 0, state.stones[0], state.stones[1]) | stone
        yours = jnp.where(player == 0, state.stones[1], state.stones[0])
        won = _has_five(_lines(mine, distance, column), self.exactly_five)
        full = ((mine | yours) == np.uint32(2**size - 1)).all()
        terminated = won | full
        # What was legal is every free point, since the game went on.
        others = np.arange(self.num_actions, dtype=np.int32) != action
        return GomokuState(
            stones=jnp.where(
                player == 0, jnp.stack([mine, yours]), jnp.stack([yours, mine])
            ),
            last=action.astype(jnp.int16),
            current_player=1 - player,
            legal_action_mask=state.legal_action_mask & others & ~terminated,
            rewards=win_rewards(won, player),
            terminated=terminated,
            truncated=jnp.zeros_like(terminated),
        )

    def observe(self, state: GomokuState) -> jax.Array:
        columns = np.arange(self.size, dtype=np.uint32)[None, :, None]
        stones = jnp.where(state.current_player == 0, state.stones, state.stones[::-1])
        return (stones.T[:, None, :] >> columns & 1) != 0

    def to_text(self, state: GomokuState) -> str:
        rows = "/".join("".join(row) for row in _board(state))
        last = int(state.last)
        return rows if last == NOWHERE else f"{rows} {self._action_name(state, last)}"

    def from_text(self, text: str) -> GomokuState:
        words = text.split()
        if not re.search(r"[./]", text) and (not words or re.search(r"\d", text)):
            return self._play_moves(text)
        last = NOWHERE
        if len(words) > 1 and re.search(r"\d", words[-1]):
            name = words.pop()
            last = self._point(name.lower(), f"the last move of {text!r}, {name},")
        board = self._read_board(" ".join(words).upper(), text)
        counts = [int((board == mark).sum()) for mark in STONES]
        if counts[0] - counts[1] not in (0, 1):
            raise ValueError(
                f"{self.id}: {text!r} has {counts[0]} X and {counts[1]} O; X moves "
                "first, so that X has as many as O or one more"
            )
        player = counts[0] - counts[1]
        self._check_lines(board, player, last, text)
        return self._state(board, player, last)

    def _play_moves(self, text: str) -> GomokuState:
        moves = re.findall(r"[A-Za-z]?\d+|\S", text.replace(",", " "))
        board, player, last = self._empty_board(), 0, NOWHERE
        for number, move in enumerate(moves, 1):
            where = f"move {number} of {text!r}, {move},"
            last = self._point(move.lower(), where)
            if self._has_won(board, 1 - player):
                raise ValueError(
                    f"{self.id}: {where} comes after {STONES[1 - player]} has won"
                )
            if board.flat[last] != ".":
                raise ValueError(f"{self.id}: {where} is on a stone")
            board.flat[last] = STONES[player]
            player = 1 - player
        return self._state(board, player, last)

    def _point(self, name: str, where: str) -> int:
        """The action of a name such as "h8"."""
        match = re.fullmatch(r"([a-z])([0-9]{1,2})", name)
        column = LETTERS.find(match[1]) if match else -1
        if (
            not match
            or not 0 <= column < self.size
            or not 1 <= int(match[2]) <= (self.size)
        ):
            raise ValueError(
                f"{self.id}: {where} is no point of the board: points are a1 to "
                f"{LETTERS[self.size - 1]}{self.size}"
            )
        return (self.size - int(match[2])) * self.size + column

    def _empty_board(self) -> np.ndarray:
        return np.full((self.size, self.size), ".")

    def _read_board(self, rows_text: str, text: str) -> np.ndarray:
        rows = re.split(r"[/\s]+", rows_text.strip())
        for number, row in enumerate(rows, 1):
            if len(row) != self.size or set(row) - set("XO."):
                raise ValueError(
                    f"{self.id}: row {number} from the top of {text!r} is {row!r}; a "
                    f"row is {self.size} of X, O and '.'"
                )
        if len(rows) != self.size:
            raise ValueError(
                f"{self.id}: {text!r} has {len(rows)} rows; a position is {self.size} "
                "rows from the top and the last move, or the moves from the start, "
                "such as 'c3 d4'"
            )
        return np.array([list(row) for row in rows])

    def _check_lines(
        self, board: np.ndarray, player: int, last: int, text: str
    ) -> None:
        """Refuses lines that no last move explains; `player` is to move."""
        other = 1 - player
        if last != NOWHERE and board.flat[last] != STONES[other]:
            raise ValueError(
                f"{self.id}: in {text!r} {STONES[other]} moved last and has no stone "
                f"on {self._name(last)}, the last move"
            )
        if self._has_won(board, player):
            raise ValueError(
                f"{self.id}: in {text!r} {STONES[player]} has five in a row and yet "
                f"{STONES[other]} moved last"
            )
        if not (board == STONES[other]).any():
            return
        lasts = [last]
        if last == NOWHERE:
            lasts = np.flatnonzero(board == STONES[other]).tolist()
        for point in lasts:
            before = board.copy()
            before.flat[point] = "."
            if not self._has_won(before, other):
                return
        raise ValueError(
            f"{self.id}: in {text!r} {STONES[other]} had five in a row before the last "
            "move already"
        )

    def _has_won(self, board: np.ndarray, player: int) -> bool:
        """Whether a player has a winning row, anywhere; on the host."""
        # One long word, a spare bit after each row so that no line runs on in the next.
        cells = np.pad(board == STONES[player], ((0, 0), (0, 1))).ravel()
        word = int("".join("1" if cell else "0" for cell in cells), 2)
        for step in (1, self.size, self.size + 1, self.size + 2):
            five = functools.reduce(int.__and__, (word >> step * k for k in range(5)))
            if self.exactly_five:
                five &= ~(word << step) & ~(word >> 5 * step)
            if five:
                return True
        return False

    def _state(self, board: np.ndarray, player: int, last: int) -> GomokuState:
        """The state of a board on which `player` is to move."""
        bits = np.uint32(1) << np.arange(self.size, dtype=np.uint32)
        stones = [((board == mark) * bits).sum(axis=1) for mark in STONES]
        won = self._has_won(board, 1 - player)
        free = (board == ".").ravel()
        over = won or not free.any()
        return GomokuState(
            stones=jnp.asarray(np.stack(stones).astype(np.uint32)),
            last=jnp.int16(last),
            current_player=jnp.int32(player),
            legal_action_mask=jnp.asarray(free & (not over)),
            rewards=win_rewards(jnp.asarray(won), jnp.int32(1 - player)),
            terminated=jnp.asarray(over),
            truncated=jnp.asarray(False),
        )

    def _action_name(self, state: GomokuState, action: int) -> str:
        return self._name(action)

    def _name(self, action: int) -> str:
        row, column = divmod(action, self.size)
        return f"{LETTERS[column]}{self.size - row}"

    def draw(self, state: GomokuState) -> str:
        looks = {"X": "●", "O": "○", ".": "·"}
        rows = [
            f"{self.size - row:>2} {' '.join(looks[cell] for cell in cells)}"
            for row, cells in enumerate(_board(state))
        ]
        letters = " ".join(LETTERS[: self.size])
        status = self.status(state, ("●", "○"))
        return "\n".join([*rows, f"   {letters}", status])

    def to_svg(self, state: GomokuState) -> str:
        unit, edge = 40, 60
        length = (self.size - 1) * unit
        drawing = Svg(length + 2 * edge, length + 2 * edge, background="#e8bf76")
        for number in range(self.size):
            at = edge + number * unit
            drawing.line(edge, at, edge + length, at)
            drawing.line(at, edge, at, edge + length)
            label = {"font_size": 16, "fill": "#4a3410"}
            for side in (edge - 36, edge + length + 36):
                drawing.text(at, side, LETTERS[number], **label)
                drawing.text(side, at, str(self.size - number), **label)
        for row in _stars(self.size):
            for column in _stars(self.size):
                drawing.circle(edge + column * unit, edge + row * unit, 4)
        for row, cells in enumerate(_board(state)):
            for column, cell in enumerate(cells):
                if cell == ".":
                    continue
                x, y = edge + column * unit, edge + row * unit
                fill, mark = ("#111111", "#ffffff")[:: 1 if cell == "X" else -1]
                drawing.circle(x, y, 18, fill=fill, stroke="#111111")
                if row * self.size + column == int(state.last):
                    drawing.circle(x, y, 6, fill=mark)
        drawing.caption(self.status(state, ("black", "white")))
        return str(drawing)

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """The eight rotations and reflections of the square."""
        cells = np.arange(self.num_actions, dtype=np.int32)
        cells = cells.reshape(self.size, self.size)
        turned = [np.rot90(cells, turns) for turns in range(4)]
        maps = np.stack([*turned, *(np.fliplr(board) for board in turned)])
        maps = maps.reshape(8, -1)
        return Symmetries(cells=maps, actions=maps)


def _lines(mine: jax.Array, distance: jax.Array, column: jax.Array) -> list[jax.Array]:
    """The four lines through the last stone, two to a word.

    A line is 11 bits, the last stone in their middle, and 5 zeros after them, so that
    no row of stones runs from one line into the other.

    Args:
      mine: the stones of the player who moved [N] uint32, the last one included.
      distance: how far below the last stone each row is [N] int32.
      column: of the last stone, uint32.
    """
    near = abs(distance) <= REACH
    step = jnp.where(near, distance, 0)
    # Bit CENTRE of each row is now the last stone's column.
    rows = jnp.where(near, mine << CENTRE >> column, 0)
    place = (step + REACH).astype(jnp.uint32)  # the bit of a row in its line
    rising = rows >> (CENTRE - step).astype(jnp.uint32) & 1
    falling = rows >> (CENTRE + step).astype(jnp.uint32) & 1
    upright = rows >> CENTRE & 1
    level = jnp.where(distance == 0, rows >> 1 & (2 ** (2 * REACH + 1) - 1), 0)
    return [
        ((rising | falling << 16) << place).sum(dtype=jnp.uint32),
        ((upright << place) + (level << 16)).sum(dtype=jnp.uint32),
    ]


def _has_five(lines: list[jax.Array], exactly: bool) -> jax.Array:
    """Whether one of the lines has five stones in a row."""
    found = jnp.zeros_like(lines[0])
    for line in lines:
        two = line & line >> 1
        five = two & two >> 2 & line >> 4
        if exactly:
            five &= ~(line << 1 | line >> 5)
        found |= five
    return found != 0


def _stars(size: int) -> list[int]:
    """The rows and columns of the marked points of a board."""
    if size < 9:
        return [size // 2] if size % 2 else []
    edge = 3 if size > 11 else 2
    return [edge, *([size // 2] if size % 2 else []), size - 1 - edge]


def _board(state: GomokuState) -> list[list[str]]:
    """The points as X, O or ".", top row first."""
    stones = np.asarray(state.stones)
    columns = np.arange(stones.shape[1], dtype=np.uint32)
    x, o = (stones[:, :, None] >> columns & 1) != 0
    return np.where(x, "X", np.where(o, "O", ".")).tolist()
