"""A net that plays a game: what training makes and everything else plays with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jax
from flax import nnx

from jaxsearch.learn import memory
from jaxsearch.learn.config import AgentConfig
from jaxsearch.learn.learner import NetFn
from jaxsearch.search.two_player import EvaluateFn

ConfigT = TypeVar("ConfigT", bound=AgentConfig)


@dataclass(frozen=True, kw_only=True, eq=False)
class Agent(Generic[ConfigT]):
    """A game and a net for it."""

    config: ConfigT
    env: Any
    params: Any
    net: NetFn
    evaluate: EvaluateFn


def untrained_agent(
    config: ConfigT, env: Any, make_net: Callable[[int], nnx.Module], *, copies: int
) -> Agent[ConfigT]:
    """An agent with the first parameters of its net.

    Args:
      env: the game.
      make_net: the net of a depth.
      copies: of the parameters that memory has to hold.

    Raises:
      ValueError: memory does not hold them, or the net is to tell what the game does
        not.
    """
    if config.auxiliary_heads and not hasattr(env, "auxiliary_targets"):
        raise ValueError(
            f"--auxiliary-weight: {env.id} tells nothing of a final board but the "
            "result; leave the flag out, or take a game that does, such as go_9x9"
        )

    def split(depth):
        return nnx.split(make_net(depth))

    memory.check([memory.of_net(split, config.depth, copies)])
    graphdef, state = split(config.depth)

    def net(params, observations):
        merged: Any = nnx.merge(graphdef, params)
        return merged.predict(observations)

    def evaluate(params, key, states):
        del key
        told = net(params, jax.vmap(env.observe)(states))
        return told.prior_logits, told.value

    params = nnx.to_pure_dict(state)
    return Agent(config=config, env=env, params=params, net=net, evaluate=evaluate)
