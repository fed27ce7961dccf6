"""Pictures of Go boards."""

import numpy as np

from envs import svg
from envs.go.notation import COLUMNS

CELL = 32
EDGE, LABEL = 1.3, 0.45  # cells from the side to the lines and to the labels
WOOD, BLACK, WHITE = "#e3bb74", "#1a1a1a", "#fafafa"


def star_points(size: int) -> list[int]:
    """The marked points of a board, as actions, in the order of handicap stones.

    The corners come first: lower left, upper right, upper left, lower right; then the
    sides, left, right, bottom and top; then the middle. Boards under 7 have none, even
    ones only the corners, and 7x7 no sides.
    """
    if size < 7:
        return []
    near = 2 if size < 13 else 3
    far, middle = size - 1 - near, size // 2
    points = [(far, near), (near, far), (near, near), (far, far)]
    if size % 2:
        if size >= 9:
            points += [(middle, near), (middle, far), (far, middle), (near, middle)]
        points.append((middle, middle))
    return [row * size + column for row, column in points]


def max_handicap(size: int) -> int:
    if size < 7:
        return 0
    return 9 if size >= 9 and size % 2 else 4


def handicap_points(size: int, number: int) -> list[int]:
    """Where the stones of a fixed handicap stand, as actions.

    An odd handicap from five on has one in the middle. Source: section 4.1.1 of
    https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html
    """
    points = star_points(size)
    if number in (5, 7, 9):
        return [*points[: number - 1], size * size // 2]
    return points[:number]


def draw(cells: np.ndarray, last_move: int, status: str) -> str:
    """The board with its coordinates, the last move in brackets, for a terminal.

    Args:
      cells: [N, N], 1 Black, -1 White, 0 empty.
      last_move: an action, or -1.
      status: the line under the board.
    """
    size = len(cells)
    stars = star_points(size)
    header = "   " + " ".join(COLUMNS[:size])
    lines = [header]
    for row in range(size):
        line = f"{size - row:>2} "
        for column in range(size):
            point = row * size + column
            empty = "+" if point in stars else "·"
            line += (empty, "●", "○")[cells[row, column]] + " "
        if last_move // size == row:
            column = last_move % size
            left = 2 * column + 2
            line = f"{line[:left]}({line[left + 1]}){line[left + 3 :]}"
        lines.append(f"{line}{size - row}")
    return "\n".join([*lines, header, status])


def to_svg(cells: np.ndarray, last_move: int, ko: int, status: str) -> str:
    """The same as SVG, with the ko point as a square."""
    size = len(cells)
    first, last = EDGE * CELL, (EDGE + size - 1) * CELL
    side = first + last
    image = svg.Svg(side, side, background=WOOD)

    def middle(action: int) -> tuple[float, float]:
        row, column = divmod(int(action), size)
        return first + column * CELL, first + row * CELL

    for line in range(size):
        at, near, far = first + line * CELL, LABEL * CELL, side - LABEL * CELL
        image.line(first, at, last, at, stroke_width=1)
        image.line(at, first, at, last, stroke_width=1)
        letter, number = COLUMNS[line], str(size - line)
        for x, y, name in (
            (at, near, letter),
            (at, far, letter),
            (near, at, number),
            (far, at, number),
        ):
            image.text(x, y, name, font_size=CELL * 0.34, fill=BLACK)
    for point in star_points(size):
        image.circle(*middle(point), CELL * 0.1, fill=BLACK)
    for point in np.flatnonzero(cells).tolist():
        black = cells.flat[point] == 1
        image.circle(
            *middle(point),
            CELL * 0.47,
            fill=BLACK if black else WHITE,
            stroke=BLACK,
            stroke_width=1,
        )
    if 0 <= last_move < size * size:
        mark = WHITE if cells.flat[last_move] == 1 else BLACK
        image.circle(
            *middle(last_move), CELL * 0.22, fill="none", stroke=mark, stroke_width=2
        )
    if ko >= 0:
        x, y = middle(ko)
        square = CELL * 0.4
        mark = {"fill": "none", "stroke": BLACK, "stroke_width": 2}
        image.rect(x - square / 2, y - square / 2, square, square, **mark)
    image.caption(status)
    return str(image)
