"""The part of `check_env` about what a game says of itself and how it starts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.env import State
from envs.faults import check_same_type, host, require, same
from envs.game import Game
from envs.sequential import Sequential
from envs.simultaneous import SimultaneousEnv, SimultaneousState

ARRAYS = (jax.Array, np.ndarray, np.generic)


def check_attributes(env: Game[Any]) -> None:
    kinds = {
        "id": str,
        "version": str,
        "num_players": int,
        "num_actions": int,
        "observation_shape": tuple,
        "action_format": str,
        "options": dict,
    }
    for name, kind in kinds.items():
        value: Any = getattr(env, name, None)
        wanted = "an int >= 1" if kind is int else f"a {kind.__name__}"
        require(
            isinstance(value, kind) and (kind is not int or value >= 1),
            env,
            f"{name} must be {wanted}, got {value!r}",
        )
    # A view has the options of its game and takes the game itself.
    _check_options(env.game if isinstance(env, Sequential) else env)


def _check_options(env: Game[Any]) -> None:
    kind = type(env)
    try:
        again = kind(**env.options)
    except (TypeError, ValueError) as error:
        why = f": {error}"
    else:
        told = ("id", "num_players", "num_actions", "observation_shape", "options")
        differ = [name for name in told if getattr(again, name) != getattr(env, name)]
        why = f", but {', '.join(differ)} differ" if differ else ""
    require(
        not why,
        env,
        "options must be the arguments that make the game again, got "
        f"{kind.__name__}(**{env.options}){why}",
    )


def check_init(env: Game[Any], seed: int) -> None:
    key = jax.random.key(seed)
    with jax.legacy_prng_key("allow"):
        state, raw = env.init(key), env.init(jax.random.key_data(key))
    _check_start(env, state)
    require(
        same(host(state), host(raw)),
        env,
        "init must give the same state for a typed key and for its raw data",
    )
    action = jnp.zeros(state.legal_action_mask.shape[:-1], jnp.int32)
    stepped = jax.eval_shape(env.step, state, action, key)  # type: ignore[attr-defined]
    check_same_type(env, state, stepped, "step")
    require(
        not (np.any(state.rewards) or state.terminated or state.truncated),
        env,
        "init must give an unfinished state with zero rewards",
    )


def _check_start(env: Game[Any], state: Any) -> None:
    """Types and dtypes, before anything is traced with them."""
    kind = type(state).__name__
    wanted = SimultaneousState if isinstance(env, SimultaneousEnv) else State
    require(
        isinstance(state, wanted),
        env,
        f"init must give a subclass of envs.{wanted.__name__}, got {kind}",
    )
    require(
        not jax.tree_util.all_leaves([state]),
        env,
        f"a state must be a pytree: put @jax.tree_util.register_dataclass over {kind}",
    )
    check_fields(env, state)
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        require(
            isinstance(leaf, ARRAYS),
            env,
            f"a state must hold arrays only, got {leaf!r} in "
            f"{jax.tree_util.keystr(path)}",
        )


def check_fields(env: Game[Any], state: Any, *, batched: bool = False) -> None:
    """Requires the fields of every state with their dtypes and shapes."""
    at_once = isinstance(env, SimultaneousEnv)
    seats = (env.num_players,) if at_once else ()
    fields: dict[str, tuple[Any, tuple[int, ...]]] = {
        "legal_action_mask": (np.bool_, (*seats, env.num_actions)),
        "rewards": (np.float32, (env.num_players,)),
        "terminated": (np.bool_, ()),
        "truncated": (np.bool_, ()),
    }
    if not at_once:
        fields["current_player"] = (np.int32, ())
    for name, (dtype, shape) in fields.items():
        leaf = getattr(state, name)
        is_array = isinstance(leaf, ARRAYS)
        got = leaf.shape[int(batched) :] if is_array else None
        require(
            is_array and leaf.dtype == dtype and got == shape,
            env,
            f"{name} must be {np.dtype(dtype)} of shape {shape}, got "
            + (f"{leaf.dtype} of shape {got}" if is_array else repr(leaf)),
        )
