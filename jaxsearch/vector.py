"""Games played in batches: the helpers that every loop over boards needs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_BLOCK = 32  # actions that are counted together


def random_actions(key: jax.Array, states: Any) -> jax.Array:
    """A legal action [B] int32 for each state, all equally likely; 0 if finished.

    Where all players choose at once it is a joint action [B, P] for each state, every
    player's being drawn alone. The key is consumed; one number a state and player is
    drawn from it, however many actions the game has.

    Args:
      states: batched states [B] of a game.
    """
    mask = states.legal_action_mask
    share = jax.random.uniform(key, mask.shape[:-1])
    if mask.ndim == 2:
        return _legal_at(share, mask)
    return jax.vmap(_legal_at, 1, 1)(share, mask)


def _legal_at(share: jax.Array, mask: jax.Array) -> jax.Array:
    """The action [B] that comes after a share [B] of the legal ones; 0 if none is.

    Args:
      share: 0 or more and below 1.
      mask: [B, A] bool.
    """
    batch_size, num_actions = mask.shape
    num_blocks = -(-num_actions // _BLOCK)
    padded = jnp.pad(mask, ((0, 0), (0, num_blocks * _BLOCK - num_actions)))
    blocks = padded.reshape(batch_size, num_blocks, _BLOCK)
    counts = blocks.sum(axis=2, dtype=jnp.int32)  # [B, blocks]
    ends = jnp.cumsum(counts, axis=1)
    total = ends[:, -1]
    # Rounding must not choose an action past the last.
    number = jnp.minimum(jnp.int32(share * total), jnp.maximum(total - 1, 0))
    passed = ends <= number[:, None]
    block = jnp.minimum(passed.sum(axis=1, dtype=jnp.int32), num_blocks - 1)
    rest = number - jnp.where(passed, counts, 0).sum(axis=1, dtype=jnp.int32)
    chosen = jax.vmap(lambda rows, i: rows[i])(blocks, block)
    inside = jnp.cumsum(chosen, axis=1, dtype=jnp.int32) <= rest[:, None]
    action = block * np.int32(_BLOCK) + inside.sum(axis=1, dtype=jnp.int32)
    return jnp.where(total > 0, action, 0)
