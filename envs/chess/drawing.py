"""Drawings of a board for a terminal and as SVG, White at the bottom.

Boards are given as `envs.chess.fen.rows`.
"""

from envs.svg import Svg

_SQUARE, _MARGIN = 45, 22
_LIGHT, _DARK, _LAST = "#f0d9b5", "#b58863", "#cdd26a"
# The filled figures, drawn in both colours; the selector asks for plain text.
_FIGURES = dict(zip("KQRBNP", "♚♛♜♝♞♟", strict=True))
_PLAIN = "\N{VARIATION SELECTOR-15}"


def text(rows: list[str], status: str) -> str:
    size = len(rows)
    board = "\n".join(
        f"{size - number} {' '.join(row.replace('.', '·'))}"
        for number, row in enumerate(rows)
    )
    return f"{board}\n  {' '.join('abcdefgh'[:size])}\n{status}"


def picture(rows: list[str], last: tuple[tuple[int, int], ...], status: str) -> str:
    """An SVG document.

    Args:
      last: start and target of the last move as (file, rank), if it is known.
    """
    size = len(rows)
    side = size * _SQUARE
    svg = Svg(side + 2 * _MARGIN, side + 2 * _MARGIN)
    small = {"font_size": 13, "fill": "#555555"}
    for number in range(size):
        middle = _MARGIN + (number + 0.5) * _SQUARE
        svg.text(middle, _MARGIN + side + 11, "abcdefgh"[number], **small)
        svg.text(11, middle, str(size - number), **small)
    for row, line in enumerate(rows):
        for file, letter in enumerate(line):
            rank = size - 1 - row
            x, y = _MARGIN + file * _SQUARE, _MARGIN + row * _SQUARE
            colour = _LIGHT if (file + rank) % 2 else _DARK
            svg.rect(
                x, y, _SQUARE, _SQUARE, fill=_LAST if (file, rank) in last else colour
            )
            if letter != ".":
                white = letter.isupper()
                svg.text(
                    x + _SQUARE / 2,
                    y + _SQUARE / 2,
                    _FIGURES[letter.upper()] + _PLAIN,
                    font_size=36,
                    fill="#ffffff" if white else "#1c1c1c",
                    stroke="#1c1c1c",
                    stroke_width=0.8 if white else 0,
                )
    svg.caption(status)
    return str(svg)
