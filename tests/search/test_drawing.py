"""Drawings of a search: known texts, and DOT that parses back into the tree."""

import html
import re
import shutil
import subprocess

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding

from jaxsearch import (
    Tree,
    action_statistics,
    mctx_puct_policy,
    table_text,
    tree_dot,
    tree_text,
)
from tests.search.table_model import (
    make_tables,
    random_mask,
    random_tables,
    search_tree,
)

END = 2  # the last state of the hand-made game
BATCH_SIZE, FINISHED = 3, 1  # rows of the random games, and one of them


# 0 (value 0.2) --a0------------------> 1 (value -0.5) --any action (-1, end)--> 2
#               --a1 (reward 0.3, end)> 2
#               --a2 (illegal)
# with the priors 0.5, 0.3, 0.2 at both.
@pytest.fixture(scope="module")
def small():
    tables = make_tables(
        [[1, END, END], [END] * 3, [END] * 3],
        rewards=[[0, 0.3, 0], [-1, -1, -1], [0, 0, 0]],
        discounts=[[-1, 0, 0], [0, 0, 0], [0, 0, 0]],
        values=[0.2, -0.5, 0],
        prior_logits=np.log([0.5, 0.3, 0.2]),
    )
    return search_tree(tables, 9, np.array([[False, False, True]]))


@pytest.fixture(scope="module")
def large():
    random = np.random.default_rng(0)
    tables = random_tables(random, BATCH_SIZE, 5, terminals=0.2, rewards=0.3)
    illegal = random_mask(random, BATCH_SIZE, 5)
    illegal[FINISHED] = True
    return search_tree(tables, 80, illegal)


def test_table_lists_the_legal_actions_by_visits(small):
    statistics = action_statistics(small, c_puct=1.5)
    assert table_text(statistics) == TABLE
    assert table_text(statistics, max_actions=1) == "\n".join(TABLE.split("\n")[:2])


TABLE = """\
action  N       Q      P      U
0       8  +0.938  0.625  0.329
1       1  +0.300  0.375  0.889"""


def test_text_shows_the_tree(small):
    assert tree_text(small, min_visits=1) == TEXT
    assert tree_text(small) == TEXT_OF_TWO_VISITS
    assert tree_text(small, max_depth=1, min_visits=1) == TEXT_OF_DEPTH_ONE


TEXT = """\
N 10  V +0.800
  0  N 8  Q +0.938  P 0.625
    0  N 4  Q -1.000  P 0.500  end
    1  N 2  Q -1.000  P 0.300  end
    2  N 1  Q -1.000  P 0.200  end
  1  N 1  Q +0.300  P 0.375  end"""
TEXT_OF_TWO_VISITS = """\
N 10  V +0.800  ...
  0  N 8  Q +0.938  P 0.625  ...
    0  N 4  Q -1.000  P 0.500  end
    1  N 2  Q -1.000  P 0.300  end"""
TEXT_OF_DEPTH_ONE = """\
N 10  V +0.800
  0  N 8  Q +0.938  P 0.625  ...
  1  N 1  Q +0.300  P 0.375  end"""


def test_dot_shows_the_tree(small):
    assert tree_dot(small, min_visits=1) == DOT


DOT = """\
digraph search {
  n0 [label="N 10\\nV +0.800"];
  n1 [label="V -0.938"];
  n0 -> n1 [label="0\\nN 8\\nQ +0.938\\nP 0.625"];
  n2 [label="end", shape=box];
  n1 -> n2 [label="0\\nN 4\\nQ -1.000\\nP 0.500"];
  n3 [label="end", shape=box];
  n1 -> n3 [label="1\\nN 2\\nQ -1.000\\nP 0.300"];
  n4 [label="end", shape=box];
  n1 -> n4 [label="2\\nN 1\\nQ -1.000\\nP 0.200"];
  n5 [label="end", shape=box];
  n0 -> n5 [label="1\\nN 1\\nQ +0.300\\nP 0.375"];
}
"""


def test_actions_are_named_by_the_moves_that_lead_to_them(small):
    def action_text(path):
        player = "ox"[len(path) % 2]
        return player + "abc"[path[-1]]

    text = tree_text(small, min_visits=1, action_text=action_text)
    names = [line.split()[0] for line in text.split("\n")]
    assert names == ["N", "xa", "oa", "ob", "oc", "xb"]
    table = table_text(action_statistics(small), action_text=action_text)
    assert [line.split()[0] for line in table.split("\n")] == ["action", "xa", "xb"]
    _, edges = parse(tree_dot(small, min_visits=1, action_text=action_text))
    assert [label.split("\n")[0] for label in edges.values()] == names[1:]


@pytest.mark.parametrize("max_depth", [1, 3, None])
@pytest.mark.parametrize("min_visits", [1, 4])
def test_drawings_hold_every_node_that_is_asked_for(large, max_depth, min_visits):
    options = {"max_depth": max_depth, "min_visits": min_visits}
    for row in range(BATCH_SIZE):
        expected = expected_nodes(large, row, **options)
        nodes, edges = parse(tree_dot(large, row, **options))
        assert nodes.keys() == {f"n{node}" for node in expected}
        assert len(edges) == len(nodes) - 1
        for node, (parent, action, *numbers) in expected.items():
            if node == Tree.ROOT:
                continue
            label = edges[f"n{parent}", f"n{node}"].split("\n")
            assert label[0] == str(action)
            got = [float(line.split()[1]) for line in label[1:]]
            np.testing.assert_allclose(got, numbers, atol=5.1e-4)
            finished = large.discounts[row, node] == 0
            assert ("shape=box" in nodes[f"n{node}"]) == finished
        lines = tree_text(large, row, **options).split("\n")
        visits = [int(re.search(r"N (\d+)", line)[1]) for line in lines]
        assert sorted(visits) == sorted(large.visits[row, node] for node in expected)


