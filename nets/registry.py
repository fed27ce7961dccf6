"""Nets by name."""

import inspect
from typing import Any

from flax import nnx

from nets.mlp import MLP
from nets.net import Net
from nets.resnet import ResNet

_NETS: dict[str, type[MLP] | type[ResNet]] = {"mlp": MLP, "resnet": ResNet}


def names() -> tuple[str, ...]:
    """The names that `make` knows."""
    return tuple(_NETS)


def make(
    name: str,
    observation_shape: tuple[int, ...],
    num_actions: int,
    *,
    rngs: nnx.Rngs,
    **sizes: Any,
) -> Net:
    """Makes a net.

    Args:
      name: one of `names()`.
      observation_shape: of one position, without the batch.
      num_actions: length of the prior logits.
      rngs: source of the initial weights, `nnx.Rngs(key_or_seed)`.
      **sizes: the keyword arguments of the net's class, such as width and depth.

    Raises:
      ValueError: an unknown name or size, or a size that the net refuses.
    """
    if not isinstance(name, str) or name not in _NETS:
        raise ValueError(f"unknown net {name!r}: choose one of {', '.join(_NETS)}")
    defaults = {
        parameter.name: parameter.default
        for parameter in inspect.signature(_NETS[name].__init__).parameters.values()
        if parameter.default is not parameter.empty
    }
    if unknown := sorted(set(sizes) - set(defaults)):
        allowed = ", ".join(f"{size}={default}" for size, default in defaults.items())
        raise ValueError(
            f"net {name} has no {', '.join(unknown)}: it takes (with these defaults) "
            f"{allowed}"
        )
    return _NETS[name](observation_shape, num_actions, rngs=rngs, **sizes)
