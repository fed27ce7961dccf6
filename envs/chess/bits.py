"""Sets of squares as two words of bits, and steps over the board.

A square is 8 * file + rank, both from 0, so that each file is a byte:

    rank 8 | 7 15 23 31 39 47 55 63
         7 | 6 14 22 30 38 46 54 62
         6 | 5 13 21 29 37 45 53 61
         5 | 4 12 20 28 36 44 52 60
         4 | 3 11 19 27 35 43 51 59
         3 | 2 10 18 26 34 42 50 58
         2 | 1  9 17 25 33 41 49 57
         1 | 0  8 16 24 32 40 48 56
             a  b  c  d  e  f  g  h

A smaller board is the corner at a1. JAX has no 64-bit words unless asked for.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Bits:
    """A set of squares, or an array of sets; & | ~ are those of sets."""

    low: Any  # uint32: the squares of files a to d
    high: Any  # uint32: the squares of files e to h

    def __and__(self, other: "Bits") -> "Bits":
        return Bits(self.low & other.low, self.high & other.high)

    def __or__(self, other: "Bits") -> "Bits":
        return Bits(self.low | other.low, self.high | other.high)

    def __invert__(self) -> "Bits":
        return Bits(~self.low, ~self.high)

    def __getitem__(self, index: Any) -> "Bits":
        return Bits(self.low[index], self.high[index])

    def any(self) -> jax.Array:
        """Whether a set holds a square."""
        return (self.low | self.high) != 0

    def count(self) -> jax.Array:
        """The number of squares, int32."""
        counts = [jax.lax.population_count(word) for word in (self.low, self.high)]
        return (counts[0] + counts[1]).astype(jnp.int32)

    def when(self, condition: jax.Array) -> "Bits":
        """The set where the condition holds, else the empty set."""
        return Bits(
            jnp.where(condition, self.low, np.uint32(0)),
            jnp.where(condition, self.high, np.uint32(0)),
        )

    def where(self, condition: jax.Array) -> "Bits":
        """The set where the condition holds, else all squares."""
        return ~(~self).when(condition)

    def union(self) -> "Bits":
        """The union of an array of sets."""
        return self._reduce(jax.lax.bitwise_or, 0)

    def intersection(self) -> "Bits":
        """The intersection of an array of sets."""
        return self._reduce(jax.lax.bitwise_and, 0xFFFFFFFF)

    def moved(self, offsets: np.ndarray) -> "Bits":
        """The sets with the offsets added to their squares; what falls out is lost."""
        up, down = np.maximum(offsets, 0), np.maximum(-offsets, 0)
        low, high = self.low, self.high
        if up.any():
            left = up.astype(np.uint32)
            right = np.where(up == 0, 32, 32 - up).astype(np.uint32)
            low, high = low << left, high << left | low >> right
        if down.any():
            right = down.astype(np.uint32)
            left = np.where(down == 0, 32, 32 - down).astype(np.uint32)
            low, high = low >> right | high << left, high >> right
        return Bits(low, high)

    def _reduce(self, operation: Any, start: int) -> "Bits":
        axes = tuple(range(self.low.ndim))
        return Bits(
            jax.lax.reduce(self.low, np.uint32(start), operation, axes),
            jax.lax.reduce(self.high, np.uint32(start), operation, axes),
        )


def squares(numbers: Iterable[int]) -> Bits:
    """A constant set."""
    word = sum(1 << number for number in numbers)
    return Bits(np.uint32(word & 0xFFFFFFFF), np.uint32(word >> 32))


def choice(chosen: Sequence[bool]) -> Bits:
    """Constant sets [D]: all squares where chosen, else none."""
    words = np.where(chosen, 0xFFFFFFFF, 0).astype(np.uint32)
    return Bits(words, words)


def square_bit(square: jax.Array) -> Bits:
    """The set of one square, an int32 scalar of 0 to 63."""
    low = square.astype(jnp.uint32)  # a shift by 32 or more, or below 0, gives 0
    return Bits(jnp.uint32(1) << low, jnp.uint32(1) << (low - np.uint32(32)))


def flip(words: Any, size: int) -> Any:
    """Turns boards of a size upside down: reverses the bits of each byte.

    Args:
      words: uint32 of any shape, of JAX or NumPy.
    """
    for distance, kept in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        amount, mask = np.uint32(distance), np.uint32(kept)
        words = words >> amount & mask | (words & mask) << amount
    return words >> np.uint32(8 - size)


class Steps:
    """Steps over a board, one for each set of an array [D]; or one step for a set."""

    def __init__(self, size: int, files: Any, ranks: Any):
        files, ranks = np.asarray(files), np.asarray(ranks)
        self.offsets = 8 * files + ranks
        inside = np.arange(size)
        words = np.zeros((*files.shape, 2), np.uint32)
        for step in np.ndindex(files.shape):
            starts = squares(
                8 * file + rank
                for file in inside[np.isin(inside + files[step], inside)].tolist()
                for rank in inside[np.isin(inside + ranks[step], inside)].tolist()
            )
            words[step] = starts.low, starts.high
        # The squares from which the step stays on the board.
        self.starts = Bits(words[..., 0], words[..., 1])

    def ahead(self, sets: Bits) -> Bits:
        """Where the steps lead from the squares of the sets."""
        return (sets & self.starts).moved(self.offsets)

    def before(self, sets: Bits) -> Bits:
        """The squares from which the steps lead into the sets."""
        return sets.moved(-self.offsets) & self.starts
