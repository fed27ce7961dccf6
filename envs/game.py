"""What games of every kind share: how they end, their texts, their symmetries.

Shapes: A is the number of actions, P of players, S of symmetries. Every function here
is unbatched: callers use `jax.vmap`.
"""

import abc
import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from envs import svg


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class GameState:
    """The fields that the states of all games have.

    A game is finished when it is `terminated` (by its rules) or `truncated` (stopped by
    a cap on its length). A finished state has no legal action.
    """

    legal_action_mask: jax.Array  # [A], or [P, A] where all choose at once; bool
    rewards: jax.Array  # [P] float32: what the last step gave each player
    terminated: jax.Array  # bool
    truncated: jax.Array  # bool


StateT = TypeVar("StateT", bound=GameState)


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


class Game(abc.ABC, Generic[StateT]):
    """The part of `Env` and `SimultaneousEnv` that does not ask who is to move.

    The text methods work on one state, on the host. `envs.make(game.id, **options)`
    makes the same game again from its `options`. The version moves when the game
    behaves otherwise than before.
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
    case_matters = False  # whether "c3" and "C3" are moves of different names

    @property
    def options(self) -> dict[str, Any]:
        """The options that this game was made with."""
        return {}

    @abc.abstractmethod
    def init(self, key: jax.Array | None = None) -> StateT:
        """The start of a game. A game without chance does not look at the key."""

    @abc.abstractmethod
    def to_text(self, state: StateT) -> str:
        """The position in one line; a loss by an illegal action does not show in it."""

    @abc.abstractmethod
    def from_text(self, text: str) -> StateT:
        """Reads a position; a finished one has the rewards of the step that ended it.

        Args:
          text: as `to_text` writes it; some games read other notations too.

        Returns:
          An unbatched state, of the type that `step` takes.

        Raises:
          ValueError: says what is wrong with the text, and where.
        """

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
        """One line for under a drawing: who is to move, or how the game ended.

        Args:
          names: what the players are called, player 0 first.
        """
        if not (state.terminated | state.truncated):
            return f"{self._to_move(state, names)} to move"
        rewards = np.asarray(state.rewards)
        if not rewards.any():  # stepped past the end: what does the position say?
            final = self.from_text(self.to_text(state))
            if not (final.terminated | final.truncated):
                return "game over"
            rewards = np.asarray(final.rewards)
        if not rewards.any():
            return "draw"
        return f"{names[int(rewards.argmax())]} wins"

    @abc.abstractmethod
    def _to_move(self, state: StateT, names: tuple[str, ...]) -> str:
        """Who chooses in an unfinished state."""

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"<{self.id} {self.version}{' ' + options if options else ''}>"

    def _checked_index(self, action: ArrayLike) -> int:
        """The action as an int; ValueError unless it is one of 0..A-1."""
        index = np.asarray(action)
        whole = index.dtype.kind in "iu" and index.ndim == 0
        if not (whole and 0 <= index < self.num_actions):
            raise ValueError(
                f"{self.id} has actions 0 to {self.num_actions - 1}, got {action!r}"
            )
        return int(index)

    def _action_called(self, text: str, legal: Mapping[str, int]) -> int:
        """The action of that name among the legal ones, or a ValueError with them."""
        name = text.strip()
        if name in legal:
            return legal[name]
        same = [a for known, a in legal.items() if known.lower() == name.lower()]
        if len(same) == 1 and not self.case_matters:
            return same[0]
        raise self._no_move_called(text, legal)

    def _no_move_called(self, text: str, legal: Iterable[str]) -> ValueError:
        """That no legal move has that name, with the names that there are."""
        names = " ".join(legal)
        if not names:
            return ValueError(f"{self.id}: no move {text!r}, the game is over")
        return ValueError(
            f"{self.id}: {text!r} is not a legal move here; a move is "
            f"{self.action_format}; legal here: {names}"
        )

    def _checked_action(
        self, state: StateT, action: ArrayLike, shape: tuple[int, ...]
    ) -> jax.Array:
        """What `step` is given, int32; ValueError unless it is for one game."""
        array = _within_int32(action)
        if not jnp.issubdtype(array.dtype, jnp.integer):
            raise ValueError(
                f"{self.id}: an action is an integer, got dtype {array.dtype}"
            )
        if array.shape != shape or jnp.ndim(state.terminated):
            wanted = f"an action a player, of shape {shape}; " if shape else ""
            raise ValueError(
                f"{self.id}: step plays one game, {wanted}got actions of shape "
                f"{array.shape} and states of shape {jnp.shape(state.terminated)}; for "
                "a batch use jax.vmap(env.step)"
            )
        return array


def is_legal(mask: jax.Array, action: jax.Array) -> jax.Array:
    """Whether the mask [A] allows the action, which may be out of range: bool."""
    return mask.at[action].get(
        mode="fill", fill_value=False, wrap_negative_indices=False
    )


def settle(
    before: StateT, played: StateT, legal: jax.Array, forfeit: jax.Array
) -> StateT:
    """What `step` gives: `played` if the move was legal, and else the end of the game.

    Args:
      before: the state that was stepped.
      played: the state after the move, if it was legal; dropped otherwise.
      legal: bool scalar; a finished state has no legal action.
      forfeit: [P] float32, the rewards for a move that was not legal.
    """
    finished = before.terminated | before.truncated
    kept = jax.tree.map(
        lambda new, old: new if new is old else jnp.where(legal, new, old),
        played,
        before,
    )
    return dataclasses.replace(
        kept,
        legal_action_mask=legal & played.legal_action_mask,
        rewards=jnp.where(legal, played.rewards, jnp.where(finished, 0.0, forfeit)),
        terminated=kept.terminated | ~(legal | finished),
    )


def _cut(action: Any) -> Any:
    return min(max(action, -1), 2**31 - 1) if type(action) is int else action


def _within_int32(action: ArrayLike) -> jax.Array:
    """The action as JAX holds it; one that 32 bits would cut short stays illegal."""
    given: Any = action
    if isinstance(given, list | tuple):
        given = [_cut(each) for each in given]
    xp = jnp if isinstance(given, jax.Array) else np
    action = xp.asarray(_cut(given))
    if xp is np and action.dtype.kind not in "iufbc":
        raise ValueError(f"an action is an integer, got {action.dtype}: {action!r}")
    if jnp.issubdtype(action.dtype, jnp.integer) and action.dtype.itemsize == 8:
        inside = (action >= 0) & (action < 2**31)
        action = xp.where(inside, action, 2**31 - 1).astype(np.int32)
    return jnp.asarray(action)
