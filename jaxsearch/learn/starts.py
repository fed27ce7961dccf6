"""Positions in a file, from which the games of self-play start."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np


def read_starts(env: Any, path: Path) -> Any:
    """The states [N] of a file of positions, one a line as `env.from_text` takes them.

    Empty lines and those that begin with # are left out.

    Raises:
      ValueError: the file cannot be read or has no position, or a line is no position
        or one of a finished game; names the line.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"--openings {path} cannot be read: {reason}") from None
    states = []
    for number, line in enumerate(lines, 1):
        if not (text := line.strip()) or text.startswith("#"):
            continue
        try:
            state = env.from_text(text)
        except ValueError as error:
            raise ValueError(f"--openings {path}, line {number}: {error}") from None
        if state.terminated | state.truncated:
            raise ValueError(
                f"--openings {path}, line {number}: the game is over in {text!r}: "
                "leave it out"
            )
        states.append(jax.device_get(state))
    if not states:
        raise ValueError(f"--openings {path} holds no position: write one a line")
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def any_of(starts: Any) -> Callable[[jax.Array], Any]:
    """An `init(key)` that draws one of the states [N], all as often as one another."""
    count = len(jax.tree.leaves(starts)[0])

    def init(key):
        number = jax.random.randint(key, (), 0, count)
        return jax.tree.map(lambda x: jax.numpy.asarray(x)[number], starts)

    return init
