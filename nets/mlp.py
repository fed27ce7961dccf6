"""A multilayer perceptron, for games without a board."""

import math

import jax
from flax import nnx

from nets.net import Net, flat, output_init


class MLP(Net):
    """Flattens the observation and applies `depth` dense hidden layers.

    With `residual`, every hidden layer after the first adds to what came before
    (x + W relu(x)), and starts at zero, so that deep nets train from the first step.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_actions: int,
        *,
        width: int = 128,
        depth: int = 2,
        residual: bool = False,
        dtype: str = "float32",
        value_head: str = "scalar",
        rngs: nnx.Rngs,
    ):
        super().__init__(
            observation_shape, num_actions, dtype, value_head, width=width, depth=depth
        )
        self.residual = bool(residual)
        he = nnx.initializers.he_normal()
        later = nnx.initializers.zeros if residual else he

        def dense(inputs: int, outputs: int, init: nnx.Initializer) -> nnx.Linear:
            return nnx.Linear(
                inputs, outputs, kernel_init=init, dtype=self.dtype, rngs=rngs
            )

        self.first = dense(math.prod(self.observation_shape), width, he)
        self.layers = nnx.List([dense(width, width, later) for _ in range(depth - 1)])
        self.policy_out = dense(width, self.num_actions, output_init)
        self.value_out = dense(width, self.num_value_outputs, output_init)

    def evaluate(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.first(flat(x))
        for layer in self.layers:
            y = layer(nnx.relu(x))
            x = x + y if self.residual else y
        x = nnx.relu(x)
        return self.policy_out(x), self.value_out(x)
