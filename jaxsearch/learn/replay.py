"""The replay window: the last plies of every row of games.

Letters in the shapes: L plies kept, B games side by side, T plies of one insertion,
A actions, S positions of a sample. Time runs along the first axis, so that the plies of
a game stand below one another in its column, and an insertion is one write.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.learn import targets
from jaxsearch.learn.targets import Course, FinalBoard, Returns


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Plies:
    """What self-play records of each ply: the position, the search, what came of it."""

    position: Any  # the state [...], packed by `jaxsearch.learn.packing.Packing`
    policy_target: jax.Array  # [..., A] float32, sums to 1
    surprise: jax.Array  # [...] float32: from the net's policy to the target, in nats
    learned: jax.Array  # [...] bool: the search was a full one, to be learned from
    course: Course  # [...]
    # Of the board after the move, in the view of player 0; known only where a game
    # ended.
    final: FinalBoard | None = None  # [...]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """A ring of plies [L, B, ...]; `cursor` is the row that is written next."""

    plies: Plies
    cursor: jax.Array  # [] int32, from 0 to L - 1
    filled: jax.Array  # [] int32, rows written so far, at most L


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Plies drawn for a learning step."""

    plies: Plies  # [S, ...]
    outcome: jax.Array  # [S] float32: the return of each, from its mover's view
    final: FinalBoard | None = None  # [S]: of its game, from its mover's view


def empty_replay(example: Plies, capacity: int, plies_per_insertion: int) -> Replay:
    """A replay for at least `capacity` positions.

    Args:
      example: plies, or their shapes and dtypes, of one insertion: [T, B, ...].
      capacity: positions; rounded up to whole insertions.
      plies_per_insertion: T.
    """
    batch_size = example.learned.shape[1]
    insertions = max(1, -(-capacity // (batch_size * plies_per_insertion)))
    length = insertions * plies_per_insertion
    return Replay(
        plies=jax.tree.map(
            lambda x: jnp.zeros((length, *x.shape[1:]), x.dtype), example
        ),
        cursor=jnp.int32(0),
        filled=jnp.int32(0),
    )


def insert(replay: Replay, plies: Plies) -> Replay:
    """Writes plies [T, B, ...] over the oldest; L must be a multiple of T."""
    length, count = replay.plies.learned.shape[0], plies.learned.shape[0]
    return Replay(
        plies=jax.tree.map(
            lambda ring, new: jax.lax.dynamic_update_slice_in_dim(
                ring, new, replay.cursor, axis=0
            ),
            replay.plies,
            plies,
        ),
        cursor=(replay.cursor + count) % length,
        filled=jnp.minimum(replay.filled + count, length),
    )


def returns(replay: Replay, *, bootstrap_plies: int = 0) -> Returns:
    """The returns of all plies where they stand, see `targets.returns`."""
    length = replay.plies.learned.shape[0]
    age = _age(replay)
    oldest_first = jnp.argsort(-age)
    course = jax.tree.map(lambda x: x[oldest_first], replay.plies.course)
    written = age[oldest_first] < replay.filled
    found = targets.returns(course, written, bootstrap_plies=bootstrap_plies)
    back = length - 1 - age
    return jax.tree.map(lambda x: x[back], found)


def weights(
    replay: Replay, found: Returns, window: jax.Array, surprise_share: float
) -> jax.Array:
    """How often each ply [L, B] is drawn, in proportion; 0 for never.

    Those of full searches and known return among the newest `window` rows are drawn:
    evenly, or a share of them in proportion to how much the search changed the net's
    policy (policy surprise weighting: D. Wu, https://github.com/lightvector/KataGo,
    docs/KataGoMethods.md).
    """
    drawn = found.known & replay.plies.learned & (_age(replay) < window)[:, None]
    even = drawn.astype(jnp.float32)
    if not surprise_share:
        return even
    surprise = jnp.where(drawn, jnp.maximum(replay.plies.surprise, 0), 0)
    mean = jnp.sum(surprise) / jnp.maximum(jnp.sum(even), 1)
    by_surprise = surprise / jnp.maximum(mean, jnp.finfo(mean.dtype).tiny)
    by_surprise = jnp.where(mean > 0, by_surprise, even)
    return (1 - surprise_share) * even + surprise_share * by_surprise


def sample(
    key: jax.Array,
    replay: Replay,
    found: Returns,
    weights: jax.Array,
    batch_size: int,
    *,
    most_of_game: int = 0,
) -> Drawn:
    """Draws plies [S] with replacement, in proportion to their weights.

    If all weights are 0 the draw is of anything: check that before. The key is
    consumed.

    Args:
      weights: [L, B].
      batch_size: S.
      most_of_game: plies of one game in the sample; 0 for any number. Twice as many are
        drawn and the superfluous left out, as long as there are others among them.
    """
    count = 2 * batch_size if most_of_game else batch_size
    row_key, column_key = jax.random.split(key)
    # First the row, then a place in it, so that no sum runs over the whole window.
    row = _draw(jax.random.uniform(row_key, (count,)), jnp.sum(weights, axis=1))
    share = jax.random.uniform(column_key, (count,))
    column = jax.vmap(_draw)(share, weights[row])
    if most_of_game:
        among = _numbers_among_equals(found.game[row, column])
        first = jnp.argsort(among >= most_of_game, stable=True)[:batch_size]
        row, column = row[first], column[first]
    plies = jax.tree.map(lambda x: x[row, column], replay.plies)
    outcome = found.value[row, column]
    if plies.final is None:
        return Drawn(plies=plies, outcome=outcome)
    ahead = found.plies_to_end[row, column]
    last = (row + ahead) % weights.shape[0]
    final = jax.tree.map(lambda x: x[last, column], replay.plies.final)
    final = dataclasses.replace(final, known=final.known & (ahead >= 0))
    return Drawn(
        plies=dataclasses.replace(plies, final=None),
        outcome=outcome,
        final=targets.seen_by(plies.course.player, final),
    )


def _age(replay: Replay) -> jax.Array:
    """How many rows [L] were written after each: 0 for the newest."""
    length = replay.plies.learned.shape[0]
    return (replay.cursor - 1 - jnp.arange(length, dtype=jnp.int32)) % length


def _draw(share: jax.Array, weights: jax.Array) -> jax.Array:
    """The indices at shares from 0 to 1 of the sum of weights [n]; never one of 0."""
    ends = jnp.cumsum(weights)
    index = jnp.searchsorted(ends, share * ends[-1], side="right")
    last = jnp.max(jnp.where(weights > 0, jnp.arange(weights.shape[0]), 0))
    return jnp.minimum(index, last)


def _numbers_among_equals(values: jax.Array) -> jax.Array:
    """How many equal values [n] stand before each."""
    order = jnp.argsort(values, stable=True)
    ordered = values[order]
    place = jnp.arange(values.shape[0], dtype=jnp.int32)
    first = jnp.searchsorted(ordered, ordered, side="left").astype(jnp.int32)
    return jnp.zeros_like(place).at[order].set(place - first)
