"""A game of simultaneous moves as one whose players choose one after the other."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import Env, State
from envs.game import Symmetries
from envs.simultaneous import SimultaneousEnv, SimultaneousState

SEQUENTIAL_PREFIX = "sequential:"
CHOICE = " > "  # in texts, before what a player has chosen


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SequentialState(State):
    """A position and what the players before the current one have chosen in it."""

    position: SimultaneousState
    chosen: jax.Array  # [P - 1] int32; 0 where nothing is chosen yet


class Sequential(Env[SequentialState]):
    """The sequential view of a game: a turn of it takes a step of each player.

    In every turn player 0 chooses first, then player 1, and so on. The choices are
    played when the last player has made one: until then the position and what the
    players see stay as they are, and rewards are zero. `observe` shows nobody what was
    chosen in the turn. Observations, actions, symmetries and options are the game's.
    An illegal action loses at once, as in every `Env`.

    Anything that takes an `Env` runs such a game: searches, the programs, `check_env`.
    But a tree search steps states, and in its tree a later player answers the choice of
    an earlier one as if it had been seen. So it plays as though the first to choose
    showed the choice, and what it plays can be exploited: where the best play mixes
    moves at random, as in rock, paper, scissors, it finds no such play.

    As text a position is the game's, with ` > ` and the name of each choice of the turn
    behind it: "3:2-4 1 5 2 4 > 5". A move is written as in the game. A state takes as
    many bytes as the game's, and 2 + A + 8 * P more.

    Args:
      game: the game to show.

    Raises:
      ValueError: the players of the game move in turn already.
    """

    def __init__(self, game: SimultaneousEnv[Any]):
        if not isinstance(game, SimultaneousEnv):
            raise ValueError(
                f"{SEQUENTIAL_PREFIX} takes a game of simultaneous moves, got {game!r}"
                + (": its players move in turn" if isinstance(game, Env) else "")
            )
        self.game = game
        self.id = SEQUENTIAL_PREFIX + game.id
        self.version = game.version
        self.num_players = game.num_players
        self.num_actions = game.num_actions
        self.observation_shape = game.observation_shape
        self.action_format = game.action_format
        self.history_fields = game.history_fields

    @property
    def options(self) -> dict[str, Any]:
        return self.game.options

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        return self.game.symmetries

    def init(self, key: jax.Array | None = None) -> SequentialState:
        return self._turn(self.game.init(key))

    def _play(
        self, state: SequentialState, action: jax.Array, key: jax.Array | None
    ) -> SequentialState:
        player = state.current_player
        earlier = np.arange(self.num_players - 1, dtype=np.int32)
        chosen = jnp.where(earlier == player, action, state.chosen)
        is_last = player == self.num_players - 1
        actions = jnp.concatenate([chosen, action[None]])
        after = self._turn(self.game.step(state.position, actions, key))
        waiting = self._waiting(state.position, player + 1, chosen)
        return jax.tree.map(lambda x, y: jnp.where(is_last, x, y), after, waiting)

    def _turn(self, position: SimultaneousState) -> SequentialState:
        """The beginning of a turn, with the rewards of the one before."""
        nothing = jnp.zeros(self.num_players - 1, jnp.int32)
        start = self._waiting(position, jnp.int32(0), nothing)
        return dataclasses.replace(start, rewards=position.rewards)

    def _waiting(
        self, position: SimultaneousState, player: jax.Array, chosen: jax.Array
    ) -> SequentialState:
        """The state in which `player` is to choose."""
        mine = np.arange(self.num_players, dtype=np.int32)[:, None] == player
        return SequentialState(
            position=position,
            chosen=chosen,
            current_player=player,
            legal_action_mask=(position.legal_action_mask & mine).any(axis=0),
            rewards=jnp.zeros_like(position.rewards),
            terminated=position.terminated,
            truncated=position.truncated,
        )

    def observe(self, state: SequentialState) -> jax.Array:
        return self.game.observe(state.position, state.current_player)

    def to_text(self, state: SequentialState) -> str:
        return CHOICE.join([self.game.to_text(state.position), *self._choices(state)])

    def _choices(self, state: SequentialState) -> list[str]:
        chosen = np.asarray(state.chosen)[: int(state.current_player)].tolist()
        return [
            self.game.action_to_text(state.position, player, action)
            for player, action in enumerate(chosen)
        ]

    def from_text(self, text: str) -> SequentialState:
        position, *choices = text.split(CHOICE)
        state = self._turn(self.game.from_text(position))
        if len(choices) >= self.num_players:
            raise ValueError(
                f"{self.id}: {text!r} has {len(choices)} choices of one turn; the last "
                f"of {self.num_players} players is still to choose"
            )
        for player, name in enumerate(choices):
            action = self.game.text_to_action(state.position, player, name)
            chosen = state.chosen.at[player].set(action)
            state = self._waiting(state.position, jnp.int32(player + 1), chosen)
        return state

    def _action_name(self, state: SequentialState, action: int) -> str:
        player = int(state.current_player)
        return self.game.action_to_text(state.position, player, action)

    def draw(self, state: SequentialState) -> str:
        """The game's drawing, and the choices of the turn under it."""
        choices = [
            f"player {player} chose {name}"
            for player, name in enumerate(self._choices(state))
        ]
        return "\n".join([self.game.draw(state.position), *choices])

    def to_svg(self, state: SequentialState) -> str:
        return self.game.to_svg(state.position)
