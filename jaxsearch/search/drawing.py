"""Searches for people to read: tables, indented text and Graphviz, made on the host.

The letters: N visits, Q mean return from the view of the player who makes the move,
P prior, U exploration term, V mean value from the view of the player to move. Actions
are listed by visits; of equals the higher Q comes first, then the higher prior, then
the lower action.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsearch.search.arguments import check_count
from jaxsearch.search.statistics import ActionStatistics
from jaxsearch.search.tree import Proofs, Tree

ActionText = Callable[[tuple[int, ...]], str]
"""Names the last action of a path from the root: for (3, 5), action 5 after action 3.

Where a name does not depend on the position, `lambda path: names[path[-1]]` will do.
"""


def action_number(path: tuple[int, ...]) -> str:
    """The number of an action as its name."""
    return str(path[-1])


def table_text(
    statistics: ActionStatistics,
    row: int = 0,
    *,
    max_actions: int | None = None,
    action_text: ActionText = action_number,
) -> str:
    """A table of the legal actions of one root: a line of names, then one for each.

    Args:
      statistics: what `action_statistics` gives.
      row: which search of the batch.
      max_actions: the most actions shown; None for all.
      action_text: names the actions.

    Raises:
      ValueError: a row that does not exist, or a count below 1.
    """
    if max_actions is not None:
        check_count("max_actions", max_actions)
    of_row = _copy_row(statistics, row)
    visits, qvalues, probs = of_row.visit_counts, of_row.qvalues, of_row.prior_probs
    order = _order(visits, qvalues, probs, np.arange(len(visits)))
    legal = order[(visits > 0)[order] | (probs > 0)[order]]
    lines = [("action", "N", "Q", "P", "U")]
    for action in legal[:max_actions].tolist():
        lines.append(
            (
                action_text((action,)),
                f"{visits[action]}",
                f"{qvalues[action]:+.3f}" if visits[action] else "-",
                f"{probs[action]:.3f}",
                f"{of_row.exploration[action]:.3f}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([name.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])])
        for name, *numbers in lines
    )


def tree_text(
    tree: Tree,
    row: int = 0,
    *,
    max_depth: int | None = 3,
    min_visits: int = 2,
    action_text: ActionText = action_number,
) -> str:
    """One tree as text: a line for each node, its children indented below it.

    "end" marks a finished position, "proven" a node whose outcome is known (with
    `solve`; its view is that of the Q, at the root of the V beside it), "empty" a tree
    without nodes, "failed" a root whose search stopped at a number that is not finite,
    and "..." a node with children that are not shown.

    Args:
      row: which search of the batch.
      max_depth: the most moves from the root that are shown; None for all.
      min_visits: the fewest visits of a node that is shown.
      action_text: names the actions.

    Raises:
      ValueError: a tree of another library, a row that does not exist, or a count
        below 1.
    """
    of_row = _copy_tree(tree, row)
    lines = []
    for node, path, more in _walk(of_row, max_depth, min_visits):
        if node == Tree.ROOT:
            words = [f"N {of_row.visits[node]}", f"V {of_row.value(node):+.3f}"]
        else:
            words = [
                "  " * len(path) + action_text(path),
                f"N {of_row.visits[node]}",
                f"Q {of_row.qvalues[node]:+.3f}",
                f"P {of_row.prior_probs[node]:.3f}",
            ]
        words += of_row.marks(node) + ["..."] * more
        lines.append("  ".join(words))
    return "\n".join(lines)


def tree_dot(
    tree: Tree,
    row: int = 0,
    *,
    max_depth: int | None = 3,
    min_visits: int = 2,
    action_text: ActionText = action_number,
) -> str:
    """One tree as the source of a Graphviz picture: `dot -Tsvg tree.dot -o tree.svg`.

    An ellipse is a position with its V, a box a finished one; a dashed ellipse has
    children that are not shown. Marks, arguments and errors as of `tree_text`.
    """
    of_row = _copy_tree(tree, row)
    lines = []
    for node, path, more in _walk(of_row, max_depth, min_visits):
        label, style = f"V {of_row.value(node):+.3f}", ""
        if node == Tree.ROOT:
            label = f"N {of_row.visits[node]}\n{label}"
        marks = of_row.marks(node)
        if marks == ["end"]:
            label, style = "end", ", shape=box"
        else:
            label = "\n".join([label, *marks])
            style = ", style=dashed" * more
        lines.append(f"n{node} [label={_quoted(label)}{style}];")
        if node != Tree.ROOT:
            label = (
                f"{action_text(path)}\nN {of_row.visits[node]}\n"
                f"Q {of_row.qvalues[node]:+.3f}\nP {of_row.prior_probs[node]:.3f}"
            )
            parent = of_row.parents[node]
            lines.append(f"n{parent} -> n{node} [label={_quoted(label)}];")
    return "\n".join(["digraph search {", *(f"  {line}" for line in lines), "}", ""])


class _TreeRow(NamedTuple):
    """What is drawn of one row of a tree, see `Tree`."""

    visits: np.ndarray  # [N]
    value_sums: np.ndarray  # [N]
    parents: np.ndarray  # [N]
    actions: np.ndarray  # [N]
    prior_probs: np.ndarray  # [N]
    discounts: np.ndarray  # [N]
    qvalues: np.ndarray  # [N]
    root_finished: np.ndarray  # []
    failed: np.ndarray  # []
    num_nodes: np.ndarray  # []
    proofs: Proofs | None  # [N] each

    def value(self, node: int) -> float:
        return self.value_sums[node] / max(self.visits[node], 1)

    def marks(self, node: int) -> list[str]:
        """What there is to say of a node besides its numbers."""
        is_root = node == Tree.ROOT
        if is_root and self.num_nodes == 0:
            return ["empty"]
        if is_root and self.failed:
            return ["failed"]
        if self.root_finished if is_root else self.discounts[node] == 0:
            return ["end"]
        if self.proofs is not None and self.proofs.proven[node]:
            return [f"proven {self.proofs.lower[node]:+d}"]
        return []


def _copy_tree(tree: Tree, row: int) -> _TreeRow:
    if not isinstance(tree, Tree):
        raise ValueError(
            "tree must be a jaxsearch.Tree, the search_tree that puct_policy and "
            f"gumbel_policy give, got {type(tree).__module__}.{type(tree).__name__}"
        )
    return _copy_row(_TreeRow(*(getattr(tree, name) for name in _TreeRow._fields)), row)


def _copy_row(arrays: Any, row: int) -> Any:
    """One row of arrays [B, ...], which are copied from the device once."""
    batch_size = len(jax.tree.leaves(arrays)[0])
    is_whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
    if not is_whole or not 0 <= row < batch_size:
        raise ValueError(
            f"row must be a whole number from 0 to {batch_size - 1}, one of the "
            f"{batch_size} searches of the batch, got {row!r}"
        )
    # A row is taken on the host, where it does not matter how arrays were spread.
    return jax.tree.map(lambda array: array[row], jax.device_get(arrays))


def _order(visits, qvalues, prior_probs, actions) -> np.ndarray:
    """The indices in the order in which actions are listed."""
    return np.lexsort((actions, -prior_probs, -qvalues, -visits))


def _walk(
    of_row: _TreeRow, max_depth: int | None, min_visits: int
) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """The nodes to show, each before its children, which come in order.

    With a node comes the path to it, and whether it has children that are not shown.
    """
    check_count("min_visits", min_visits)
    if max_depth is not None:
        check_count("max_depth", max_depth)
    order = _order(of_row.visits, of_row.qvalues, of_row.prior_probs, of_row.actions)
    children = defaultdict(list)
    for node in order.tolist():
        children[int(of_row.parents[node])].append(node)
    rest: list[tuple[int, tuple[int, ...]]] = [(Tree.ROOT, ())]
    while rest:
        node, path = rest.pop()
        shown = [c for c in children[node] if of_row.visits[c] >= min_visits]
        if len(path) == max_depth:
            shown = []
        yield node, path, len(shown) < len(children[node])
        rest += [(c, (*path, int(of_row.actions[c]))) for c in reversed(shown)]


def _quoted(label: str) -> str:
    """A label as a quoted string of DOT, shown as it is, line by line."""
    # Graphviz also reads entities such as &lt; in a label.
    for special, escaped in ("&", "&amp;"), ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"):
        label = label.replace(special, escaped)
    return f'"{label}"'
