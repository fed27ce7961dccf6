"""A run in memory: what is on the device, and how it goes on by an iteration."""

import dataclasses
import time
from typing import Any

import jax
import jax.numpy as jnp

from jaxsearch.learn import schedules
from jaxsearch.learn.config import RunConfig
from jaxsearch.learn.metrics import check_finite, measure
from jaxsearch.learn.programs import Programs, TrainingState


class Trainer:
    """The state of a run and the programs that advance it.

    Attributes:
      average: the averaged parameters, which play and are kept.
      state: everything else that a run needs to go on.
    """

    average: Any
    state: TrainingState

    def __init__(self, config: RunConfig, programs: Programs, params: Any):
        self._config = config
        self._programs = programs
        self.state = jax.block_until_ready(programs.start(params))
        self.average = jax.tree.map(jnp.copy, self.state.params)

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {"agent": self.average, "state": self.state}

    def restore(self, parts: dict[str, Any]) -> None:
        self.average, self.state = parts["agent"], parts["state"]

    @property
    def iteration(self) -> int:
        return int(self.state.iteration)

    @property
    def share_done(self) -> float:
        """The share of the run that is over, from 0 to 1."""
        return self._config.share_done(self.iteration, float(self.state.seconds))

    def compile(self) -> None:
        """Compiles the programs, once for the whole run."""
        scale, newest = jnp.float32(1), jnp.int32(self._config.positions)
        state, average = self.state, self.average
        drawable = jax.eval_shape(self._programs.play, average, state, newest)[1]
        self._play = self._programs.play.lower(average, state, newest).compile()
        self._learn = self._programs.learn.lower(
            average, state, drawable, scale
        ).compile()

    def iterate(self) -> dict[str, Any]:
        """Plays some moves in all games, takes the learning steps due; gives figures.

        Raises:
          FloatingPointError: parameters have become infinite or NaN.
        """
        config, state, average = self._config, self.state, self.average
        began, share = time.monotonic(), self.share_done
        newest = jnp.int32(schedules.window(config, self.iteration + 1))
        state, drawable, counts = self._play(average, state, newest)
        losses = None
        if int(drawable.count) >= config.batch:
            done, learnable = int(state.updates), int(state.learnable)
            scale = jnp.float32(schedules.learning_rate_scale(config, share, done))
            for _ in range(schedules.updates_due(config, learnable, done)):
                average, state, losses = self._learn(average, state, drawable, scale)
        jax.block_until_ready(average)
        took = time.monotonic() - began
        state = dataclasses.replace(state, seconds=state.seconds + took)
        self.average, self.state = average, state
        figures = measure(config, state, counts, losses, took)
        check_finite(figures, (average, state.params, state.opt_state))
        return figures
