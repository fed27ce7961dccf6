"""A test of the contract that any game can be put through."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.check_text import check_texts
from envs.env import Env, State
from envs.faults import check_same_type, host, require, require_rows, same, same_rows

EAGER_PLIES = 3  # plies that are also stepped without jit
ARRAYS = (jax.Array, np.ndarray, np.generic)


class _Batched:
    """The game's functions, jitted and vmapped, and how often step was traced."""

    def __init__(self, env: Env[Any]):
        self.num_traces = 0
        self.init = jax.jit(jax.vmap(env.init))
        self.observe = jax.jit(jax.vmap(env.observe))
        self.step = jax.jit(jax.vmap(self._step))
        self._env = env

    def _step(self, state: Any, action: jax.Array, key: jax.Array) -> Any:
        self.num_traces += 1
        return self._env.step(state, action, key)


class _Games(NamedTuple):
    """B random games side by side, of T plies; on the host but for states and keys."""

    states: list[Any]  # T + 1 batched states
    seen: list[Any]  # the same as numpy arrays
    observations: list[np.ndarray]  # T + 1 of [B, *board, C]
    actions: list[np.ndarray]  # T of [B] int32; any action in a finished game
    init_keys: jax.Array  # [B]
    keys: list[jax.Array]  # T of [B]


def check_env(
    env: Env[Any], *, games: int = 16, seed: int = 0, max_plies: int = 2000
) -> None:
    """Plays random games and checks that a game keeps the contract of `Env`.

    - Fields, dtypes and shapes; rewards of two players sum to zero; current_player is
      a player; a state has a legal action exactly while it is unfinished.
    - `step` compiles once; vmapped, jitted and plain calls agree; `init` takes typed
      and raw keys alike.
    - A legal action changes the state. A finished state stays, with zero rewards. An
      illegal action ends the game as its mover's loss and changes nothing else.
    - A position and the names of its moves read back from text as they were, into a
      state that the compiled step takes; unreadable text raises ValueError.
    - A game played through a symmetry shows the images of observations and masks.

    The rules themselves are not known here: test them against known answers.

    Args:
      env: the game.
      games: how many random games.
      seed: chooses the random games.
      max_plies: every random game must have ended by then.

    Raises:
      ValueError: names the broken part of the contract, and where it broke; or
        `games` is below 1.
    """
    require(games >= 1, env, f"games must be at least 1, got {games}")
    _check_attributes(env)
    _check_init(env, seed)
    batched = _Batched(env)
    played = _play(env, batched, games, seed, max_plies)
    _check_plain_calls(env, played)
    for ply in range(len(played.actions)):
        _check_illegal_moves(env, batched, played, ply, seed)
    check_texts(env, played.seen)
    _check_symmetries(env, batched, played)
    require(
        batched.num_traces == 1,
        env,
        f"step was compiled {batched.num_traces} times for one batch size: it must "
        "return the tree, dtypes and weak types that it takes",
    )


def _check_attributes(env: Env[Any]) -> None:
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
    _check_options(env)


def _check_options(env: Env[Any]) -> None:
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


def _check_init(env: Env[Any], seed: int) -> None:
    key = jax.random.key(seed)
    with jax.legacy_prng_key("allow"):
        state, raw = env.init(key), env.init(jax.random.key_data(key))
    _check_start(env, state)
    require(
        same(host(state), host(raw)),
        env,
        "init must give the same state for a typed key and for its raw data",
    )
    stepped = jax.eval_shape(env.step, state, jnp.int32(0), key)
    check_same_type(env, state, stepped, "step")
    require(
        not (np.any(state.rewards) or state.terminated or state.truncated),
        env,
        "init must give an unfinished state with zero rewards",
    )


