"""Random openings: different unfinished positions after some random moves."""

import hashlib
import math
from collections.abc import Iterator
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.vector import is_finished, rollout, start_all

_MAX_ROUNDS = 100


class Openings(NamedTuple):
    states: Any  # [n]
    returns: jax.Array  # [n, P] float32: rewards on the way, zeros in most games
    position: np.ndarray  # [n] int: equal for equal positions, 0..num_distinct - 1
    num_distinct: int
    first: np.ndarray  # [n] int: the player who began


class _Opening(NamedTuple):
    leaves: list[np.ndarray]  # of the state
    returns: np.ndarray  # [P]
    first: int


# The positions found, by what the player to move sees of them, and in each position
# the games found by the player who began.
_Found = dict[bytes, dict[int, _Opening]]


def random_openings(
    env: Any,
    *,
    count: int,
    num_plies: int,
    key: jax.Array,
    up_to_symmetry: bool = False,
) -> Openings:
    """`count` positions after `num_plies` random moves, none of them finished.

    All are different as long as random play finds new ones; then they are repeated in
    order. Positions are different if the player to move sees another board or has other
    moves: who that player is makes no difference. Where a game draws who begins, as
    many openings are begun by each player as can be found.

    Args:
      env: a game whose players move in turn.
      count: how many openings.
      num_plies: how many random moves lead to each.
      key: consumed.
      up_to_symmetry: whether images of one position under the symmetries of the game
        are the same position.

    Returns:
      The states [count], the rewards on the way, which openings are the same position,
      how many positions there are, and who began each game.

    Raises:
      ValueError: a count below 1, negative plies, random play that never gets there,
        or a game whose players move at once.
    """
    whole = isinstance(count, Integral) and isinstance(num_plies, Integral)
    if not whole or count < 1 or num_plies < 0:
        raise ValueError(
            f"openings need a count of at least 1 and plies of at least 0, got {count} "
            f"openings of {num_plies} plies"
        )
    batch_size = max(256, count)
    example = jax.eval_shape(env.init, key)
    if not hasattr(example, "current_player"):
        raise ValueError(
            f"in {env.id} both players move at once: take openings of its sequential "
            f"view, sequential:{env.id}"
        )
    structure = jax.tree.structure(example)
    found: _Found = {}
    openings: list[_Opening] = []
    for round_key in jax.random.split(key, _MAX_ROUNDS):
        num_before = _num_games(found)
        _find(found, env, round_key, batch_size, num_plies, up_to_symmetry)
        openings = _balanced(found, count)
        enough = len(openings) == count and _is_balanced(found, openings)
        if enough or _num_games(found) == num_before:
            break
    if not openings:
        raise ValueError(
            f"random play of {env.id} is over before {num_plies} plies: choose fewer "
            "opening plies"
        )
    order = np.arange(count) % len(openings)
    columns = zip(*(opening.leaves for opening in openings), strict=True)
    return Openings(
        states=jax.tree.unflatten(
            structure, [jnp.asarray(np.stack(column)[order]) for column in columns]
        ),
        returns=jnp.asarray(np.stack([opening.returns for opening in openings])[order]),
        position=order,
        num_distinct=len(openings),
        first=np.array([opening.first for opening in openings])[order],
    )


def _find(
    found: _Found,
    env: Any,
    key: jax.Array,
    batch_size: int,
    num_plies: int,
    up_to_symmetry: bool,
) -> None:
    """Plays a batch of games and adds what is new."""
    played = _play_randomly(env, key, batch_size, num_plies)
    unfinished, first, returns, seen, mask = map(np.asarray, played[1:])
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(played[0])]
    rows = np.flatnonzero(unfinished)
    names = position_names(env, seen[rows], mask[rows], up_to_symmetry)
    for row, name in zip(rows, names, strict=True):
        opening = _Opening([leaf[row] for leaf in leaves], returns[row], first[row])
        found.setdefault(name, {}).setdefault(int(first[row]), opening)


def position_names(
    env: Any, seen: np.ndarray, mask: np.ndarray, up_to_symmetry: bool
) -> list[bytes]:
    """A name for each position, from the board and the moves of the player to move."""
    *board, planes = seen.shape[1:]
    boards = seen.reshape(len(seen), math.prod(board), planes)
    if not up_to_symmetry:
        return _digests(boards, mask)
    symmetries = env.symmetries
    images = [
        _digests(boards[:, cells], mask[:, actions])
        for cells, actions in zip(symmetries.cells, symmetries.actions, strict=True)
    ]
    return [min(names) for names in zip(*images, strict=True)]


def _digests(boards: np.ndarray, masks: np.ndarray) -> list[bytes]:
    return [
        hashlib.blake2b(board.tobytes() + mask.tobytes(), digest_size=16).digest()
        for board, mask in zip(boards, masks, strict=True)
    ]


def _balanced(found: _Found, count: int) -> list[_Opening]:
    """Up to `count` different ones, the players who began taking turns."""
    waiting = {player: _begun_by(player, found) for player in _players(found)}
    chosen: dict[bytes, _Opening] = {}
    while waiting and len(chosen) < count:
        for player, openings in list(waiting.items()):
            new = next((o for o in openings if o[0] not in chosen), None)
            if new is None:
                del waiting[player]
            elif len(chosen) < count:
                name, opening = new
                chosen[name] = opening
    return list(chosen.values())


def _begun_by(player: int, found: _Found) -> Iterator[tuple[bytes, _Opening]]:
    for name, games in found.items():
        if player in games:
            yield name, games[player]


def _is_balanced(found: _Found, openings: list[_Opening]) -> bool:
    begun = [sum(o.first == player for o in openings) for player in _players(found)]
    return not begun or max(begun) - min(begun) <= 1


def _players(found: _Found) -> list[int]:
    return sorted({player for games in found.values() for player in games})


def _num_games(found: _Found) -> int:
    return sum(map(len, found.values()))


@partial(jax.jit, static_argnames=("env", "batch_size", "num_plies"))
def _play_randomly(env, key, batch_size, num_plies):
    """States [B], and of each whether the game goes on, who began, returns and view."""
    init_key, moves_key = jax.random.split(key)
    starts = start_all(env, init_key, batch_size)
    played = rollout(env, starts, moves_key, num_plies=num_plies)
    return (
        played.states,
        ~is_finished(played.states),
        starts.current_player,
        played.returns,
        jax.vmap(env.observe)(played.states),
        played.states.legal_action_mask,
    )
