"""The stones of a position in chains, and what one more stone does to them."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.go import bits


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """Where the stones are, which belong together, and which chains are in atari.

    Every chain has a number of its own, that of one of its points. The numbers lie on
    the board bit by bit: plane k holds bit k of the number of the stone on each point,
    and anything on an empty point. So "all stones with this number" is K operations on
    words, and there is no table of chains to look up.
    """

    stones: jax.Array  # [2, N] uint32: Black's and White's
    numbers: jax.Array  # [K, N] uint32; K bits hold numbers up to N * N - 1
    in_atari: jax.Array  # [N] uint32: stones of chains with a single liberty


class Placed(NamedTuple):
    """What became of a stone."""

    chains: Chains
    captured: jax.Array  # [N]: what it took
    suicide: jax.Array  # [N]: its own chain, itself too, where that had no liberty
    ko: jax.Array  # [N]: the point that a simple ko closes to the other side


def num_planes(size: int) -> int:
    return (size * size - 1).bit_length()


def sides(stones: jax.Array, player: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The stones of the player and of the other, [N] each."""
    black = player == 0
    mine = jnp.where(black, stones[0], stones[1])
    return mine, jnp.where(black, stones[1], stones[0])


def same_number(chains: Chains, points: jax.Array) -> jax.Array:
    """The chain of the stone on each of some points, [S, N] of [S, N].

    Empty points are in it as well, whatever number they have.
    """
    number = bits.union(chains.numbers[None, :, :] & points[:, None, :], axis=-1)
    same = ~jnp.zeros_like(points)
    for k in range(len(chains.numbers)):
        plane = chains.numbers[None, k]
        same &= jnp.where(number[:, k, None] != 0, plane, ~plane)
    return same


def chains_beside(
    chains: Chains, point: jax.Array, mine: jax.Array, yours: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The chains to the four sides of a point, [4, N] of mine and [4, N] of yours.

    Two sides may show the same chain; where a side has none the set is empty.
    """
    sides = bits.neighbours(point)
    same = same_number(chains, sides)

    def chains_of(stones: jax.Array) -> jax.Array:
        touches = bits.union(sides & stones[None, :], axis=-1) != 0  # [4]
        return jnp.where(touches[:, None], same & stones[None, :], bits.WORD(0))

    return chains_of(mine), chains_of(yours)


@functools.partial(jax.jit, static_argnames="suicide")
def place(
    chains: Chains, action: jax.Array, player: jax.Array, *, suicide: bool
) -> Placed:
    """Plays a stone on an empty point, or passes.

    A chain of the other side in atari that the stone touches has its last liberty
    there, and is taken. Only these chains can then be in atari and were not, or the
    other way round: the stone's own, those of the other side that it touches, which
    lose one liberty, and those of its own side that touch what was taken, which now
    have two liberties or more.

    Args:
      suicide: whether a stone may take its own chain's last liberty.
    """
    size = chains.stones.shape[-1]
    nothing = bits.WORD(0)
    point = bits.point(action, size)
    mine, yours = sides(chains.stones, player)
    my_chains, your_chains = chains_beside(chains, point, mine, yours)
    doomed = bits.union(your_chains & chains.in_atari[None, :], axis=-1) != 0  # [4]
    captured = bits.union(jnp.where(doomed[:, None], your_chains, nothing))
    joined = bits.union(my_chains) | point
    mine, yours = mine | point, yours & ~captured
    empty = bits.empty_points(mine, yours)

    threatened = jnp.where(doomed[:, None], nothing, your_chains)
    changed = jnp.concatenate([joined[None], threatened])  # [5, N]
    liberties = bits.count(bits.around(changed) & empty[None, :])
    atari = bits.union(jnp.where((liberties == 1)[:, None], changed, nothing))
    stay = chains.in_atari & ~captured & ~joined
    freed = bits.reached(bits.around(captured) & stay & mine, stay & mine)
    in_atari = stay & ~freed | atari

    single = (joined == point).all() & (liberties[0] == 1)
    ko = jnp.where(single & (bits.count(captured) == 1), captured, nothing)
    own = jnp.zeros_like(joined)
    if suicide:
        # Nothing was taken, so that only chains of the other side gain liberties.
        dead = liberties[0] == 0
        own = jnp.where(dead, joined, nothing)
        kept = chains.in_atari & yours
        released = bits.reached(bits.around(joined) & kept, kept)
        in_atari = jnp.where(dead, chains.in_atari & ~joined & ~released, in_atari)
        mine = mine & ~own
    number = (action >> np.arange(len(chains.numbers), dtype=np.int32) & 1) != 0
    numbers = jnp.where(
        number[:, None],
        chains.numbers | joined[None, :],
        chains.numbers & ~joined[None, :],
    )
    both = jnp.where(player == 0, jnp.stack([mine, yours]), jnp.stack([yours, mine]))
    after = Chains(stones=both, numbers=numbers, in_atari=in_atari)
    return Placed(after, captured, own, ko)
