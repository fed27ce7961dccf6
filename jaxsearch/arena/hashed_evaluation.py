"""A stand-in for a net: priors and values that look random but are fixed.

Searches that are compared need scores without ties, since ties may be broken in any
order. Hashes of the position serve, and cost next to nothing.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.search.two_player import EvaluateFn


def hashed_evaluate(env: Any) -> EvaluateFn:
    """Logits in [0, 1) and values in [-1, 1), hashed from what the mover sees."""

    def evaluate(params, key, states):
        del params, key
        observations = jax.vmap(env.observe)(states)
        hashes = hash_rows(observations, env.num_actions + 1)
        return hashes[:, :-1], 2 * hashes[:, -1] - 1

    return evaluate


def hash_rows(rows: jax.Array, num_hashes: int) -> jax.Array:
    """`num_hashes` numbers in [0, 1) for each row of [B, ...]: [B, num_hashes] float32.

    A weighted sum of the mixed bits of the entries, mixed again for each number.
    """
    bits = jax.lax.bitcast_convert_type(rows.astype(jnp.float32), jnp.uint32)
    bits = bits.reshape(rows.shape[0], -1)
    generator = np.random.default_rng(0)
    weights = generator.integers(2**32, size=bits.shape[1], dtype=np.uint32) | 1
    lanes = generator.integers(2**32, size=num_hashes, dtype=np.uint32)
    total = jnp.sum(_mix(bits) * weights[None, :], axis=1, dtype=jnp.uint32)
    mixed = _mix(total[:, None] ^ lanes[None, :])
    return (mixed >> 8).astype(jnp.float32) / (1 << 24)


def _mix(bits: jax.Array) -> jax.Array:
    """The last step of MurmurHash3: every bit in changes about half of those out.

    Source: https://github.com/aappleby/smhasher/wiki/MurmurHash3
    """
    bits = (bits ^ bits >> 16) * np.uint32(0x85EBCA6B)
    bits = (bits ^ bits >> 13) * np.uint32(0xC2B2AE35)
    return bits ^ bits >> 16
