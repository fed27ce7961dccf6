"""A game whose players move in turn: the state, the `Env` base class and its step.

Shapes: A is the number of actions, P of players. Every function here is unbatched:
callers use `jax.vmap`.
"""

import abc
import dataclasses
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from envs.game import Game, GameState, Symmetries, is_legal, settle

__all__ = ["AuxiliaryTargets", "Env", "State", "Symmetries", "win_rewards"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class State(GameState):
    """What the state of every game holds; a game's own state adds its position.

    The other fields are `legal_action_mask` [A] bool, where True is legal, `rewards`
    [P] float32, what the last step gave each player, `terminated` and `truncated`.
    """

    current_player: jax.Array  # int32: the player to move


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class AuxiliaryTargets:
    """What a final board tells beside the result, all in the view of player 0."""

    ownership: jax.Array  # [*board] int8: 1 mine, -1 the opponent's, 0 nobody's
    score: jax.Array  # float32: my points less the opponent's


StateT = TypeVar("StateT", bound=State)


class Env(Game[StateT]):
    """A game of perfect information. Subclass it and fill in the abstract methods.

    `init`, `step` and `observe` are pure and may be jitted and vmapped. The text
    methods work on one state, on the host. `envs.make(env.id, **env.options)` makes the
    same game again. The version moves when the game behaves otherwise than before.
    """

    def step(
        self, state: StateT, action: ArrayLike, key: jax.Array | None = None
    ) -> StateT:
        """Plays an action.

        A finished state stays as it is, with rewards of zero. An illegal action, or one
        outside 0..A-1, ends the game where it stands: its mover gets -1 and the others
        share +1.

        Args:
          state: an unbatched state.
          action: an integer scalar.
          key: a typed or raw key for a game with chance moves; others ignore it.

        Raises:
          ValueError: the action is not an integer, or the state or action is batched.
        """
        action = self._checked_action(state, action, ())
        # A finished state has no legal action, so that `legal` means a move is played.
        legal = is_legal(state.legal_action_mask, action)
        played = self._play(state, jnp.where(legal, action, 0).astype(jnp.int32), key)
        return settle(state, played, legal, self._forfeit(state.current_player))

    @abc.abstractmethod
    def _play(self, state: StateT, action: jax.Array, key: jax.Array | None) -> StateT:
        """The rules: the state after a legal action (int32) in an unfinished state.

        It is also called with others, always within 0..A-1; its result is then dropped.
        """

    @abc.abstractmethod
    def observe(self, state: StateT) -> jax.Array:
        """What the player to move sees: [*board, C], bool or float32."""

    def action_to_text(self, state: StateT, action: ArrayLike) -> str:
        """The name of an action.

        Args:
          state: an unbatched state.
          action: an integer scalar, legal in it or not.

        Raises:
          ValueError: the action is not one of 0..A-1.
        """
        return self._action_name(state, self._checked_index(action))

    @abc.abstractmethod
    def _action_name(self, state: StateT, action: int) -> str:
        """The name of an action; legal actions of one state have different names."""

    def text_to_action(self, state: StateT, text: str) -> int:
        """The legal action of that name.

        Args:
          state: an unbatched state.
          text: a name as `action_to_text` writes it; some games read others too.

        Raises:
          ValueError: no legal action has that name; names those that there are.
        """
        legal = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
        names = {self._action_name(state, action): action for action in legal}
        return self._action_called(text, names)

    def _to_move(self, state: StateT, names: tuple[str, ...]) -> str:
        return names[int(state.current_player)]

    def _forfeit(self, loser: jax.Array) -> jax.Array:
        """The rewards when `loser` made an illegal move: [P] float32."""
        share = 1.0 / max(self.num_players - 1, 1)
        lost = np.arange(self.num_players, dtype=np.int32) == loser
        return jnp.where(lost, jnp.float32(-1.0), jnp.float32(share))


def win_rewards(won: jax.Array, winner: jax.Array) -> jax.Array:
    """If won, +1 to the winner and -1 to the other of two, else zeros: [2] float32.

    Args:
      won: bool scalar.
      winner: int32 scalar, 0 or 1.
    """
    signs = jnp.where(np.arange(2, dtype=np.int32) == winner, 1.0, -1.0)
    return jnp.where(won, signs, 0.0).astype(jnp.float32)
