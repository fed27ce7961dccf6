"""A test of the contract that any game can be put through."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from envs.check_start import check_attributes, check_fields, check_init
from envs.check_text import check_texts
from envs.env import AuxiliaryTargets
from envs.faults import host, require, require_rows, same, same_rows
from envs.game import Game
from envs.simultaneous import SimultaneousEnv

EAGER_PLIES = 3  # plies that are also stepped without jit


class _Batched:
    """The game's functions, jitted and vmapped, and how often step was traced.

    M players move in a step: one, or in a game of simultaneous moves all of them. Both
    kinds of games have actions [B, M] and observations [B, M, *board, C] here.
    """

    def __init__(self, env: Any):
        self.num_traces = 0
        self.at_once = isinstance(env, SimultaneousEnv)
        self.init = jax.jit(jax.vmap(env.init))
        self.observe = jax.jit(jax.vmap(self.observe_one))
        self.step = jax.jit(jax.vmap(self._step))
        tell = getattr(env, "auxiliary_targets", None)
        self.tell = jax.jit(jax.vmap(tell)) if tell else None
        self._env = env

    def _step(self, state: Any, actions: jax.Array, key: jax.Array) -> Any:
        self.num_traces += 1
        return self.step_one(state, actions, key)

    def step_one(self, state: Any, actions: Any, key: jax.Array) -> Any:
        return self._env.step(state, actions if self.at_once else actions[0], key)

    def observe_one(self, state: Any) -> jax.Array:
        if not self.at_once:
            return self._env.observe(state)[None]
        players = jnp.arange(self._env.num_players, dtype=jnp.int32)
        return jax.vmap(self._env.observe, (None, 0))(state, players)

    def movers(self, seen: Any) -> np.ndarray:
        """The players who move, [B, M]."""
        if not self.at_once:
            return seen.current_player[:, None]
        players = np.arange(self._env.num_players)[None, :]
        return np.broadcast_to(players, (len(seen.terminated), players.size))

    def masks(self, seen: Any) -> np.ndarray:
        """Their masks, [B, M, A]."""
        return seen.legal_action_mask.reshape(
            len(seen.terminated), -1, self._env.num_actions
        )


class _Games(NamedTuple):
    """B random games side by side, of T plies; on the host but for states and keys."""

    states: list[Any]  # T + 1 batched states
    seen: list[Any]  # the same as numpy arrays
    observations: list[np.ndarray]  # T + 1 of [B, M, *board, C]
    actions: list[np.ndarray]  # T of [B, M] int32; any action in a finished game
    init_keys: jax.Array  # [B]
    keys: list[jax.Array]  # T of [B]


def check_env(
    env: Game[Any], *, games: int = 16, seed: int = 0, max_plies: int = 2000
) -> None:
    """Plays random games and checks that a game keeps the contract of its base class.

    That is `Env`, or `SimultaneousEnv` where all players choose at once.

    - Fields, dtypes and shapes; rewards of two players sum to zero; current_player is
      a player; who is to choose has a legal action exactly while a state is unfinished.
    - `step` compiles once; vmapped, jitted and plain calls agree; `init` takes typed
      and raw keys alike.
    - A legal action changes the state. A finished state stays, with zero rewards. An
      illegal action ends the game as its mover's loss and changes nothing else; where
      all players make one at once it ends as a draw.
    - A position and the names of its moves read back from text as they were, into a
      state that the compiled step takes; unreadable text raises ValueError.
    - A game played through a symmetry shows the images of observations and masks.
    - `auxiliary_targets`, if the game has it: dtypes and shapes, ownership of -1, 0 or
      1, a finite score, and through a symmetry the image of the ownership.

    The rules themselves are not known here, nor who should win: a game that never
    rewards anyone passes. Test both against known answers.

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
    check_attributes(env)
    check_init(env, seed)
    batched = _Batched(env)
    played = _play(env, batched, games, seed, max_plies)
    _check_auxiliary_targets(env, batched, played)
    _check_plain_calls(env, batched, played)
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


