"""How much one turn of each inner loop does. The results do not depend on it."""

from typing import NamedTuple

import jax


class LoopSizes(NamedTuple):
    """What is done at once, for a batch of searches."""

    descent_levels: int
    backup_levels: int
    choices: int  # the nodes below the roots that choose together


def loop_sizes(batch_size: int) -> LoopSizes:
    """Pieces that stay in the cache of a CPU; few turns on an accelerator.

    There a turn costs the launch of its kernels, whatever their size, and a look of the
    host at whether another one follows.
    """
    if jax.default_backend() == "cpu":
        return LoopSizes(4, 1, min(8 * batch_size, 512))
    return LoopSizes(8, 8, 8 * batch_size)
