"""A run in memory: what is on the device, and how it goes on by an iteration."""

import dataclasses
import time
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.learn import hosts, schedules
from jaxsearch.learn.config import RunConfig
from jaxsearch.learn.metrics import Took, measure
from jaxsearch.learn.programs import Programs, TrainingState


class NotFiniteError(FloatingPointError):
    """A learning step gave infinities or NaN.

    Attributes:
      batch: what it learned from: the fields of `learner.Batch`, and the `iteration`,
        the number of the `update` and its `learning_rate`.
    """

    def __init__(self, batch: dict[str, np.ndarray]):
        super().__init__(
            f"loss or parameters are no longer finite at iteration "
            f"{batch['iteration']}, learning step {batch['update']}"
        )
        self.batch = batch


class Evaluation(Protocol):
    """What measures the averaged net between iterations."""

    @property
    def parts(self) -> dict[str, Any]: ...  # of a checkpoint, by name
    def restore(self, parts: dict[str, Any]) -> None: ...
    @property
    def player(self) -> Any: ...  # the parameters that play, None for the average
    def measure(self, iteration: int, average: Any) -> dict[str, Any]: ...


class Trainer:
    """The state of a run and the programs that advance it.

    Attributes:
      average: the averaged parameters, which are kept and, without a gate, play.
      state: everything else that a run needs to go on.
      evaluation: what measures the net between iterations, or None.
    """

    average: Any
    state: TrainingState
    evaluation: Evaluation | None = None

    def __init__(self, config: RunConfig, programs: Programs, params: Any):
        self._config = config
        self._programs = programs
        self.state = jax.block_until_ready(programs.start(jax.device_get(params)))
        self.average = jax.tree.map(jnp.copy, self.state.params)

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds: pytrees of arrays, by name.

        What is added here comes back in `restore`. Small data of the host goes under
        the name "notes", as JSON takes it.
        """
        more = self.evaluation.parts if self.evaluation else {}
        return {"agent": self.average, "state": self.state} | more

    def restore(self, parts: dict[str, Any]) -> None:
        self.average, self.state = parts["agent"], parts["state"]
        if self.evaluation:
            self.evaluation.restore(parts)

    @property
    def iteration(self) -> int:
        return int(self.state.iteration)

    @property
    def share_done(self) -> float:
        """The share of the run that is over, from 0 to 1."""
        return self._config.share_done(self.iteration, float(self.state.seconds))

    def compile(self) -> None:
        """Compiles the programs, once for the whole run."""
        scale, newest = np.float32(1), np.int32(self._config.positions)
        state, average = self.state, self.average
        drawable = jax.eval_shape(self._programs.play, average, state, newest)[1]
        self._play = self._programs.play.lower(average, state, newest).compile()
        self._learn = self._programs.learn.lower(
            average, state, drawable, scale
        ).compile()
        self._net_seconds = self._time_net()

    def _time_net(self, repeats: int = 5) -> float:
        """The seconds in which the net alone evaluates all games; the least of some."""
        seconds = []
        for _ in range(1 + repeats):  # the first one compiles
            began = time.monotonic()
            jax.block_until_ready(self._programs.evaluate(self.average, self.state))
            seconds.append(time.monotonic() - began)
        return min(seconds[1:])

    def iterate(self) -> dict[str, Any]:
        """Plays some moves in all games, takes the learning steps due; gives figures.

        Raises:
          NotFiniteError: the loss or the parameters have become infinite or NaN. The
            trainer cannot go on.
        """
        config, state, average = self._config, self.state, self.average
        began, share = time.monotonic(), self.share_done
        newest = np.int32(schedules.window(config, self.iteration + 1))
        player = self.evaluation.player if self.evaluation else None
        player = average if player is None else player
        state, drawable, counts = self._play(player, state, newest)
        losses, scale = None, np.float32(0)
        count = int(drawable.count)  # waits for the device
        played = time.monotonic()
        if count >= config.batch:
            done, learnable = int(state.updates), int(state.learnable)
            scale = np.float32(schedules.learning_rate_scale(config, share, done))
            for _ in range(schedules.updates_due(config, learnable, done)):
                average, state, losses = self._learn(average, state, drawable, scale)
        jax.block_until_ready(average)
        if not state.finite:
            raise NotFiniteError(self._bad_batch(average, state, drawable, scale))
        learned = time.monotonic()
        spent = hosts.of_first(learned - began)
        state = dataclasses.replace(state, seconds=state.seconds + spent)
        took = Took(play=played - began, learn=learned - played, net=self._net_seconds)
        self.average, self.state = average, state
        figures = measure(config, state, counts, losses, took)
        if self.evaluation:
            figures |= self.evaluation.measure(self.iteration, average)
        return figures

    def _bad_batch(self, average, state, drawable, scale) -> dict[str, np.ndarray]:
        batch = self._programs.next_batch(average, state, drawable)
        return {
            **{k: hosts.whole(v) for k, v in vars(batch).items() if v is not None},
            "iteration": np.asarray(state.iteration),
            "update": np.asarray(state.updates) + 1,
            "learning_rate": np.float32(self._config.learning_rate) * scale,
        }
