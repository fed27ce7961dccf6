"""A game in which all players choose at once: `SimultaneousEnv`.

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

from envs.game import Game, GameState, is_legal, settle


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SimultaneousState(GameState):
    """What the state of every such game holds; a game's own state adds its position.

    The fields are `legal_action_mask` [P, A] bool, a row of its own for each player,
    `rewards` [P] float32, `terminated` and `truncated`. There is no `current_player`:
    in an unfinished state every player has a legal action, and all of them choose.
    """


SimultaneousStateT = TypeVar("SimultaneousStateT", bound=SimultaneousState)


class SimultaneousEnv(Game[SimultaneousStateT]):
    """A game in which every step takes an action of each player, chosen at once.

    No player sees what the others choose before the step. All know the position; where
    `init` draws chance in advance, `observe` hides what is still to come, but the state
    holds it, and a search that steps states looks ahead with it.

    `init`, `step` and `observe` are pure and may be jitted and vmapped. The text
    methods work on one state, on the host. `envs.Sequential(game)` shows the game as an
    `Env`, in which the players choose one after the other.
    """

    def step(
        self,
        state: SimultaneousStateT,
        actions: ArrayLike,
        key: jax.Array | None = None,
    ) -> SimultaneousStateT:
        """Plays a joint action.

        A finished state stays as it is, with rewards of zero. An illegal action, or one
        outside 0..A-1, ends the game where it stands: whoever made one gets -1, and the
        others share as much. Where all made one, it is a draw.

        Args:
          state: an unbatched state.
          actions: [P] integers, the action of each player.
          key: a typed or raw key for a game with chance moves; others ignore it.

        Raises:
          ValueError: the actions are not [P] integers, or the state is batched.
        """
        actions = self._checked_action(state, actions, (self.num_players,))
        # [P]; a finished state has no legal action.
        each = jax.vmap(is_legal)(state.legal_action_mask, actions)
        legal = each.all()
        played = self._play(state, jnp.where(legal, actions, 0).astype(jnp.int32), key)
        return settle(state, played, legal, self._forfeit(~each))

    @abc.abstractmethod
    def _play(
        self, state: SimultaneousStateT, actions: jax.Array, key: jax.Array | None
    ) -> SimultaneousStateT:
        """The rules: the state after legal actions ([P] int32) in an unfinished state.

        It is also called with others, always within 0..A-1; its result is then dropped.
        """

    @abc.abstractmethod
    def observe(self, state: SimultaneousStateT, player: ArrayLike) -> jax.Array:
        """What one player sees: [*board, C], bool or float32.

        Args:
          player: an integer scalar, 0 to P - 1, which may be traced.
        """

    def action_to_text(
        self, state: SimultaneousStateT, player: int, action: ArrayLike
    ) -> str:
        """The name of one player's action.

        Raises:
          ValueError: the action is not one of 0..A-1.
        """
        self._check_player(player)
        return self._action_name(state, player, self._checked_index(action))

    @abc.abstractmethod
    def _action_name(self, state: SimultaneousStateT, player: int, action: int) -> str:
        """The name of an action; those legal for one player have different names."""

    def text_to_action(self, state: SimultaneousStateT, player: int, text: str) -> int:
        """The action of that name that is legal for the player.

        Raises:
          ValueError: no legal action has that name; names those that there are.
        """
        self._check_player(player)
        legal = np.flatnonzero(np.asarray(state.legal_action_mask)[player]).tolist()
        names = {self._action_name(state, player, action): action for action in legal}
        return self._action_called(text, names)

    def _check_player(self, player: int) -> None:
        if isinstance(player, str) or not 0 <= player < self.num_players:
            raise ValueError(
                f"{self.id} has players 0 to {self.num_players - 1}, got {player!r}"
            )

    def _to_move(self, state: SimultaneousStateT, names: tuple[str, ...]) -> str:
        del state
        return " and ".join(names)

    def _forfeit(self, lost: jax.Array) -> jax.Array:
        """The rewards when some players made an illegal move, [P] bool: [P] float32."""
        num_lost = lost.sum(dtype=jnp.int32)
        share = num_lost / jnp.maximum(self.num_players - num_lost, 1)
        rewards = jnp.where(lost, -1.0, share).astype(jnp.float32)
        return jnp.where(lost.all(), 0.0, rewards)
