"""Matches of two players: paired openings, both seats, all games side by side."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.arena.elo import EloEstimate, estimate_elo
from jaxsearch.arena.openings import Openings, random_openings
from jaxsearch.arena.players import Player
from jaxsearch.search.moves import NO_ACTION
from jaxsearch.vector import is_finished, select_rows


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Results of some games, from the view of the match's first player."""

    wins: int
    losses: int
    draws: int
    truncated: int  # stopped by a move cap, whatever the rewards were

    @property
    def games(self) -> int:
        return self.wins + self.losses + self.draws + self.truncated


@dataclass(frozen=True, kw_only=True)
class MatchResult:
    """A match from the view of `first`.

    A pair is one opening played twice with the seats exchanged. A pair with a truncated
    game is left out of the score: a cap is not a draw by the rules. Two games are the
    same if the same player made the same moves from the same opening.
    """

    game: str
    first: str
    second: str
    games: int
    opening_plies: int
    distinct_openings: int
    distinct_games: int
    moving_first: Tally  # the games that `first` began
    moving_second: Tally
    total: Tally
    scored_pairs: int
    distinct_pairs: int  # of these
    pair_scores: tuple[float, ...]  # of these, the mean score of the two games
    estimate: EloEstimate | None  # None if no pair could be scored
    warnings: tuple[str, ...]  # what a reader should know before believing the score


@dataclass(frozen=True, kw_only=True)
class GamePairs:
    """Games of n openings: in row 0 the first player began, in row 1 the second did."""

    points: np.ndarray  # [2, n] float: 1, 0.5 or 0 for the first player
    truncated: np.ndarray  # [2, n] bool
    moves: np.ndarray  # [2, n, T] int32: NO_ACTION where no move was made
    position: np.ndarray  # [n] int: the opening

    def rows(self, rows: slice) -> "GamePairs":
        """Some of the pairs."""
        return GamePairs(
            points=self.points[:, rows],
            truncated=self.truncated[:, rows],
            moves=self.moves[:, rows],
            position=self.position[rows],
        )


def check_match(env: Any, games: int, opening_plies: int) -> None:
    """Raises ValueError for a game or numbers with which no match can be played."""
    if env.num_players != 2:
        raise ValueError(
            f"a match needs a game of 2 players, {env.id} has {env.num_players}"
        )
    if games < 2 or games % 2:
        raise ValueError(
            f"games must be an even number of at least 2, got {games}: every opening "
            "is played twice, with the seats exchanged"
        )
    if opening_plies < 0:
        raise ValueError(f"opening plies must be 0 or more, got {opening_plies}")


def play_match(
    env: Any,
    first: Player,
    second: Player,
    *,
    games: int,
    opening_plies: int,
    key: jax.Array,
) -> MatchResult:
    """Plays `games` games from games / 2 random openings, each with both seatings.

    The two games of a pair see the same random numbers, so that a player against itself
    scores exactly 0.5. The key is consumed.

    Raises:
      ValueError: see `check_match` and `random_openings`.
    """
    check_match(env, games, opening_plies)
    opening_key, play_key = jax.random.split(key)
    openings = random_openings(
        env, count=games // 2, num_plies=opening_plies, key=opening_key
    )
    pairs = play_pairs(env, first, second, openings, play_key)
    return match_result(env, first, second, pairs, opening_plies)


