"""Positions as the replay stores them: without their history, bools as bits."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp


class Packing:
    """Packs the states of a game for storage, and unpacks them.

    Arrays of bools take an eighth. The fields that a game calls `history_fields`, such
    as the earlier positions that a repetition rule looks at, are left out: an unpacked
    state has those of a new game, so that what they forbid may be played in a search
    below it. Masks are stored, and so are right. Both methods are for one state; use
    `jax.vmap`.
    """

    def __init__(self, env: Any):
        self._env = env
        self._state = jax.eval_shape(env.init, jax.random.key(0))
        self._history: tuple[str, ...] = tuple(getattr(env, "history_fields", ()))

    def pack(self, state: Any) -> Any:
        left_out = dict.fromkeys(self._history)
        return jax.tree.map(_pack, dataclasses.replace(state, **left_out))

    def unpack(self, packed: Any) -> Any:
        state = packed
        if self._history:
            start = self._env.init(jax.random.key(0))
            known = {name: getattr(start, name) for name in self._history}
            state = dataclasses.replace(packed, **known)
        return jax.tree.map(
            lambda x, like: _unpack(x, like.shape) if _is_bits(like) else x,
            state,
            self._state,
        )


def _is_bits(x: Any) -> bool:
    return x.dtype == jnp.bool_ and x.ndim > 0


def _pack(x: jax.Array) -> jax.Array:
    return jnp.packbits(x.reshape(-1)) if _is_bits(x) else x


def _unpack(x: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if x.dtype == jnp.bool_:  # of the start, never packed
        return x
    return jnp.unpackbits(x, count=math.prod(shape)).astype(bool).reshape(shape)
