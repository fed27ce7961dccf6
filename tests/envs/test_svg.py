"""SVG documents, and the drawings of games."""

import xml.etree.ElementTree as ElementTree
from collections import Counter

import jax
import pytest

import envs
from envs.svg import NAMESPACE, Svg, of_text


def elements(drawing):
    """The names and attributes of the elements, after the background."""
    root = ElementTree.fromstring(drawing)
    assert root.tag == f"{{{NAMESPACE}}}svg"
    return [(e.tag.split("}")[1], e.attrib, e.text) for e in root][1:]


def fills(drawing, kind):
    return Counter(a["fill"] for name, a, _ in elements(drawing) if name == kind)


def texts(drawing):
    return [text for name, _, text in elements(drawing) if name == "text"]


def test_elements_have_the_attributes_of_svg():
    drawing = Svg(100, 50.5)
    drawing.rect(1, 2, 3, 4.25, fill="#ff0000")
    drawing.circle(1 / 3, 2, 10, stroke_width=2)
    drawing.line(0, 0, 5, 5)
    drawing.line(0, 0, 5, 5, stroke="#00ff00")
    drawing.polygon([(0, 0), (1.5, 0), (0, 2)], fill="none")
    drawing.text(5, 6, "a < b & c", font_size=12)
    drawing.text(5, 6, "left", text_anchor="start")
    root = ElementTree.fromstring(str(drawing))
    assert root.attrib["viewBox"] == "0 0 100 50.5"
    background = {"x": "0", "y": "0", "width": "100", "height": "50.5"}
    assert root[0].attrib == {**background, "fill": "#ffffff"}
    middle = {"x": "5", "y": "6", "dominant-baseline": "central"}
    ends = {"x1": "0", "y1": "0", "x2": "5", "y2": "5"}
    rect = {"x": "1", "y": "2", "width": "3", "height": "4.25", "fill": "#ff0000"}
    assert [(name, attributes) for name, attributes, _ in elements(str(drawing))] == [
        ("rect", rect),
        ("circle", {"cx": "0.33", "cy": "2", "r": "10", "stroke-width": "2"}),
        ("line", {**ends, "stroke": "#000000"}),
        ("line", {**ends, "stroke": "#00ff00"}),
        ("polygon", {"points": "0,0 1.5,0 0,2", "fill": "none"}),
        ("text", {**middle, "text-anchor": "middle", "font-size": "12"}),
        ("text", {**middle, "text-anchor": "start"}),
    ]
    assert texts(str(drawing)) == ["a < b & c", "left"]


def test_text_is_drawn_line_by_line_with_its_spaces():
    drawing = of_text("X  O\n . <\n")
    assert texts(drawing) == ["X\xa0\xa0O", "\xa0.\xa0<"]
    heights = [float(attributes["y"]) for _, attributes, _ in elements(drawing)]
    assert heights == [20, 40]
    box = ElementTree.fromstring(drawing).attrib["viewBox"].split()
    assert float(box[2]) > 4 * 16 * 0.6 and float(box[3]) > 40
    assert texts(of_text("")) == []


def test_tic_tac_toe_shows_marks_numbers_and_the_line():
    env = envs.make("tic_tac_toe")
    drawing = env.to_svg(env.from_text("X.O/.X./..."))
    kinds = Counter(name for name, _, _ in elements(drawing))
    # Two strokes an X and four of the grid.
    assert kinds == {"line": 8, "circle": 1, "text": 7}
    assert texts(drawing) == ["2", "4", "6", "7", "8", "9", "O to move"]
    won = env.to_svg(env.from_text("XXX/OO./..."))
    marked = [a for name, a, _ in elements(won) if name == "rect"]
    assert [(a["x"], a["y"]) for a in marked] == [
        ("40", "40"),
        ("100", "40"),
        ("160", "40"),
    ]
    assert texts(won) == ["X wins"]


@pytest.mark.parametrize(
    ("moves", "ringed"),
    [
        ("445", []),
        ("4455667", [(190, 290), (240, 290), (290, 290), (340, 290)]),
        ("1213141", [(40, 140), (40, 190), (40, 240), (40, 290)]),
        # . . . X        . . . . . . X wins slanting
        ("12234334544", [(40, 290), (90, 240), (140, 190), (190, 140)]),
    ],
)
def test_connect_four_shows_stones_and_rings_on_fours(moves, ringed):
    env = envs.make("connect_four")
    state = env.from_text(moves)
    drawing = env.to_svg(state)
    stones = fills(drawing, "circle")
    first, second = (len(moves) + 1) // 2, len(moves) // 2
    assert stones["#d8413c"] == first and stones["#f4c638"] == second
    assert stones["#f4f6f9"] == 42 - len(moves)
    rings = [a for _, a, _ in elements(drawing) if a.get("fill") == "none"]
    assert sorted((int(a["cx"]), int(a["cy"])) for a in rings) == sorted(ringed)
    status = "red wins" if ringed else "yellow to move"
    assert texts(drawing) == [*"1234567", status]


def test_nim_shows_what_is_left_and_what_was_taken():
    env = envs.make("nim", heaps=(3, 4, 5), misere=True)
    drawing = env.to_svg(env.from_text("3 1 0 second"))
    assert fills(drawing, "circle") == {"#2f6db5": 4, "none": 8}
    status = "second to move (the last object loses)"
    assert texts(drawing) == ["1", "3", "2", "1", "3", "0", status]


def test_game_without_a_drawing_shows_its_terminal_picture():
    class Plain(envs.Nim):
        to_svg = envs.Env.to_svg

    env = Plain()
    drawing = env.to_svg(env.init())
    lines = [text.replace("\xa0", " ") for text in texts(drawing)]
    assert lines == env.draw(env.init()).splitlines()


@pytest.mark.parametrize("name", envs.names())
def test_every_drawing_says_who_is_to_move(name):
    env = envs.make(name)
    drawing = env.to_svg(env.init(jax.random.key(0)))
    assert any(" to move" in text for text in texts(drawing))


def test_caption_stands_below_the_drawing():
    plain, with_caption = Svg(100, 50), Svg(100, 50)
    with_caption.caption("X wins")
    heights = [
        float(ElementTree.fromstring(str(drawing)).attrib["viewBox"].split()[3])
        for drawing in (plain, with_caption)
    ]
    assert heights == [50, 78]
    (text,) = ElementTree.fromstring(str(with_caption)).iter(f"{{{NAMESPACE}}}text")
    assert text.text == "X wins" and 50 < float(text.attrib["y"]) < 78
