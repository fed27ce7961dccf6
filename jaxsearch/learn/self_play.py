"""Self-play: B games at once, each move chosen by a search, all on the device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from jaxsearch.learn.replay import Plies
from jaxsearch.search import TwoPlayerModel
from jaxsearch.vector import (
    auto_reset,
    is_finished,
    random_actions,
    select_rows,
    start_all,
    step_all,
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class GameCounts:
    """How the games of an insertion ended, summed over its plies: [] int32 each."""

    plies: jax.Array
    games: jax.Array
    wins_first: jax.Array  # by player 0
    wins_second: jax.Array
    draws: jax.Array
    truncated: jax.Array


SearchFn = Callable[..., mctx.PolicyOutput]
"""`(params, key, root, recurrent_fn, invalid_actions) -> mctx.PolicyOutput`."""


def start_games(env: Any, key: jax.Array, batch_size: int, opening_plies: int) -> Any:
    """States [B] at the start of games, after 0 to `opening_plies` random moves.

    The number of moves is drawn evenly for each game. A random move that would end the
    game is not played.
    """
    init_key, length_key, moves_key = jax.random.split(key, 3)
    states = start_all(env, init_key, batch_size)
    lengths = jax.random.randint(length_key, (batch_size,), 0, opening_plies + 1)

    def ply(number, states):
        action_key, step_key = jax.random.split(jax.random.fold_in(moves_key, number))
        actions = random_actions(action_key, states)
        moved = step_all(env, states, actions, step_key)
        return select_rows((number < lengths) & ~is_finished(moved), moved, states)

    return jax.lax.fori_loop(0, opening_plies, ply, states)


def play(
    env: Any,
    model: TwoPlayerModel,
    search: SearchFn,
    params: Any,
    key: jax.Array,
    states: Any,
    *,
    num_plies: int,
    opening_plies: int,
) -> tuple[Any, Plies, GameCounts]:
    """Plays `num_plies` moves in each of B games; a finished game is replaced at once.

    Returns the states to go on from, the plies [T, B, ...] and the counts of games that
    ended. The key is consumed.
    """
    step = auto_reset(
        env, lambda key, batch_size: start_games(env, key, batch_size, opening_plies)
    )

    def ply(states, key):
        root_key, search_key, step_key = jax.random.split(key, 3)
        root = model.root_fn(params, root_key, states)
        invalid_actions = ~states.legal_action_mask
        output = search(params, search_key, root, model.recurrent_fn, invalid_actions)
        moved = step(states, jnp.asarray(output.action), step_key)
        record = Plies(
            observation=jax.vmap(env.observe)(states),
            legal_action_mask=states.legal_action_mask,
            policy_target=jnp.asarray(output.action_weights, jnp.float32),
            search_value=jnp.asarray(output.search_tree.summary().value, jnp.float32),
            player=states.current_player,
            rewards=moved.after.rewards,
            terminated=moved.after.terminated,
            truncated=moved.after.truncated,
        )
        return moved.states, record

    states, plies = jax.lax.scan(ply, states, jax.random.split(key, num_plies))
    return states, plies, _count_games(plies)


def _count_games(plies: Plies) -> GameCounts:
    first = plies.rewards[..., 0]

    def count(condition):
        return jnp.sum(condition, dtype=jnp.int32)

    return GameCounts(
        plies=jnp.int32(plies.player.size),
        games=count(plies.terminated | plies.truncated),
        wins_first=count(plies.terminated & (first > 0)),
        wins_second=count(plies.terminated & (first < 0)),
        draws=count(plies.terminated & (first == 0)),
        truncated=count(plies.truncated),
    )
