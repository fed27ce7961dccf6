"""Records of known answers, and positions to test."""

import functools
import json
import pathlib
from typing import Any

import jax


def record(name: str) -> Any:
    """Counts and positions of tests/data/rules."""
    path = pathlib.Path(__file__).parents[1] / "data" / "rules" / f"{name}.json"
    return json.loads(path.read_text())


@functools.cache
def jitted_step(env):
    """The same compiled step for all tests of a game."""
    return jax.jit(env.step)


def play(env, actions):
    """The state after actions from the start."""
    state = env.init()
    for action in actions:
        state = jitted_step(env)(state, action)
    return state
