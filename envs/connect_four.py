"""Connect four: four in a row on an upright board of seven columns and six rows."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State, Symmetries, win_rewards
from envs.svg import Svg

ROWS, COLUMNS = 6, 7
STONES = ("X", "O")
_COLOURS = {"X": "#d8413c", "O": "#f4c638", ".": "#f4f6f9"}

Bits = jax.Array | np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class ConnectFourState(State):
    """The stones of a player are a byte a column, bit 0 being the lowest row.

    bit 5  . . . . . . .
        4  . . . . . . .
        3  . . . . . . .
        2  . . . . . . .
        1  . . . O . . .     X is [0, 0, 0, 0b01, 0b1, 0, 0]
        0  . . . X X . .     O is [0, 0, 0, 0b10, 0b0, 0, 0]
    """

    stones: jax.Array  # [2, 7] uint8


class ConnectFour(Env[ConnectFourState]):
    """Players drop stones into columns; four in a row win: level, upright or slanting.

    Player 0 is X and moves first. Action a drops a stone into column a from the left.
    Observation [6, 7, 2] bool, top row first: my stones, your stones. Rewards +1 and
    -1, or zeros for a draw. A state takes 35 bytes.

    As text a position is its rows from the top,
    "......./......./......./......./...O.../...XX..", and a move is its column from 1
    to 7. `from_text` also takes the moves from the start, "445" for that position.
    """

    id = "connect_four"
    version = "v0"
    num_players = 2
    num_actions = COLUMNS
    observation_shape = (ROWS, COLUMNS, 2)
    action_format = "a column, 1 to 7"

    def init(self, key: jax.Array | None = None) -> ConnectFourState:
        del key
        return _position(jnp.zeros((2, COLUMNS), jnp.uint8), jnp.int32(0))

    def _play(
        self, state: ConnectFourState, action: jax.Array, key: jax.Array | None
    ) -> ConnectFourState:
        del key
        player = state.current_player
        # Columns fill from below: 0b0111 plus one is the lowest free cell, 0b1000.
        free = (state.stones[0] | state.stones[1]) + jnp.uint8(1)
        column = np.arange(COLUMNS, dtype=np.int32)[None, :] == action
        mine = np.arange(2, dtype=np.int32)[:, None] == player
        stones = jnp.where(mine & column, state.stones | free[None, :], state.stones)
        return _position(stones, 1 - player)

    def observe(self, state: ConnectFourState) -> jax.Array:
        planes = _planes(state.stones)
        return jnp.where(state.current_player == 0, planes, planes[..., ::-1])

    def to_text(self, state: ConnectFourState) -> str:
        return "/".join("".join(row) for row in _board(state))

    def from_text(self, text: str) -> ConnectFourState:
        text = text.strip().upper()
        if not text or text.isdigit():
            return self._play_moves(text)
        stones = _read_board(text)
        num_x, num_o = np.bitwise_count(stones).sum(axis=1).tolist()
        if num_x - num_o not in (0, 1):
            raise ValueError(
                f"connect_four: {text!r} has {num_x} X and {num_o} O; X moves first, "
                "so that X has as many as O or one more"
            )
        player = num_x - num_o
        if _has_four(stones[player]):
            raise ValueError(
                f"connect_four: in {text!r} {STONES[player]} has four in a row and yet "
                f"{STONES[1 - player]} moved last"
            )
        if _has_four(stones[1 - player]) and not _won_by_one_stone(stones, 1 - player):
            raise ValueError(
                f"connect_four: in {text!r} no last move of {STONES[1 - player]} can "
                "have made all its fours in a row"
            )
        return _position(jnp.asarray(stones), jnp.int32(player))

    def _play_moves(self, moves: str) -> ConnectFourState:
        stones, player = np.zeros((2, COLUMNS), np.uint8), 0
        for number, move in enumerate(moves, 1):
            where = f"connect_four: move {number} of {moves!r}, column {move},"
            if not "1" <= move <= "7":
                raise ValueError(f"{where} does not exist: columns are 1 to 7")
            if _has_four(stones[1 - player]):
                raise ValueError(
                    f"{where} comes after {STONES[1 - player]} has won the game"
                )
            column = int(move) - 1
            height = int(np.bitwise_count(stones[:, column]).sum())
            if height == ROWS:
                raise ValueError(f"{where} is full")
            stones[player, column] |= 1 << height
            player = 1 - player
        return _position(jnp.asarray(stones), jnp.int32(player))

    def _action_name(self, state: ConnectFourState, action: int) -> str:
        return str(action + 1)

    def draw(self, state: ConnectFourState) -> str:
        looks = {"X": "●", "O": "○", ".": "·"}
        rows = [f"│ {' '.join(looks[cell] for cell in row)} │" for row in _board(state)]
        numbers = " ".join(str(column + 1) for column in range(COLUMNS))
        base = "─" * (2 * COLUMNS + 1)
        status = self.status(state, ("●", "○"))
        return "\n".join([*rows, f"└{base}┘", f"  {numbers}", status])

    def to_svg(self, state: ConnectFourState) -> str:
        """The upright board, columns numbered below it; rings on four in a row."""
        won = _cells_of_fours(_board(state))
        drawing = Svg(380, 352)
        drawing.rect(8, 8, 364, 314, rx=12, fill="#2d62a8")
        for row, cells in enumerate(_board(state)):
            for column, cell in enumerate(cells):
                x, y = 40 + 50 * column, 40 + 50 * row
                drawing.circle(x, y, 20, fill=_COLOURS[cell], stroke="#1f4a84")
                if (row, column) in won:
                    ring = {"fill": "none", "stroke": "#ffffff", "stroke_width": 4}
                    drawing.circle(x, y, 12, **ring)
        for column in range(COLUMNS):
            x, number = 40 + 50 * column, str(column + 1)
            drawing.text(x, 338, number, fill="#606060", font_size=14)
        drawing.caption(self.status(state, ("red", "yellow")))
        return str(drawing)

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """The board as it is, and mirrored left to right."""
        cells = np.arange(ROWS * COLUMNS, dtype=np.int32).reshape(ROWS, COLUMNS)
        columns = np.arange(COLUMNS, dtype=np.int32)
        return Symmetries(
            cells=np.stack([cells, np.fliplr(cells)]).reshape(2, -1),
            actions=np.stack([columns, columns[::-1]]),
        )


@jax.jit
def _position(stones: jax.Array, player: jax.Array) -> ConnectFourState:
    """The state of a board on which `player` is to move and the other just moved."""
    won = _has_four(jnp.where(player == 0, stones[1], stones[0]))
    open_columns = (stones[0] | stones[1]) < 1 << (ROWS - 1)
    terminated = won | ~open_columns.any()
    return ConnectFourState(
        stones=stones,
        current_player=player,
        legal_action_mask=open_columns & ~terminated,
        rewards=win_rewards(won, 1 - player),
        terminated=terminated,
        truncated=jnp.zeros_like(terminated),
    )


def _has_four(stones: Bits) -> Any:
    """Whether one player's stones, [7] uint8, hold four in a row."""
    a, b, c, d = (stones[first : first + COLUMNS - 3] for first in range(4))
    upright = stones & stones >> 1 & stones >> 2 & stones >> 3
    level = a & b & c & d
    rising = a & b >> 1 & c >> 2 & d >> 3
    falling = a >> 3 & b >> 2 & c >> 1 & d
    return (upright != 0).any() | ((level | rising | falling) != 0).any()


