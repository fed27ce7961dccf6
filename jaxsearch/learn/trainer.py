"""A run in memory: what is on the device, and how it goes on by an iteration."""

import dataclasses
import time
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxsearch.learn import hosts, schedules
from jaxsearch.learn.config import RunConfig
from jaxsearch.learn.learner import Batch
from jaxsearch.learn.metrics import Took, measure
from jaxsearch.learn.programs import Drawable, Programs, TrainingState
from jaxsearch.learn.replay import Drawn, Replay


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
      replay: the positions to learn from.
      state: everything else that a run needs to go on.
      evaluation: what measures the net between iterations, or None.
    """

    average: Any
    replay: Replay
    state: TrainingState
    evaluation: Evaluation | None = None

    def __init__(self, config: RunConfig, programs: Programs, params: Any):
        self._config = config
        self._programs = programs
        self.state = jax.block_until_ready(programs.start(jax.device_get(params)))
        self.replay = jax.block_until_ready(programs.start_replay(params))
        self.average = jax.tree.map(jnp.copy, self.state.params)

    @property
    def parts(self) -> dict[str, Any]:
        """What a checkpoint holds: pytrees of arrays, by name.

        What is added here comes back in `restore`. Small data of the host goes under
        the name "notes", as JSON takes it.
        """
        more = self.evaluation.parts if self.evaluation else {}
        parts = {"agent": self.average, "state": self.state, "replay": self.replay}
        return parts | more

    def restore(self, parts: dict[str, Any]) -> None:
        self.average, self.state = parts["agent"], parts["state"]
        self.replay = parts["replay"]
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

    def iterate(self) -> dict[str, Any]:
        """Plays some moves in all games, takes the learning steps due; gives figures.

        Raises:
          NotFiniteError: the loss or the parameters have become infinite or NaN. The
            trainer cannot go on.
        """
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
        figures = measure(config, state, counts, losses, took)
        if self.evaluation:
            figures |= self.evaluation.measure(self.iteration, average)
        return figures

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
