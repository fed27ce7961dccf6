"""Checks of what the user passes in and what the user's model returns.

All of them look at Python numbers, shapes and dtypes, so they run before anything is
compiled and cost nothing afterwards.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from jaxsearch.search.tree import Tree

TINY, LARGEST = 1e-30, 1e30  # the range of a scale that must be positive and finite
MOST_VALUE = 1e28  # the largest value or reward: millions of them still have a sum


def check_arguments(
    root: mctx.RootFnOutput,
    num_simulations: int,
    invalid_actions: jax.Array | None = None,
    max_depth: int | None = None,
    root_prior_probs: jax.Array | None = None,
) -> None:
    """Raises ValueError for counts below 1 and shapes that do not fit together."""
    check_count("num_simulations", num_simulations)
    if max_depth is not None:
        check_count("max_depth", max_depth)
        if max_depth >= 2**31:
            raise ValueError(f"max_depth must be below 2**31, got {max_depth}")
    shape = np.shape(root.prior_logits)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"root.prior_logits has shape {shape}, expected [B, A]: a row of logits "
            "for each of B searches, at least one of each"
        )
    if np.shape(root.value) != shape[:1]:
        raise ValueError(
            f"root.value has shape {np.shape(root.value)}, expected {shape[:1]}: one "
            "value for each row of root.prior_logits"
        )
    for path, leaf in jax.tree_util.tree_leaves_with_path(root.embedding):
        if np.shape(leaf)[:1] != shape[:1]:
            raise ValueError(
                f"root.embedding{jax.tree_util.keystr(path)} has shape "
                f"{np.shape(leaf)}, expected the batch size {shape[0]} first"
            )
    of_actions = {
        "invalid_actions": invalid_actions,
        "root_prior_probs": root_prior_probs,
    }
    for name, array in of_actions.items():
        if array is not None and np.shape(array) != shape:
            raise ValueError(
                f"{name} has shape {np.shape(array)}, expected {shape}, the shape of "
                "root.prior_logits"
            )


def check_key(rng_key: Any, rows: tuple[int, ...] = ()) -> None:
    """Raises TypeError for what is not a key, typed or raw, nor one for each row (B,).

    Without rows it must be one key.
    """
    dtype, shape = getattr(rng_key, "dtype", None), np.shape(rng_key)
    if dtype is not None:
        if jnp.issubdtype(dtype, jax.dtypes.prng_key):
            batch = shape
        elif dtype == jnp.uint32 and shape:
            batch = shape[:-1]
        else:
            batch = None
        if batch in ((), rows):
            return
    got = repr(rng_key) if dtype is None else f"an array of {dtype} of shape {shape}"
    or_rows = f", or one for each row, {rows}" if rows else ""
    raise TypeError(
        f"rng_key is {got}, expected one key for the whole batch, such as "
        f"jax.random.key(0){or_rows}"
    )


def root_of_arrays(root: Any) -> mctx.RootFnOutput:
    """The root with logits and values as arrays of floats; TypeError if it has none."""
    if not isinstance(root, mctx.RootFnOutput):
        raise TypeError(
            f"root is {type(root).__name__}, expected mctx.RootFnOutput(prior_logits, "
            "value, embedding)"
        )
    fields: Any = root
    return fields.replace(
        prior_logits=as_floats("root.prior_logits", fields.prior_logits),
        value=as_floats("root.value", fields.value),
    )


def as_floats(name: str, values: Any) -> jax.Array:
    """An array of floats of real numbers, whole ones included; TypeError for others."""
    array = jnp.asarray(values)
    if jnp.issubdtype(array.dtype, jnp.integer):
        return array.astype(jnp.float32)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(f"{name} is of {array.dtype}, expected real numbers")
    return array


def check_count(name: str, count: Any) -> None:
    """Raises ValueError for what is not a whole number of at least 1."""
    is_whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not is_whole or count < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {count!r}")


def check_numbers(**options: tuple[Any, float, float]) -> None:
    """Raises ValueError for an option out of its range, given as (value, low, high).

    Only Python and NumPy numbers are looked at: a value under tracing is not known.
    """
    for name, (value, low, high) in options.items():
        if isinstance(value, complex | str | dict):
            raise TypeError(f"{name} must be a number, got {value!r}")
        if isinstance(value, list | tuple):
            value = np.array([x for x in value if isinstance(x, int | float)])
        if isinstance(value, int | float | np.number | np.ndarray) and not np.all(
            (low <= np.asarray(value)) & (np.asarray(value) <= high)
        ):
            raise ValueError(
                f"{name} must be a number from {low:g} to {high:g}, got {value}"
            )


def per_row(name: str, value: Any, root: mctx.RootFnOutput) -> Any:
    """A number as it is, one for each row [B] as a column [B, 1]; else ValueError."""
    if isinstance(value, list | tuple):  # of traced numbers, maybe
        value = jnp.asarray(value)
    check_row_shape(name, value, np.shape(root.value))
    return value if np.shape(value) == () else jnp.asarray(value)[:, None]


def check_row_shape(name: str, value: Any, rows: tuple[int, ...]) -> None:
    """Raises ValueError for what is neither a number nor one for each row (B,)."""
    if isinstance(value, list | tuple):
        value = jnp.asarray(value)
    shape = np.shape(value)
    if shape not in ((), rows):
        raise ValueError(
            f"{name} has shape {shape}, expected a number or one for each row, {rows}"
        )


def check_scalars(**options: Any) -> None:
    """Raises ValueError for an option that is not a single number (or None)."""
    for name, value in options.items():
        if np.shape(value) != ():
            raise ValueError(
                f"{name} has shape {np.shape(value)}, expected a single number for all "
                "rows"
            )


def check_types(**options: tuple[Any, Any]) -> None:
    """Raises TypeError for an option that is neither None nor of its type."""
    for name, (value, expected) in options.items():
        if value is not None and not isinstance(value, expected):
            wanted = "a function" if expected is Callable else expected.__name__
            raise TypeError(f"{name} must be {wanted} or None, got {value!r}")


def check_output(result: Any, tree: Tree) -> tuple[Any, Any]:
    """What the user's model returned, checked while tracing: output and embedding."""
    batch_size, num_actions = tree.root_prior_probs.shape
    expected = {
        "prior_logits": (batch_size, num_actions),
        "value": (batch_size,),
        "reward": (batch_size,),
        "discount": (batch_size,),
    }
    is_pair = isinstance(result, tuple | list) and len(result) == 2
    if not (is_pair and all(hasattr(result[0], name) for name in expected)):
        kinds = [type(x).__name__ for x in result] if is_pair else type(result).__name__
        raise TypeError(
            f"recurrent_fn returned {kinds}, expected a pair: mctx.RecurrentFnOutput "
            "and the new embedding"
        )
    output, embedding = result
    for name, shape in expected.items():
        got = np.shape(getattr(output, name))
        if got != shape:
            raise ValueError(
                f"recurrent_fn returned {name} of shape {got}, expected {shape}: one "
                f"row for each of the {batch_size} searches of the batch"
            )
    stored, stored_tree = jax.tree.flatten_with_path(tree.embeddings)
    returned, returned_tree = jax.tree.flatten(embedding)
    if returned_tree != stored_tree:
        raise ValueError(
            f"recurrent_fn returned an embedding of the structure {returned_tree}, "
            f"expected that of root.embedding: {stored_tree}"
        )
    for (path, of_root), new in zip(stored, returned, strict=True):
        if not hasattr(new, "dtype"):
            raise TypeError(
                f"recurrent_fn returned embedding{jax.tree_util.keystr(path)} of the "
                f"type {type(new).__name__}, expected an array"
            )
        shape = (batch_size, *of_root.shape[2:])
        if new.shape != shape or new.dtype != of_root.dtype:
            raise ValueError(
                f"recurrent_fn returned embedding{jax.tree_util.keystr(path)} of "
                f"{new.dtype}{list(new.shape)}, expected as in root.embedding "
                f"{of_root.dtype}{list(shape)}"
            )
    floats = {
        name: as_floats(f"recurrent_fn's {name}", getattr(output, name))
        for name in expected
    }
    return mctx.RecurrentFnOutput(**floats), embedding