def _check_start(env: Env[Any], state: Any) -> None:
    """Types and dtypes, before anything is traced with them."""
    kind = type(state).__name__
    require(
        isinstance(state, State),
        env,
        f"init must give a subclass of envs.State, got {kind}",
    )
    require(
        not jax.tree_util.all_leaves([state]),
        env,
        f"a state must be a pytree: put @jax.tree_util.register_dataclass over {kind}",
    )
    _check_fields(env, state)
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        require(
            isinstance(leaf, ARRAYS),
            env,
            f"a state must hold arrays only, got {leaf!r} in "
            f"{jax.tree_util.keystr(path)}",
        )


def _check_fields(env: Env[Any], state: Any, *, batched: bool = False) -> None:
    fields = {
        "current_player": (np.int32, ()),
        "legal_action_mask": (np.bool_, (env.num_actions,)),
        "rewards": (np.float32, (env.num_players,)),
        "terminated": (np.bool_, ()),
        "truncated": (np.bool_, ()),
    }
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


def _play(
    env: Env[Any], batched: _Batched, games: int, seed: int, max_plies: int
) -> _Games:
    """Plays random games to their ends, looking at every state."""
    random = np.random.default_rng(seed)
    key = jax.random.key(seed)
    init_keys = jax.random.split(key, games)
    played = _Games([], [], [], [], init_keys, [])
    states = batched.init(init_keys)
    while True:
        ply, seen = len(played.actions), host(states)
        observations = np.asarray(batched.observe(states))
        _check_states(env, seen, observations, ply)
        if ply:
            _check_moves(env, played.seen[-1], seen, ply - 1)
        played.states.append(states)
        played.seen.append(seen)
        played.observations.append(observations)
        if np.all(seen.terminated | seen.truncated):
            return played
        require(
            ply < max_plies,
            env,
            f"a random game is unfinished after {max_plies} plies; where games are "
            "that long, give a larger max_plies",
        )
        chances = random.random(seen.legal_action_mask.shape)
        actions = np.argmax(chances * seen.legal_action_mask, axis=1)
        played.actions.append(actions.astype(np.int32))
        played.keys.append(jax.random.split(jax.random.fold_in(key, ply), games))
        states = batched.step(states, played.actions[-1], played.keys[-1])


def _check_states(env: Env[Any], seen: Any, shown: np.ndarray, ply: int) -> None:
    _check_fields(env, seen, batched=True)
    require(
        shown.dtype in (np.bool_, np.float32)
        and shown.shape[1:] == env.observation_shape
        and bool(np.isfinite(shown).all()),
        env,
        f"observe must give finite bool or float32 of shape {env.observation_shape}, "
        f"got {shown.dtype} of shape {shown.shape[1:]}",
    )
    finished, rewards = seen.terminated | seen.truncated, seen.rewards
    require_rows(
        (seen.current_player >= 0) & (seen.current_player < env.num_players),
        env,
        f"current_player must be 0 to {env.num_players - 1}",
        ply,
    )
    require_rows(
        seen.legal_action_mask.any(axis=1) != finished,
        env,
        "a state must have a legal action exactly while it is unfinished",
        ply,
    )
    require_rows(np.isfinite(rewards).all(axis=1), env, "rewards must be finite", ply)
    require_rows(
        (np.abs(rewards.sum(axis=1)) < 1e-6) | (env.num_players != 2),
        env,
        "the rewards of two players must sum to zero",
        ply,
    )


def _check_moves(env: Env[Any], before: Any, after: Any, ply: int) -> None:
    finished = before.terminated | before.truncated
    unchanged = same_rows(before, after, but=("rewards",))
    require_rows(
        ~unchanged | finished, env, "a legal action must change the state", ply
    )
    require_rows(
        ~finished | unchanged & ~after.rewards.any(axis=1),
        env,
        "a step from a finished state must leave it as it is, with zero rewards",
        ply,
    )


