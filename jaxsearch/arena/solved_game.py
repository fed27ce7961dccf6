"""Small games solved on the host: every position, and how each of its moves ends."""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

GAMES = ("tic_tac_toe",)
"""The games that are solved within seconds, to measure players by them."""

ILLEGAL = -2
_BATCH = 1024  # positions of which all moves are made at once


@dataclass(frozen=True, kw_only=True, eq=False)
class SolvedGame:
    """All n unfinished positions of a game, the start first, in the order of plies.

    A position is what the player to move sees; it has one number in each ply.
    """

    states: Any  # [n]
    after: np.ndarray  # [n, A] int: the position after a move, -1 if there is none
    outcomes: np.ndarray  # [n, A] int: 1, 0, -1 for the mover, or ILLEGAL
    plies: np.ndarray  # [n] int

    @property
    def keeps_outcome(self) -> np.ndarray:
        """[n, A] bool: the legal moves of the best outcome."""
        return self.outcomes == self.outcomes.max(axis=1, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class AllReplies:
    """What a player does in every position that it can come to.

    It plays both colours from every opening of up to `opening_plies` plies, against
    every move that its opponent could make, a perfect player's among them.
    """

    opening_plies: int
    positions: int  # in which the player is to move
    spoiled: int  # where its move ends worse than the best one, under perfect play
    lost: int  # where its move loses and another one would not


@cache
def solve_game(env: Any) -> SolvedGame:
    """Finds all positions of a game from its start, and the outcome of every move.

    Args:
      env: a game without chance in which two players take turns and only the end has
        rewards; small, as every position is visited.
    """
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], env.init())
    layers, after, ends = [], [], []
    while len(states.terminated):
        layers.append(states)
        moved, seen, reward = _make_all_moves(env, states)
        legal = np.asarray(states.legal_action_mask)
        finished = moved.terminated | moved.truncated
        ends.append(np.where(legal & finished, reward, ILLEGAL))
        after.append(np.full(legal.shape, -1))
        found: dict[bytes, int] = {}
        edges = []
        for edge in zip(*np.nonzero(legal & ~finished), strict=True):
            name = seen[edge].tobytes()
            if name not in found:
                found[name] = len(found)
                edges.append(edge)
            after[-1][edge] = found[name]
        rows, actions = np.array(edges, int).reshape(-1, 2).T
        states = jax.tree.map(lambda x: x[rows, actions], moved)  # noqa: B023
    outcomes = _outcomes(after, ends)
    sizes = [len(layer.terminated) for layer in layers]
    first_after = np.cumsum(sizes)
    return SolvedGame(
        states=jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *layers),
        after=np.concatenate(
            [
                np.where(numbers < 0, -1, numbers + first)
                for numbers, first in zip(after, first_after, strict=True)
            ]
        ),
        outcomes=np.concatenate(outcomes),
        plies=np.repeat(np.arange(len(sizes)), sizes),
    )


def play_all_replies(
    game: SolvedGame, actions: np.ndarray, opening_plies: int = 4
) -> AllReplies:
    """Follows a player, who chooses `actions` [n], against all replies."""
    movers = np.asarray(game.states.current_player)
    counts = np.zeros(len(movers), bool)
    for seat in (0, 1):
        reached = game.plies <= opening_plies
        for row in range(len(movers)):  # by plies: what leads to a row is done
            if reached[row]:
                own = movers[row] == seat
                after = game.after[row, actions[row] if own else slice(None)]
                reached[after[after >= 0]] = True
        counts |= reached & (movers == seat)
    chosen = game.outcomes[np.arange(len(movers)), actions]
    spoiled = counts & (chosen < game.outcomes.max(axis=1))
    return AllReplies(
        opening_plies=opening_plies,
        positions=int(counts.sum()),
        spoiled=int(spoiled.sum()),
        lost=int((spoiled & (chosen == -1)).sum()),
    )


def _outcomes(after: list[np.ndarray], ends: list[np.ndarray]) -> list[np.ndarray]:
    """The outcome of every move [n, A] in each layer, from the last layer back."""
    outcomes: list[np.ndarray] = []
    best = np.zeros(1, int)  # of the layer after
    for numbers, end in zip(reversed(after), reversed(ends), strict=True):
        outcomes.insert(0, np.where(numbers < 0, end, -best[numbers]))
        best = outcomes[0].max(axis=1)
    return outcomes


def _make_all_moves(env, states):
    """States after every move [n, A], what is seen there, the sign of the reward."""
    count, parts = len(states.terminated), []
    for first in range(0, count, _BATCH):
        rows = np.arange(first, first + _BATCH) % count  # one size is compiled
        part = jax.tree.map(lambda leaf: leaf[rows], states)  # noqa: B023
        parts.append(jax.device_get(_make_moves(env, part)))
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)


@partial(jax.jit, static_argnames="env")
def _make_moves(env, states):
    def make(state, action):
        moved = env.step(state, action)
        reward = moved.rewards[state.current_player]
        return moved, env.observe(moved), jnp.sign(reward).astype(jnp.int32)

    actions = jnp.arange(env.num_actions, dtype=jnp.int32)
    return jax.vmap(jax.vmap(make, (None, 0)), (0, None))(states, actions)
