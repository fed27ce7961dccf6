"""What a game is: the state, the `Env` base class and its step.

Shapes: A is the number of actions, P of players, S of symmetries. Every function here
is unbatched: callers use `jax.vmap`.
"""

import abc
import dataclasses
import functools
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from envs import svg


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """What the state of every game holds; a game's own state adds its position.

    A game is finished when it is `terminated` (by its rules) or `truncated` (stopped by
    a cap on its length). A finished state has no legal action.
    """

    current_player: jax.Array  # int32: the player to move
    legal_action_mask: jax.Array  # [A] bool: True is legal
    rewards: jax.Array  # [P] float32: what the last step gave each player
    terminated: jax.Array  # bool
    truncated: jax.Array  # bool


StateT = TypeVar("StateT", bound=State)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Symmetries:
    """Maps of board and policy that go together; the first one changes nothing.

    Under symmetry s an observation `x` of shape [*board, C], a mask and a policy become

        x.reshape(num_cells, C)[cells[s]].reshape(x.shape)
        legal_action_mask[actions[s]]
        policy[actions[s]]

    so that index i of the image shows what was at `cells[s][i]`. A symmetry keeps the
    start of the game, and the image of a game is a game: values stay as they are.
    """

    cells: np.ndarray  # [S, num_cells] int32
    actions: np.ndarray  # [S, A] int32

    def __len__(self) -> int:
        return len(self.cells)


