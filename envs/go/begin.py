"""Positions that are set up and not played: their chains, and whether they can be."""

import numpy as np

from envs.go import bits, chains
from envs.go.notation import Position, vertex


def start(cells: np.ndarray, player: int) -> Position:
    """The position before the first move.

    Args:
      cells: [N, N] int8: 1 Black, -1 White, 0 empty.
      player: who begins.
    """
    return Position(cells=cells, player=player, ko=-1, passes=0, ply=0, last_move=-1)


def beside(point: int, size: int) -> list[int]:
    """The points next to a point."""
    row, column = divmod(point, size)
    near = [(row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)]
    return [r * size + c for r, c in near if 0 <= r < size and 0 <= c < size]


def chain_and_liberties(cells: np.ndarray, point: int) -> tuple[set[int], set[int]]:
    """The chain of the stone on a point, and its liberties."""
    size = len(cells)
    chain, liberties, todo = {point}, set(), [point]
    while todo:
        for near in beside(todo.pop(), size):
            if cells.flat[near] == 0:
                liberties.add(near)
            elif cells.flat[near] == cells.flat[point] and near not in chain:
                chain.add(near)
                todo.append(near)
    return chain, liberties


def chains_of(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The `numbers` and `in_atari` of `envs.go.chains.Chains`, on the host."""
    size = len(cells)
    numbers = np.zeros((size, size), np.int32)
    in_atari = np.zeros((size, size), bool)
    seen: set[int] = set()
    for point in np.flatnonzero(cells).tolist():
        if point not in seen:
            chain, liberties = chain_and_liberties(cells, point)
            numbers.flat[list(chain)] = point
            in_atari.flat[list(chain)] = len(liberties) == 1
            seen |= chain
    planes = np.arange(chains.num_planes(size), dtype=np.int32)[:, None, None]
    return bits.packed(numbers >> planes & 1), bits.packed(in_atari)


def check(position: Position, max_plies: int) -> None:
    """Refuses positions that no game has.

    Raises:
      ValueError: says what is wrong, and where.
    """
    cells, size = position.cells, len(position.cells)
    for point in np.flatnonzero(cells).tolist():
        if not chain_and_liberties(cells, point)[1]:
            raise ValueError(f"the chain of {vertex(point, size)} has no liberty")
    if position.ply > max_plies:
        raise ValueError(f"{position.ply} plies are more than {max_plies}, the most")
    if position.passes > position.ply:
        raise ValueError(
            f"{position.passes} passes in a row after {position.ply} plies in all"
        )
    last, is_pass = position.last_move, position.last_move == size * size
    if is_pass != (position.passes > 0):
        name = "-" if last < 0 else vertex(last, size)
        raise ValueError(
            f"{position.passes} passes in a row, but the last move is {name!r}"
        )
    if position.ko >= 0:
        _check_ko(position)


def _check_ko(position: Position) -> None:
    """A ko point is empty, and a stone there would take back one that stands alone."""
    cells, size, point = position.cells, len(position.cells), position.ko
    yours = -1 if position.player == 0 else 1
    near = beside(point, size)
    if (
        cells.flat[point]
        or position.passes
        or any(cells.flat[other] != yours for other in near)
        or not any(
            chain_and_liberties(cells, other) == ({other}, {point}) for other in near
        )
    ):
        raise ValueError(
            f"{vertex(point, size)} is no ko point: a ko point is empty, with stones "
            "of the side that just moved all around, one of them alone in atari"
        )
