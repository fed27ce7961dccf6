"""What players have to teach: lessons on positions of a file, or of their own games."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.arena.openings import position_names
from jaxsearch.arena.players import Player, TeachFn
from jaxsearch.learn.lessons import Lessons
from jaxsearch.learn.packing import Packing
from jaxsearch.learn.self_play import start_games
from jaxsearch.search.memory import TreeTooLargeError
from jaxsearch.vector import auto_reset, is_finished, start_all


class Progress(Protocol):
    """Called with the share that is done, from 0 to 1."""

    def __call__(self, share_done: float, /) -> object: ...


class Ensemble(NamedTuple):
    """Several teachers as one: the means of their policies and values."""

    params: tuple[Any, ...]
    teach: TeachFn


def ensemble(teachers: Sequence[Player]) -> Ensemble:
    """Players that teach together, each as much as any other.

    Raises:
      ValueError: one of them has nothing to teach.
    """
    teach_fns: list[TeachFn] = []
    for teacher in teachers:
        if teacher.teach is None:
            raise ValueError(
                f"the player {teacher.name!r} has nothing to teach: take one with a "
                "net or a search"
            )
        teach_fns.append(teacher.teach)

    def teach(params, key, states):
        keys = jax.random.split(key, len(teach_fns))
        said = [
            fn(its_params, its_key, states)
            for fn, its_params, its_key in zip(teach_fns, params, keys, strict=True)
        ]
        policies, values = map(jnp.stack, zip(*said, strict=True))
        return jnp.mean(policies, axis=0), jnp.mean(values, axis=0)

    return Ensemble(tuple(teacher.params for teacher in teachers), teach)


def check_memory(env: Any, teachers: Ensemble, batch_size: int) -> None:
    """Raises ValueError if the searches of so many positions cannot be held."""

    def look(params, key):
        return teachers.teach(params, key, start_all(env, key, batch_size))

    try:
        jax.eval_shape(look, teachers.params, jax.random.key(0))
    except TreeTooLargeError as error:
        raise ValueError(
            f"{error}; lower --teacher-batch or the sims of a teacher"
        ) from None


def read_positions(env: Any, path: Path) -> list[Any]:
    """The states of a file with a position in each line; blank lines are left out.

    Raises:
      ValueError: it cannot be read, a line is no position or of a finished game, or
        there is none; names the file and the line.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise ValueError(f"positions {path} cannot be read: {reason}") from None
    states = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            state = env.from_text(line.strip())
        except ValueError as error:
            raise ValueError(f"{path} line {number}: {error}") from None
        if is_finished(state):
            raise ValueError(
                f"{path} line {number}: the game is over in {line.strip()!r}, there is "
                "no move to learn: leave it out"
            )
        states.append(state)
    if not states:
        raise ValueError(f"{path} holds no position: write one in each line")
    return states


def lessons_on(
    env: Any,
    teachers: Ensemble,
    states: Sequence[Any],
    *,
    batch_size: int,
    key: jax.Array,
    progress: Progress,
) -> Lessons:
    """Lessons on given positions, `batch_size` at a time. The key is consumed."""
    look = _looking(env, teachers.teach)
    count = len(states)

    def batches():
        for first in range(0, count, batch_size):
            # The last batch is filled up, so that one size is compiled.
            rows = [states[row % count] for row in range(first, first + batch_size)]
            together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
            seen = look(teachers.params, jax.random.fold_in(key, first), together)
            yield jax.tree.map(lambda x: x[: count - first], seen)  # noqa: B023
            progress(min(1.0, (first + batch_size) / count))

    return _distinct(env, batches())


def lessons_of_games(
    env: Any,
    teachers: Ensemble,
    *,
    games: int,
    batch_size: int,
    opening_plies: int,
    temperature: float,
    key: jax.Array,
    progress: Progress,
) -> Lessons:
    """Lessons on the positions of games that the teachers play with one another's help.

    They play side by side, until so many games have ended; a game that ends is replaced
    at once. Moves are drawn from what is taught. The key is consumed.

    Args:
      games: to play to their ends.
      batch_size: games side by side, at most.
      opening_plies: see `self_play.start_games`.
      temperature: moves are drawn in proportion to policy ** (1 / temperature), or are
        the best ones at 0.
    """
    look = _looking(env, teachers.teach)

    def start(key, count):
        keys = jax.random.split(key, count)
        return start_games(env, keys, opening_plies=opening_plies).states

    @jax.jit
    def ply(params, key, states):
        look_key, move_key, step_key = jax.random.split(key, 3)
        seen = look(params, look_key, states)
        policy = jnp.asarray(seen.lessons.policy_target)
        actions = _draw(move_key, policy, temperature)
        moved = auto_reset(env, start)(states, actions, step_key)
        ended = jnp.sum(is_finished(moved.after), dtype=jnp.int32)
        return moved.states, seen, ended

    def batches():
        start_key, play_key = jax.random.split(key)
        states = jax.jit(start, static_argnums=1)(start_key, min(batch_size, games))
        ended = number = 0
        while ended < games:
            ply_key = jax.random.fold_in(play_key, number)
            states, seen, more = ply(teachers.params, ply_key, states)
            ended, number = ended + int(more), number + 1
            yield seen
            progress(min(1.0, ended / games))

    return _distinct(env, batches())


class _Seen(NamedTuple):
    """Positions [B] as the teachers see them."""

    lessons: Lessons
    observation: jax.Array
    legal_action_mask: jax.Array


def _looking(env: Any, teach: TeachFn) -> Callable[[Any, jax.Array, Any], _Seen]:
    packing = Packing(env)

    @jax.jit
    def look(params, key, states):
        policy, value = teach(params, key, states)
        return _Seen(
            Lessons(
                position=jax.vmap(packing.pack)(states),
                policy_target=policy,
                value_target=value,
            ),
            jax.vmap(env.observe)(states),
            states.legal_action_mask,
        )

    return look


def _draw(key: jax.Array, policy: jax.Array, temperature: float) -> jax.Array:
    if not temperature:
        return jnp.argmax(policy, axis=-1).astype(jnp.int32)
    logits = jnp.log(policy) / temperature
    return jax.random.categorical(key, logits, axis=-1).astype(jnp.int32)


def _distinct(env: Any, batches: Iterator[_Seen]) -> Lessons:
    """The first lesson on each position, up to symmetry, in the order of their names.

    The names are digests, so that the order has no meaning, and depends neither on how
    the positions were found nor on how many others there are.
    """
    found: dict[bytes, Any] = {}
    structure: Any = None
    for seen in batches:
        leaves, structure = jax.tree.flatten(jax.device_get(seen.lessons))
        mask = np.asarray(seen.legal_action_mask)
        names = position_names(env, np.asarray(seen.observation), mask, True)
        for row, name in enumerate(names):
            if name not in found:
                found[name] = [leaf[row] for leaf in leaves]
    columns = zip(*(found[name] for name in sorted(found)), strict=True)
    return jax.tree.unflatten(structure, [np.stack(column) for column in columns])
