"""The replay window, on the device: the last plies of every row of games.

Letters in the shapes: L plies kept, B games side by side, T plies of one insertion,
P players, A actions. Time runs along the first axis, so that the plies of a game stand
below one another in its column, and an insertion is one write.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Plies:
    """What self-play records of each ply: the position, the search, what came of it."""

    observation: jax.Array  # [..., *observation_shape], view of the player to move
    legal_action_mask: jax.Array  # [..., A] bool
    policy_target: jax.Array  # [..., A] float32, sums to 1
    search_value: jax.Array  # [...] float32: value of the root, mover's view
    player: jax.Array  # [...] int32: the mover
    rewards: jax.Array  # [..., P] float32: what the move played gave each player
    terminated: jax.Array  # [...] bool: the move ended the game by its rules
    truncated: jax.Array  # [...] bool: the move ended the game by a cap on its length


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """A ring of plies [L, B, ...]; `cursor` is the row that is written next."""

    plies: Plies
    cursor: jax.Array  # [] int32, from 0 to L - 1
    filled: jax.Array  # [] int32, rows written so far, at most L


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Outcomes:
    """The result of the game each ply belongs to, as far as it is known."""

    value: jax.Array  # [L, B] float32: from the view of the ply's mover
    known: jax.Array  # [L, B] bool: the game was played to its end


def empty_replay(example: Plies, capacity: int, plies_per_insertion: int) -> Replay:
    """A replay for at least `capacity` positions.

    Args:
      example: plies, or their shapes and dtypes, of one insertion: [T, B, ...].
      capacity: positions; rounded up to whole insertions.
      plies_per_insertion: T.
    """
    batch_size = example.player.shape[1]
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
    length, count = replay.plies.player.shape[0], plies.player.shape[0]
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


def outcomes(replay: Replay) -> Outcomes:
    """Carries the result of each finished game back to its plies.

    A ply's value is the sum of the rewards that its mover gets from there to the end of
    the game. Plies of games that still run, and of games that a cap on their length
    stopped, have no known outcome.
    """
    length = replay.plies.player.shape[0]
    newest_first = (replay.cursor - 1 - jnp.arange(length)) % length

    def step(carry, row):
        returns, known = carry
        plies, written = row
        ended = plies.terminated | plies.truncated
        returns = plies.rewards + jnp.where(ended[:, None], 0, returns)
        known = written & (plies.terminated | (known & ~ended))
        value = jax.vmap(lambda r, player: r[player])(returns, plies.player)
        return (returns, known), (value, known)

    start = (
        jnp.zeros_like(replay.plies.rewards[0]),
        jnp.zeros_like(replay.plies.terminated[0]),
    )
    rows = jax.tree.map(lambda x: x[newest_first], replay.plies)
    written = jnp.arange(length) < replay.filled
    _, (value, known) = jax.lax.scan(step, start, (rows, written))
    value = jnp.zeros_like(value).at[newest_first].set(value)
    known = jnp.zeros_like(known).at[newest_first].set(known)
    return Outcomes(value=jnp.where(known, value, 0), known=known)


def sample(
    key: jax.Array, replay: Replay, outcomes: Outcomes, batch_size: int
) -> tuple[Plies, jax.Array]:
    """Draws plies evenly, with replacement, among those of known outcome.

    Returns the plies [batch_size, ...] and their outcomes [batch_size]. With no known
    outcome at all the draw is of unknown ones: check `outcomes.known` before.
    """
    known = outcomes.known.reshape(-1)
    count = jnp.cumsum(known, dtype=jnp.int32)
    drawn = jax.random.randint(key, (batch_size,), 0, jnp.maximum(count[-1], 1))
    index = jnp.searchsorted(count, drawn, side="right")

    def take(x):
        return x.reshape(-1, *x.shape[2:])[index]

    return jax.tree.map(take, replay.plies), take(outcomes.value)
