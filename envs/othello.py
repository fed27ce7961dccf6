"""Othello, also called Reversi: enclosed discs change sides; the most discs win."""

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs import svg
from envs.env import Env, State, Symmetries, win_rewards

DISCS = ("X", "O")
LOOKS = ("●", "○")
WORD = 32  # bits
SIZES = range(4, 15, 2)  # two rows and a cell fit into a word: see _shift

Words = list[Any]  # a set of cells: uint32 words, of JAX or of NumPy


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OthelloState(State):
    """The discs of a player are the set bits of W words: cell a is bit a % 32 of
    word a // 32. Cells are numbered from the top left in reading order.

         0  1  2  3  4  5  6  7    word 0 has cells 0 to 31
         8  9 10 ...               word 1 has cells 32 to 63
    """

    discs: jax.Array  # [2, W] uint32: player 0's and player 1's


class Othello(Env[OthelloState]):
    """Place a disc so that it encloses discs of the other side, which change sides.

    A disc is placed on an empty cell. In each of the eight directions the line of the
    other side's discs that begins next to it and ends at a disc of the mover's own is
    turned over; at least one disc must be turned. A player who cannot place a disc must
    pass, and nobody else may. The game ends as soon as neither player can place a disc:
    the board is full, one side has no discs left, or both are stuck. More discs win;
    equal numbers are a draw. Empty cells count for nobody.

    Player 0 is X, black, and moves first. On N x N cells action a places a disc on cell
    a, numbered from the top left in reading order, and action N * N passes. The game
    starts with the middle four cells taken: of 8 x 8, d4 and e5 by O, white, d5 and e4
    by X.
    Observation [N, N, 2] bool, top row first: my discs, your discs. Rewards +1 and -1,
    or zeros for a draw. A state takes 15 + N * N bytes and 8 for each 32 cells or part
    of it: 95 for 8 x 8.

    As text a position is its rows from the top and the player to move,
    "......../......../......../...OX.../...XO.../......../......../........ X"; a move
    is its column and row, "d3" for column d and the third row from the top, or "pass".
    `from_text` takes "-" for an empty cell too, rows that are not set apart, and the
    moves from the start, "d3c5 d6", in which a pass may be left out; it takes any
    discs, reachable from the start or not. The symmetries are the four of the square
    that keep the start; the other four exchange its colours.

    Args:
      size: N, the length of a side: even, 4 to 14.

    Raises:
      ValueError: another size.
    """

    version = "v0"
    num_players = 2
    action_format = "a column and a row, such as d3, or pass"

    def __init__(self, size: int = 8):
        if isinstance(size, bool) or not isinstance(size, int) or size not in SIZES:
            raise ValueError(
                f"othello: size is an even number from {SIZES[0]} to {SIZES[-1]}, got "
                f"{size!r}"
            )
        self.id = "othello" if size == 8 else f"othello_{size}x{size}"
        self.size = size
        self.num_actions = size * size + 1
        self.observation_shape = (size, size, 2)

    @property
    def options(self) -> dict[str, Any]:
        return {"size": self.size}

    def init(self, key: jax.Array | None = None) -> OthelloState:
        del key
        return _position(jnp.asarray(_start(self.size)), jnp.int32(0), self.size)

    def _play(
        self, state: OthelloState, action: jax.Array, key: jax.Array | None
    ) -> OthelloState:
        del key
        first = state.current_player == 0
        mine, yours = _words(jnp.where(first, state.discs, state.discs[::-1]))
        placed = [
            jnp.where(action // WORD == number, np.uint32(1), np.uint32(0))
            << (action % WORD).astype(jnp.uint32)
            & board  # a pass is on no cell
            for number, board in enumerate(_board(self.size))
        ]
        mine, yours = _place(placed, mine, yours, self.size)
        discs = jnp.stack([*mine, *yours]).reshape(2, -1)
        discs = jnp.where(first, discs, discs[::-1])
        return _position(discs, 1 - state.current_player, self.size)

    def observe(self, state: OthelloState) -> jax.Array:
        black, white = (_cells(discs, self.size) for discs in state.discs)
        planes = jnp.stack([black, white], axis=-1).reshape(self.observation_shape)
        return jnp.where(state.current_player == 0, planes, planes[..., ::-1])

    def to_text(self, state: OthelloState) -> str:
        rows = "/".join("".join(row) for row in self._rows(state))
        return f"{rows} {DISCS[int(state.current_player)]}"

    def from_text(self, text: str) -> OthelloState:
        moves = re.fullmatch(r"(?:[a-z][0-9]{1,2}|pass|\s)*", text.strip().lower())
        if moves:
            discs, player = self._play_moves(moves[0])
        else:
            discs, player = self._read(text)
        return _position(jnp.asarray(discs), jnp.int32(player), self.size)

    def _read(self, text: str) -> tuple[np.ndarray, int]:
        *rows, mover = re.split(r"[/\s]+", text.strip().upper().replace("-", "."))
        cells = "".join(rows)
        length = self.size if len(rows) > 1 else self.size**2
        whole = len(cells) == self.size**2 and {len(row) for row in rows} == {length}
        if not whole or set(cells) - set("XO.") or mover not in DISCS:
            example = self.to_text(self.init())
            raise ValueError(
                f"{self.id}: got {text!r}; a position is {self.size} rows of "
                f"{self.size} X, O and . from the top and X or O to move, such as "
                f"{example!r}, or the moves from the start, such as 'd3c3'"
            )
        marks = np.array(list(cells))
        discs = np.stack([_packed(marks == disc) for disc in DISCS])
        return discs, DISCS.index(mover)

    def _play_moves(self, text: str) -> tuple[np.ndarray, int]:
        black, white = _words(_start(self.size))
        sides, player = [black, white], 0
        for number, move in enumerate(re.findall(r"[a-z][0-9]+|pass", text), 1):
            where = f"{self.id}: move {number} of {text!r}, {move},"
            movable = [_movable(sides[p], sides[1 - p], self.size) for p in (0, 1)]
            can = [bool(np.any(words)) for words in movable]
            if not any(can):
                raise ValueError(f"{where} comes after the game has ended")
            if move == "pass" and can[player]:
                raise ValueError(f"{where} is not allowed to who can place a disc")
            if not can[player]:
                player = 1 - player
                if move == "pass":
                    continue
            cell = self._cell(move)
            placed = _packed(np.arange(self.size**2) == cell)
            if cell is None or not np.any(placed & np.array(movable[player])):
                raise ValueError(
                    f"{where} is not a legal move of {DISCS[player]}; legal there: "
                    + " ".join(self._names(movable[player]))
                )
            sides[player], sides[1 - player] = _place(
                list(placed), sides[player], sides[1 - player], self.size
            )
            player = 1 - player
        return np.array(sides, np.uint32), player

    def _cell(self, name: str) -> int | None:
        row, column = int(name[1:]) - 1, ord(name[0]) - ord("a")
        inside = 0 <= row < self.size and column < self.size
        return row * self.size + column if inside else None

    def _names(self, words: Words) -> list[str]:
        cells = np.flatnonzero(_cells(np.array(words), self.size)).tolist()
        return [self._name(cell) for cell in cells]

    def _action_name(self, state: OthelloState, action: int) -> str:
        return self._name(action)

    def _name(self, action: int) -> str:
        if action == self.size**2:
            return "pass"
        row, column = divmod(action, self.size)
        return f"{chr(ord('a') + column)}{row + 1}"

    def draw(self, state: OthelloState) -> str:
        """The board; a cell on which the mover can place a disc shows +."""
        looks = {"X": LOOKS[0], "O": LOOKS[1], ".": "·", "+": "+"}
        width = len(str(self.size))
        letters = " ".join(chr(ord("a") + column) for column in range(self.size))
        lines = [" " * width + " " + letters]
        for number, row in enumerate(self._rows(state, movable="+"), 1):
            lines.append(f"{number:>{width}} {' '.join(looks[cell] for cell in row)}")
        return "\n".join([*lines, self._caption(state)])

    def to_svg(self, state: OthelloState) -> str:
        """The board; a cell on which the mover can place a disc has a small ring."""
        cell, margin = 40, 28
        board, bottom = self.size * cell, margin + self.size * cell
        drawing = svg.Svg(board + 2 * margin, bottom + 8)
        drawing.rect(margin, margin, board, board, fill="#2e8b57")
        for number in range(self.size + 1):
            at = margin + number * cell
            drawing.line(margin, at, bottom, at, stroke="#14532d")
            drawing.line(at, margin, at, bottom, stroke="#14532d")
        for row, line in enumerate(self._rows(state, movable="+")):
            middle = margin + (row + 0.5) * cell
            letter = chr(ord("a") + row)
            drawing.text(middle, margin / 2, letter, font_size=14)
            drawing.text(margin / 2, middle, str(row + 1), font_size=14)
            for column, mark in enumerate(line):
                x = margin + (column + 0.5) * cell
                if mark == "+":
                    look = {"fill": "none", "stroke": "#14532d", "stroke_width": 2}
                    drawing.circle(x, middle, cell * 0.12, **look)
                elif mark != ".":
                    fill = "#111111" if mark == "X" else "#fafafa"
                    look = {"fill": fill, "stroke": "#111111", "stroke_width": 1}
                    drawing.circle(x, middle, cell * 0.4, **look)
        drawing.caption(self._caption(state))
        return str(drawing)

    def _rows(self, state: OthelloState, movable: str = ".") -> list[list[str]]:
        """The cells as X, O, "." and, where a disc can be placed, another mark."""
        black, white = (_cells(discs, self.size) for discs in np.asarray(state.discs))
        open_cells = np.where(np.asarray(state.legal_action_mask[:-1]), movable, ".")
        cells = np.where(black, "X", np.where(white, "O", open_cells))
        return cells.reshape(self.size, self.size).tolist()

    def _caption(self, state: OthelloState) -> str:
        black, white = np.bitwise_count(np.asarray(state.discs)).sum(axis=1).tolist()
        passing = " and must pass" if state.legal_action_mask[-1] else ""
        return (
            f"{LOOKS[0]} {black}  {LOOKS[1]} {white}  "
            f"{self.status(state, LOOKS)}{passing}"
        )

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """As it is, turned half round, and mirrored in either diagonal."""
        cells = np.arange(self.size**2, dtype=np.int32).reshape(self.size, self.size)
        turned = cells[::-1, ::-1]
        maps = np.stack([cells, turned, cells.T, turned.T]).reshape(4, -1)
        passing = np.full((4, 1), self.size**2, np.int32)
        return Symmetries(cells=maps, actions=np.concatenate([maps, passing], axis=1))


@functools.partial(jax.jit, static_argnames="size")
def _position(discs: jax.Array, player: jax.Array, size: int) -> OthelloState:
    """The state of a board on which `player` is to move."""
    black, white = _words(discs)
    by_black = jnp.stack(_movable(black, white, size))
    by_white = jnp.stack(_movable(white, black, size))
    movable = jnp.where(player == 0, by_black, by_white)
    terminated = ~((by_black | by_white) != 0).any()
    must_pass = ~(movable != 0).any() & ~terminated
    count = jax.lax.population_count(discs).sum(axis=1, dtype=jnp.int32)
    winner = jnp.where(count[0] > count[1], 0, 1)
    return OthelloState(
        discs=discs,
        current_player=player,
        legal_action_mask=jnp.append(_cells(movable, size), must_pass),
        rewards=win_rewards(terminated & (count[0] != count[1]), winner),
        terminated=terminated,
        truncated=jnp.zeros_like(terminated),
    )


def _place(placed: Words, mine: Words, yours: Words, size: int) -> tuple[Words, Words]:
    """My discs and yours after I placed one, or none."""
    turned = [np.uint32(0)] * len(placed)
    for axis in _axes(size):
        for forward in (True, False):
            # What a line from the placed disc and a line towards it from another disc
            # of mine share is enclosed by the two.
            there = _lines(placed, yours, axis, forward)
            back = _lines(mine, yours, axis, not forward)
            turned = [t | a & b for t, a, b in zip(turned, there, back, strict=True)]
    mine = [m | p | t for m, p, t in zip(mine, placed, turned, strict=True)]
    return mine, [y & ~t for y, t in zip(yours, turned, strict=True)]


def _movable(mine: Words, yours: Words, size: int) -> Words:
    """The cells on which I can place a disc."""
    ends = [np.uint32(0)] * len(mine)
    for axis in _axes(size):
        for forward in (True, False):
            lines = _lines(mine, yours, axis, forward)
            beyond = _shift(lines, axis.step, forward)
            ends = [end | cells for end, cells in zip(ends, beyond, strict=True)]
    return [
        end & board & ~(m | y)
        for end, board, m, y in zip(ends, _board(size), mine, yours, strict=True)
    ]


def _lines(seeds: Words, others: Words, axis: "_Axis", forward: bool) -> Words:
    """The cells of `others` that an unbroken line of them joins to a seed.

    Lines start next to a seed and run along the axis, to higher cells or to lower.
    """
    others = [o & inner for o, inner in zip(others, axis.inner, strict=True)]
    near = _shift(seeds, axis.step, forward)
    lines = [o & n for o, n in zip(others, near, strict=True)]
    near = _shift(lines, axis.step, forward)
    lines = [x | o & n for x, o, n in zip(lines, others, near, strict=True)]
    # Now lines have one or two discs. Where two others are in a row, go on by two.
    near = _shift(others, axis.step, forward)
    pairs = [o & n for o, n in zip(others, near, strict=True)]
    for _ in range(axis.num_doubles):
        near = _shift(lines, 2 * axis.step, forward)
        lines = [x | p & n for x, p, n in zip(lines, pairs, near, strict=True)]
    return lines


def _shift(words: Words, cells: int, forward: bool) -> Words:
    """The set of cells moved on, by less than a word, to higher numbers or to lower."""
    by, rest = np.uint32(cells), np.uint32(WORD - cells)
    if forward:
        moved = [word << by for word in words]
        carried = [word >> rest for word in words[:-1]]
        return [moved[0], *(m | c for m, c in zip(moved[1:], carried, strict=True))]
    moved = [word >> by for word in words]
    carried = [word << rest for word in words[1:]]
    return [*(m | c for m, c in zip(moved[:-1], carried, strict=True)), moved[-1]]


def _words(discs: Any) -> tuple[Words, Words]:
    """Discs [2, W] as two lists of words."""
    num_words = discs.shape[1]
    black, white = ([discs[p, w] for w in range(num_words)] for p in (0, 1))
    return black, white


def _cells(words: Any, size: int) -> Any:
    """Words [W] as booleans [N * N]."""
    bits = words[:, None] >> np.arange(WORD, dtype=np.uint32)[None, :] & np.uint32(1)
    return bits.reshape(-1)[: size * size] != 0


def _packed(cells: Sequence[bool] | np.ndarray) -> np.ndarray:
    """Booleans [N * N] as words [W] of NumPy."""
    padded = np.zeros(-(-len(cells) // WORD) * WORD, np.uint32)
    padded[: len(cells)] = cells
    bits = padded.reshape(-1, WORD) << np.arange(WORD, dtype=np.uint32)[None, :]
    return np.bitwise_or.reduce(bits, axis=1)


@functools.cache
def _board(size: int) -> np.ndarray:
    """The cells that there are, [W]."""
    return _packed(np.ones(size * size, bool))


class _Axis(NamedTuple):
    """One of the four axes along which discs are enclosed."""

    step: int  # from a cell to the next
    inner: np.ndarray  # [W]: cells with neighbours on both sides
    num_doubles: int  # steps of two that reach from end to end


@functools.cache
def _axes(size: int) -> tuple[_Axis, ...]:
    """The row, the column, and the two diagonals.

    Lines that stay on the inner columns never run from one row into the next.
    """
    columns = np.arange(size * size) % size
    inner = _packed((columns > 0) & (columns < size - 1))
    doubles = size // 2 - 2
    return (
        _Axis(1, inner, doubles),
        _Axis(size, _board(size), doubles),
        _Axis(size + 1, inner, doubles),
        _Axis(size - 1, inner, doubles),
    )


def _start(size: int) -> np.ndarray:
    """The discs at the start, [2, W]."""
    low, high = size // 2 - 1, size // 2
    cells = np.zeros((2, size, size), bool)
    cells[0, [low, high], [high, low]] = True
    cells[1, [low, high], [low, high]] = True
    return np.stack([_packed(side.reshape(-1)) for side in cells])
