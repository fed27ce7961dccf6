"""Random games of tic-tac-toe on the host, driven by SplitMix64.

SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
"""

from collections.abc import Sequence

import numpy as np

# 0 1 2
# 3 4 5
# 6 7 8
_LINES = np.array(
    [
        *([0, 1, 2], [3, 4, 5], [6, 7, 8]),
        *([0, 3, 6], [1, 4, 7], [2, 5, 8]),
        *([0, 4, 8], [2, 4, 6]),
    ]
)


class SplitMixGames:
    """One random stream for each row; a stream runs on from game to game.

    A move takes the next number modulo the count of free cells, in the order of cells.
    """

    def __init__(self, seeds: Sequence[int]):
        self._seeds = np.array(seeds, np.uint64)
        self.restart()

    def restart(self) -> None:
        """Begins all streams again."""
        self._state = self._seeds.copy()

    def play(self, planes: np.ndarray, live: np.ndarray) -> np.ndarray:
        """Plays to the end; a row that is not live draws no number.

        Args:
          planes: [B, 9, 2] bool: the marks of the player to move, and of the other.
          live: [B] bool: the game is not finished.

        Returns:
          [B] int32: half points of the player to move, 2 for a win, 1 for a draw; 1
          where not live.
        """
        marks = np.moveaxis(np.array(planes), 2, 0)  # [2, B, 9], a copy
        live = np.array(live)
        half_points = np.ones(len(live), np.int32)
        mover = 0
        while live.any():
            free = ~marks.any(axis=0)
            choice = self._next(live) % np.maximum(free.sum(axis=1), 1).astype("u8")
            chosen = free & (free.cumsum(axis=1) == choice[:, None] + 1)
            marks[mover] |= chosen & live[:, None]
            lines = marks[mover][:, _LINES]
            won = live & np.any(np.all(lines, axis=2), axis=1)
            half_points[won] = 2 - 2 * mover
            live &= ~won & ~np.all(marks.any(axis=0), axis=1)
            mover = 1 - mover
        return half_points

    def _next(self, live: np.ndarray) -> np.ndarray:
        """The next number [B] of the live rows; the others stand still."""
        self._state[live] += np.uint64(0x9E3779B97F4A7C15)
        z = self._state
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