class Env(abc.ABC, Generic[StateT]):
    """A game of perfect information. Subclass it and fill in the abstract methods.

    `init`, `step` and `observe` are pure and may be jitted and vmapped. The text
    methods work on one state, on the host. `envs.make(env.id, **env.options)` makes the
    same game again. The version moves when the game behaves otherwise than before.
    """

    id: str
    version: str
    num_players: int
    num_actions: int
    observation_shape: tuple[int, ...]  # [*board, C]
    action_format: str  # what a move looks like, for error messages: "a column, 1 to 7"
    # Fields of the state that text leaves out, such as earlier positions. What they
    # forbid is legal in a state that was read, and what they ended goes on there.
    history_fields: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The options that this game was made with."""
        return {}

    @abc.abstractmethod
    def init(self, key: jax.Array | None = None) -> StateT:
        """The start of a game. A game without chance does not look at the key."""

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
        action = _within_int32(action)
        self._check_unbatched(state, action)
        finished = state.terminated | state.truncated
        # A finished state has no legal action, so that `legal` means a move is played.
        legal = state.legal_action_mask.at[action].get(
            mode="fill", fill_value=False, wrap_negative_indices=False
        )
        played = self._play(state, jnp.where(legal, action, 0).astype(jnp.int32), key)
        kept = jax.tree.map(
            lambda new, old: new if new is old else jnp.where(legal, new, old),
            played,
            state,
        )
        forfeit = jnp.where(finished, 0.0, self._forfeit(state.current_player))
        return dataclasses.replace(
            kept,
            legal_action_mask=legal & played.legal_action_mask,
            rewards=jnp.where(legal, played.rewards, forfeit),
            terminated=kept.terminated | ~(legal | finished),
        )

    @abc.abstractmethod
    def _play(self, state: StateT, action: jax.Array, key: jax.Array | None) -> StateT:
        """The rules: the state after a legal action (int32) in an unfinished state.

        It is also called with others, always within 0..A-1; its result is then dropped.
        """

    @abc.abstractmethod
    def observe(self, state: StateT) -> jax.Array:
        """What the player to move sees: [*board, C], bool or float32."""

    @abc.abstractmethod
    def to_text(self, state: StateT) -> str:
        """The position in one line; a loss by an illegal action does not show in it."""

    @abc.abstractmethod
    def from_text(self, text: str) -> StateT:
        """Reads a position; a finished one has the rewards of the step that ended it.

        Raises:
          ValueError: says what is wrong with the text, and where.
        """

    def action_to_text(self, state: StateT, action: ArrayLike) -> str:
        """The name of an action.

        Raises:
          ValueError: the action is not one of 0..A-1.
        """
        index = np.asarray(action)
        whole = index.dtype.kind in "iu" and index.ndim == 0
        if not (whole and 0 <= index < self.num_actions):
            raise ValueError(
                f"{self.id} has actions 0 to {self.num_actions - 1}, got {action!r}"
            )
        return self._action_name(state, int(index))

    @abc.abstractmethod
    def _action_name(self, state: StateT, action: int) -> str:
        """The name of an action; legal actions of one state have different names."""

    def text_to_action(self, state: StateT, text: str) -> int:
        """The legal action of that name.

        Raises:
          ValueError: no legal action has that name; names those that there are.
        """
        legal = np.flatnonzero(np.asarray(state.legal_action_mask)).tolist()
        names = {self._action_name(state, action): action for action in legal}
        name = text.strip()
        if name in names:
            return names[name]
        if not names:
            raise ValueError(f"{self.id}: no move {text!r}, the game is over")
        raise ValueError(
            f"{self.id}: {text!r} is not a legal move here; a move is "
            f"{self.action_format}; legal here: {' '.join(names)}"
        )

    def draw(self, state: StateT) -> str:
        """A drawing of the position for a terminal."""
        return self.to_text(state)

    def to_svg(self, state: StateT) -> str:
        """A drawing of the position as an SVG document."""
        return svg.of_text(self.draw(state))

    @functools.cached_property
    def symmetries(self) -> Symmetries:
        """The symmetries of the game; none but the identity unless a game has more."""
        num_cells = int(np.prod(self.observation_shape[:-1]))
        return Symmetries(
            cells=np.arange(num_cells, dtype=np.int32)[None, :],
            actions=np.arange(self.num_actions, dtype=np.int32)[None, :],
        )

    def status(self, state: StateT, names: tuple[str, ...]) -> str:
        """One line for under a drawing: who is to move, or how the game ended."""
        if not (state.terminated | state.truncated):
            return f"{names[int(state.current_player)]} to move"
        rewards = np.asarray(state.rewards)
        if not rewards.any():  # stepped past the end: what does the position say?
            final = self.from_text(self.to_text(state))
            if not (final.terminated | final.truncated):
                return "game over"
            rewards = np.asarray(final.rewards)
        if not rewards.any():
            return "draw"
        return f"{names[int(rewards.argmax())]} wins"

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"<{self.id} {self.version}{' ' + options if options else ''}>"

    def _check_unbatched(self, state: StateT, action: jax.Array) -> None:
        if not jnp.issubdtype(action.dtype, jnp.integer):
            raise ValueError(
                f"{self.id}: an action is an integer, got dtype {action.dtype}"
            )
        if action.ndim or jnp.ndim(state.terminated):
            raise ValueError(
                f"{self.id}: step plays one game, got actions of shape {action.shape} "
                f"and states of shape {jnp.shape(state.terminated)}; for a batch use "
                "jax.vmap(env.step)"
            )

    def _forfeit(self, loser: jax.Array) -> jax.Array:
        """The rewards when `loser` made an illegal move: [P] float32."""
        share = 1.0 / max(self.num_players - 1, 1)
        lost = np.arange(self.num_players, dtype=np.int32) == loser
        return jnp.where(lost, jnp.float32(-1.0), jnp.float32(share))


def _within_int32(action: ArrayLike) -> jax.Array:
    """The action as JAX holds it; one that 32 bits would cut short stays illegal."""
    if type(action) is int:
        action = min(max(action, -1), 2**31 - 1)
    xp = jnp if isinstance(action, jax.Array) else np
    action = xp.asarray(action)
    if jnp.issubdtype(action.dtype, jnp.integer) and action.dtype.itemsize == 8:
        inside = (action >= 0) & (action < 2**31)
        action = xp.where(inside, action, 2**31 - 1).astype(np.int32)
    return jnp.asarray(action)


def win_rewards(won: jax.Array, winner: jax.Array) -> jax.Array:
    """If won, +1 to the winner and -1 to the other of two, else zeros: [2] float32.

    Args:
      won: bool scalar.
      winner: int32 scalar, 0 or 1.
    """
    signs = jnp.where(np.arange(2, dtype=np.int32) == winner, 1.0, -1.0)
    return jnp.where(won, signs, 0.0).astype(jnp.float32)
