"""A residual convolutional net in AlphaZero's form, without batch statistics."""

import functools
import math

import jax
from flax import nnx

from nets.net import Net, output_init


class ResNet(Net):
    """A stem, `depth` residual blocks of two 3x3 convolutions, and two heads.

    AlphaZero's net (Silver et al. 2018, https://arxiv.org/abs/1712.01815) with
    pre-activation blocks, x + conv(relu(conv(relu(x)))), and no normalisation. Batch
    normalisation keeps running statistics: self-play would use stale ones while the
    learner uses fresh ones, and rows of a batch would depend on each other. Layer and
    group normalisation have neither fault but read all activations once more, which on
    a CPU costs time that is better spent on searching. What normalisation gives, a
    well-scaled start at any depth, comes from the initial weights instead (Fixup,
    Zhang et al. 2019, https://arxiv.org/abs/1901.09321): the last convolution of a
    block starts at zero, so that the block starts as the identity, and the first one
    starts smaller the deeper the net, by depth^-1/2.

    `width` is the number of channels, `depth` the number of blocks. The policy head is
    a 1x1 convolution to `policy_channels` and a dense layer; the value head a 1x1
    convolution to `value_channels`, a dense layer of `value_width` and a dense layer.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_actions: int,
        *,
        width: int = 32,
        depth: int = 3,
        policy_channels: int = 4,
        value_channels: int = 2,
        value_width: int = 64,
        dtype: str = "float32",
        rngs: nnx.Rngs,
    ):
        super().__init__(
            observation_shape,
            num_actions,
            dtype,
            width=width,
            depth=depth,
            policy_channels=policy_channels,
            value_channels=value_channels,
            value_width=value_width,
        )
        if len(self.observation_shape) != 3:
            raise ValueError(
                "resnet needs observations [height, width, channels], got "
                f"{list(self.observation_shape)}: use the net mlp for such a game"
            )
        *board, channels = self.observation_shape
        cells = math.prod(board)
        he = nnx.initializers.he_normal()
        he_scaled = nnx.initializers.variance_scaling(
            2 / depth, "fan_in", "truncated_normal"
        )
        zeros = nnx.initializers.zeros
        conv = functools.partial(nnx.Conv, dtype=self.dtype, rngs=rngs)
        dense = functools.partial(nnx.Linear, dtype=self.dtype, rngs=rngs)

        self.stem = conv(channels, width, (3, 3), kernel_init=he)
        self.blocks = nnx.List(
            [
                nnx.List(
                    [
                        conv(width, width, (3, 3), kernel_init=he_scaled),
                        conv(width, width, (3, 3), kernel_init=zeros),
                    ]
                )
                for _ in range(depth)
            ]
        )
        self.policy_conv = conv(width, policy_channels, (1, 1), kernel_init=he)
        self.policy_out = dense(
            cells * policy_channels, self.num_actions, kernel_init=output_init
        )
        self.value_conv = conv(width, value_channels, (1, 1), kernel_init=he)
        self.value_hidden = dense(cells * value_channels, value_width, kernel_init=he)
        self.value_out = dense(value_width, 1, kernel_init=output_init)

    def evaluate(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = self.stem(x)
        for first, last in self.blocks:
            x = x + last(nnx.relu(first(nnx.relu(x))))
        x = nnx.relu(x)

        policy = nnx.relu(self.policy_conv(x)).reshape(x.shape[0], -1)
        value = nnx.relu(self.value_conv(x)).reshape(x.shape[0], -1)
        value = nnx.relu(self.value_hidden(value))
        return self.policy_out(policy), self.value_out(value)[:, 0]
