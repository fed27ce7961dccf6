"""Ultimate tic-tac-toe: nine boards, and the cell of a move names the next board."""

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State, Symmetries, win_rewards
from envs.svg import Svg
from envs.ultimate_tic_tac_toe_notation import (
    BOARDS,
    action_at,
    board_of,
    cell_of,
    draw_square,
    marks_of,
    move_name,
    read_move,
    read_square,
)

MARKS = ("X", "O")
BACKGROUNDS = {"": "#ffffff", "X": "#f6d9d6", "O": "#d6e2f6", "full": "#d8d8d8"}
NOWHERE = -1
X_BOARDS, O_BOARDS, DRAWN = range(3)  # rows of `boards`
ALL_BOARDS = 2**9 - 1
# Three rows of nine cells are 27 bits of a word. The top left cells of its three small
# boards are bits 0, 3 and 6, and the other cells of a small board are at these places.
CORNERS = 0b001001001
SMALL = 0b111 << 18 | 0b111 << 9 | 0b111

Bits = Any  # a jax.Array of unsigned words, or an int


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class UltimateTicTacToeState(State):
    """The marks of a player are three words of three rows each, from the top left.

    Bits of words 0, 1 and 2              bits of `boards`

     0  1  2 |  3  4  5 |  6  7  8
     9 10 11 | 12 13 14 | 15 16 17          0 | 1 | 2
    18 19 20 | 21 22 23 | 24 25 26
    ---------+----------+---------         ---+---+---
     0  1  2 |  3  4  5 |  6  7  8          3 | 4 | 5
     ...                                   ---+---+---
                                            6 | 7 | 8
    """

    marks: jax.Array  # [2, 3] uint32
    boards: jax.Array  # [3] uint16: won by X, won by O, full without a winner
    last: jax.Array  # int8: the last action, NOWHERE at the start