def play_pairs(
    env: Any, first: Player, second: Player, openings: Openings, key: jax.Array
) -> GamePairs:
    """Plays every opening twice. The key is consumed.

    In each turn one seat is to move: one player chooses for its half of the games, the
    other one for the other half. A game in which the other seat is to move waits.
    """
    halves = [(openings.states, openings.returns)] * 2
    players = (first, second)  # of the seat to move, in half 0 and in half 1
    seat = int(openings.states.current_player[0])
    if seat == 1:
        players = players[::-1]
    moves: list[tuple[jax.Array, ...]] = []
    while any(not bool(is_finished(states).all()) for states, _ in halves):
        turn_key = jax.random.fold_in(key, len(moves))
        turns = [
            _take_turn(env, player.choose, player.params, turn_key, half, seat)
            for player, half in zip(players, halves, strict=True)
        ]
        halves = [half for half, _ in turns]
        moves.append(tuple(actions for _, actions in turns))
        players, seat = players[::-1], 1 - seat
    returns = np.stack([np.asarray(returns) for _, returns in halves])
    lead = np.stack(
        [returns[0, :, 0] - returns[0, :, 1], returns[1, :, 1] - returns[1, :, 0]]
    )
    truncated = np.stack([np.asarray(states.truncated) for states, _ in halves])
    # The first player has seat 0 in half 0; where seat 1 began, it began in half 1.
    half, column = np.array([[0], [1]]) ^ openings.first, np.arange(len(openings.first))
    return GamePairs(
        points=((np.sign(lead) + 1) / 2)[half, column],
        truncated=truncated[half, column],
        moves=np.asarray(moves, np.int32).transpose(1, 2, 0)[half, column],
        position=openings.position,
    )


def match_result(
    env: Any, first: Player, second: Player, pairs: GamePairs, opening_plies: int
) -> MatchResult:
    """The result of pairs that were played."""
    num_pairs = len(pairs.position)
    games = np.concatenate(
        [np.broadcast_to(pairs.position[:, None], (2, num_pairs, 1)), pairs.moves],
        axis=2,
    )
    scored = ~pairs.truncated.any(axis=0)
    scores = pairs.points.mean(axis=0)[scored]
    distinct_pairs = _count_rows(np.concatenate([*games], axis=1)[scored])
    estimate = None
    if scores.size:
        estimate = estimate_elo(scores, num_distinct=distinct_pairs)
    distinct_openings = len(set(pairs.position.tolist()))
    distinct_games = sum(_count_rows(half) for half in games)
    total = _tally(pairs.points, pairs.truncated)
    warnings = []
    if distinct_games < total.games:
        warnings.append(
            f"only {distinct_games} of {total.games} games are different, from "
            f"{distinct_openings} openings: the interval counts equal pairs of games "
            "once; choose other opening plies or fewer games"
        )
    if total.truncated:
        warnings.append(
            f"{total.truncated} games were stopped by a move cap: their pairs are not "
            "in the score"
        )
    return MatchResult(
        game=env.id,
        first=first.name,
        second=second.name,
        games=total.games,
        opening_plies=opening_plies,
        distinct_openings=distinct_openings,
        distinct_games=distinct_games,
        moving_first=_tally(pairs.points[0], pairs.truncated[0]),
        moving_second=_tally(pairs.points[1], pairs.truncated[1]),
        total=total,
        scored_pairs=scores.size,
        distinct_pairs=distinct_pairs,
        pair_scores=tuple(scores.tolist()),
        estimate=estimate,
        warnings=tuple(warnings),
    )


@partial(jax.jit, static_argnames=("env", "choose"))
def _take_turn(env, choose, params, key, half, seat):
    """One move in every game where `seat` is to move; returns the games and moves."""
    states, returns = half
    acts = ~is_finished(states) & (states.current_player == seat)
    actions = choose(params, key, states)
    moved = jax.vmap(env.step)(states, actions)
    returns = returns + jnp.where(acts[:, None], moved.rewards, 0)
    states = select_rows(acts, moved, states)
    return (states, returns), jnp.where(acts, actions, NO_ACTION).astype(jnp.int32)


def _tally(points: np.ndarray, truncated: np.ndarray) -> Tally:
    ended = ~truncated
    return Tally(
        wins=int((ended & (points == 1)).sum()),
        losses=int((ended & (points == 0)).sum()),
        draws=int((ended & (points == 0.5)).sum()),
        truncated=int(truncated.sum()),
    )


def _count_rows(rows: np.ndarray) -> int:
    return len(np.unique(rows, axis=0))
