"""Policy-value nets: observations in, prior logits and values out.

    net = nets.make("resnet", env.observation_shape, env.num_actions, rngs=nnx.Rngs(0))
    prior_logits, value = net(observations)

For speed split a net once and jit over its state:

    graphdef, params = nnx.split(net)
    evaluate = jax.jit(lambda params, x: nnx.merge(graphdef, params)(x))

All arrays of a net are parameters: there are no statistics, no modes, no random state.
"""

from nets.mlp import MLP as MLP
from nets.net import Net as Net
from nets.registry import make as make
from nets.registry import names as names
from nets.resnet import ResNet as ResNet
