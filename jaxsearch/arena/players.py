"""Players: whatever chooses moves for a batch of positions."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxsearch.arena.noiseless_search import noiseless_search
from jaxsearch.arena.playouts import playout_evaluate
from jaxsearch.search.moves import NO_ACTION
from jaxsearch.search.two_player import EvaluateFn
from jaxsearch.vector import random_actions

TeachFn = Callable[[Any, jax.Array, Any], tuple[jax.Array, jax.Array]]

STRONGEST: dict[str, Any] = {"c_puct": 1.5, "solve": True}
"""Options of the search "puct" with which a net plays best, see docs/evaluate.md."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Player:
    """A name for reports, parameters, and a function that chooses moves.

    `choose(params, key, states [B])` gives actions [B] int32. It can be jitted, and
    consumes the key. Rows whose game is finished may get any action. A player with a
    net has its parameters first in the tuple `params`.

    `teach`, of the same arguments, gives what a net can learn from the player: how good
    it finds the moves, [B, A] float32 that sum to 1 over the legal ones, and the value
    of the positions, [B] float32, for the player to move. Finished rows get anything.
    """

    name: str
    params: Any
    choose: Callable[[Any, jax.Array, Any], jax.Array]
    teach: TeachFn | None = None  # None where there is nothing to learn

    def with_net(self, params: Any) -> "Player":
        """The same player with other parameters of its net; compiles nothing anew."""
        return dataclasses.replace(self, params=(params, *self.params[1:]))


class Agent(Protocol):
    """What a trained net and its game must offer to become a player."""

    @property
    def env(self) -> Any: ...
    @property
    def params(self) -> Any: ...
    @property
    def evaluate(self) -> EvaluateFn: ...


def random_player() -> Player:
    """Plays every legal move with the same probability."""

    def choose(params, key, states):
        del params
        return random_actions(key, states)

    return Player(name="random", params=None, choose=choose)


def raw_player(agent: Agent, *, name: str = "raw") -> Player:
    """Plays the legal move of highest prior, without a search; teaches the priors."""

    def choose(params, key, states):
        prior_logits, _ = agent.evaluate(params[0], key, states)
        legal = states.legal_action_mask
        action = jnp.argmax(jnp.where(legal, prior_logits, -jnp.inf), axis=-1)
        return jnp.where(legal.any(axis=-1), action, NO_ACTION).astype(jnp.int32)

    def teach(params, key, states):
        prior_logits, value = agent.evaluate(params[0], key, states)
        lowest = jnp.finfo(prior_logits.dtype).min
        masked = jnp.where(states.legal_action_mask, prior_logits, lowest)
        return jax.nn.softmax(masked.astype(jnp.float32)), value.astype(jnp.float32)

    return Player(name=name, params=(agent.params,), choose=choose, teach=teach)


def search_player(
    agent: Agent,
    *,
    num_simulations: int,
    search: str = "puct",
    c_puct: ArrayLike | None = None,
    temperature: float = 0.0,
    solve: bool = False,
    name: str = "search",
) -> Player:
    """Plays what a search guided by the agent's net chooses, without noise.

    It teaches the weights that the search gives the moves, and the value of its root.

    Args:
      agent: the net and its game.
      num_simulations: for each move.
      search: one of `policy_names()`.
      c_puct: the constant of AlphaGo Zero's rule, for the search "puct" alone; a number
        or one for each row of the batches that this player will see. None leaves the
        search its own formula.
      temperature: 0 plays the most visited move.
      solve: see `noiseless_search`.
      name: for reports.

    Raises:
      ValueError: an unknown search, or a value that it does not take.
    """
    if c_puct is not None and search != "puct":
        raise ValueError(f"a constant c_puct needs search=puct, got search={search}")
    run = noiseless_search(
        agent.env,
        agent.evaluate,
        search=search,
        num_simulations=num_simulations,
        temperature=temperature,
        solve=solve,
    )

    def choose(params, key, states):
        params, c_puct = params
        output: Any = run(params, key, states, c_puct)
        return output.action

    def teach(params, key, states):
        params, c_puct = params
        output: Any = run(params, key, states, c_puct)
        weights = jnp.asarray(output.action_weights, jnp.float32)
        return weights, jnp.asarray(output.search_tree.summary().value, jnp.float32)

    # In the parameters, so that another constant compiles nothing anew.
    constant = None if c_puct is None else np.asarray(c_puct, np.float32)
    params = agent.params, constant
    return Player(name=name, params=params, choose=choose, teach=teach)


def uct_player(env: Any, *, num_simulations: int, c: float = 4.0) -> Player:
    """Searches with uniform priors and one random game for each leaf.

    A child's score is its mean result, from -1 to 1, plus
    c * P * sqrt(N) / (1 + n), with P = 1 / the number of legal moves. The default c is
    the best of 0.5, 1, 2, 4 and 8 on the solved connect-four positions, see
    docs/evaluate.md.
    """

    return search_player(
        _Playouts(env=env, evaluate=playout_evaluate(env)),
        num_simulations=num_simulations,
        c_puct=c,
        name=f"uct:sims={num_simulations}&c={c:g}",
    )


@dataclass(frozen=True, kw_only=True)
class _Playouts:
    """Random games in the place of an agent's net."""

    env: Any
    evaluate: EvaluateFn
    params: None = None
