"""Games in batches of one size: beside another program, and counted ply by ply."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from tests.envs.positions import jitted_step

_BATCH = 256  # states stepped in one call, so that one shape is compiled


@functools.cache
def _batched_step(env):
    return jax.jit(jax.vmap(env.step))


def step_all(env, states, actions):
    """The states, numpy arrays [N], after one action each."""
    parts = []
    for start in range(0, len(actions), _BATCH):
        rows = np.arange(start, min(start + _BATCH, len(actions)))
        padded = np.resize(rows, _BATCH)
        before = jax.tree.map(lambda leaf: leaf[padded], states)  # noqa: B023
        after = _batched_step(env)(before, np.asarray(actions[padded], np.int32))
        parts.append(jax.tree.map(lambda leaf: np.asarray(leaf)[: len(rows)], after))  # noqa: B023
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def starts(env, number: int):
    """As many times the start of the game, as numpy arrays."""
    return jax.tree.map(lambda leaf: np.stack([leaf] * number), env.init())


class Rival(NamedTuple):
    """How another program's state is read and played."""

    start: Callable[[], Any]
    look: Callable[[Any], tuple[np.ndarray, int, Any]]  # mask, mover and position
    play: Callable[[Any, int], None]  # one of our actions
    result: Callable[[Any], tuple[bool, Any]]  # whether it is over, and the rewards


def open_spiel(name: str, read: Callable[[str], Any], **settings: Any) -> Rival:
    """A game of OpenSpiel whose actions are numbered as ours.

    Args:
      read: a position from OpenSpiel's text of it.
    """
    game = pytest.importorskip("pyspiel").load_game(name, settings)

    def look(state):
        mask = np.zeros(game.num_distinct_actions(), bool)
        mask[state.legal_actions()] = True
        return mask, state.current_player(), read(str(state))

    return Rival(
        start=game.new_initial_state,
        look=look,
        play=lambda state, action: state.apply_action(int(action)),
        result=lambda state: (state.is_terminal(), np.array(state.returns())),
    )


def choose_any(rng: np.random.Generator, mask: np.ndarray) -> int:
    """A random legal action."""
    return rng.choice(np.flatnonzero(mask))


def differences_from(
    rival: Rival, env, read, num_games: int, seed: int, choose=choose_any
) -> list[str]:
    """Plays random games beside another program and says where they differ.

    Every step is compared: mask, player to move and position before it, and whether the
    game is over and its rewards after it.

    Args:
      read: the position of one of our states, as the rival's `look` gives it.
      choose: the action to play, from a random generator and a mask.
    """
    rng = np.random.default_rng(seed)
    rivals = [rival.start() for _ in range(num_games)]
    states, found, ply = starts(env, num_games), [], 0
    live = np.arange(num_games)
    while len(live):
        actions = np.zeros(len(live), np.int32)
        for row, game in enumerate(live):
            state = jax.tree.map(lambda leaf: leaf[row], states)  # noqa: B023
            mask, player, position = rival.look(rivals[game])
            where = f"game {game}, ply {ply}"
            if not np.array_equal(mask, state.legal_action_mask):
                found.append(f"{where}: mask")
            if player != state.current_player:
                found.append(f"{where}: player")
            if position != read(state):
                found.append(f"{where}: position {position} is not {read(state)}")
            actions[row] = choose(rng, mask)
            rival.play(rivals[game], actions[row])
        states, ply = step_all(env, states, actions), ply + 1
        unfinished = []
        for row, game in enumerate(live):
            over, rewards = rival.result(rivals[game])
            if over != bool(states.terminated[row]) or states.truncated[row]:
                found.append(f"game {game}, ply {ply}: over is {over}")
            if not np.array_equal(rewards, states.rewards[row]):
                found.append(f"game {game}, ply {ply}: rewards are {rewards}")
            if over:
                state = jax.tree.map(lambda leaf: leaf[row], states)  # noqa: B023
                if rival.look(rivals[game])[2] != read(state):
                    found.append(f"game {game}, ply {ply}: last position")
            elif not states.terminated[row]:
                unfinished.append(row)
        live = live[unfinished]
        states = jax.tree.map(lambda leaf: leaf[unfinished], states)  # noqa: B023
    return found


def count_games(env, num_plies: int, fields: tuple[str, ...], mark=None):
    """How many games reach plies 1 to num_plies, by way of the positions between them.

    Args:
      fields: what tells the positions of one ply apart.
      mark: which of the states reached are counted as well, states to bool [N].

    Returns:
      The games by ply, and those of them that are marked, by ply.
    """
    states, games = starts(env, 1), np.ones(1, np.int64)
    counts, marked = {}, {}
    for ply in range(1, num_plies + 1):
        row, action = np.nonzero(states.legal_action_mask)
        if ply == num_plies and mark is None:
            counts[ply] = int(games[row].sum())
            break
        reached = jax.tree.map(lambda leaf: leaf[row], states)  # noqa: B023
        states, games = step_all(env, reached, action), games[row]
        counts[ply] = int(games.sum())
        if mark is not None:
            marked[ply] = int(games[mark(states)].sum())
        keys = [getattr(states, name).reshape(len(games), -1) for name in fields]
        keys = np.concatenate([np.ascontiguousarray(k).view(np.uint8) for k in keys], 1)
        rows = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}")[:, 0]
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        merged = np.zeros(len(first), np.int64)
        np.add.at(merged, which, games)
        states = jax.tree.map(lambda leaf: leaf[first], states)  # noqa: B023
        games = merged
    return counts, marked


def check_golden_game(env, game: dict, number_of=lambda action: action) -> None:
    """Replays a recorded game: legal moves at each ply, and the result.

    Args:
      number_of: our action for one of the record's.
    """
    step = jitted_step(env)
    state = env.init()
    pairs = zip(game["actions"], game["legal_counts"], strict=True)
    for action, count in pairs:
        assert not (state.terminated or state.truncated)
        assert int(state.legal_action_mask.sum()) == count
        assert state.legal_action_mask[number_of(action)]
        state = step(state, number_of(action))
    assert state.terminated and not state.truncated
    np.testing.assert_array_equal(state.rewards, game["returns"])
