"""Hex: join your two sides of a rhombus of hexagons."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs import hex_svg
from envs.env import Env, State, Symmetries, win_rewards

STONES = ("X", "O")
LOOKS = ("●", "○")
SIZES = range(2, 20)
SWAP = "swap"

START, UNKNOWN = -1, -2  # for `last`: no stone was placed, or nobody knows which

# The neighbours of a cell in the order of a clock's hands, as (row, column) from it.
# Two that follow each other are neighbours of one another:
#
#   (-1, 0)  (-1, +1)
#  (0, -1)  cell  (0, +1)
#     (+1, -1)  (+1, 0)
AROUND = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))
_DOWN, _RIGHT = np.array(AROUND, np.int32).T


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class HexState(State):
    """Every stone has the label of its chain, the stones of one player joined to it:

        4 * (1 + the cell of one of its stones)
        + 1 if the chain touches the first of its player's sides, + 2 if the second

    It is negative for player 1, and 0 is an empty cell. The top and the left are first.
    """

    labels: jax.Array  # [N * N] int16
    last: jax.Array  # int16: the cell of the newest stone, START or UNKNOWN


class Hex(Env[HexState]):
    """Players in turn place stones; who joins the two sides that are theirs wins.

    Cell (row, column) of N x N has the neighbours (row, column - 1), (row, column + 1),
    (row - 1, column), (row + 1, column), (row - 1, column + 1), (row + 1, column - 1).
    Player 0 is X, moves first, and joins the top and the bottom; player 1 is O and
    joins left and right. No game is a draw. With `swap`, player 1 may answer the first
    stone by taking it over: it is replaced by a stone of player 1 on the cell mirrored
    in the long diagonal, row and column exchanged, and player 0 moves next. That is the
    default, since Hex is played so: without it the first player wins from most cells.
    Source for neighbours and swapping: https://www.hexwiki.net/index.php/Swap_rule

    Action a places a stone on cell a, numbered from the top left in reading order;
    action N * N swaps, and there is no such action without the option. Observation
    [N, N, C] bool: my stones, your stones, whether I join left and right (all True or
    all False), and with `swap` whether I may swap. Rewards +1 and -1. A state takes
    16 + 3 * N * N bytes, one more with `swap`: 380 for 11 x 11.

    As text a position is its rows from the top and the player to move, ".X./.O./... X"
    for 3 x 3, and a move is its column and row, "b1" for column b and the first row
    from the top, or "swap". `from_text` also takes the moves from the start, "b1 b2";
    a position that is read does not know its last move, which shows in a drawing only.
    Turning the board half round is the one symmetry: mirroring exchanges the sides.

    Args:
      size: N, the length of a side, 2 to 19.
      swap: whether the second player may swap.

    Raises:
      ValueError: another size, or a swap that is not a bool.
    """

    version = "v0"
    num_players = 2

    def __init__(self, size: int = 11, swap: bool = True):
        if isinstance(size, bool) or not isinstance(size, int) or size not in SIZES:
            raise ValueError(
                f"hex: size is a whole number from {SIZES[0]} to {SIZES[-1]}, got "
                f"{size!r}"
            )
        if not isinstance(swap, bool):
            raise ValueError(f"hex: swap is True or False, got {swap!r}")
        self.id = f"hex_{size}x{size}"
        self.size = size
        self.swap = swap
        self.num_cells = size * size
        self.num_actions = self.num_cells + swap
        self.observation_shape = (size, size, 3 + swap)
        self.action_format = "a column and a row, such as b3" + ", or swap" * swap

    @property
    def options(self) -> dict[str, Any]:
        return {"size": self.size, "swap": self.swap}

    def init(self, key: jax.Array | None = None) -> HexState:
        del key
        return _position(
            jnp.zeros(self.num_cells, jnp.int16),
            player=jnp.int32(0),
            last=jnp.int16(START),
            won=jnp.bool_(False),
            may_swap=jnp.bool_(False) if self.swap else None,
        )

    def _play(
        self, state: HexState, action: jax.Array, key: jax.Array | None
    ) -> HexState:
        del key
        player, labels, cell = state.current_player, state.labels, action
        if self.swap:  # a swap is player 1's stone on the other cell of an empty board
            swaps = action == self.num_cells
            last = state.last.astype(jnp.int32)
            mirrored = last % self.size * self.size + last // self.size
            cell = jnp.where(swaps, mirrored, action)
            labels = jnp.where(swaps, jnp.zeros_like(labels), labels)
        labels, won = _join(labels, player, cell, self.size)
        return _position(
            labels,
            player=1 - player,
            last=cell.astype(jnp.int16),
            won=won,
            may_swap=state.last == START if self.swap else None,
        )

    def observe(self, state: HexState) -> jax.Array:
        player_0, player_1 = state.labels > 0, state.labels < 0
        first = state.current_player == 0
        mine = jnp.where(first, player_0, player_1)
        yours = jnp.where(first, player_1, player_0)
        planes = [mine, yours, jnp.broadcast_to(~first, mine.shape)]
        if self.swap:
            may_swap = state.legal_action_mask[self.num_cells]
            planes.append(jnp.broadcast_to(may_swap, mine.shape))
        return jnp.stack(planes, axis=-1).reshape(self.observation_shape)

    def to_text(self, state: HexState) -> str:
        rows = "/".join("".join(row) for row in self._rows(state))
        return f"{rows} {STONES[int(state.current_player)]}"

    def from_text(self, text: str) -> HexState:
        words = text.lower().split()
        if all(word == SWAP or re.fullmatch("[a-z][0-9]{1,2}", word) for word in words):
            board, player, last = self._play_moves(words, text)
        else:
            board, player = self._read(text)
            placed = np.flatnonzero(board)
            last = START if placed.size == 0 else UNKNOWN
            last = int(placed[0]) if placed.size == 1 else last
        labels = _chains(board, self.size)
        first_stone = player == 1 and np.count_nonzero(board) == 1
        return _position(
            jnp.asarray(labels),
            player=jnp.int32(player),
            last=jnp.int16(last),
            won=jnp.bool_(_winner(labels) is not None),
            may_swap=jnp.bool_(first_stone) if self.swap else None,
        )

    def _read(self, text: str) -> tuple[np.ndarray, int]:
        """The stones, [N * N] int8 of +1, -1 and 0, and who is to move."""
        *rows, mover = re.split(r"[/\s]+", text.strip().upper())
        cells = "".join(rows)
        right = [len(row) for row in rows] == [self.size] * self.size
        if not right or set(cells) - set("XO.") or mover not in STONES:
            raise ValueError(
                f"{self.id}: got {text!r}; a position is {self.size} rows of "
                f"{self.size} X, O and . from the top and X or O to move, or the moves "
                "from the start, such as 'b1 a2'"
            )
        board = np.array([(cell == "X") - (cell == "O") for cell in cells], np.int8)
        player = STONES.index(mover)
        more_x, possible = int(board.sum()), {player}
        if self.swap and board.any():  # the first stone may have changed sides
            possible.add(player - 1)
        if more_x not in possible:
            allowed = " or ".join(str(number) for number in sorted(possible))
            raise ValueError(
                f"{self.id}: in {text!r} X has {more_x} more stones than O; with "
                f"{mover} to move it is {allowed}"
            )
        self._check_win(text, board, player)
        return board, player

    def _check_win(self, text: str, board: np.ndarray, player: int) -> None:
        winner = _winner(_chains(board, self.size))
        if winner == player:
            raise ValueError(
                f"{self.id}: in {text!r} {STONES[player]} has joined both sides and "
                f"yet {STONES[1 - player]} moved last"
            )
        if winner is None:
            return
        for cell in np.flatnonzero(board == 1 - 2 * winner):
            before = board.copy()
            before[cell] = 0
            if _winner(_chains(before, self.size)) is None:
                return
        raise ValueError(
            f"{self.id}: in {text!r} no last move of {STONES[winner]} can have joined "
            "both sides: they are joined without any one stone"
        )

    def _play_moves(self, moves: list[str], text: str) -> tuple[np.ndarray, int, int]:
        """The stones, who is to move, and the cell of the last stone."""
        board, player, last = np.zeros(self.num_cells, np.int8), 0, START
        for number, move in enumerate(moves, 1):
            where = f"{self.id}: move {number} of {text!r}, {move},"
            winner = _winner(_chains(board, self.size))
            if winner is not None:
                raise ValueError(f"{where} comes after {STONES[winner]} has won")
            if move == SWAP:
                if not self.swap or number != 2:
                    rule = "answers the first stone" if self.swap else "is switched off"
                    raise ValueError(f"{where} is not legal: swapping {rule}")
                row, column = divmod(last, self.size)
                board[last], last = 0, column * self.size + row
            else:
                row, column = int(move[1:]) - 1, ord(move[0]) - ord("a")
                if not (0 <= row < self.size and column < self.size):
                    raise ValueError(f"{where} is not on the board")
                last = row * self.size + column
                if board[last]:
                    raise ValueError(f"{where} is on an occupied cell")
            board[last] = 1 - 2 * player
            player = 1 - player
        return board, player, last

    def _action_name(self, state: HexState, action: int) -> str:
        if action == self.num_cells:
            return SWAP
        row, column = divmod(action, self.size)
        return f"{_letter(column)}{row + 1}"

    def draw(self, state: HexState) -> str:
        """The rhombus; X joins top and bottom, O joins left and right."""
        looks = {"X": LOOKS[0], "O": LOOKS[1], ".": "·"}
        width = len(str(self.size))
        letters = " ".join(_letter(column) for column in range(self.size))
        lines = [" " * (width + 1) + letters]
        for number, row in enumerate(self._rows(state), 1):
            cells = " ".join(looks[cell] for cell in row)
            lines.append(" " * (number - 1) + f"{number:>{width}} {cells}")
        return "\n".join([*lines, self._caption(state)])

    def _caption(self, state: HexState) -> str:
        may_swap = self.swap and bool(state.legal_action_mask[self.num_cells])
        goals = f"{LOOKS[0]} top to bottom, {LOOKS[1]} left to right"
        swapping = ", who may swap" if may_swap else ""
        return f"{self.status(state, LOOKS)}{swapping} ({goals})"

    def to_svg(self, state: HexState) -> str:
        """The rhombus with the players' sides coloured and the last stone marked."""
        rows = [
            [STONES.index(cell) if cell in STONES else None for cell in row]
            for row in self._rows(state)
        ]
        caption = self.status(state, hex_svg.NAMES)
        return hex_svg.draw_board(rows, int(state.last), caption)

    def _rows(self, state: HexState) -> list[list[str]]:
        """The cells as X, O or "."."""
        labels = np.asarray(state.labels).reshape(self.size, self.size)
        return np.where(labels > 0, "X", np.where(labels < 0, "O", ".")).tolist()

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """As it is, and turned half round, which keeps both pairs of sides."""
        cells = np.arange(self.num_cells, dtype=np.int32)
        cells = np.stack([cells, cells[::-1]])
        actions = cells
        if self.swap:  # turning and exchanging row with column may change places
            swaps = np.full((2, 1), self.num_cells, np.int32)
            actions = np.concatenate([cells, swaps], axis=1)
        return Symmetries(cells=cells, actions=actions)


