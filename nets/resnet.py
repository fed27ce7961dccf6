"""A residual convolutional net in AlphaZero's form, without batch statistics."""

import functools
import math

import jax
from flax import nnx

from nets.net import Net, flat, output_init

# Cells with nothing near them are exactly zero in a new net; with a small epsilon their
# gradients would be hundreds of times those of the other cells.
EPSILON = 1e-2

POINTS = 10.0  # that an output of 1 says; the layer then has no large numbers to learn


class ResNet(Net):
    """A stem, `depth` residual blocks of two 3x3 convolutions, and two heads.

    AlphaZero's net (Silver et al. 2018, https://arxiv.org/abs/1712.01815) with
    pre-activation blocks, x + conv(relu(norm(conv(relu(x))))), and another norm before
    the heads. Batch normalisation keeps running statistics: self-play would use stale
    ones while the learner uses fresh ones, and rows of a batch would depend on each
    other. The norm here is RMSNorm over the channels of one cell (Zhang and Sennrich
    2019, https://arxiv.org/abs/1910.07467): no statistics are kept, and one pass over
    the activations is little beside a convolution. The last convolution of a block
    starts at zero, so that a net of any depth starts as its stem and heads alone.

    `width` is the number of channels, `depth` the number of blocks. The policy head is
    a 1x1 convolution to `policy_channels` and a dense layer; the value head a 1x1
    convolution to `value_channels`, a dense layer of `value_width` and a dense layer.
    With `auxiliary_heads` a 1x1 convolution tells whose each cell will be, and a dense
    layer on the `value_width` units the score (D. Wu, "Accelerating Self-Play Learning
    in Go", 2019, https://arxiv.org/abs/1902.10565).
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
        value_head: str = "scalar",
        auxiliary_heads: bool = False,
        rngs: nnx.Rngs,
    ):
        super().__init__(
            observation_shape,
            num_actions,
            dtype,
            value_head,
            width=width,
            depth=depth,
            policy_channels=policy_channels,
            value_channels=value_channels,
            value_width=value_width,
        )
        if len(self.observation_shape) != 3:
            raise ValueError(
                "resnet needs observations [height, width, channels], got "
                f"{list(self.observation_shape)}: for such a game take --net mlp"
            )
        *board, channels = self.observation_shape
        cells = math.prod(board)
        he = nnx.initializers.he_normal()
        zeros = nnx.initializers.zeros
        conv = functools.partial(nnx.Conv, dtype=self.dtype, rngs=rngs)
        dense = functools.partial(nnx.Linear, dtype=self.dtype, rngs=rngs)
        norm = functools.partial(
            nnx.RMSNorm, width, epsilon=EPSILON, dtype=self.dtype, rngs=rngs
        )

        self.stem = conv(channels, width, (3, 3), kernel_init=he)
        self.blocks = nnx.List(
            [
                nnx.List(
                    [
                        conv(width, width, (3, 3), kernel_init=he),
                        norm(),
                        conv(width, width, (3, 3), kernel_init=zeros),
                    ]
                )
                for _ in range(depth)
            ]
        )
        self.norm = norm()
        self.policy_conv = conv(width, policy_channels, (1, 1), kernel_init=he)
        self.policy_out = dense(
            cells * policy_channels, self.num_actions, kernel_init=output_init
        )
        self.value_conv = conv(width, value_channels, (1, 1), kernel_init=he)
        self.value_hidden = dense(cells * value_channels, value_width, kernel_init=he)
        self.value_out = dense(
            value_width, self.num_value_outputs, kernel_init=output_init
        )
        self.auxiliary_heads = bool(auxiliary_heads)
        if auxiliary_heads:  # last, so that all other layers start as without them
            self.ownership_out = conv(width, 1, (1, 1), kernel_init=output_init)
            self.score_out = dense(value_width, 1, kernel_init=output_init)

    def evaluate(self, x: jax.Array) -> tuple[jax.Array, ...]:
        x = self.stem(x)
        for first, norm, last in self.blocks:
            x = x + last(nnx.relu(norm(first(nnx.relu(x)))))
        x = nnx.relu(self.norm(x))

        policy = flat(nnx.relu(self.policy_conv(x)))
        value = flat(nnx.relu(self.value_conv(x)))
        value = nnx.relu(self.value_hidden(value))
        outputs = self.policy_out(policy), self.value_out(value)
        if not self.auxiliary_heads:
            return outputs
        score = POINTS * self.score_out(value)[:, 0]
        return *outputs, self.ownership_out(x)[..., 0], score
