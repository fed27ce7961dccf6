"""Games that an agent plays with itself to be looked at, as text.

A sample is a file of a few games, each a block of lines:

    game 1
    start: ......./......./......./......./......./.......
    random moves: 0
    moves: 4 4 3 5 2 1
    result: 1-0
    final position:
    ...

The moves are those of the game's own notation. The result is "1-0" where the first
player won, "0-1", "1/2-1/2" for a draw, "*" where a cap on moves came first.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.arena.noiseless_search import noiseless_search
from jaxsearch.arena.players import Agent
from jaxsearch.learn import hosts
from jaxsearch.learn.files import write_atomically
from jaxsearch.learn.interruption import Interruption
from jaxsearch.learn.settings import Settings
from jaxsearch.search.moves import NO_ACTION
from jaxsearch.vector import (
    is_finished,
    random_actions,
    select_rows,
    start_all,
    step_all,
)

GAMES = 4  # in a sample
_MOST_PLIES = 600
_LINE = re.compile(r"^(start|random moves|moves|result): ?(.*)$", re.MULTILINE)

RecordFn = Callable[[Any, Sequence[Any], Sequence[int], str], tuple[str, str] | None]
"""`(env, states, actions, result)` to the ending of a file's name and a text, or None:
a game in a format of its own."""


@dataclass(frozen=True, kw_only=True)
class SampleGame:
    """A game as a sample holds it."""

    start: str  # the first position, as `to_text` writes it
    random_moves: int  # that it begins with
    moves: tuple[str, ...]
    result: str


class GameSampler:
    """Plays sample games, always by the same compiled program, and saves them.

    Args:
      agent: the game and the net.
      settings: the search of self-play, which plays here without noise, and the seed.
      folder: where to save.
      record: how to write games in a format of their own as well.
    """

    def __init__(
        self,
        agent: Agent,
        settings: Settings,
        folder: Path,
        record: RecordFn | None = None,
    ):
        self._env, self._folder, self._record = agent.env, folder, record
        self._seed = settings.seed
        search, num_simulations = settings.search, settings.simulations
        self._told = f"{search} with {num_simulations} simulations"
        run = noiseless_search(
            agent.env, agent.evaluate, search=search, num_simulations=num_simulations
        )
        self._take_turn = jax.jit(partial(_take_turn, agent.env, run))

    def save(self, params: Any, iteration: int, interruption: Interruption) -> None:
        """Plays games of some parameters and writes them, unless it is interrupted.

        The games depend on the seed, the parameters and the iteration alone. Of several
        processes the first one plays.

        Raises:
          OSError: they cannot be written.
        """
        if not hosts.is_first():
            return
        env, params = self._env, jax.device_get(params)
        key = jax.random.fold_in(jax.random.key(self._seed), iteration)
        text = f"{env!r}, iteration {iteration}: {GAMES} games of the agent with itself"
        parts, records = [f"{text}, {self._told}\n"], {}
        games = self._play(params, key, interruption)
        if interruption.signal_name:
            return
        for number, (states, actions, rewards) in enumerate(games):
            result = _result(rewards, states[-1])
            moves = map(env.action_to_text, states, actions)
            block = {
                "start": env.to_text(states[0]),
                "random moves": str(min(number, len(actions))),
                "moves": " ".join(moves),
                "result": result,
                "final position": "\n" + env.draw(states[-1]),
            }
            lines = [f"{name}: {value}\n" for name, value in block.items()]
            parts.append("".join([f"game {number + 1}\n", *lines]))
            if self._record and (it := self._record(env, states[:-1], actions, result)):
                suffix, record = it
                records[suffix] = records.get(suffix, "") + record
        self._folder.mkdir(exist_ok=True)
        path = self._folder / f"{iteration:07}.txt"
        for suffix, text in (("txt", "\n".join(parts)), *records.items()):
            write_atomically(path.with_suffix(f".{suffix}"), partial(_write, text))

    def _play(
        self, params: Any, key: jax.Array, interruption: Interruption
    ) -> list[tuple[list, list[int], Any]]:
        """The states, actions and sums of rewards of each game."""
        start_key, play_key = jax.random.split(key)
        states = start_all(self._env, start_key, GAMES)
        seen, made, rewards = [jax.device_get(states)], [], np.zeros((GAMES, 2))
        while not is_finished(seen[-1]).all() and len(made) < _MOST_PLIES:
            if interruption.signal_name:
                break
            turn_key = jax.random.fold_in(play_key, len(made))
            # Game n begins with n random moves, so that they differ.
            is_random = np.arange(GAMES) > len(made)
            states, actions, gained = self._take_turn(
                params, turn_key, states, is_random
            )
            seen.append(jax.device_get(states))
            made.append(np.asarray(actions))
            rewards = rewards + np.asarray(gained)
        games = []
        for row in range(GAMES):
            actions = [int(turn[row]) for turn in made if turn[row] != NO_ACTION]
            of_row = partial(jax.tree.map, lambda x, row=row: x[row])
            states = [of_row(states) for states in seen[: len(actions) + 1]]
            games.append((states, actions, rewards[row]))
        return games


def read_sample(text: str) -> list[SampleGame]:
    """The games of a sample.

    Raises:
      ValueError: the text is none.
    """
    games = []
    for block in re.split(r"(?m)^game \d+$", text)[1:]:
        lines = dict(
            re.findall(r"^(start|random moves|moves|result): ?(.*)$", block, re.M)
        )
        try:
            games.append(
                SampleGame(
                    start=lines["start"],
                    random_moves=int(lines["random moves"]),
                    moves=tuple(lines["moves"].split()),
                    result=lines["result"],
                )
            )
        except KeyError as error:
            raise ValueError(f"game {len(games) + 1} has no line {error}") from None
    if not games:
        raise ValueError("it holds no game")
    return games


def replay(env: Any, game: SampleGame) -> list[Any]:
    """The states of a game from its start, one more than its moves.

    Raises:
      ValueError: a position or move that the game does not know.
    """
    step, states = jax.jit(env.step), [env.from_text(game.start)]
    for move in game.moves:
        states.append(step(states[-1], env.text_to_action(states[-1], move)))
    return states


def _take_turn(env, run, params, key, states, is_random):
    """A move in every game [B] that goes on, random in some; with what it gained."""
    choose_key, random_key, step_key = jax.random.split(key, 3)
    chosen = run(params, choose_key, states).action
    actions = jnp.where(is_random, random_actions(random_key, states), chosen)
    moved = step_all(env, states, actions, step_key)
    over = is_finished(states)
    gained = jnp.where(over[:, None], 0, moved.rewards)
    actions = jnp.where(over, NO_ACTION, actions)
    return select_rows(over, states, moved), actions, gained


def _result(rewards: np.ndarray, final: Any) -> str:
    if not final.terminated:
        return "*"
    lead = int(np.sign(rewards[0] - rewards[1]))
    return ("1/2-1/2", "1-0", "0-1")[lead]


def _write(text: str, path: Path) -> None:
    path.write_text(text)