def _won_by_one_stone(stones: np.ndarray, winner: int) -> bool:
    """Whether taking one top stone of the winner away leaves no four in a row."""
    occupied = stones[0] | stones[1]
    for column in range(COLUMNS):
        top = (occupied[column] + 1) >> 1
        before = stones[winner].copy()
        before[column] &= ~top
        if not _has_four(before):
            return True
    return False


def _planes(stones: Bits) -> Any:
    """Bits [2, 7] spread out to booleans [6, 7, 2], top row first."""
    rows = np.arange(ROWS - 1, -1, -1, dtype=np.uint8)[:, None, None]
    return (stones.T[None, :, :] >> rows & 1) != 0


def _board(state: ConnectFourState) -> list[list[str]]:
    """The cells as X, O or ".", top row first."""
    planes = _planes(np.asarray(state.stones))
    return [["X" if x else "O" if o else "." for x, o in row] for row in planes]


def _cells_of_fours(board: list[list[str]]) -> set[tuple[int, int]]:
    """The row and column of each stone that is part of four in a row."""
    found = set()
    for row, column in np.ndindex(ROWS, COLUMNS):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            line = [(row + down * i, column + right * i) for i in range(4)]
            inside = all(r < ROWS and 0 <= c < COLUMNS for r, c in line)
            if inside and {board[r][c] for r, c in line} in ({"X"}, {"O"}):
                found.update(line)
    return found


def _read_board(text: str) -> np.ndarray:
    rows = re.split(r"[/\s]+", text)
    cells = "".join(rows)
    if [len(row) for row in rows] != [COLUMNS] * ROWS or set(cells) - set("XO."):
        raise ValueError(
            f"connect_four: got {text!r}; a position is six rows of seven X, O and . "
            "from the top, or the columns played from the start, such as '44535'"
        )
    stones = np.zeros((2, COLUMNS), np.uint8)
    for height, row in enumerate(reversed(rows)):
        for column, cell in enumerate(row):
            if cell == ".":
                continue
            if height and (stones[0] | stones[1])[column] >> (height - 1) & 1 == 0:
                raise ValueError(
                    f"connect_four: in {text!r} the {cell} in column {column + 1}, row "
                    f"{height + 1} from below, has no stone under it"
                )
            stones["XO".index(cell), column] |= 1 << height
    return stones