def _position(
    labels: jax.Array,
    *,
    player: jax.Array,
    last: jax.Array,
    won: jax.Array,
    may_swap: jax.Array | None,
) -> HexState:
    """The state of a board on which `player` is to move.

    Args:
      won: whether the other player has joined both sides.
      may_swap: None in a game without swapping.
    """
    mask = (labels == 0) & ~won
    if may_swap is not None:
        mask = jnp.append(mask, may_swap)
    return HexState(
        labels=labels,
        last=last,
        current_player=player,
        legal_action_mask=mask,
        rewards=win_rewards(won, 1 - player),
        terminated=won,
        truncated=jnp.zeros_like(won),
    )


def _join(
    labels: jax.Array, player: jax.Array, cell: jax.Array, size: int
) -> tuple[jax.Array, jax.Array]:
    """The labels after a stone of the player, and whether it joins both sides."""
    sign = (1 - 2 * player).astype(jnp.int16)
    # Not from the table of neighbours: JAX refuses to look up a constant in a batch
    # spread over devices.
    row = jax.lax.div(cell, jnp.int32(size))
    column = cell - row * size
    rows, columns = row + _DOWN, column + _RIGHT
    inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
    near = labels.at[jnp.where(inside, rows * size + columns, size * size)].get(
        mode="fill", fill_value=0
    )
    near = jnp.maximum(near * sign, 0)  # the player's own labels, else 0
    # Two neighbours side by side are of one chain if both are the player's, so that the
    # greater of their labels tells all: three chains at most meet at a cell.
    chains = [jnp.maximum(near[first], near[first + 1]) for first in (0, 2, 4)]
    along = jnp.where(player == 0, row, column)
    sides = (along == 0) + 2 * (along == size - 1)
    touched = (chains[0] | chains[1] | chains[2] | sides.astype(jnp.int16)) & 3
    label = (4 * (cell + 1)).astype(jnp.int16) | touched
    joined = np.arange(size * size, dtype=np.int16) == cell.astype(jnp.int16)
    for chain in chains:
        joined |= (labels == chain * sign) & (chain != 0)
    return jnp.where(joined, label * sign, labels), touched == 3


