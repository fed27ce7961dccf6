"""What the value of each position in the replay learns: how its game went on.

Letters in the shapes: L plies kept, B games side by side, P players. Time runs along
the first axis, oldest ply first.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """How games went, ply by ply: what value targets are made of."""

    player: jax.Array  # [L, B] int32: the mover
    rewards: jax.Array  # [L, B, 2] float32: what the move gave each player
    search_value: jax.Array  # [L, B] float32: value of the search's root, mover's view
    terminated: jax.Array  # [L, B] bool: the move ended the game by its rules
    truncated: jax.Array  # [L, B] bool: the move ended the game by a cap on its length


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class FinalBoard:
    """What the last board of a game tells beside the result (KataGo: D. Wu 2019)."""

    ownership: jax.Array  # [..., *board] int8: 1 mine, -1 the opponent's, 0 nobody's
    score: jax.Array  # [...] float32: my points less the opponent's
    known: jax.Array  # [...] bool; else the rest is without meaning


def seen_by(player: jax.Array, board: FinalBoard) -> FinalBoard:
    """Boards [S] in the view of player 0, turned into that of a player each."""
    sign = jnp.where(player == 0, 1, -1)
    over_cells = sign.reshape(-1, *[1] * (board.ownership.ndim - 1))
    return FinalBoard(
        ownership=board.ownership * over_cells.astype(jnp.int8),
        score=board.score * sign,
        known=board.known,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Returns:
    """The return of each ply, as far as it is known."""

    value: jax.Array  # [L, B] float32: from the view of the ply's mover; 0 if unknown
    known: jax.Array  # [L, B] bool
    game: jax.Array  # [L, B] int32: plies of one game have one number
    plies_to_end: jax.Array  # [L, B] int32: 0 where the game ended; -1 if it still runs


def returns(course: Course, written: Any, *, bootstrap_plies: int = 0) -> Returns:
    """The sum of the rewards that each ply's mover gets from there on.

    With `bootstrap_plies` n above 0 only the next n plies count, and the value that the
    search gave the position after them stands for the rest: Rₜ = rₜ + ... + rₜ₊ₙ₋₁ ±
    vₜ₊ₙ, minus where the opponent moves there (the n-step return of Sutton and Barto,
    Reinforcement Learning, 2018, chapter 7, for two players). With 0 the game counts to
    its end.

    A game that a cap on its length stopped is no draw: unless the cap gave rewards, the
    value of the search at its last ply stands for what would have come. Plies whose
    return is not known yet belong to games that still run.

    Args:
      written: [L] bool, the plies that there are; others are older than the first.
    """
    length, batch_size = course.player.shape
    sign = jnp.where(course.player == 0, 1, -1).astype(jnp.float32)
    values = course.search_value * sign  # all in the view of player 0
    ended = course.terminated | course.truncated
    capped = course.truncated & ~jnp.any(course.rewards != 0, axis=-1)
    rewards = course.rewards[..., 0] + jnp.where(capped, values, 0)

    def step(carry, row):
        total, known, number, ahead = carry
        reward, is_end, exists = row
        total = reward + jnp.where(is_end, 0, total)
        known = exists & (is_end | known)
        number = number + is_end
        ahead = jnp.where(is_end, 0, jnp.where(ahead < 0, -1, ahead + 1))
        told = total, known, number, ahead
        return told, told

    zeros, none = jnp.zeros_like(rewards[0]), jnp.zeros_like(course.player[0])
    start = zeros, zeros > 0, none, none - 1
    rows = rewards, ended, written
    _, (total, known, number, ahead) = jax.lax.scan(step, start, rows, reverse=True)
    if bootstrap_plies:
        n = min(bootstrap_plies, length)

        def later(x, fill):
            return jnp.concatenate([x[n:], jnp.full_like(x[:n], fill)])

        same_game = (later(number, -1) == number) & jnp.asarray(written)[:, None]
        total = total + jnp.where(same_game, later(values, 0) - later(total, 0), 0)
        known = known | same_game
    columns = jnp.arange(batch_size, dtype=jnp.int32)[None, :]
    return Returns(
        value=jnp.where(known, total * sign, 0),
        known=known,
        game=number * batch_size + columns,
        plies_to_end=ahead,
    )
