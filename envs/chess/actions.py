"""Actions of chess: a start square and a plane, which says how the piece moves on."""

import jax
import jax.numpy as jnp
import numpy as np

from envs.chess.bits import Bits
from envs.chess.moves import FILES, KNIGHT_FILES, KNIGHT_RANKS, RANKS

UNDERPROMOTIONS = "rbn"  # in the order of their planes
FIRST_LINE = 9  # the planes of underpromotions come first


class Actions:
    """The numbering of actions on a board of a size.

    An action is square * planes + plane; the square counts the ranks of file a, then
    those of file b, as the mover sees the board, whose own pieces begin on rank 1. The
    planes:

    0 to 8: a pawn becomes a rook (0 to 2), bishop (3 to 5) or knight (6 to 8), each
    straight on, capturing to the right, and capturing to the left.
    Then four lines, file, rank, rising and falling diagonal, each from the farthest
    step back (down, left, down and left, up and left) to the farthest step forward (up,
    right, up and right, down and right). Castling is two steps of the king; a pawn that
    reaches the last rank on such a plane becomes a queen.
    Then eight jumps of a knight, as files and ranks: (-2, -1), (-2, 1), (-1, -2),
    (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2).

    On 8x8 these are 73 planes and 4672 actions, numbered as in pgx; on 5x5 49 and 1225.
    """

    def __init__(self, size: int):
        self.size = size
        distances = np.array([*range(1 - size, 0), *range(1, size)])
        lines = [(FILES[way], RANKS[way]) for way in range(4, 8)]
        self.files = np.concatenate(
            [[0, 1, -1] * 3, *(file * distances for file, _ in lines), KNIGHT_FILES]
        )
        self.ranks = np.concatenate(
            [[1, 1, 1] * 3, *(rank * distances for _, rank in lines), KNIGHT_RANKS]
        )
        self.offsets = (8 * self.files + self.ranks).astype(np.int32)
        self.planes = len(self.offsets)
        self.num_actions = size * size * self.planes

    def split(self, action: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Start square, target square (as in `envs.chess.bits`) and plane."""
        place, plane = action // self.planes, action % self.planes
        start = place if self.size == 8 else place // self.size * 8 + place % self.size
        # A sum and no look-up, which JAX refuses in a batch spread over devices.
        here = np.arange(self.planes, dtype=np.int32) == plane
        offset = jnp.where(here, self.offsets, 0).sum(dtype=jnp.int32)
        return start, start + offset, plane

    def squares(
        self, action: int, player: int
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Start and target of an action as (file, rank), as White sees the board."""
        place, plane = divmod(action, self.planes)
        file, rank = divmod(place, self.size)
        target = file + int(self.files[plane]), rank + int(self.ranks[plane])
        if player == 0:
            return (file, rank), target
        last = self.size - 1
        return (file, last - rank), (target[0], last - target[1])

    def mask(self, starts: Bits) -> jax.Array:
        """The legal actions [A] bool, from the start squares [planes] of all planes."""
        halves = []
        # One after the other: interleaved words are not taken many at a time.
        for words, files in ((starts.low, range(4)), (starts.high, range(4, 8))):
            places = [
                1 << (8 * (file % 4) + rank)
                for file in files
                for rank in range(self.size)
                if file < self.size
            ]
            halves.append((words[None, :] & np.array(places, np.uint32)[:, None]) != 0)
        return jnp.concatenate(halves).reshape(-1)
