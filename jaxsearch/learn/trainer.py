"""A run in memory: what is on the device, and how it goes on by an iteration."""

import dataclasses
import functools
import time
from collections.abc import Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.learn import hosts, schedules
from jaxsearch.learn.config import RunConfig
from jaxsearch.learn.interruption import Interruption
from jaxsearch.learn.learner import Batch
from jaxsearch.learn.metrics import Took, measure
from jaxsearch.learn.programs import Drawable, Programs, TrainingState
from jaxsearch.learn.replay import Drawn, Replay
from jaxsearch.learn.resumable import Resumable


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
    """What measures the averaged net between iterations.

    `restore` undoes what `measure` has done.
    """

    @property
    def parts(self) -> dict[str, Any]: ...  # of a checkpoint, by name
    def restore(self, parts: Mapping[str, Any]) -> None: ...
    @property
    def player(self) -> Any: ...  # the parameters that play, None for the average
    def is_due(self, iteration: int) -> bool: ...
    def measure(self, iteration: int, average: Any) -> dict[str, Any]: ...


class Trainer(Resumable):
    """The state of a run of self-play and the programs that advance it.

    Attributes:
      replay: the positions to learn from.
      evaluation: what measures the net between iterations, or None.
    """

    replay: Replay
    state: TrainingState
    evaluation: Evaluation | None = None

    _config: RunConfig
    _unmeasured: dict[str, Any] | None = None  # figures; the rest is to be measured

    def __init__(self, config: RunConfig, programs: Programs, params: Any):
        super().__init__(config)
        self._programs = programs
        self.state = jax.block_until_ready(programs.start(jax.device_get(params)))
        self.replay = jax.block_until_ready(programs.start_replay(params))
        self.average = jax.tree.map(jnp.copy, self.state.params)

    @property
    def parts(self) -> dict[str, Any]:
        more = self.evaluation.parts if self.evaluation else {}
        notes = {"unmeasured": self._unmeasured}
        return super().parts | {"replay": self.replay, "notes": notes} | more

    def restore(self, parts: Mapping[str, Any]) -> None:
        super().restore(parts)
        self.replay = parts["replay"]
        self._unmeasured = parts["notes"].get("unmeasured")
        if self.evaluation:
            self.evaluation.restore(parts)

    @property
    def told(self) -> int:
        return self.iteration - (self._unmeasured is not None)

    @property
    def is_done(self) -> bool:
        return self.share_done >= 1 and self.told == self.iteration

    def compile(self) -> None:
        programs, state, average = self._programs, self.state, self.average
        number, scale = np.int32(0), np.float32(1)
        play = programs.play.lower(average, state)
        plies = _placed(play.out_info[1], programs.plies_sharding)
        insert = programs.insert.lower(self.replay, plies, number)
        self._play, self._insert = play.compile(), insert.compile()
        drawable = jax.tree.map(
            _placed, insert.out_info[1], self._insert.output_shardings[1]
        )
        draw = programs.draw.lower(self.replay, drawable, number)
        drawn = _placed(draw.out_info, programs.drawn_sharding)
        self._draw = draw.compile()
        self._learn = programs.learn.lower(average, state, drawn, scale).compile()
        self._net_seconds = self._time_net()

    def _time_net(self, repeats: int = 5) -> float:
        """The seconds in which the net alone evaluates all games; the least of some."""
        seconds = []
        for _ in range(1 + repeats):  # the first one compiles
            began = time.monotonic()
            jax.block_until_ready(self._programs.evaluate(self.average, self.state))
            seconds.append(time.monotonic() - began)
        return min(seconds[1:])

    def iterate(self, interruption: Interruption) -> dict[str, Any] | None:
        """Plays some moves in all games, takes the learning steps due, evaluates.

        Gives the figures; None if a signal has cut the evaluation short, which is all
        that the next call then does, in this run or a resumed one. Several processes
        begin none after a signal, but end the one they are at.

        Raises:
          NotFiniteError: the loss or the parameters have become infinite or NaN. The
            trainer cannot go on.
        """
        figures = self._unmeasured or self._advance()
        self._unmeasured = None
        if self.evaluation is None or not self.evaluation.is_due(self.iteration):
            return figures
        before = self.evaluation.parts
        measure = functools.partial(
            self.evaluation.measure, self.iteration, self.average
        )
        if jax.process_count() == 1:
            measured = interruption.until_signal(measure)
        else:
            measured = None if hosts.any_of(interruption.signal_name) else measure()
        if measured is None:
            self.evaluation.restore(before)
            self._unmeasured = figures
            return None
        return figures | measured

    def _advance(self) -> dict[str, Any]:
        """An iteration without its evaluation."""
        config, state, average = self._config, self.state, self.average
        began, share = time.monotonic(), self.share_done
        window = np.int32(schedules.window(config, self.iteration + 1))
        player = self.evaluation.player if self.evaluation else None
        player = average if player is None else player
        state, plies, counts = self._play(player, state)
        plies = _moved(plies, self._programs.plies_sharding)
        replay, drawable = self._insert(self.replay, plies, window)
        losses, scale = None, np.float32(0)
        count = int(drawable.count)  # waits for the device
        played = time.monotonic()
        if count >= config.batch:
            done, learnable = int(state.updates), int(state.learnable)
            scale = np.float32(schedules.learning_rate_scale(config, share, done))
            due = schedules.updates_due(config, learnable, done)
            for number in range(done, done + due):
                drawn = self._drawn(replay, drawable, number)
                average, state, losses = self._learn(average, state, drawn, scale)
        jax.block_until_ready(average)
        if not state.finite:
            drawn = self._drawn(replay, drawable, int(state.updates))
            batch = self._programs.batch(average, state, drawn)
            raise NotFiniteError(_arrays(batch, state, config.learning_rate * scale))
        learned = time.monotonic()
        spent = hosts.of_first(learned - began)
        state = dataclasses.replace(state, seconds=state.seconds + spent)
        took = Took(play=played - began, learn=learned - played, net=self._net_seconds)
        self.average, self.replay, self.state = average, replay, state
        return measure(config, state, counts, losses, took)

    def _drawn(self, replay: Replay, drawable: Drawable, updates: int) -> Drawn:
        drawn = self._draw(replay, drawable, np.int32(updates))
        return _moved(drawn, self._programs.drawn_sharding)


def _moved(tree: Any, sharding: Any) -> Any:
    """The arrays where the sharding wants them; as they are if they are there."""

    def moved(x):
        there = x.sharding.is_equivalent_to(sharding, x.ndim)
        return x if there else jax.device_put(x, sharding)

    return jax.tree.map(moved, tree)


def _placed(shapes: Any, sharding: Any) -> Any:
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), shapes
    )


def _arrays(
    batch: Batch, state: TrainingState, learning_rate: Any
) -> dict[str, np.ndarray]:
    """What `NotFiniteError` holds, of the learning step after those of the state."""
    return {
        **{
            jax.tree_util.keystr(path, simple=True, separator="_"): hosts.whole(value)
            for path, value in jax.tree.leaves_with_path(batch)
        },
        "iteration": np.asarray(state.iteration),
        "update": np.asarray(state.updates) + 1,
        "learning_rate": np.asarray(learning_rate, np.float32),
    }
