"""Solved positions: how often a player keeps the outcome of perfect play."""

import dataclasses
import importlib.resources
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.arena import solved_game
from jaxsearch.arena.elo import Z_95
from jaxsearch.arena.players import Player
from jaxsearch.arena.solved_game import AllReplies, play_all_replies, solve_game

GAME = "connect_four"
"""The game of which solved positions are stored."""

GAMES = (GAME, *solved_game.GAMES)
"""The games of which there are solved positions."""

BATCH_SIZE = 600
"""Positions that are searched at a time, if nothing else is said."""

_PLY_RANGES = ((0, 13), (14, 17), (18, 21), (22, 25), (26, 42))


@dataclass(frozen=True, kw_only=True)
class Share:
    """How many positions kept their outcome, of those after a range of plies."""

    first_ply: int
    last_ply: int
    kept: int
    positions: int

    @property
    def share(self) -> float:
        return self.kept / self.positions


@dataclass(frozen=True, kw_only=True)
class PositionsResult:
    """How often a player kept the outcome, with a 95% interval (Wilson's).

    Of a game that is small enough to be solved as a whole the positions are all there
    are, and `all_replies` tells how the player fares in whole games.
    """

    player: str
    kept: int
    positions: int
    share: float
    low: float
    high: float
    by_plies: tuple[Share, ...]
    all_replies: AllReplies | None = None


class SolvedPositions(NamedTuple):
    """Positions of which it is known how every move ends under perfect play."""

    states: Any  # [n]
    outcomes: np.ndarray  # [n, A] int: 1, 0, -1 for the mover, or solved_game.ILLEGAL
    plies: np.ndarray  # [n] int: stones on the board

    @property
    def outcome(self) -> np.ndarray:
        """[n] int: of perfect play, for the mover."""
        return self.outcomes.max(axis=1)

    @property
    def keeps_outcome(self) -> np.ndarray:
        """[n, A] bool: the legal moves of the best outcome."""
        return self.outcomes == self.outcome[:, None]


def check_positions(env: Any, *, instead: str = "a match") -> None:
    """Raises ValueError for a game without solved positions; `instead` measures it."""
    if env.id not in GAMES:
        raise ValueError(
            f"there are solved positions of {' and '.join(GAMES)} only, got a player "
            f"of {env.id}; measure it with {instead}"
        )


def evaluate_positions(
    env: Any,
    player: Player,
    *,
    key: jax.Array | None = None,
    batch_size: int = BATCH_SIZE,
) -> PositionsResult:
    """Lets a player move in all solved positions.

    Args:
      env: one of `GAMES`.
      player: who moves.
      key: consumed; the key of seed 0 if there is none.
      batch_size: positions at a time.

    Raises:
      ValueError: another game, or a batch size below 1.
    """
    check_positions(env)
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    positions = solved_positions(env)
    count = len(positions.plies)
    batch_size = min(batch_size, count)
    key = jax.random.key(0) if key is None else key
    actions = []
    for start in range(0, count, batch_size):
        # The last batch is filled up, so that one size is compiled.
        rows = np.arange(start, start + batch_size) % count
        states = jax.tree.map(lambda leaf: leaf[rows], positions.states)  # noqa: B023
        batch_key = jax.random.fold_in(key, start)
        actions.append(choose_actions(player, batch_key, states))
    moves = np.concatenate(actions)[:count]
    kept = keeps_outcome(positions, moves)
    result = positions_result(player.name, kept, positions.plies)
    if env.id in solved_game.GAMES:
        replies = play_all_replies(solve_game(env), moves)
        result = dataclasses.replace(result, all_replies=replies)
    return result


@cache
def solved_positions(env: Any) -> SolvedPositions:
    """The solved positions of one of `GAMES`.

    Of connect four a file holds some, with a score of each move, whose sign is the
    outcome for the side to move.
    """
    if env.id in solved_game.GAMES:
        solved = solve_game(env)
        return SolvedPositions(solved.states, solved.outcomes, solved.plies)
    data = importlib.resources.files("jaxsearch.arena") / "data"
    text = (data / "connect_four_solved.json").read_text()
    records = json.loads(text)["data"]
    states = [env.from_text(record["moves"]) for record in records]
    legal = np.stack([np.asarray(state.legal_action_mask) for state in states])
    outcomes = np.sign([record["scores"] for record in records])
    return SolvedPositions(
        states=jax.tree.map(lambda *leaves: jnp.stack(leaves), *states),
        outcomes=np.where(legal, outcomes, solved_game.ILLEGAL),
        plies=np.array([len(record["moves"]) for record in records]),
    )


def choose_actions(player: Player, key: jax.Array, states: Any) -> np.ndarray:
    """The player's moves [B] in a batch of positions."""
    return np.asarray(_choose(player.choose, player.params, key, states))


def keeps_outcome(positions: SolvedPositions, actions: np.ndarray) -> np.ndarray:
    """Whether the action [..., n] of each position keeps its outcome: [..., n] bool."""
    num_actions = positions.keeps_outcome.shape[1]
    inside = (actions >= 0) & (actions < num_actions)
    rows = np.arange(len(positions.plies))
    return inside & positions.keeps_outcome[rows, np.where(inside, actions, 0)]


def positions_result(
    name: str, kept: Sequence[bool] | np.ndarray, plies: np.ndarray
) -> PositionsResult:
    """Counts what was kept."""
    kept = np.asarray(kept)
    ranges = []
    for first, last in _PLY_RANGES:
        within = (plies >= first) & (plies <= last)
        if within.any():
            ranges.append(
                Share(
                    first_ply=int(plies[within].min()),
                    last_ply=int(plies[within].max()),
                    kept=int(kept[within].sum()),
                    positions=int(within.sum()),
                )
            )
    low, high = wilson_interval(int(kept.sum()), kept.size)
    return PositionsResult(
        player=name,
        kept=int(kept.sum()),
        positions=kept.size,
        share=float(kept.mean()),
        low=low,
        high=high,
        by_plies=tuple(ranges),
    )


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """The 95% interval of a proportion.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", 1927.
    """
    share, z = successes / trials, Z_95
    scale = 1 + z * z / trials
    center = (share + z * z / (2 * trials)) / scale
    spread = share * (1 - share) / trials + z * z / (4 * trials * trials)
    margin = z * math.sqrt(spread) / scale
    return max(center - margin, 0.0), min(center + margin, 1.0)


@partial(jax.jit, static_argnames="choose")
def _choose(choose, params, key, states):
    return choose(params, key, states)