class UltimateTicTacToe(Env[UltimateTicTacToeState]):
    """Nine boards of tic-tac-toe in a square; three won boards in a row win.

    Player 0 is X and moves first, in any cell. A cell of a small board sends the other
    player to the board that lies in the square as the cell does in its board: the top
    right cell to the top right board. Three marks in a row win a small board. A board
    that is won or full is closed, and a player who is sent to it marks any cell of any
    open board. A board that is full without a row of three is nobody's. Three won
    boards in a row, column or diagonal win. The game goes on, even when no such row is
    possible any more, until all boards are closed; then it is a draw, or with
    `most_boards` a win of who won more boards, and a draw if both won as many.

    These are the rules of CodinGame (Referee.java of
    https://github.com/CodinGame/game-tictactoe), where most boards win. The default is
    the draw, since that is how the game is mostly told, and what OpenSpiel plays.

    Action row * 9 + column marks a cell of the whole square of nine rows, from the top
    left: CodinGame's "row column". Observation [9, 9, 5] bool: my marks, your marks,
    the boards that I won, those that you won (all their cells), the cells that I may
    mark. Rewards +1 and -1, or zeros for a draw. A state takes 126 bytes.

    A move is the board and the cell in it, each by the letter of its column and the
    number of its row from the top: "B2c1" is the top right cell of the middle board.
    So a move ends as the next one begins, but for closed boards: "B2c1 C1a3 A3a3". As
    text a position is its nine rows from the top, joined by "/", and the last move:
    ".....X.../........./" and so on, "B1c1"; the empty square has no last move.
    `from_text` also takes the moves from the start.

    Args:
      most_boards: whether most boards won decide when no row of three does.

    Raises:
      ValueError: a most_boards that is not a bool.
    """

    id = "ultimate_tic_tac_toe"
    version = "v0"
    num_players = 2
    num_actions = 81
    observation_shape = (9, 9, 5)
    action_format = "a board and a cell of it, A1a1 to C3c3"

    def __init__(self, most_boards: bool = False):
        if not isinstance(most_boards, bool):
            raise ValueError(
                "ultimate_tic_tac_toe: most_boards is True or False, got "
                f"{most_boards!r}"
            )
        self.most_boards = most_boards

    @property
    def options(self) -> dict[str, Any]:
        return {"most_boards": self.most_boards}

    def init(self, key: jax.Array | None = None) -> UltimateTicTacToeState:
        del key
        over = jnp.zeros((), bool)
        return UltimateTicTacToeState(
            marks=jnp.zeros((2, 3), jnp.uint32),
            boards=jnp.zeros(3, jnp.uint16),
            last=jnp.int8(NOWHERE),
            current_player=jnp.int32(0),
            legal_action_mask=jnp.ones(81, bool),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=over,
            truncated=over,
        )

    def _play(
        self, state: UltimateTicTacToeState, action: jax.Array, key: jax.Array | None
    ) -> UltimateTicTacToeState:
        del key
        player = state.current_player
        place = action.astype(jnp.uint32)
        band = place // 27
        word = np.arange(3, dtype=np.uint32) == band
        bit = jnp.uint32(1) << place % 27
        mover = np.arange(2, dtype=np.int32) == player
        marks = state.marks | jnp.where(mover[:, None] & word[None, :], bit, 0)
        # What the word that was played in says about its three small boards.
        both = jnp.where(word[None, :], marks, 0).sum(axis=1, dtype=jnp.uint32)
        won = _in_a_row(jnp.where(player == 0, both[0], both[1]))
        full = _full(both[0] | both[1])
        shift = (3 * band).astype(jnp.uint16)
        won, full = won.astype(jnp.uint16) << shift, full.astype(jnp.uint16) << shift
        # A full board may have been won before, by the other player as well.
        drawn = full & ~(won | state.boards[0] | state.boards[1])
        kind = np.arange(3, dtype=np.int32)
        added = jnp.where(kind == DRAWN, drawn, jnp.where(kind == player, won, 0))
        return _position(
            marks, state.boards | added, action, player, most_boards=self.most_boards
        )

    def observe(self, state: UltimateTicTacToeState) -> jax.Array:
        first = state.current_player == 0
        marks = jnp.where(first, state.marks, state.marks[::-1])
        won = jnp.where(first, state.boards[:2], state.boards[1::-1])
        planes = [*map(_cells, marks), *(_cells(_spread(boards)) for boards in won)]
        planes.append(state.legal_action_mask)
        return jnp.stack(planes, axis=-1).reshape(9, 9, 5)

    def to_text(self, state: UltimateTicTacToeState) -> str:
        cells, last = _text_cells(state), int(state.last)
        rows = "/".join(cells[first : first + 9] for first in range(0, 81, 9))
        return rows if last == NOWHERE else f"{rows} {move_name(last)}"

    def from_text(self, text: str) -> UltimateTicTacToeState:
        words = text.split()
        if not words or re.search(r"\d", words[0]):
            return self._play_moves(text)
        last = NOWHERE
        if len(words) > 1 and re.search(r"\d", words[-1]):
            name = words.pop()
            last = read_move(name, f"the last move of {text!r}, {name},")
        cells = read_square(words, text)
        num_x, num_o = cells.count("X"), cells.count("O")
        if num_x - num_o not in (0, 1):
            raise ValueError(
                f"{self.id}: {text!r} has {num_x} X and {num_o} O; X moves first, so "
                "that X has as many as O or one more"
            )
        mover = "OX"[num_x - num_o]
        if num_x and last == NOWHERE:
            raise ValueError(
                f"{self.id}: {text!r} has no last move, which tells the next board: "
                "put it after the rows, such as B2c1"
            )
        if last != NOWHERE:
            if cells[last] != mover:
                raise ValueError(
                    f"{self.id}: in {text!r} {mover} moved last and has no mark on "
                    f"{move_name(last)}, the last move"
                )
            before = cells[:last] + "." + cells[last + 1 :]
            _check_move(before, last, f"in {text!r} the last move, {move_name(last)},")
        return self._state(cells, last)

    def _play_moves(self, text: str) -> UltimateTicTacToeState:
        cells, last = "." * 81, NOWHERE
        for number, move in enumerate(text.replace(",", " ").split(), 1):
            where = f"move {number} of {text!r}, {move},"
            action = read_move(move, where)
            _check_move(cells, action, where, last)
            mark = MARKS[(number - 1) % 2]
            cells, last = cells[:action] + mark + cells[action + 1 :], action
        return self._state(cells, last)

    def _state(self, cells: str, last: int) -> UltimateTicTacToeState:
        if last == NOWHERE:
            return self.init()
        marks, mover = marks_of(cells), np.int32(MARKS.index(cells[last]))
        return _position(
            marks, _boards(marks), np.int32(last), mover, most_boards=self.most_boards
        )

    def _action_name(self, state: UltimateTicTacToeState, action: int) -> str:
        return move_name(action)

    def draw(self, state: UltimateTicTacToeState) -> str:
        """The square: dots may be marked, and a won board is one big mark."""
        legal = np.asarray(state.legal_action_mask).tolist()
        owners = [_owner(state, board) for board in range(9)]
        square = draw_square(_text_cells(state), legal, owners)
        return f"{square}\n{self.status(state, MARKS)}"

    def to_svg(self, state: UltimateTicTacToeState) -> str:
        unit, gap, edge = 40, 12, 44  # a cell, between boards, around the square
        side = 3 * unit
        starts = [edge + k * (side + gap) for k in range(3)]
        drawing = Svg(starts[-1] + side + edge, starts[-1] + side + edge)
        cells, legal = _text_cells(state), np.asarray(state.legal_action_mask)
        for board in range(9):
            x, y = starts[board % 3], starts[board // 3]
            owner = _owner(state, board)
            drawing.rect(x, y, side, side, fill=BACKGROUNDS[owner])
            for cell in range(9):
                action = action_at(board, cell)
                left, top = x + cell % 3 * unit, y + cell // 3 * unit
                fill = "#d9f0d3" if legal[action] else "none"
                fill = "#ffd75e" if action == int(state.last) else fill
                drawing.rect(left, top, unit, unit, fill=fill, stroke="#a0a0a0")
                _draw_mark(drawing, cells[action], left, top, unit, 3)
            drawing.rect(x, y, side, side, fill="none", stroke="#000000")
            _draw_mark(drawing, owner, x, y, side, 9)
        for k, start in enumerate(starts):
            labels = [("ABC"[k], str(k + 1), start + side / 2, 30, 16)]
            for cell in range(3):
                middle = start + (cell + 0.5) * unit
                labels.append(("abc"[cell], str(cell + 1), middle, 11, 13))
            for letter, digit, at, distance, size in labels:
                drawing.text(at, edge - distance, letter, font_size=size)
                drawing.text(edge - distance, at, digit, font_size=size)
        drawing.caption(self.status(state, MARKS))
        return str(drawing)

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """The eight rotations and reflections, which turn the boards as well."""
        cells = np.arange(81, dtype=np.int32).reshape(9, 9)
        turned = [np.rot90(cells, turns) for turns in range(4)]
        maps = np.stack([*turned, *(np.fliplr(board) for board in turned)])
        maps = maps.reshape(8, 81)
        return Symmetries(cells=maps, actions=maps)


@functools.partial(jax.jit, static_argnames="most_boards")
def _position(
    marks: jax.Array,
    boards: jax.Array,
    last: jax.Array,
    mover: jax.Array,
    *,
    most_boards: bool,
) -> UltimateTicTacToeState:
    """The state after `mover` (0 or 1) played `last`, both int32."""
    x, o, drawn = boards[X_BOARDS], boards[O_BOARDS], boards[DRAWN]
    won = _has_line(jnp.where(mover == 0, x, o))
    still_open = ~(x | o | drawn) & ALL_BOARDS
    terminated = won | (still_open == 0)
    winner = mover
    if most_boards:
        num_x, num_o = (jax.lax.population_count(player) for player in (x, o))
        winner = jnp.where(won, mover, (num_o > num_x).astype(jnp.int32))
        won = won | terminated & (num_x != num_o)
    return UltimateTicTacToeState(
        marks=marks,
        boards=boards,
        last=last.astype(jnp.int8),
        current_player=1 - mover,
        legal_action_mask=_legal(marks, jnp.where(terminated, 0, still_open), last),
        rewards=win_rewards(won, winner),
        terminated=terminated,
        truncated=jnp.zeros_like(terminated),
    )


def _legal(marks: jax.Array, still_open: jax.Array, last: jax.Array) -> jax.Array:
    """The free cells of the board that `last` sends to, or of all open boards: [81]."""
    place = last.astype(jnp.uint32)
    sent = jnp.uint32(1) << place // 9 % 3 * 3 + place % 3
    sent = sent.astype(jnp.uint16) & still_open
    boards = _spread(jnp.where(sent == 0, still_open, sent))
    # A reduction is computed once, where other words would be once for each cell.
    return _cells(~jnp.bitwise_or.reduce(marks | ~boards[None, :], axis=0))


def _in_a_row(words: Bits) -> Bits:
    """Which of the three boards in a word have three in a row: bits 0, 1 and 2."""
    across = words & words >> 1 & words >> 2
    across = across | across >> 9 | across >> 18
    down = words & words >> 9 & words >> 18
    down = down | down >> 1 | down >> 2
    falling = words & words >> 10 & words >> 20
    rising = words >> 2 & words >> 10 & words >> 18
    return _side_by_side(across | down | falling | rising)


def _full(words: Bits) -> Bits:
    """Which of the three boards in a word have all nine bits: bits 0, 1 and 2."""
    columns = words & words >> 9 & words >> 18
    return _side_by_side(columns & columns >> 1 & columns >> 2)


def _side_by_side(words: Bits) -> Bits:
    """Bits 0, 3 and 6 moved to 0, 1 and 2."""
    words = words & CORNERS
    return (words | words >> 2 | words >> 4) & 0b111


def _spread(boards: jax.Array) -> jax.Array:
    """Boards as bits 0 to 8 to all their cells: [3] uint32."""
    rows = boards.astype(jnp.uint32) >> np.array([0, 3, 6], np.uint32) & 0b111
    return ((rows | rows << 2 | rows << 4) & CORNERS) * SMALL


def _has_line(boards: Bits) -> Any:
    """Whether boards, as bits 0 to 8, have three in a row."""
    across = boards & boards >> 1 & boards >> 2 & CORNERS
    down = boards & boards >> 3 & boards >> 6 & 0b111
    falling = boards & boards >> 4 & boards >> 8 & 1
    rising = boards >> 2 & boards >> 4 & boards >> 6 & 1
    return (across | down | falling | rising) != 0


def _cells(words: Any) -> Any:
    """Bits [3] spread out to booleans [81]."""
    bits = words[:, None] >> np.arange(27, dtype=np.uint32)[None, :] & 1
    return (bits != 0).reshape(81)


def _boards(marks: np.ndarray) -> np.ndarray:
    """The closed boards of words [2, 3], as in the state: [3] uint16."""
    first = np.array([0, 3, 6], np.uint32)
    x, o = (_in_a_row(marks) << first).sum(axis=1)
    full = (_full(marks[0] | marks[1]) << first).sum()
    return np.array([x, o, full & ~(x | o)], np.uint16)


def _check_move(cells: str, action: int, where: str, last: int = NOWHERE) -> None:
    """Refuses an illegal move; in any board where the last move is not given."""
    x, o, drawn = _boards(marks_of(cells)).tolist()
    closed, board, sent = x | o | drawn, board_of(action), cell_of(last)
    why = ""
    if cells[action] != ".":
        why = "is on a mark"
    elif x & o:
        why = "comes after a board had three in a row of both players"
    elif _has_line(x) or _has_line(o):
        why = "comes after the end of the game"
    elif closed >> board & 1:
        why = f"is in {BOARDS[board]}, a closed board"
    elif last != NOWHERE and not closed >> sent & 1 and board != sent:
        why = f"is not in {BOARDS[sent]}, where {move_name(last)} sent its player"
    if why:
        raise ValueError(f"ultimate_tic_tac_toe: {where} {why}")


def _text_cells(state: UltimateTicTacToeState) -> str:
    x, o = map(_cells, np.asarray(state.marks))
    return "".join(np.where(x, "X", np.where(o, "O", ".")).tolist())


def _owner(state: UltimateTicTacToeState, board: int) -> str:
    """X, O, "full" for a board without a winner, or "" for an open one."""
    kinds = [int(boards) >> board & 1 for boards in state.boards]
    return (*MARKS, "full")[kinds.index(1)] if any(kinds) else ""


def _draw_mark(
    drawing: Svg, mark: str, x: float, y: float, side: float, width: float
) -> None:
    """A cross, a ring or nothing in the square with this top left corner."""
    near, far = 0.18 * side, 0.82 * side
    if mark == "X":
        pen = {"stroke": "#b8342a", "stroke_width": width}
        drawing.line(x + near, y + near, x + far, y + far, **pen)
        drawing.line(x + near, y + far, x + far, y + near, **pen)
    elif mark == "O":
        pen = {"stroke": "#2a5fb8", "stroke_width": width, "fill": "none"}
        drawing.circle(x + side / 2, y + side / 2, 0.34 * side, **pen)
