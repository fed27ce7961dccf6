"""Policy-value nets: observations in, prior logits and values out.

    from flax import nnx

    import envs
    import nets

    env = envs.make("connect_four")
    net = nets.make("resnet", env.observation_shape, env.num_actions, rngs=nnx.Rngs(0))
    observations = env.observe(env.init())[None]  # a batch of one
    prior_logits, value = net(observations)  # [1, 7] and [1]

For speed split a net once and jit over its state:

    import jax

    graphdef, params = nnx.split(net)
    evaluate = jax.jit(lambda params, x: nnx.merge(graphdef, params)(x))
    prior_logits, value = evaluate(params, observations)

All arrays of a net are parameters: there are no statistics, no modes, no random state.
"""

from nets.mlp import MLP
from nets.net import Net, Prediction
from nets.registry import make, names
from nets.resnet import ResNet

__all__ = ["MLP", "Net", "Prediction", "ResNet", "make", "names"]
