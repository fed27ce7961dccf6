"""States as rows of bytes on the host, equal ones put together."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd


class _Leaf(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype
    columns: slice  # of the bytes of a row

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


class Merged:
    """Different states and how many games reach each.

    States are equal if all their bytes are.
    """

    def __init__(self, like: Any, *, len_limit: int):
        """Takes states such as `like`, and puts equal ones together every so often.

        Args:
          like: batched states.
          len_limit: from how many rows on equal ones are looked for.
        """
        leaves, self._tree = jax.tree.flatten(like)
        self._leaves, width = [], 0
        for leaf in leaves:
            shape, dtype = leaf.shape[1:], np.dtype(leaf.dtype)
            count = int(np.prod(shape))
            # A bool takes a bit.
            size = -(-count // 8) if dtype == np.bool_ else count * dtype.itemsize
            self._leaves.append(_Leaf(shape, dtype, slice(width, width + size)))
            width += size
        self._width = -(-width // 8) * 8  # rows are compared by words of 8 bytes
        self._len_limit = len_limit
        self._rows = np.zeros((0, self._width), np.uint8)
        self._games = np.zeros(0, np.int64)
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []
        self._num_pending = 0

    def add(self, states: Any, games: np.ndarray) -> None:
        """Adds the first states, as many as there are games."""
        self._pending.append((self._pack(states, len(games)), games))
        self._num_pending += len(games)
        if self._num_pending > max(self._len_limit, len(self._games)):
            self._merge()

    def batches(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """The states [size] and games [up to size]; the last batch is filled up."""
        self._merge()
        for first in range(0, len(self._games), size):
            games = self._games[first : first + size]
            rows = np.resize(np.arange(first, first + len(games)), size)
            yield self._unpack(self._rows[rows]), games

    def _merge(self) -> None:
        pending = [(self._rows, self._games), *self._pending]
        rows, games = (np.concatenate(part) for part in zip(*pending, strict=True))
        self._pending, self._num_pending = [], 0
        first, which = _groups(rows)
        self._rows = rows[first]
        self._games = np.zeros(len(first), np.int64)
        np.add.at(self._games, which, games)

    def _pack(self, states: Any, count: int) -> np.ndarray:
        rows = np.zeros((count, self._width), np.uint8)
        for leaf, values in zip(self._leaves, jax.tree.leaves(states), strict=True):
            flat = np.ascontiguousarray(np.asarray(values)[:count]).reshape(count, -1)
            is_bool = leaf.dtype == np.bool_
            packed = np.packbits(flat, axis=1) if is_bool else flat.view(np.uint8)
            rows[:, leaf.columns] = packed
        return rows

    def _unpack(self, rows: np.ndarray) -> Any:
        leaves = []
        for leaf in self._leaves:
            part = np.ascontiguousarray(rows[:, leaf.columns])
            if leaf.dtype == np.bool_:
                flat = np.unpackbits(part, axis=1, count=leaf.size).astype(np.bool_)
            else:
                flat = part.view(leaf.dtype)
            leaves.append(flat.reshape(len(rows), *leaf.shape))
        return jax.tree.unflatten(self._tree, leaves)


def _groups(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One row [G] of each group of equal rows, and the group [n] of each row.

    Rows are sorted by a hash; where unequal rows share one, all are compared instead.
    """
    words = rows.view(np.uint64)
    hashes = np.zeros(len(rows), np.uint64)
    for column in words.T:
        hashes = (hashes ^ column) * _MULTIPLIER
        hashes ^= hashes >> np.uint64(29)
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    if not np.array_equal(words[first[which]], words):
        whole = rows.view(f"V{rows.shape[1]}")[:, 0]
        _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    return first, which
