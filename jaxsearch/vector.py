"""Games played in batches: the helpers that every loop over boards needs.

Shapes: B games, P players. A game is any object that keeps the contract of `envs.Env`.
Nothing here is jitted: callers jit the whole of what they do.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch import keys

_WORD = 32  # actions that are counted together

PolicyFn = Callable[[jax.Array, Any], jax.Array]
"""`(key, states [B]) -> actions [B]`; in a finished game nothing is played."""

StartFn = Callable[[jax.Array, int], Any]
"""`(key, B) -> states [B]` of games to begin."""


def is_finished(states: Any) -> jax.Array:
    """Whether the games are over, by their rules or by a move cap: [B] bool."""
    return states.terminated | states.truncated


def select_rows(condition: jax.Array, chosen: Any, other: Any) -> Any:
    """`chosen` in the rows [B] where the condition holds, else `other`."""

    def select(x, y):
        rows = jnp.expand_dims(condition, range(1, x.ndim))
        return jnp.where(rows, x, y)

    return jax.tree.map(select, chosen, other)


def start_all(env: Any, key: jax.Array, batch_size: int) -> Any:
    """States [B] at the start of games. The key is consumed."""
    states = jax.vmap(env.init)(jax.random.split(key, batch_size))
    # In shard_map these differ from device to device as the key does, also those of a
    # game that does not look at it: the states after them will.
    always = jnp.zeros_like(jax.random.key_data(key).sum()) == 0
    return jax.tree.map(lambda leaf: jnp.where(always, leaf, leaf), states)


def step_all(env: Any, states: Any, actions: jax.Array, key: jax.Array) -> Any:
    """The states after an action in each game. The key, for chance, is consumed."""
    # A key a row made from an array that lies across devices as the states do.
    zeros = jnp.zeros_like(states.terminated, jnp.int32)
    rows = zeros + np.arange(len(zeros), dtype=np.int32)
    keys = jax.vmap(lambda row: jax.random.fold_in(key, row))(rows)
    return jax.vmap(env.step)(states, actions, keys)


class Moved(NamedTuple):
    """Games after a move in each: as they are, and to go on from."""

    after: Any  # [B]: with final boards and final rewards where games have ended
    states: Any  # [B]: the same, but a new game where one has ended


def auto_reset(
    env: Any, start_fn: StartFn | None = None
) -> Callable[[Any, jax.Array, jax.Array], Moved]:
    """A step of B games that begins a new game where one has ended.

    Returns `step(states, actions, key) -> Moved`, which consumes its key. What a move
    gave and what it ended is in `Moved.after`, once: a new game has rewards of zero.

        step = auto_reset(env)
        moved = step(states, actions, key)
        rewards, ended = moved.after.rewards, is_finished(moved.after)
        states = moved.states

    New games do not lie across devices: over a mesh of Explicit axes use it inside
    `jax.shard_map`.

    Args:
      start_fn: what makes new games; `env.init` in every row by default.
    """

    def step(states: Any, actions: jax.Array, key: jax.Array) -> Moved:
        step_key, start_key = jax.random.split(key)
        after = step_all(env, states, actions, step_key)
        batch_size = len(after.terminated)
        if start_fn is None:
            fresh = start_all(env, start_key, batch_size)
        else:
            fresh = start_fn(start_key, batch_size)
        return Moved(after, select_rows(is_finished(after), fresh, after))

    return step


class Rollout(NamedTuple):
    """Games that were played on, each to its end or for a number of plies."""

    states: Any  # [B]
    returns: jax.Array  # [B, P] float32: the sum of each player's rewards
    plies: jax.Array  # [B] int32: how many moves were made


def random_actions(key: jax.Array, states: Any) -> jax.Array:
    """A legal action [B] int32 for each state, all equally likely; 0 if finished.

    Where all players choose at once it is a joint action [B, P] for each state, every
    player's being drawn alone. The key, or those of the rows [B], are consumed; one
    number a state and player is drawn, however many actions the game has.

    Args:
      states: batched states [B] of a game.
    """
    mask = states.legal_action_mask
    share = keys.draw(_share_of, key, mask)
    if mask.ndim == 2:
        return _legal_at(share, mask)
    return jax.vmap(_legal_at, 1, 1)(share, mask)


def _share_of(key: jax.Array, mask: jax.Array) -> jax.Array:
    return jax.random.uniform(key, mask.shape[:-1])


def _legal_at(share: jax.Array, mask: jax.Array) -> jax.Array:
    """The action [B] that comes after a share [B] of the legal ones; 0 if none is.

    Args:
      share: 0 or more and below 1.
      mask: [B, A] bool.
    """
    words = _packed(mask)
    counts = jax.lax.population_count(words).astype(jnp.int32)
    ends = jnp.cumsum(counts, axis=1)
    total = ends[:, -1]
    # Rounding must not choose an action past the last.
    number = jnp.minimum(jnp.int32(share * total), jnp.maximum(total - 1, 0))
    passed = ends <= number[:, None]
    index = jnp.minimum(passed.sum(axis=1, dtype=jnp.int32), words.shape[1] - 1)
    rest = number - jnp.where(passed, counts, 0).sum(axis=1, dtype=jnp.int32)
    word = jax.vmap(lambda row, i: row[i])(words, index)
    action = index * np.int32(_WORD) + _place_of_bit(word, rest)
    return jnp.where(total > 0, action, 0)


def _packed(mask: jax.Array) -> jax.Array:
    """A mask [B, A] as words [B, W] uint32: action 32 w + i is bit i of word w."""
    batch_size, num_actions = mask.shape
    num_words = -(-num_actions // _WORD)
    padding = num_words * _WORD - num_actions
    bools = jnp.pad(mask.astype(jnp.uint8), ((0, 0), (0, padding)))
    # Four bools make a number; a product brings their bits together in its top byte.
    fours = jax.lax.bitcast_convert_type(
        bools.reshape(batch_size, num_words, _WORD // 4, 4), jnp.uint32
    )
    bits = fours * np.uint32(1 << 24 | 1 << 17 | 1 << 10 | 1 << 3) >> np.uint32(24)
    places = 4 * np.arange(_WORD // 4, dtype=np.uint32)
    return ((bits & np.uint32(15)) << places[None, None, :]).sum(
        axis=2, dtype=jnp.uint32
    )


def _place_of_bit(word: jax.Array, number: jax.Array) -> jax.Array:
    """Where in each word the bit stands that has so many set ones below it."""
    place = jnp.zeros_like(number)
    for half in (16, 8, 4, 2, 1):
        below = jax.lax.population_count(word & np.uint32((1 << half) - 1))
        below = below.astype(jnp.int32)
        is_above = number >= below
        place = place + jnp.where(is_above, half, 0)
        number = jnp.where(is_above, number - below, number)
        word = jnp.where(is_above, word >> np.uint32(half), word)
    return place


def rollout(
    env: Any,
    states: Any,
    key: jax.Array,
    *,
    policy_fn: PolicyFn = random_actions,
    num_plies: int | None = None,
) -> Rollout:
    """Plays B games on by a policy. A finished game stays as it is.

    Args:
      states: batched states [B].
      key: consumed.
      policy_fn: chooses the moves of all players.
      num_plies: how many moves to make at most; all games to their ends by default,
        which takes a game that ends however it is played.

    Returns:
      The states [B] after the moves, what each player got on the way [B, P], and how
      many moves each game took [B].
    """

    def play(number, carry):
        states, returns, plies = carry
        policy_key, step_key = jax.random.split(jax.random.fold_in(key, number))
        actions = policy_fn(policy_key, states)
        moved = step_all(env, states, actions, step_key)
        return moved, returns + moved.rewards, plies + ~is_finished(states)

    carry = (
        states,
        jnp.zeros_like(states.rewards),
        jnp.zeros_like(states.terminated, jnp.int32),
    )
    if num_plies is not None:
        return Rollout(*jax.lax.fori_loop(0, num_plies, play, carry))

    def play_next(numbered):
        number, carry = numbered
        return number + 1, play(number, carry)

    def unfinished(numbered):
        return jnp.any(~is_finished(numbered[1][0]))

    start = (jnp.int32(0), carry)
    return Rollout(*jax.lax.while_loop(unfinished, play_next, start)[1])
