"""Checks of what the user passes in and what the user's model returns.

All of them look at Python numbers, shapes and dtypes, so they run before anything is
compiled and cost nothing afterwards.
"""

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
        if isinstance(value, int | float | np.number | np.ndarray) and not np.all(
            (low <= np.asarray(value)) & (np.asarray(value) <= high)
        ):
            raise ValueError(
                f"{name} must be a number from {low:g} to {high:g}, got {value}"
            )


def per_row(name: str, value: Any, root: mctx.RootFnOutput) -> Any:
    """A number as it is, one for each row [B] as a column [B, 1]; else ValueError."""
    shape, batch = np.shape(value), np.shape(root.value)
    if shape not in ((), batch):
        raise ValueError(
            f"{name} has shape {shape}, expected a number or one for each row, {batch}"
        )
    return value if shape == () else jnp.asarray(value)[:, None]


def check_scalars(**options: Any) -> None:
    """Raises ValueError for an option that is not a single number (or None)."""
    for name, value in options.items():
        if np.shape(value) != ():
            raise ValueError(
                f"{name} has shape {np.shape(value)}, expected a single number for all "
                "rows"
            )


def check_output(output: mctx.RecurrentFnOutput, embedding: Any, tree: Tree) -> None:
    """Checks what the user's model returned, while tracing."""
    batch_size, num_actions = tree.root_prior_probs.shape
    expected = {
        "prior_logits": (batch_size, num_actions),
        "value": (batch_size,),
        "reward": (batch_size,),
        "discount": (batch_size,),
    }
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
        shape = (batch_size, *of_root.shape[2:])
        if new.shape != shape or new.dtype != of_root.dtype:
            raise ValueError(
                f"recurrent_fn returned embedding{jax.tree_util.keystr(path)} of "
                f"{new.dtype}{list(new.shape)}, expected as in root.embedding "
                f"{of_root.dtype}{list(shape)}"
            )
