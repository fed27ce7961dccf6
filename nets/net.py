"""What every net promises, and the parts they share."""

import abc
import math
import operator

import jax
import jax.numpy as jnp
from flax import nnx

DTYPES = ("float32", "bfloat16")

# Output layers start small: priors near uniform and values near zero, so that the first
# games of self-play lean on the search and not on chance.
output_init = nnx.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")


class Net(nnx.Module):
    """A policy-value net: call it with a batch of observations.

    B is the batch size, A the number of actions. A subclass sets its layers and
    implements `evaluate`.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_actions: int,
        dtype: str,
        **sizes: int,
    ):
        """Keeps the shapes and refuses sizes that are not positive integers."""
        self.observation_shape = tuple(
            _positive("observation_shape", n) for n in observation_shape
        )
        self.num_actions = _positive("num_actions", num_actions)
        for name, size in sizes.items():
            _positive(name, size)
        if dtype not in DTYPES:
            raise ValueError(
                f"unknown dtype {dtype!r}: a net computes in one of {', '.join(DTYPES)}"
            )
        self.dtype = jnp.dtype(dtype)

    def __call__(self, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Evaluates positions.

        Args:
          observations: [B, *observation_shape], bool or any number type, seen by the
            player to move.

        Returns:
          prior_logits [B, A] float32, unmasked, and value [B] float32 in [-1, 1], the
          expected result for the player to move.

        Raises:
          ValueError: observations of another shape.
        """
        if observations.shape[1:] != self.observation_shape or observations.ndim == 0:
            expected = ", ".join(str(n) for n in ("batch", *self.observation_shape))
            raise ValueError(
                f"observations have shape {observations.shape}, but this net was made "
                f"for [{expected}]: pass a batch of observations of its own game"
            )
        prior_logits, value = self.evaluate(observations.astype(self.dtype))
        return (
            prior_logits.astype(jnp.float32),
            jnp.tanh(value.astype(jnp.float32)),
        )

    @abc.abstractmethod
    def evaluate(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps x [B, *observation_shape] to prior_logits [B, A] and value [B] before
        tanh, both in the compute dtype."""


def flat(x: jax.Array) -> jax.Array:
    """[B, ...] as [B, n]; B may be 0, of which -1 could not make sense."""
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


def _positive(name: str, size: int) -> int:
    try:
        number = 0 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        number = 0
    if number <= 0:
        raise ValueError(f"{name} is {size!r}: give an integer of at least 1")
    return number
