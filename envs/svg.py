"""Drawings of positions as SVG, element by element."""

import xml.etree.ElementTree as ElementTree

NAMESPACE = "http://www.w3.org/2000/svg"
WHITE = "#ffffff"


class Svg:
    """A drawing of a width and height in its own units, from the top left corner.

    Attributes are SVG's own with _ for -: `stroke_width=2`, `text_anchor="middle"`.
    """

    def __init__(self, width: float, height: float, background: str = WHITE):
        self._width, self._height, self._background = width, height, background
        self._root = ElementTree.Element(
            "svg",
            {
                "xmlns": NAMESPACE,
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "font-family": "DejaVu Sans, Verdana, sans-serif",
            },
        )
        self.rect(0, 0, width, height, fill=background)

    def rect(self, x: float, y: float, width: float, height: float, **attributes):
        self._add("rect", x=x, y=y, width=width, height=height, **attributes)

    def circle(self, x: float, y: float, radius: float, **attributes):
        self._add("circle", cx=x, cy=y, r=radius, **attributes)

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes):
        attributes.setdefault("stroke", "#000000")
        self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)

    def polygon(self, corners: list[tuple[float, float]], **attributes):
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)
        self._add("polygon", points=points, **attributes)

    def text(self, x: float, y: float, text: str, **attributes):
        """Text whose middle is at x, y unless `text_anchor` says otherwise."""
        attributes.setdefault("text_anchor", "middle")
        attributes.setdefault("dominant_baseline", "central")
        self._add("text", x=x, y=y, **attributes).text = text

    def caption(self, text: str):
        """A line below the drawing, such as who is to move, in a strip of its own."""
        size = max(14.0, self._width / 26)
        height = self._height + 2 * size
        self._root.set("viewBox", f"0 0 {_number(self._width)} {_number(height)}")
        if self._background != WHITE:
            self.rect(0, self._height, self._width, 2 * size, fill=WHITE)
        middle = self._width / 2, self._height + size
        self.text(*middle, text, font_size=size, fill="#303030")

    def __str__(self) -> str:
        ElementTree.indent(self._root)
        return ElementTree.tostring(self._root, encoding="unicode")

    def _add(self, kind: str, **attributes: str | float) -> ElementTree.Element:
        texts = {
            name.replace("_", "-"): value if isinstance(value, str) else _number(value)
            for name, value in attributes.items()
        }
        return ElementTree.SubElement(self._root, kind, texts)


def of_text(text: str) -> str:
    """A drawing for a terminal as SVG."""
    lines = text.splitlines()
    size, columns = 16, max(map(len, lines), default=0)
    svg = Svg((columns + 2) * size * 0.62, (len(lines) + 1) * size * 1.25)
    for number, line in enumerate(lines):
        svg.text(
            size,
            (number + 1) * size * 1.25,
            line.replace(" ", "\N{NO-BREAK SPACE}"),
            text_anchor="start",
            font_family="DejaVu Sans Mono, monospace",
            font_size=size,
        )
    return str(svg)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
