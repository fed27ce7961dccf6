"""The drawing of a Hex board: a rhombus of hexagons with coloured sides."""

import itertools
import math
from collections.abc import Sequence

from envs import svg

NAMES = ("red", "blue")  # player 0 has the top and the bottom
COLOURS = ("#c0392b", "#2471a3")
RADIUS = 20.0  # of a hexagon's corners
HALF = RADIUS * math.sqrt(3) / 2  # of a hexagon's width
MARGIN = 36.0

Point = tuple[float, float]


def draw_board(rows: Sequence[Sequence[int | None]], last: int, caption: str) -> str:
    """The board as an SVG document.

    Args:
      rows: the player whose stone is on a cell, from the top left.
      last: the cell of the stone to mark, numbered in reading order; else negative.
      caption: a line for under the board.
    """
    size = len(rows)
    width = (3 * size - 1) * HALF + 2 * MARGIN
    height = (1.5 * size + 0.5) * RADIUS + 2 * MARGIN
    drawing = svg.Svg(width, height - MARGIN / 2)
    for side, points in enumerate(_sides(size)):
        look = {"stroke": COLOURS[side % 2], "stroke_width": 7}
        for a, b in itertools.pairwise(points):
            drawing.line(*a, *b, stroke_linecap="round", **look)
    for row, players in enumerate(rows):
        for column, player in enumerate(players):
            corners = [_corner(row, column, number) for number in range(6)]
            drawing.polygon(corners, fill="#f5f0e1", stroke="#777777")
            if player is not None:
                middle = _middle(row, column)
                drawing.circle(*middle, RADIUS * 0.62, fill=COLOURS[player])
                if row * size + column == last:
                    drawing.circle(*middle, RADIUS * 0.18, fill="#ffffff")
    for number in range(size):
        letter = chr(ord("a") + number)
        drawing.text(*_middle(-1, number + 0.25), letter, font_size=13)
        drawing.text(*_middle(number, -0.95), str(number + 1), font_size=13)
    drawing.caption(caption)
    return str(drawing)


def _sides(size: int) -> list[list[Point]]:
    """The corners along the top, the right, the bottom and the left.

    The sides go round as a clock's hands do. Where top and right meet, and bottom and
    left, they share an edge of one hexagon.
    """
    end, line = size - 1, range(size)
    top = [_corner(0, n, corner) for n in line for corner in (5, 0)]
    right = [_corner(n, end, corner) for n in line for corner in (1, 2)]
    bottom = [_corner(end, n, corner) for n in reversed(line) for corner in (2, 3)]
    left = [_corner(n, 0, corner) for n in reversed(line) for corner in (4, 5)]
    for before, after in ((top, right), (bottom, left)):
        (x1, y1), (x2, y2) = before[-1], after[0]
        shared = ((x1 + x2) / 2, (y1 + y2) / 2)
        before.append(shared)
        after.insert(0, shared)
    return [top, right, bottom, left]


def _middle(row: float, column: float) -> Point:
    x = MARGIN + (2 * column + row + 1) * HALF
    return x, MARGIN + (1.5 * row + 1) * RADIUS


def _corner(row: int, column: int, number: int) -> Point:
    """A corner of a hexagon, the top one being 0, as a clock's hands go."""
    x, y = _middle(row, column)
    angle = math.pi / 3 * number
    return x + RADIUS * math.sin(angle), y - RADIUS * math.cos(angle)
