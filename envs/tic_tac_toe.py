"""Tic-tac-toe: three in a row on a 3x3 board."""

import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State, Symmetries, win_rewards
from envs.svg import Svg

EMPTY = -1
MARKS = ("X", "O")

# 0 1 2
# 3 4 5
# 6 7 8
CELLS = np.arange(9, dtype=np.int32).reshape(3, 3)
LINES = np.stack(
    [*CELLS, *CELLS.T, CELLS.diagonal(), np.fliplr(CELLS).diagonal()]
)  # [8, 3]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TicTacToeState(State):
    """The cells from the top left in reading order.

    X . O
    . X .     [0, -1, 1, -1, 0, -1, -1, -1, 1]
    . . O
    """

    board: jax.Array  # [9] int8: the player who marked the cell, or EMPTY


class TicTacToe(Env[TicTacToeState]):
    """Players mark cells in turn; three in a row, column or diagonal win.

    Player 0 is X and moves first. Action a marks cell a, numbered from the top left in
    reading order. Observation [3, 3, 2] bool: my marks, your marks. Rewards +1 and -1,
    or zeros for a draw. A state takes 32 bytes.

    As text a position is its rows from the top, "X.O/.X./..O", and a move is the number
    of its cell from 1 to 9.
    """

    id = "tic_tac_toe"
    version = "v0"
    num_players = 2
    num_actions = 9
    observation_shape = (3, 3, 2)
    action_format = "a cell, 1 to 9 from the top left"

    def init(self, key: jax.Array | None = None) -> TicTacToeState:
        del key
        return _position(jnp.full(9, EMPTY, jnp.int8), jnp.int32(0))

    def _play(
        self, state: TicTacToeState, action: jax.Array, key: jax.Array | None
    ) -> TicTacToeState:
        del key
        player = state.current_player
        board = state.board.at[action].set(player.astype(jnp.int8))
        return _position(board, 1 - player)

    def observe(self, state: TicTacToeState) -> jax.Array:
        mine = state.board == state.current_player
        yours = state.board == 1 - state.current_player
        return jnp.stack([mine, yours], axis=-1).reshape(3, 3, 2)

    def to_text(self, state: TicTacToeState) -> str:
        cells = ["XO."[mark] for mark in np.asarray(state.board)]
        return "/".join("".join(cells[row : row + 3]) for row in (0, 3, 6))

    def from_text(self, text: str) -> TicTacToeState:
        rows = re.split(r"[/\s]+", text.strip().upper())
        cells = "".join(rows)
        if [len(row) for row in rows] != [3, 3, 3] or set(cells) - set("XO."):
            raise ValueError(
                f"tic_tac_toe: got {text!r}; a position is three rows of X, O and . "
                "from the top, such as 'X.O/.X./..O'"
            )
        num_x, num_o = cells.count("X"), cells.count("O")
        if num_x - num_o not in (0, 1):
            raise ValueError(
                f"tic_tac_toe: {text!r} has {num_x} X and {num_o} O; X moves first, so "
                "that X has as many as O or one more"
            )
        board = np.array(["XO".find(mark) for mark in cells], np.int8)
        player = num_x - num_o
        if (board[LINES] == player).all(axis=1).any():
            raise ValueError(
                f"tic_tac_toe: in {text!r} {MARKS[player]} has three in a row and yet "
                f"{MARKS[1 - player]} moved last"
            )
        return _position(jnp.asarray(board), jnp.int32(player))

    def _action_name(self, state: TicTacToeState, action: int) -> str:
        return str(action + 1)

    def draw(self, state: TicTacToeState) -> str:
        """The board; a cell that can be marked shows its number."""
        board, legal = np.asarray(state.board), np.asarray(state.legal_action_mask)
        cells = [
            str(cell + 1) if legal[cell] else "XO "[board[cell]] for cell in range(9)
        ]
        rows = [f" {' │ '.join(cells[row : row + 3])} " for row in (0, 3, 6)]
        grid = "\n───┼───┼───\n".join(rows)
        return f"{grid}\n{self.status(state, MARKS)}"

    def to_svg(self, state: TicTacToeState) -> str:
        """The board; a cell that can be marked shows its number, a line its colour."""
        board, legal = np.asarray(state.board), np.asarray(state.legal_action_mask)
        lines = [line for line in LINES if len(set(board[line])) == 1]
        won = {int(c) for line in lines for c in line if board[c] != EMPTY}
        drawing = Svg(260, 244)
        for cell in range(9):
            x, y = 40 + 60 * (cell % 3), 40 + 60 * (cell // 3)
            if cell in won:
                drawing.rect(x, y, 60, 60, fill="#fdf0c4")
            _draw_cell(drawing, x, y, int(board[cell]))
            if legal[cell]:
                number = str(cell + 1)
                drawing.text(x + 30, y + 30, number, fill="#b8b8b8", font_size=14)
        for edge in (100, 160):
            style = {"stroke": "#303030", "stroke_width": 3, "stroke_linecap": "round"}
            drawing.line(edge, 42, edge, 218, **style)
            drawing.line(42, edge, 218, edge, **style)
        drawing.caption(self.status(state, MARKS))
        return str(drawing)

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """The eight rotations and reflections of the square."""
        turned = [np.rot90(CELLS, turns) for turns in range(4)]
        maps = np.stack([*turned, *(np.fliplr(board) for board in turned)])
        maps = maps.reshape(8, 9)
        return Symmetries(cells=maps, actions=maps)


def _draw_cell(drawing: Svg, x: float, y: float, mark: int) -> None:
    style = {"stroke_width": 7, "stroke_linecap": "round", "fill": "none"}
    if mark == 0:
        for left, right in ((15, 45), (45, 15)):
            drawing.line(x + left, y + 15, x + right, y + 45, stroke="#c43c39", **style)
    elif mark == 1:
        drawing.circle(x + 30, y + 30, 16, stroke="#2f6db5", **style)


@jax.jit
def _position(board: jax.Array, player: jax.Array) -> TicTacToeState:
    """The state of a board on which `player` is to move and the other just moved."""
    won = (board[LINES] == 1 - player).all(axis=1).any()
    terminated = won | (board != EMPTY).all()
    return TicTacToeState(
        board=board,
        current_player=player,
        legal_action_mask=(board == EMPTY) & ~terminated,
        rewards=win_rewards(won, 1 - player),
        terminated=terminated,
        truncated=jnp.zeros_like(terminated),
    )
