"""Superko: no move may bring back an earlier position of the game.

Positions are compared by keys of 64 bits, which are taken for exact, as is usual. A few
cheap tests tell nearly all moves from repetitions; those that are left are played out
one by one.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from envs.go import bits
from envs.go.chains import Chains, Placed, chains_beside, same_number, sides

_Entry = tuple[jax.Array, jax.Array, jax.Array]
_SIZES = np.uint32((1 << 18) - 1)  # the bits of a key that count stones, 9 a colour


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Past:
    """The earlier positions of a game, and what tells most moves from repetitions.

    A stone is on new ground if its colour never lost a stone there before. Suppose a
    move at p brings back the position after ply t. Then its colour lost a stone at p
    after ply t; and a stone on new ground that the move leaves on the board came at
    ply t or earlier, because before it came no stone of its colour was there. So if
    the move leaves the last stone on new ground, which came at ply s, then t is s or
    more, and p is among the points lost after s. If it takes that stone, the same
    holds for the last but one.

    Entry 0 of the arrays of two is about the last such stone, entry 1 about the one
    before it. Where there is none any more, all plies and all losses count.
    """

    keys: jax.Array  # [2, T] uint32: the position after each ply; zeros to come
    lost: jax.Array  # [2, N] uint32: where each colour ever lost a stone
    lost_since: jax.Array  # [2, 2, N] uint32: where it did after the stone came
    newest: jax.Array  # [2, N] uint32: the stone
    since: jax.Array  # [2] int16: its ply


@functools.partial(jax.jit, static_argnames=("length", "turns"))
def begin(
    stones: jax.Array, player: jax.Array, ply: jax.Array, *, length: int, turns: bool
) -> Past:
    """The past of a position before which nothing is known.

    Args:
      stones: [2, N].
      player: whose turn it is.
      length: T, the plies that the game can have.
      turns: whether positions with other players to move are different ones.
    """
    plies = np.arange(length, dtype=np.int16)[None, :]
    return Past(
        keys=jnp.where(
            plies == ply, _key(stones, player, turns)[:, None], np.uint32(0)
        ),
        lost=jnp.zeros_like(stones),
        lost_since=jnp.zeros_like(jnp.stack([stones, stones])),
        newest=jnp.zeros_like(stones),
        since=jnp.zeros_like(jnp.stack([ply, ply])),
    )


@functools.partial(jax.jit, static_argnames="turns")
def extend(
    past: Past,
    point: jax.Array,
    placed: Placed,
    player: jax.Array,
    ply: jax.Array,
    *,
    turns: bool,
) -> Past:
    """The past after the player's stone on a point [N], or pass, made this ply."""
    stone = point & ~placed.suicide
    is_mine = np.arange(2, dtype=np.int32)[:, None] == player
    gone = jnp.where(is_mine, placed.suicide, placed.captured)
    ever = past.lost | gone
    none = (jnp.zeros_like(stone), jnp.zeros_like(ply), ever)

    def entry(k: int) -> _Entry:
        return past.newest[k], past.since[k], past.lost_since[k] | gone

    def choose(which: jax.Array, yes: _Entry, no: _Entry) -> _Entry:
        return jax.tree.map(lambda a, b: jnp.where(which, a, b), yes, no)

    lost = (past.newest & (gone[0] | gone[1])[None, :]).any(axis=1)
    second = choose(lost[1], none, entry(1))
    first = choose(lost[0], second, entry(0))
    second = choose(lost[0], none, second)
    new_ground = (stone & ~sides(past.lost, player)[0]).any()
    second = choose(new_ground, first, second)
    first = choose(new_ground, (stone, ply, jnp.zeros_like(ever)), first)
    newest, since, lost_since = jax.tree.map(lambda *e: jnp.stack(e), first, second)
    plies = np.arange(past.keys.shape[1], dtype=np.int16)[None, :]
    key = _key(placed.chains.stones, 1 - player, turns)
    return Past(
        keys=jnp.where(plies == ply, key[:, None], past.keys),
        lost=ever,
        lost_since=lost_since,
        newest=newest,
        since=since,
    )