def _play(
    env: Game[Any], batched: _Batched, games: int, seed: int, max_plies: int
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
        _check_states(env, batched, seen, observations, ply)
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
        masks = batched.masks(seen)
        actions = np.argmax(random.random(masks.shape) * masks, axis=2)
        played.actions.append(actions.astype(np.int32))
        played.keys.append(jax.random.split(jax.random.fold_in(key, ply), games))
        states = batched.step(states, played.actions[-1], played.keys[-1])


def _check_states(
    env: Game[Any], batched: _Batched, seen: Any, shown: np.ndarray, ply: int
) -> None:
    check_fields(env, seen, batched=True)
    require(
        shown.dtype in (np.bool_, np.float32)
        and shown.shape[2:] == env.observation_shape
        and bool(np.isfinite(shown).all()),
        env,
        f"observe must give finite bool or float32 of shape {env.observation_shape}, "
        f"got {shown.dtype} of shape {shown.shape[2:]}",
    )
    finished, rewards = seen.terminated | seen.truncated, seen.rewards
    movers = batched.movers(seen)
    require_rows(
        (movers.min(axis=1) >= 0) & (movers.max(axis=1) < env.num_players),
        env,
        f"current_player must be 0 to {env.num_players - 1}",
        ply,
    )
    can_move = batched.masks(seen).any(axis=2)
    require_rows(
        (can_move != finished[:, None]).all(axis=1),
        env,
        "a state must have a legal action exactly while it is unfinished"
        + (", of every player" if batched.at_once else ""),
        ply,
    )
    require_rows(np.isfinite(rewards).all(axis=1), env, "rewards must be finite", ply)
    require_rows(
        (np.abs(rewards.sum(axis=1)) < 1e-6) | (env.num_players != 2),
        env,
        "the rewards of two players must sum to zero",
        ply,
    )


def _check_moves(env: Game[Any], before: Any, after: Any, ply: int) -> None:
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


def _check_plain_calls(env: Game[Any], batched: _Batched, played: _Games) -> None:
    """Plays the first game again, unbatched: jitted, and a few plies without jit."""
    step, observe = jax.jit(batched.step_one), jax.jit(batched.observe_one)
    state = env.init(played.init_keys[0])
    for ply, actions in enumerate(played.actions):
        action, key = actions[0], played.keys[ply][0]
        wanted = jax.tree.map(lambda leaf: leaf[0], played.seen[ply + 1])
        eager = ply < EAGER_PLIES
        plain = batched.step_one(state, action, key) if eager else None
        state = step(state, action, key)
        require(
            same(host(state), wanted)
            and same(np.asarray(observe(state)), played.observations[ply + 1][0]),
            env,
            f"step and observe must give the same vmapped and not (ply {ply})",
        )
        require(
            plain is None or same(host(plain), wanted),
            env,
            f"step must give the same jitted and not (ply {ply})",
        )


def _check_illegal_moves(
    env: Game[Any], batched: _Batched, played: _Games, ply: int, seed: int
) -> None:
    """Steps every game with an action off its mask, with -1 and with A.

    Where all players move at once each does so alone, and then all of them.
    """
    before, legal = played.seen[ply], played.actions[ply]
    masks, live = batched.masks(before), ~(before.terminated | before.truncated)
    chances = np.random.default_rng((seed, ply)).random(masks.shape) * ~masks
    off_mask = np.where(masks.all(axis=2), env.num_actions, chances.argmax(axis=2))
    movers = batched.movers(before)  # [B, M]
    num_movers = movers.shape[1]
    wrong = [np.arange(num_movers) == mover for mover in range(num_movers)]
    if batched.at_once:
        wrong.append(np.ones(num_movers, bool))
    below, above = off_mask * 0 - 1, off_mask * 0 + env.num_actions
    for who, illegal in itertools.product(wrong, (off_mask, below, above)):
        actions = np.where(who[None, :], illegal, legal).astype(np.int32)
        players = np.arange(env.num_players)[None, :, None]
        lost = (who[None, None, :] & (movers[:, None, :] == players)).any(axis=2)
        draw = batched.at_once and bool(who.all())
        share = who.sum() / max(env.num_players - who.sum(), 1)
        wanted = np.where(draw, 0.0, np.where(lost, -1.0, share))
        shown = actions if batched.at_once else actions[:, 0]
        after = host(batched.step(played.states[ply], actions, played.keys[ply]))
        ended = after.terminated & ~batched.masks(after).any(axis=(1, 2))
        require_rows(
            ~live | ended & np.isclose(after.rewards, wanted).all(axis=1),
            env,
            "an illegal action of all players must end the game as a draw"
            if draw
            else "an illegal action must end the game with -1 for its mover and +1 "
            "shared by the others",
            ply,
            shown,
        )
        written = ("rewards", "terminated", "legal_action_mask")
        require_rows(
            ~live | same_rows(before, after, but=written),
            env,
            "an illegal action must leave the position as it is",
            ply,
            shown,
        )


def _check_auxiliary_targets(env: Game[Any], batched: _Batched, played: _Games) -> None:
    """Of all states, as they may be asked for in any."""
    if batched.tell is None:
        return
    board = env.observation_shape[:-1]
    for ply, states in enumerate(played.states):
        told = batched.tell(states)
        kind = type(told).__name__
        require(
            isinstance(told, AuxiliaryTargets),
            env,
            f"auxiliary_targets must give envs.AuxiliaryTargets, got {kind}",
        )
        ownership, score = np.asarray(told.ownership), np.asarray(told.score)
        require(
            (ownership.dtype, ownership.shape[1:]) == (np.int8, board)
            and (score.dtype, score.shape[1:]) == (np.float32, ()),
            env,
            f"auxiliary_targets must give ownership int8 of shape {board} and a score "
            f"float32 of shape (), got {ownership.dtype} of shape "
            f"{ownership.shape[1:]} and {score.dtype} of shape {score.shape[1:]}",
        )
        flat = ownership.reshape(len(ownership), -1)
        require_rows(
            (np.abs(flat.astype(int)) <= 1).all(axis=1) & np.isfinite(score),
            env,
            "auxiliary_targets must give ownership of -1, 0 or 1 and a finite score",
            ply,
        )


def _check_symmetries(env: Game[Any], batched: _Batched, played: _Games) -> None:
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
            flat = shown.reshape(*shown.shape[:2], num_cells, -1)
            image = flat[:, :, cells[number]].reshape(shown.shape)
            masks = batched.masks(seen)[:, :, actions[number]]
            got = host(states)
            require_rows(
                same_rows(np.asarray(batched.observe(states)), image)
                & (batched.masks(got) == masks).all(axis=(1, 2))
                & (got.rewards == seen.rewards).all(axis=1)
                & (batched.movers(got) == batched.movers(seen)).all(axis=1)
                & (got.terminated == seen.terminated),
                env,
                f"a game played through symmetry {number} must show the image of the "
                "observation and of the mask, and the same rewards",
                ply,
            )
            if batched.tell is not None:
                mapped, owned = (
                    np.asarray(batched.tell(x).ownership).reshape(-1, num_cells)
                    for x in (states, played.states[ply])
                )
                require_rows(
                    (mapped == owned[:, cells[number]]).all(axis=1),
                    env,
                    f"a game played through symmetry {number} must tell the image of "
                    "the ownership",
                    ply,
                )
