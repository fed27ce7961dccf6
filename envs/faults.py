"""How `check_env` compares states and words what it found."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from envs.game import Game


def require(holds: bool, env: Game[Any], clause: str) -> None:
    """Raises ValueError with the clause of the contract that does not hold."""
    if not holds:
        raise ValueError(f"check_env({getattr(env, 'id', env)}): {clause}")


def require_rows(
    holds: np.ndarray,
    env: Game[Any],
    clause: str,
    ply: int,
    actions: np.ndarray | None = None,
) -> None:
    """The same for a clause that must hold in every game, [B] bool."""
    if holds.all():
        return
    row = int(np.argmin(holds))
    action = "" if actions is None else f", action {actions[row]}"
    require(False, env, f"{clause} (game {row}, ply {ply}{action})")


def check_same_type(env: Game[Any], wanted: Any, got: Any, source: str) -> None:
    """Requires the tree, shapes, dtypes and weak types of a state from init."""
    wanted, got = (jax.eval_shape(lambda tree: tree, tree) for tree in (wanted, got))
    require(
        jax.tree.structure(wanted) == jax.tree.structure(got),
        env,
        f"{source} must give a state of the same fields as init",
    )
    leaves = jax.tree_util.tree_leaves_with_path(wanted)
    for (path, want), leaf in zip(leaves, jax.tree.leaves(got), strict=True):
        require(
            _type(want) == _type(leaf),
            env,
            f"{source} must give the field {jax.tree_util.keystr(path)} as init does, "
            f"{_type(want)}, got {_type(leaf)}",
        )


def host(tree: Any) -> Any:
    """The tree as numpy arrays, random keys by their data."""
    return jax.tree.map(
        lambda leaf: np.asarray(
            jax.random.key_data(leaf)
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
            else leaf
        ),
        tree,
    )


def same(a: Any, b: Any) -> bool:
    """Whether two host trees are equal; floats may differ by rounding."""
    return jax.tree.all(jax.tree.map(lambda x, y: bool(_close(x, y).all()), a, b))


def same_rows(a: Any, b: Any, but: tuple[str, ...] = ()) -> np.ndarray:
    """Which rows of two batched host trees are equal, [B] bool.

    Args:
      but: fields of the states that are not compared.
    """
    if but:
        names = [field.name for field in dataclasses.fields(a) if field.name not in but]
        a, b = ([getattr(tree, name) for name in names] for tree in (a, b))
    equal = jax.tree.map(
        lambda x, y: _close(x, y).reshape(len(x), -1).all(axis=1), a, b
    )
    return np.logical_and.reduce(jax.tree.leaves(equal))


def _close(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.isclose(x, y) if np.issubdtype(x.dtype, np.floating) else x == y


def _type(leaf: Any) -> str:
    weak = " (weakly typed)" if leaf.weak_type else ""
    return f"{leaf.dtype}{list(leaf.shape)}{weak}"