def expected_nodes(tree, row, max_depth, min_visits) -> dict[int, tuple]:
    """The nodes to be drawn, with parent, action, N, Q and P."""
    tree = jax.device_get(tree)
    nodes, depths = {Tree.ROOT: (None,) * 5}, {Tree.ROOT: 0}
    for node, parent in enumerate(tree.parents[row].tolist()):
        depths[node] = depths.get(parent, 0) + 1 if node != Tree.ROOT else 0
        deep = max_depth is not None and depths[node] > max_depth
        if parent in nodes and not deep and tree.visits[row, node] >= min_visits:
            nodes[node] = (
                parent,
                tree.actions[row, node],
                tree.visits[row, node],
                tree.qvalues[row, node],
                tree.prior_probs[row, node],
            )
    return nodes


def parse(dot) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
    """Attributes of each node and the label of each edge, of a well-formed graph."""
    name, string = r"\w+", r'"((?:[^"\\\n]|\\.)*)"'
    node = re.compile(rf"({name}) \[label={string}((?:, {name}={name})*)\];")
    edge = re.compile(rf"({name}) -> ({name}) \[label={string}\];")
    first, *lines, last, end = dot.split("\n")
    assert (first, last, end) == ("digraph search {", "}", "")
    nodes, edges = {}, {}
    for line in lines:
        if match := node.fullmatch(line.strip()):
            assert match[1] not in nodes
            nodes[match[1]] = match[3]
        else:
            match = edge.fullmatch(line.strip())
            assert match, line
            assert {match[1], match[2]} <= nodes.keys()
            assert (match[1], match[2]) not in edges
            edges[match[1], match[2]] = unescape(match[3])
    return nodes, edges


def unescape(label):
    """What Graphviz shows for a label."""
    plain = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label)
    return html.unescape(plain)


@pytest.mark.parametrize(
    "name",
    [
        '"quoted"',
        "back\\",
        '\\"',
        "\\n",
        "\\N",
        "&lt;",
        "a & b",
        "two\nlines",
        "</b>",
        "}];",
        "é♞",
        "",
    ],
)
def test_names_are_escaped_in_dot(small, name):
    _, edges = parse(tree_dot(small, action_text=lambda path: name))
    assert edges
    for label in edges.values():
        assert label.rsplit("\n", 3)[0] == name


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_the_drawing(large):
    dot = tree_dot(large, action_text=lambda path: f'"{path}\\')
    subprocess.run(
        ["dot", "-Tsvg"], input=dot.encode(), check=True, capture_output=True
    )


def test_finished_and_failed_roots_are_drawn(large):
    assert tree_text(large, FINISHED).endswith("  end")
    assert len(tree_text(large, FINISHED).split("\n")) == 1
    nodes, edges = parse(tree_dot(large, FINISHED))
    assert nodes == {"n0": ", shape=box"}
    assert not edges
    assert table_text(action_statistics(large), FINISHED) == "action  N  Q  P  U"
    tables = make_tables([[0, 0]], values=np.nan)
    assert tree_text(search_tree(tables, 2)) == "N 1  V +0.000  failed"


def test_line_deeper_than_the_stack_is_drawn():
    tree = search_tree(make_tables([[0]]), 1500)
    text = tree_text(tree, max_depth=None, min_visits=1)
    assert len(text.split("\n")) == 1501
    assert tree_dot(tree, max_depth=None, min_visits=1).count("->") == 1500


def test_tree_spread_over_devices_is_drawn(large):
    mesh = jax.make_mesh((3,), ("batch",), devices=jax.devices()[:3])
    with jax.set_mesh(mesh):
        spread = jax.device_put(large, NamedSharding(mesh, jax.P("batch")))
        for row in range(BATCH_SIZE):
            assert tree_text(spread, row) == tree_text(large, row)
            assert table_text(action_statistics(spread), row) == table_text(
                action_statistics(large), row
            )


@pytest.mark.parametrize("row", [-1, 3, 1.0, True])
def test_row_that_does_not_exist_is_refused(large, row):
    message = "row must be a whole number from 0 to 2, one of the 3 searches"
    with pytest.raises(ValueError, match=message):
        table_text(action_statistics(large), row)
    for draw in (tree_text, tree_dot):
        with pytest.raises(ValueError, match=message):
            draw(large, row)


@pytest.mark.parametrize("option", ["max_depth", "min_visits"])
def test_counts_below_one_are_refused(large, option):
    for draw in (tree_text, tree_dot):
        with pytest.raises(ValueError, match=f"{option} must be .* at least 1, got 0"):
            draw(large, **{option: 0})
    with pytest.raises(ValueError, match=r"max_actions must be .* at least 1, got 0"):
        table_text(action_statistics(large), max_actions=0)


def test_tree_of_mctx_is_refused():
    tree = search_tree(make_tables([[0, 0]]), 2, policy=mctx_puct_policy)
    with pytest.raises(ValueError, match=r"must be a jaxsearch\.Tree, .* got mctx"):
        tree_text(tree)
