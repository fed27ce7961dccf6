"""What a run measures of its nets while it trains: a ladder, and solved positions."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.arena.elo import Ratings, fit_ratings, scored_match
from jaxsearch.arena.match import MatchResult, play_match
from jaxsearch.arena.openings import random_openings
from jaxsearch.arena.players import STRONGEST, Player, raw_player, search_player
from jaxsearch.arena.positions import BATCH_SIZE, GAMES, evaluate_positions
from jaxsearch.learn.agent import Agent
from jaxsearch.learn.config import RunConfig
from jaxsearch.search.memory import TreeTooLargeError
from jaxsearch.vector import start_all

_PROMOTED, _ANCHOR, _NEW = range(3)  # the players of an evaluation
_OPENING_PLIES = (4, 2, 1, 0)  # of a match: the first that random play survives
_BEATEN = 0.75  # at this score an opponent tells little of what is to come
_UNKNOWN = 2000.0  # standard deviation of the Elo of a net that has not played


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Ladder:
    """The two nets that the next one plays against, with what is known of their Elo.

    The first net of the run has an Elo of 0. The anchor is an older net; it moves up to
    the net promoted last as soon as new nets beat it clearly.
    """

    promoted: Any  # parameters
    anchor: Any  # parameters
    iterations: jax.Array  # [2] int32: when they were measured
    elo: jax.Array  # [2] float32
    covariance: jax.Array  # [2, 2] float32


def check_evaluation(agent: Agent[Any]) -> None:
    """Raises ValueError if the searches of an evaluation cannot be held."""
    config, env = agent.config, agent.env
    if not config.evaluate_every:
        return
    player = _searching_player(agent)
    rows = config.evaluate_games // 2
    if env.id in GAMES:
        rows = max(rows, BATCH_SIZE)

    def look(params, key):
        return player.choose(params, key, start_all(env, key, rows))

    try:
        jax.eval_shape(look, player.params, jax.random.key(0))
    except TreeTooLargeError as error:
        raise ValueError(
            f"{error}; lower --evaluate-games or --evaluate-simulations"
        ) from None


def _searching_player(agent: Agent[Any]) -> Player:
    simulations = agent.config.evaluate_simulations
    return search_player(agent, num_simulations=simulations, **STRONGEST)


class TrainingEvaluation:
    """Measures the averaged net every so many iterations.

    What an evaluation finds depends on the nets, the seed and the iteration alone. The
    players are compiled once; their nets are arguments.

    Args:
      agent: the game and the net.
      first: the first parameters, placed where self-play takes them from.

    Attributes:
      ladder: what the next evaluation needs of those before.
    """

    ladder: Ladder

    def __init__(self, agent: Agent[RunConfig], first: Any):
        self._config, self._env = agent.config, agent.env
        if not agent.config.evaluate_every:
            return
        self._key = jax.random.split(jax.random.key(agent.config.seed), 3)[2]
        self._searching = _searching_player(agent)
        self._raw = raw_player(agent)
        self._opening_plies = _opening_plies(agent.env)
        self._sharding = jax.tree.leaves(first)[0].sharding
        self.ladder = Ladder(
            promoted=_copy(first),
            anchor=_copy(first),
            iterations=self._placed(np.zeros(2, np.int32)),
            elo=self._placed(np.zeros(2, np.float32)),
            covariance=self._placed(np.zeros((2, 2), np.float32)),
        )

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {"ladder": self.ladder} if self._config.evaluate_every else {}

    def restore(self, parts: Mapping[str, Any]) -> None:
        if self._config.evaluate_every:
            self.ladder = parts["ladder"]

    @property
    def player(self) -> Any:
        """The parameters that self-play uses, or None for the newest average."""
        return self.ladder.promoted if self._config.gate else None

    def is_due(self, iteration: int) -> bool:
        every = self._config.evaluate_every
        return every > 0 and iteration % every == 0

    def measure(self, iteration: int, average: Any) -> dict[str, Any]:
        """Measures the averaged net of an iteration; gives figures."""
        began = time.monotonic()
        figures = self._climb(iteration, average)
        if self._env.id in GAMES:
            net = _local(average)
            for name, player in (("raw", self._raw), ("search", self._searching)):
                result = evaluate_positions(self._env, player.with_net(net))
                figures[f"accuracy_{name}"] = result.share
        figures["evaluation_seconds"] = time.monotonic() - began
        return figures

    def _climb(self, iteration: int, average: Any) -> dict[str, Any]:
        """Plays the rivals and takes the net's place on the ladder."""
        ladder = self.ladder
        rivals = [ladder.promoted, ladder.anchor]
        if len(set(np.asarray(ladder.iterations).tolist())) == 1:
            rivals = rivals[:1]
        keys = jax.random.split(jax.random.fold_in(self._key, iteration), 2)
        matches = [
            self._play(average, rival, key)
            for rival, key in zip(rivals, keys, strict=False)
        ]
        names = ("elo", "elo_error", "score", "score_low", "score_high")
        estimate = matches[_PROMOTED].estimate
        if estimate is None:  # a cap on their length stopped a game of every pair
            return dict.fromkeys(names) | {"promoted": 0}
        ratings = self._rate(matches)
        promoted = estimate.score >= self._config.gate
        moves_up = False
        if len(matches) > _ANCHOR and (against := matches[_ANCHOR].estimate):
            moves_up = against.score >= _BEATEN
        kept = [_NEW if promoted else _PROMOTED, _PROMOTED if moves_up else _ANCHOR]
        nets = (ladder.promoted, ladder.anchor, average)
        iterations = np.append(ladder.iterations, iteration)
        covariance = ratings.covariance[np.ix_(kept, kept)]
        self.ladder = Ladder(
            promoted=_copy(nets[kept[0]]),
            anchor=_copy(nets[kept[1]]),
            iterations=self._placed(iterations[kept].astype(np.int32)),
            elo=self._placed(ratings.elo[kept].astype(np.float32)),
            covariance=self._placed(covariance.astype(np.float32)),
        )
        elo = float(ratings.elo[_NEW]), float(ratings.errors[_NEW])
        score = estimate.score, estimate.score_low, estimate.score_high
        figures = dict(zip(names, (*elo, *score), strict=True))
        return figures | {"promoted": int(promoted)}

    def _placed(self, numbers: np.ndarray) -> jax.Array:
        """On the devices of the run, as its checkpoints want all arrays."""
        return jax.device_put(numbers, self._sharding)

    def _play(self, net: Any, rival: Any, key: jax.Array) -> MatchResult:
        first, second = (self._searching.with_net(_local(x)) for x in (net, rival))
        return play_match(
            self._env,
            first,
            second,
            games=self._config.evaluate_games,
            opening_plies=self._opening_plies,
            key=key,
        )

    def _rate(self, matches: list[MatchResult]) -> Ratings:
        """The Elo of the rivals and of the new net."""
        elo, covariance = np.asarray(self.ladder.elo, float), np.zeros((3, 3))
        covariance[:2, :2], covariance[_NEW, _NEW] = self.ladder.covariance, _UNKNOWN**2
        known = Ratings(elo=np.append(elo, elo[_PROMOTED]), covariance=covariance)
        scored = [
            scored_match(_NEW, rival, match.pair_scores, match.distinct_pairs)
            for rival, match in enumerate(matches)
            if match.pair_scores
        ]
        return fit_ratings(known, scored)


def _opening_plies(env: Any) -> int:
    for plies in _OPENING_PLIES[:-1]:
        try:
            random_openings(env, count=1, num_plies=plies, key=jax.random.key(0))
        except ValueError:
            continue
        return plies
    return _OPENING_PLIES[-1]


def _copy(params: Any) -> Any:
    """Learning steps consume the averaged parameters."""
    return jax.tree.map(jnp.copy, params)


def _local(params: Any) -> Any:
    """On one device: the games of a match are too few to be spread."""
    return jax.device_put(jax.device_get(params))