def _check_plain_calls(env: Env[Any], played: _Games) -> None:
    """Plays the first game again, unbatched: jitted, and a few plies without jit."""
    step, observe = jax.jit(env.step), jax.jit(env.observe)
    state = env.init(played.init_keys[0])
    for ply, actions in enumerate(played.actions):
        action, key = actions[0], played.keys[ply][0]
        batched = jax.tree.map(lambda leaf: leaf[0], played.seen[ply + 1])
        plain = env.step(state, action, key) if ply < EAGER_PLIES else None
        state = step(state, action, key)
        require(
            same(host(state), batched)
            and same(np.asarray(observe(state)), played.observations[ply + 1][0]),
            env,
            f"step and observe must give the same vmapped and not (ply {ply})",
        )
        require(
            plain is None or same(host(plain), batched),
            env,
            f"step must give the same jitted and not (ply {ply})",
        )


def _check_illegal_moves(
    env: Env[Any], batched: _Batched, played: _Games, ply: int, seed: int
) -> None:
    """Steps every game with an action off its mask, with -1 and with A."""
    before = played.seen[ply]
    mask, live = before.legal_action_mask, ~(before.terminated | before.truncated)
    chances = np.random.default_rng((seed, ply)).random(mask.shape) * ~mask
    off_mask = np.where(mask.all(axis=1), env.num_actions, chances.argmax(axis=1))
    mover = np.arange(env.num_players)[None, :] == before.current_player[:, None]
    lost = np.where(mover, -1.0, 1.0 / max(env.num_players - 1, 1))
    for actions in (off_mask, off_mask * 0 - 1, off_mask * 0 + env.num_actions):
        after = host(
            batched.step(played.states[ply], actions.astype(np.int32), played.keys[ply])
        )
        ended = after.terminated & ~after.legal_action_mask.any(axis=1)
        require_rows(
            ~live | ended & np.isclose(after.rewards, lost).all(axis=1),
            env,
            "an illegal action must end the game with -1 for its mover and +1 shared "
            "by the others",
            ply,
            actions,
        )
        written = ("rewards", "terminated", "legal_action_mask")
        require_rows(
            ~live | same_rows(before, after, but=written),
            env,
            "an illegal action must leave the position as it is",
            ply,
            actions,
        )


def _check_symmetries(env: Env[Any], batched: _Batched, played: _Games) -> None:
    """Plays the games again through every symmetry."""
    cells, actions = env.symmetries.cells, env.symmetries.actions
    num_cells = int(np.prod(env.observation_shape[:-1]))
    for name, maps, size in (
        ("cells", cells, num_cells),
        ("actions", actions, env.num_actions),
    ):
        require(
            isinstance(maps, np.ndarray)
            and maps.dtype == np.int32
            and maps.shape == (len(cells), size)
            and bool((np.sort(maps, axis=1) == np.arange(size)[None, :]).all())
            and np.array_equal(maps[0], np.arange(size)),
            env,
            f"symmetries.{name} must be an int32 numpy array whose {len(cells)} rows "
            f"are permutations of 0 to {size - 1}, the first one the identity",
        )
    for number in range(1, len(cells)):
        image_of_action = np.argsort(actions[number]).astype(np.int32)
        states = batched.init(played.init_keys)
        for ply, seen in enumerate(played.seen):
            if ply:
                moves = image_of_action[played.actions[ply - 1]]
                states = batched.step(states, moves, played.keys[ply - 1])
            shown = played.observations[ply]
            image = shown.reshape(len(shown), num_cells, -1)[:, cells[number]]
            mask = seen.legal_action_mask[:, actions[number]]
            got = host(states)
            require_rows(
                same_rows(
                    np.asarray(batched.observe(states)), image.reshape(shown.shape)
                )
                & (got.legal_action_mask == mask).all(axis=1)
                & (got.rewards == seen.rewards).all(axis=1)
                & (got.current_player == seen.current_player)
                & (got.terminated == seen.terminated),
                env,
                f"a game played through symmetry {number} must show the image of the "
                "observation and of the mask, and the same rewards",
                ply,
            )