@functools.cache
def _neighbours(size: int) -> np.ndarray:
    """The neighbours of each cell, [N * N, 6] int32; N * N where there is none."""
    row, column = np.divmod(np.arange(size * size), size)
    table = np.full((size * size, len(AROUND)), size * size, np.int32)
    for number, (down, right) in enumerate(AROUND):
        r, c = row + down, column + right
        inside = (r >= 0) & (r < size) & (c >= 0) & (c < size)
        table[inside, number] = (r * size + c)[inside]
    return table


def _chains(board: np.ndarray, size: int) -> np.ndarray:
    """The labels [N * N] int16 of stones +1, -1 and 0."""
    neighbours = _neighbours(size).tolist()
    stones = [*board.tolist(), 0]  # the cell N * N is none's
    labels = np.zeros(size * size, np.int16)
    for start in np.flatnonzero(board).tolist():
        if labels[start]:
            continue
        chain, sign = {start}, stones[start]
        open_cells = [start]
        while open_cells:
            for cell in neighbours[open_cells.pop()]:
                if stones[cell] == sign and cell not in chain:
                    chain.add(cell)
                    open_cells.append(cell)
        along = {cell // size if sign == 1 else cell % size for cell in chain}
        sides = (0 in along) + 2 * (size - 1 in along)
        labels[list(chain)] = sign * (4 * (start + 1) + sides)
    return labels


def _winner(labels: np.ndarray) -> int | None:
    """The player who has joined both sides."""
    joined = labels[np.abs(labels) % 4 == 3]
    return None if joined.size == 0 else int(joined[0] < 0)


def _letter(column: int) -> str:
    return chr(ord("a") + column)