@functools.partial(jax.jit, static_argnames=("turns", "suicide"))
def repeating(
    past: Past,
    chains: Chains,
    legal: jax.Array,
    player: jax.Array,
    *,
    turns: bool,
    suicide: bool,
) -> jax.Array:
    """Those of the legal points [N] where a stone brings back an earlier position.

    It need not take anything to do so: after an exchange a stone that was lost may
    only have to come back.
    """
    nothing = bits.WORD(0)
    mine, yours = sides(chains.stones, player)
    empty = bits.empty_points(mine, yours)
    attacked = yours & chains.in_atari
    takes = bits.around(attacked)

    # Where the position came before, the mover had one stone more than now, and the
    # other side as many as now, or fewer if the move takes some.
    my_size, your_size = bits.count(mine), bits.count(yours)
    sizes = past.keys[1] & _SIZES
    my_sizes, your_sizes = _split_sizes(sizes, player)
    one_more = my_sizes == my_size + 1
    fewer = one_more & (your_sizes < your_size)
    as_many = one_more & (your_sizes == your_size)
    plies = np.arange(len(sizes), dtype=np.int16)
    late = plies[None, :] >= past.since[:, None]
    last, before, lost = (
        sides(where, player)[0] for where in (*past.lost_since, past.lost)
    )
    suspects = jnp.where((as_many & late[0]).any(), last & ~takes, nothing)
    suspects |= jnp.where((fewer & late[0]).any(), last & takes, nothing)
    # One point may take the newest stone and its chain, and perhaps other chains too.
    taken = (past.newest & attacked[None, :]).any(axis=1)
    newest = same_number(chains, past.newest[:1])[0] & attacked
    newest = jnp.where(taken[0], newest, nothing)
    taker = bits.around(newest) & empty
    more = (bits.around(taker) & attacked & ~newest).any()
    your_rest = your_size - bits.count(newest)
    left = (your_sizes == your_rest) | more & (your_sizes < your_rest)
    back = one_more & left
    suspects |= jnp.where((back & late[1]).any(), before & taker, nothing)
    suspects |= jnp.where(taken[1] & back.any(), lost & taker, nothing)
    found = suicides = jnp.zeros_like(legal)
    if suicide:
        safe = bits.around(empty | attacked | mine & ~chains.in_atari)
        suicides = legal & ~safe
        alone = suicides & ~bits.around(mine)
        # Alone a stone leaves the board as it is, with the other side to move.
        still = _seen(past, _key(chains.stones, 1 - player, turns))
        found = jnp.where(still, alone, nothing)
        less = (my_sizes < my_size) & (your_sizes == your_size)
        dies = (past.newest[0] & mine & chains.in_atari).any()
        possible = (less & (late[0] | dies)).any()
        suspects = suspects & ~suicides | jnp.where(
            possible, suicides & ~alone, nothing
        )

    def look(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        todo, found = carry
        point = bits.lowest(todo)
        my_chains, your_chains = chains_beside(chains, point, mine, yours)
        doomed = bits.union(your_chains & chains.in_atari[None, :], axis=-1) != 0
        taken = bits.union(jnp.where(doomed[:, None], your_chains, nothing))
        my_next, your_next = mine | point, yours & ~taken
        if suicide:
            dead = (point & suicides).any()
            my_next = jnp.where(dead, mine & ~bits.union(my_chains), my_next)
        both = jnp.stack([my_next, your_next])
        stones = jnp.where(player == 0, both, both[::-1])
        seen = _seen(past, _key(stones, 1 - player, turns))
        return todo & ~point, found | jnp.where(seen, point, nothing)

    def some_left(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        return carry[0].any()

    return jax.lax.while_loop(some_left, look, (suspects & legal, found))[1]


def _seen(past: Past, key: jax.Array) -> jax.Array:
    return ((past.keys[0] == key[0]) & (past.keys[1] == key[1])).any()


def _key(stones: jax.Array, player: jax.Array, turns: bool) -> jax.Array:
    """The key of a position, [2] uint32.

    46 bits are mixed from the rows and, if `turns`, whose turn it is. 18 are the two
    numbers of stones, so that positions with other numbers never have the same key.
    """
    random = np.random.default_rng(20)
    odd = random.integers(1 << 32, size=(3, 2, 2, 19), dtype=np.uint32) | np.uint32(1)
    odd = odd[..., : stones.shape[-1]]
    # Every row of either colour goes through mixers of its own, and the sum is taken.
    mixed = stones[None, :, :] * odd[0] + odd[1]
    mixed = (mixed ^ mixed >> np.uint32(16)) * np.uint32(0x7FEB352D)
    mixed = (mixed ^ mixed >> np.uint32(15)) * odd[2]
    mixed = (mixed ^ mixed >> np.uint32(16)).sum(axis=(1, 2), dtype=jnp.uint32)
    if turns:
        mixed = jnp.where(player == 0, mixed, ~mixed)
    black, white = bits.count(stones).astype(jnp.uint32)
    sizes = black | white << np.uint32(9)
    return jnp.stack([mixed[0], mixed[1] & ~_SIZES | sizes])


def _split_sizes(sizes: jax.Array, player: jax.Array) -> tuple[jax.Array, jax.Array]:
    black, white = sizes & np.uint32(511), sizes >> np.uint32(9)
    mine = jnp.where(player == 0, black, white).astype(jnp.int32)
    return mine, jnp.where(player == 0, white, black).astype(jnp.int32)
