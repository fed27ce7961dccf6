"""What every net promises, and the parts they share."""

import abc
import math
import operator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx

DTYPES = ("float32", "bfloat16")

# What the value head says: the expected result through tanh, or the chances of a win,
# a draw and a loss through softmax.
VALUE_HEADS = {"scalar": 1, "wdl": 3}

# Output layers start small: priors near uniform and values near zero, so that the first
# games of self-play lean on the search and not on chance.
output_init = nnx.initializers.variance_scaling(0.01, "fan_in", "truncated_normal")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """What a net says about positions [B]."""

    prior_logits: jax.Array  # [B, A] float32, unmasked
    value: jax.Array  # [B] float32 in [-1, 1]: expected result for the player to move
    outcome_logits: jax.Array | None  # [B, 3] float32: win, draw, loss; of head "wdl"
    # Of auxiliary heads: log-odds that a cell ends as the mover's, [B, *board] float32,
    # and by how many points the mover wins, [B] float32.
    ownership_logits: jax.Array | None = None
    score: jax.Array | None = None


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
        value_head: str,
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
        if value_head not in VALUE_HEADS:
            raise ValueError(
                f"unknown value_head {value_head!r}: choose one of "
                f"{', '.join(VALUE_HEADS)}"
            )
        self.num_value_outputs = VALUE_HEADS[value_head]

    def __call__(self, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Evaluates positions: prior_logits [B, A] and value [B], see `predict`."""
        told = self.predict(observations)
        return told.prior_logits, told.value

    def predict(self, observations: jax.Array) -> Prediction:
        """Evaluates positions.

        Args:
          observations: [B, *observation_shape], bool or any number type, seen by the
            player to move.

        Raises:
          ValueError: observations of another shape.
        """
        if observations.shape[1:] != self.observation_shape or observations.ndim == 0:
            expected = ", ".join(str(n) for n in ("batch", *self.observation_shape))
            raise ValueError(
                f"observations have shape {observations.shape}, but this net was made "
                f"for [{expected}]: pass a batch of observations of its own game"
            )
        outputs = self.evaluate(observations.astype(self.dtype))
        prior_logits, value, *rest = (x.astype(jnp.float32) for x in outputs)
        ownership_logits, score = rest or (None, None)
        outcome_logits = None
        if self.num_value_outputs == 1:
            value = jnp.tanh(value[:, 0])
        else:
            outcome_logits = value
            win, _, loss = jnp.unstack(jax.nn.softmax(value, axis=-1), axis=-1)
            value = win - loss
        return Prediction(
            prior_logits=prior_logits,
            value=value,
            outcome_logits=outcome_logits,
            ownership_logits=ownership_logits,
            score=score,
        )

    @abc.abstractmethod
    def evaluate(self, x: jax.Array) -> tuple[jax.Array, ...]:
        """Maps x [B, *observation_shape] to prior_logits [B, A] and the outputs of the
        value head [B, num_value_outputs], in the compute dtype. A net with auxiliary
        heads goes on with ownership_logits [B, *board] and score [B]."""


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
