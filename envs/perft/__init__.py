"""Perft: how many games of a number of plies there are, counted on the device.

Known counts tell whether a move generator is right. Positions are expanded in batches
of one size, so that one program is compiled, and depth first, so that memory does not
grow with the number of games.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env
from envs.perft.merge import Merged

BATCH = 2048


class Ply(NamedTuple):
    """The games, that is sequences of moves, of one length."""

    games: int
    # What follows is None where the last moves were counted and not played.
    positions: int | None  # that were looked at; different ones if equal ones merge
    ended: Counter[float] | None  # the games that end here, by player 0's reward


@dataclasses.dataclass(frozen=True, kw_only=True)
class Perft:
    """The counts of every ply, from the position itself to the depth asked for."""

    plies: tuple[Ply, ...]

    @property
    def games(self) -> int:
        """The games of exactly this depth: what chess programs call perft."""
        return self.plies[-1].games

    @property
    def leaves(self) -> int:
        """These and the games that end earlier: what Othello programs call perft."""
        return self.games + sum(
            sum(ply.ended.values()) for ply in self.plies[:-1] if ply.ended
        )


def perft(
    env: Env[Any],
    state: Any,
    depth: int,
    *,
    merge: bool = False,
    play_last: bool = False,
    batch: int = BATCH,
) -> Perft:
    """Counts the games of 0 to `depth` plies from a position.

    Args:
      env: a game without chance moves.
      state: an unbatched state of it.
      depth: the number of plies.
      merge: whether equal states of a ply are played on once and count as often as
        games reach them. Fast where many orders of moves lead to one state; memory
        then holds all the different states of a ply.
      play_last: whether the last moves are played too, to see what they end. Else they
        are counted from the legal moves of the ply before, the same number in less
        time.
      batch: how many states are expanded together.

    Returns:
      The counts of every ply, 0 first, in `plies`; `games` and `leaves` sum them up.

    Raises:
      ValueError: a depth below 0, a batch below 1, a batched state, a game that needs
        a key at each step, or with `merge` more games than 64 bits count.
    """
    _check(env, state, depth, batch)
    counts = _Counts([0] * (depth + 1), [0] * (depth + 1), {})
    root = _root(state, batch)
    last = depth if play_last or not depth else depth - 1
    if merge:
        _count_by_plies(env, root, last, counts)
    else:
        _count_depth_first(env, root, 0, last, counts)
    return Perft(
        plies=tuple(
            Ply(
                games,
                counts.positions[ply] if ply <= last else None,
                counts.ended.get(ply, Counter()) if ply <= last else None,
            )
            for ply, games in enumerate(counts.games)
        )
    )


def divide(
    env: Env[Any], state: Any, depth: int, *, batch: int = BATCH, **options: bool
) -> Iterator[tuple[str, Perft]]:
    """Counts the games of `depth` plies after each first move.

    Args:
      depth: the number of plies with the first move, at least 1.
      **options: `merge` and `play_last`; these and the others as for `perft`.

    Yields:
      The name of a first move and the counts after it, of depth - 1 plies.

    Raises:
      ValueError: a depth below 1, or as `perft` does.
    """
    _check(env, state, depth, batch, least_depth=1)
    actions = iter(np.flatnonzero(np.asarray(state.legal_action_mask)).tolist())
    for children in _children(env, _root(state, batch)):
        for row in range(len(children.games)):
            child = jax.tree.map(lambda leaf: leaf[row], children.states)  # noqa: B023
            name = env.action_to_text(state, next(actions))
            yield name, perft(env, child, depth - 1, batch=batch, **options)


class _Batch(NamedTuple):
    """States of one ply; those past the end of `games` fill up and do not count."""

    states: Any  # [batch]
    games: np.ndarray  # [n] int64: how many games reach a state


class _Counts(NamedTuple):
    """What `Ply` tells, summed up ply by ply."""

    games: list[int]
    positions: list[int]
    ended: dict[int, Counter[float]]

    def add(self, ply: int, batch: _Batch) -> None:
        games, count = batch.games, len(batch.games)
        self.games[ply] += int(games.sum())
        self.positions[ply] += count
        ended = self.ended.setdefault(ply, Counter())
        states = batch.states
        finished = np.asarray(states.terminated | states.truncated)[:count]
        if finished.any():
            rewards = np.asarray(states.rewards)[:count, 0]
            for reward in np.unique(rewards[finished]).tolist():
                ended[reward] += int(games[finished & (rewards == reward)].sum())

    def add_moves(self, ply: int, batch: _Batch) -> None:
        self.games[ply] += int((batch.games * _moves_of(batch)).sum())


def _root(state: Any, size: int) -> _Batch:
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (size, *jnp.shape(x))), state)
    return _Batch(states, np.ones(1, np.int64))


def _count_depth_first(
    env: Env[Any], batch: _Batch, ply: int, last: int, counts: _Counts
) -> None:
    counts.add(ply, batch)
    if ply < last:
        for children in _children(env, batch):
            _count_depth_first(env, children, ply + 1, last, counts)
    elif ply + 1 < len(counts.games):
        counts.add_moves(ply + 1, batch)


def _count_by_plies(env: Env[Any], root: _Batch, last: int, counts: _Counts) -> None:
    size = len(root.states.terminated)
    batches = [root]
    for ply in range(last + 1):
        merged = Merged(root.states, len_limit=32 * size)
        reached = 0.0
        for batch in batches:
            counts.add(ply, batch)
            reached += float(batch.games.astype(np.float64) @ _moves_of(batch))
            if ply < len(counts.games) - 1 and reached >= 2.0**63:
                raise ValueError(
                    f"more games of {ply + 1} plies than the 9.2e18 that can be "
                    f"counted: take a depth of {ply} at most"
                )
            if ply < last:
                for children in _children(env, batch):
                    merged.add(children.states, children.games)
            elif ply + 1 < len(counts.games):
                counts.add_moves(ply + 1, batch)
        batches = (_Batch(*rows) for rows in merged.batches(size))


def _children(env: Env[Any], batch: _Batch) -> Iterator[_Batch]:
    """All states that legal moves lead to, as many as fit in a batch at a time."""
    mask = np.asarray(batch.states.legal_action_mask)
    size, num_actions = mask.shape
    moves = np.flatnonzero(mask[: len(batch.games)])
    for first in range(0, len(moves), size):
        rows, actions = np.divmod(moves[first : first + size], num_actions)
        filled = (np.resize(part, size).astype(np.int32) for part in (rows, actions))
        yield _Batch(_step_rows(env, batch.states, *filled), batch.games[rows])


@partial(jax.jit, static_argnames="env")
def _step_rows(env, states, rows, actions):
    """The states after an action in some rows of the states."""
    parents = jax.tree.map(lambda leaf: leaf[rows], states)
    return jax.vmap(env.step)(parents, actions)


def _moves_of(batch: _Batch) -> np.ndarray:
    """How many legal moves each state has, [n] int32."""
    return np.asarray(_num_moves(batch.states))[: len(batch.games)]


@jax.jit
def _num_moves(states):
    return states.legal_action_mask.sum(axis=1, dtype=jnp.int32)


def _check(
    env: Env[Any], state: Any, depth: int, batch: int, least_depth: int = 0
) -> None:
    for name, value, least in (("depth", depth, least_depth), ("batch", batch, 1)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is a whole number from {least}, got {value!r}")
    mask = jnp.shape(state.legal_action_mask)
    if mask != (env.num_actions,):
        at_once = mask == (env.num_players, env.num_actions)
        view = f"; count its sequential view, sequential:{env.id}" if at_once else ""
        raise ValueError(
            f"perft takes one state of a game whose players move in turn, its mask of "
            f"shape ({env.num_actions},); got a mask of shape {mask}{view}"
        )
