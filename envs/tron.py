"""Tron: two light cycles that leave trails and must not run into any."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from envs import svg
from envs.env import win_rewards
from envs.game import Symmetries
from envs.simultaneous import SimultaneousEnv, SimultaneousState

MIN_SIZE, MAX_SIZE = 2, 32  # a row is the bits of one integer
MOVES = ("up", "right", "down", "left")
PLAYERS = ("A", "B")
CRASHES = {"A crashed": (1, 0), "B crashed": (0, 1), "both crashed": (1, 1)}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TronState(SimultaneousState):
    """The cells of each player's trail, its head included: a row of bits for each row.

    row 0  a a . .     bit 0 is column 0
        1  . A . .     trails  A [0b11, 0b10, 0, 0]    heads  A [1, 1]
        2  . . B b             B [0, 0, 0b1100, 0b1000]       B [2, 2]
        3  . . . b
    """

    trails: jax.Array  # [2, N] uint8, uint16 or uint32
    heads: jax.Array  # [2, 2] int8: row and column
    crashed: jax.Array  # [2] bool


class Tron(SimultaneousEnv[TronState]):
    """Both cycles move one cell at once and leave a trail; who crashes first loses.

    The board is N x N. A starts on the diagonal N // 4 cells from the top left corner,
    B as far from the bottom right one, so that the board looks the same to both. Each
    turn both heads move to a neighbouring cell, up, right, down or left, and the cells
    that they leave stay walls for the rest of the game. A cycle crashes that leaves the
    board or moves into any cell that either trail holds before the move, heads
    included: so two heads that would change places both crash. Two heads that move to
    the same cell both crash. If one cycle crashes it loses, if both crash in the same
    turn it is a draw.

    All four moves are always legal, also those that crash. The move straight back is
    one of these: the cell that the cycle came from is its own trail. A game takes
    N * N / 2 turns at most. A cycle that crashes stays where it was.

    Player 0 is A and player 1 is B. Actions are 0 up, 1 right, 2 down, 3 left.
    Observation [N, N, 4] bool, top row first: my trail with my head, your trail with
    your head, my head, your head. Rewards +1 and -1, or zeros for a draw. A state takes
    24 bytes and 2, 4 or 8 a row, for boards of up to 8, 16 or 32: 64 bytes for 10 x 10.

    As text a position is its rows from the top, "aa../.A../..Bb/...b", where capitals
    are heads, and behind it how the game ended: "A crashed", "B crashed" or "both
    crashed". `from_text` takes any trails of fitting lengths. A move is its name. The
    board may be mirrored in its diagonal from the top left.

    Args:
      size: N, 2 to 32.

    Raises:
      ValueError: another size.
    """

    version = "v0"
    num_players = 2
    num_actions = len(MOVES)
    action_format = "up, right, down or left"

    def __init__(self, size: int = 10):
        whole = isinstance(size, int) and not isinstance(size, bool)
        if not (whole and MIN_SIZE <= size <= MAX_SIZE):
            raise ValueError(
                f"tron: size is a whole number from {MIN_SIZE} to {MAX_SIZE}, got "
                f"{size!r}"
            )
        self.size = size
        self.id = f"tron_{size}x{size}"
        self.observation_shape = (size, size, 4)
        self._bits = np.uint8 if size <= 8 else np.uint16 if size <= 16 else np.uint32

    @property
    def options(self) -> dict[str, Any]:
        return {"size": self.size}

    def init(self, key: jax.Array | None = None) -> TronState:
        del key
        near, far = self.size // 4, self.size - 1 - self.size // 4
        heads = np.array([[near, near], [far, far]], np.int8)
        cells = self._cells(jnp.asarray(heads))
        return _position(cells, jnp.asarray(heads), jnp.zeros(2, bool))

    def _cells(self, places: jax.Array) -> jax.Array:
        """The bit [2, N] of a row and column for each player, none if off the board."""
        row, column = places[:, :1], places[:, 1:]
        rows = np.arange(self.size, dtype=np.int8)[None, :]
        inside = (column >= 0) & (column < self.size)
        shift = jnp.where(inside, column, 0).astype(self._bits)
        bit = jnp.left_shift(jnp.ones_like(shift), shift)
        return jnp.where(inside & (row == rows), bit, jnp.zeros_like(bit))

    def _play(
        self, state: TronState, actions: jax.Array, key: jax.Array | None
    ) -> TronState:
        del key
        down = (actions == 2).astype(jnp.int8) - (actions == 0).astype(jnp.int8)
        right = (actions == 1).astype(jnp.int8) - (actions == 3).astype(jnp.int8)
        targets = state.heads + jnp.stack([down, right], axis=1)
        cells = self._cells(targets)
        walls = state.trails[0] | state.trails[1]
        free = ((cells & ~walls[None, :]) != 0).any(axis=1)
        meet = (targets[0] == targets[1]).all()
        crashed = ~free | meet
        trails = jnp.where(crashed[:, None], state.trails, state.trails | cells)
        heads = jnp.where(crashed[:, None], state.heads, targets)
        return _position(trails, heads, crashed)

    def observe(self, state: TronState, player: ArrayLike) -> jax.Array:
        cells = jnp.stack([state.trails, self._cells(state.heads)])  # [2, 2, N]
        cells = jnp.where(player == 0, cells, cells[:, ::-1])
        columns = np.arange(self.size, dtype=self._bits)[None, None, None, :]
        planes = (cells[..., None] >> columns & 1) != 0  # [2, 2, N, N]
        return jnp.moveaxis(planes.reshape(4, self.size, self.size), 0, -1)

    def to_text(self, state: TronState) -> str:
        rows = "/".join("".join(row) for row in self._board(state))
        crashed = tuple(np.asarray(state.crashed).astype(int).tolist())
        ends = {who: text for text, who in CRASHES.items()}
        return f"{rows} {ends[crashed]}" if crashed in ends else rows

    def _board(self, state: TronState) -> list[list[str]]:
        """The cells as a, A, b, B or "."."""
        columns = np.arange(self.size)
        marked = np.asarray(state.trails)[..., None] >> columns & 1  # [2, N, N]
        board = np.where(marked[0], "a", np.where(marked[1], "b", "."))
        for name, (row, column) in zip(PLAYERS, np.asarray(state.heads), strict=True):
            board[row, column] = name
        return board.tolist()

    def from_text(self, text: str) -> TronState:
        board, _, end = text.strip().partition(" ")
        end = " ".join(end.split())
        if end and end not in CRASHES:
            raise ValueError(
                f"{self.id}: in {text!r} the board is followed by {end!r}; it may be "
                f"followed by {', '.join(CRASHES)}"
            )
        rows = board.split("/")
        if [len(row) for row in rows] != [self.size] * self.size or not re.fullmatch(
            "[aAbB.]*", "".join(rows)
        ):
            raise ValueError(
                f"{self.id}: got {text!r}; a position is {self.size} rows of "
                f"{self.size} from the top, of '.', a and b for trails, A and B for "
                f"heads, such as {self.to_text(self.init())!r}"
            )
        cells = np.array([list(row) for row in rows])
        trails = np.zeros((2, self.size), self._bits)
        heads, moves = np.zeros((2, 2), np.int8), []
        for player, name in enumerate(PLAYERS):
            found = np.argwhere(cells == name)
            if len(found) != 1:
                raise ValueError(
                    f"{self.id}: {text!r} has {len(found)} heads {name}; it must be one"
                )
            heads[player] = found[0]
            marked = (cells == name) | (cells == name.lower())
            weights = np.left_shift(1, np.arange(self.size), dtype=np.int64)
            trails[player] = (marked * weights[None, :]).sum(axis=1)
            moves.append(int(marked.sum()) - 1)
        crashed = CRASHES.get(end, (0, 0))
        # A crashed cycle has made a move less than one that moved in that turn.
        if moves[0] + crashed[0] != moves[1] + crashed[1]:
            raise ValueError(
                f"{self.id}: in {text!r} A has made {moves[0]} moves and B {moves[1]}; "
                "they move at the same time, and only a cycle that crashed while the "
                "other did not has made one less"
            )
        return _position(
            jnp.asarray(trails), jnp.asarray(heads), jnp.array(crashed, bool)
        )

    def _action_name(self, state: TronState, player: int, action: int) -> str:
        return MOVES[action]

    def draw(self, state: TronState) -> str:
        board = [" ".join(row).replace(".", "·") for row in self._board(state)]
        edge = "─" * (2 * self.size + 1)
        rows = [f"│ {row} │" for row in board]
        status = self.status(state, PLAYERS)
        return "\n".join([f"┌{edge}┐", *rows, f"└{edge}┘", status])

    def to_svg(self, state: TronState) -> str:
        """Trails as tracks, heads as discs; a head that crashed is crossed out."""
        cell, edge = 40, 20
        length = self.size * cell
        picture = svg.Svg(length + 2 * edge, length + 2 * edge, "#0b1420")
        for number in range(self.size + 1):
            at, end = edge + number * cell, edge + length
            ink = {"stroke": "#1d3146", "stroke_width": 1}
            picture.line(at, edge, at, end, **ink)
            picture.line(edge, at, end, at, **ink)
        picture.rect(
            edge, edge, length, length, fill="none", stroke="#5f7f9f", stroke_width=3
        )
        lights = {"a": "#39c6f4", "b": "#ff9b2f"}
        board = self._board(state)
        for row, cells in enumerate(board):
            for column, mark in enumerate(cells):
                if light := lights.get(mark.lower()):
                    x, y = edge + column * cell, edge + row * cell
                    picture.rect(
                        x + 6,
                        y + 6,
                        cell - 12,
                        cell - 12,
                        rx=5,
                        fill=light,
                        opacity=0.6,
                    )
        heads, crashed = np.asarray(state.heads), np.asarray(state.crashed)
        for name, (row, column), broken in zip(PLAYERS, heads, crashed, strict=True):
            x, y = (edge + (int(at) + 0.5) * cell for at in (column, row))
            ink = {"stroke": "#ffffff", "stroke_width": 2.5}
            picture.circle(x, y, cell * 0.42, fill=lights[name.lower()], **ink)
            if broken:
                ink = {"stroke": "#c01818", "stroke_width": 5}
                picture.line(x - 12, y - 12, x + 12, y + 12, **ink)
                picture.line(x - 12, y + 12, x + 12, y - 12, **ink)
            else:
                picture.text(x, y, name, fill="#0b1420", font_size=20)
        picture.caption(self.status(state, PLAYERS))
        return str(picture)

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """The board as it is, and mirrored in the diagonal on which both start."""
        cells = np.arange(self.size**2, dtype=np.int32).reshape(self.size, self.size)
        moves = np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.int32)  # up and left change
        return Symmetries(
            cells=np.stack([cells, cells.T]).reshape(2, -1), actions=moves
        )


@jax.jit
def _position(trails: jax.Array, heads: jax.Array, crashed: jax.Array) -> TronState:
    """The state after the cycles came to these cells, or crashed."""
    terminated = crashed.any()
    return TronState(
        trails=trails,
        heads=heads,
        crashed=crashed,
        legal_action_mask=jnp.broadcast_to(~terminated, (2, len(MOVES))),
        rewards=win_rewards(crashed[0] != crashed[1], crashed[0].astype(jnp.int32)),
        terminated=terminated,
        truncated=jnp.zeros_like(terminated),
    )
