"""Positions and what is to be learned about them, kept in a file."""

import functools
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.learn.files import write_arrays
from jaxsearch.learn.packing import Packing


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Lessons:
    """N different positions in an order without meaning."""

    position: Any  # states [N], packed by `jaxsearch.learn.packing.Packing`
    policy_target: jax.Array | np.ndarray  # [N, A] float32, sums to 1
    value_target: jax.Array | np.ndarray  # [N] float32, for the player to move

    def __len__(self) -> int:
        return len(self.value_target)

    def rows(self, rows: slice | jax.Array | np.ndarray) -> "Lessons":
        return jax.tree.map(lambda leaf: leaf[rows], self)


def save_lessons(path: Path, lessons: Lessons) -> None:
    """Writes lessons, whole or not at all."""
    leaves = jax.tree_util.tree_leaves_with_path(lessons)
    named = {jax.tree_util.keystr(name): np.asarray(leaf) for name, leaf in leaves}
    write_arrays(path, named)


def load_lessons(path: Path, env: Any) -> Lessons:
    """The lessons of a file on positions of a game.

    Raises:
      ValueError: they cannot be read, or are of another game; names the file.
    """
    example = jax.eval_shape(functools.partial(_example, env))
    leaves, structure = jax.tree_util.tree_flatten_with_path(example)
    found = []
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name, leaf in leaves:
                array = archive[jax.tree_util.keystr(name)]
                if (array.shape[1:], array.dtype) != (leaf.shape[1:], leaf.dtype):
                    raise ValueError("it is of another game")
                found.append(array)
    # A damaged file shows as whatever error the reader stumbles over.
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"{path} cannot be read: {reason}; remove it, and the teachers make it anew"
        ) from None
    return jax.tree.unflatten(structure, found)


def _example(env: Any) -> Lessons:
    start = env.init(jax.random.key(0))
    one = Lessons(
        position=Packing(env).pack(start),
        policy_target=jnp.zeros(env.num_actions),
        value_target=jnp.zeros(()),
    )
    return jax.tree.map(lambda leaf: leaf[None], one)
