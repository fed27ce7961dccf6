"""How much memory a training run takes, found from shapes before anything is made."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from jaxsearch import backend
from jaxsearch.learn.config import RunConfig
from jaxsearch.learn.learner import NetFn
from jaxsearch.learn.programs import Programs, make_programs
from jaxsearch.search.memory import TreeTooLargeError

COPIES = 6
"""Of the parameters in a run: first, learning, averaged, two moments, gradient."""
EVALUATION_COPIES = 5
"""In evaluations: two that new ones are measured against, three where they play."""


class Held(NamedTuple):
    """Something that memory has to hold at once."""

    what: str
    num_bytes: int
    remedy: str  # what to lower
    on_host: bool = False  # in the memory of the host, beside that of the devices


def of_net(make: Callable[[int], Any], depth: int, copies: int) -> Held:
    """The net that `make(depth)` gives; every layer after the first is as large.

    So it need not be traced as a whole, which takes minutes for a thousand layers.
    """
    one, two = (_size(jax.eval_shape(functools.partial(make, n))) for n in (1, 2))
    return _of_params((one + (depth - 1) * (two - one)) * copies)


def programs_that_fit(
    settings: RunConfig, agent: Any, starts: Any = None
) -> tuple[Programs, str]:
    """The programs of a run, its replay where there is room, and a line on its memory.

    Args:
      agent: with its game, net and parameters.
      starts: see `make_programs`.

    Raises:
      ValueError: the memory does not hold the run.
    """
    parts = settings, agent.env, agent.net, agent.evaluate
    programs = make_programs(*parts, starts=starts)
    held = of_run(settings, agent.env, programs, agent.net, agent.params)
    check(held)
    if any(part.on_host for part in held):
        programs = make_programs(*parts, starts=starts, host_replay=True)
    return programs, describe(held)


def of_run(
    settings: RunConfig, env: Any, programs: Programs, net: NetFn, params: Any
) -> list[Held]:
    """The parts of a run that grow with its settings.

    The replay is on the host if it has to be, or else would not fit beside the rest.
    """
    try:
        state = jax.eval_shape(programs.start, params)
        replay = jax.eval_shape(programs.start_replay, params)
        trees = jax.eval_shape(programs.search_trees, params, state)
    except TreeTooLargeError as error:
        raise ValueError(f"{error}; lower --games or --simulations") from None
    rows = max(settings.batch, settings.games)
    copies = COPIES + (EVALUATION_COPIES if settings.evaluate_every else 0)
    rest = [
        _of_params(_size(params) * copies),
        Held("the games", _size(state.games), "--games"),
        Held("the search trees", _size(trees), "--games or --simulations"),
        of_layer(env, net, params, rows, "--batch, --games or --width"),
    ]
    kept = Held("the replay", _size(replay), "--positions, --games or --plies")
    room = backend.device_bytes() - _total(rest)
    may_move = settings.replay_memory == "auto" and jax.process_count() == 1
    too_large = may_move and 0 <= room < kept.num_bytes
    on_host = settings.replay_memory == "host" or too_large
    return [*rest, kept._replace(on_host=on_host)]


def of_layer(env: Any, net: NetFn, params: Any, rows: int, remedy: str) -> Held:
    """The largest thing that the net computes of so many positions."""
    one = jax.eval_shape(lambda key: env.observe(env.init(key)), jax.random.key(0))
    observations = jax.ShapeDtypeStruct((rows, *one.shape), one.dtype)
    computed = jax.make_jaxpr(net)(params, observations).eqns
    layers = [_size(out.aval) for step in computed for out in step.outvars]
    return Held("one layer of the net", max(layers), remedy)


def _of_params(num_bytes: int) -> Held:
    return Held("the parameters", num_bytes, "--width or --depth")


def check(parts: list[Held]) -> None:
    """Raises ValueError if devices or host cannot hold all their parts at once."""
    for _, held, present in _memories(parts):
        if (total := _total(held)) > present:
            largest = max(held, key=lambda part: part.num_bytes)
            raise ValueError(
                f"this takes {total / 1e9:,.1f} GB of memory, {largest.what} alone "
                f"{largest.num_bytes / 1e9:,.1f}, and there are {present / 1e9:,.1f} "
                f"GB: lower {largest.remedy}"
            )


def describe(parts: list[Held]) -> str:
    """One line: what a run takes of the memory that there is, largest part first."""
    told = []
    for where, held, present in _memories(parts):
        held = sorted(held, key=lambda part: -part.num_bytes)
        each = ", ".join(f"{part.what} {_amount(part.num_bytes)}" for part in held)
        told.append(f"{where}: {_amount(_total(held))} of {_amount(present)}: {each}")
    return "; ".join(told)


def _memories(parts: list[Held]) -> list[tuple[str, list[Held], int]]:
    """What each memory is called, has to hold, and can; one alone with CPU devices."""
    of_devices, of_host = backend.device_bytes(), backend.host_bytes()
    kept = [part for part in parts if part.on_host]
    if not kept or of_devices == of_host:
        return [("memory", parts, of_devices)]
    rest = [part for part in parts if not part.on_host]
    return [("memory", rest, of_devices), ("of the host", kept, of_host)]


def _total(parts: list[Held]) -> int:
    return sum(part.num_bytes for part in parts)


def _amount(num_bytes: int) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if num_bytes >= unit:
            return f"{num_bytes / unit:,.1f} {name}"
    return f"{num_bytes / 1e3:,.1f} kB"


def _size(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
