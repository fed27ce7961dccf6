"""Fitting a net to lessons: a run whose positions and targets are there from the start.

The counterpart of `jaxsearch.learn.trainer`, without games.
"""

import dataclasses
import functools
import time
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jaxsearch.learn import learner, schedules
from jaxsearch.learn.config import DistillConfig
from jaxsearch.learn.learner import Batch, Losses, NetFn
from jaxsearch.learn.lessons import Lessons
from jaxsearch.learn.packing import Packing
from jaxsearch.learn.programs import make_optimizer
from jaxsearch.learn.resumable import Resumable
from jaxsearch.learn.run_folder import UnusableRunError


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class FitState:
    """All that a fit needs to go on, apart from the averaged parameters."""

    params: Any
    opt_state: optax.OptState
    key: jax.Array
    iteration: jax.Array  # [] int32
    seconds: jax.Array  # [] float32: time spent in iterations
    finite: jax.Array  # [] bool: so are all numbers that learning steps gave


def split_lessons(config: DistillConfig, lessons: Lessons) -> tuple[Lessons, Lessons]:
    """What is learned from, and what is held out: whole batches, if there is one.

    Raises:
      UnusableRunError: too few lessons for both.
    """
    count = round(config.held_out_share * len(lessons))
    if count > config.batch:
        count -= count % config.batch
    count = max(count, 1)
    if len(lessons) <= count:
        raise UnusableRunError(
            f"{len(lessons)} different positions are too few to learn from some and "
            "hold out others: give more of them"
        )
    return lessons.rows(slice(count, None)), lessons.rows(slice(count))


class Fitter(Resumable):
    """The state of a fit and the programs that advance it."""

    state: FitState
    _config: DistillConfig

    def __init__(
        self,
        config: DistillConfig,
        env: Any,
        net: NetFn,
        params: Any,
        lessons: Lessons,
    ):
        super().__init__(config)
        learned, held_out = split_lessons(config, lessons)
        self._learned = jax.tree.map(jnp.asarray, learned)
        self._held_out = [
            jax.tree.map(jnp.asarray, held_out.rows(slice(first, first + config.batch)))
            for first in range(0, len(held_out), config.batch)
        ]
        self._learn, self._measure = _make_programs(config, env, net)
        self.average = jax.tree.map(jnp.copy, params)
        self.state = FitState(
            params=params,
            opt_state=make_optimizer(config).init(params),
            key=jax.random.key(config.seed),
            iteration=jnp.int32(0),
            seconds=jnp.float32(0),
            finite=jnp.bool_(True),
        )

    def compile(self) -> None:
        scale, state = jnp.float32(1), self.state
        self._learn = self._learn.lower(
            self.average, state, self._learned, scale
        ).compile()
        example = self._held_out[0]
        self._measure = self._measure.lower(self.average, example).compile()

    def iterate(self) -> dict[str, Any]:
        """Takes the learning steps of an iteration and measures; gives the figures.

        Raises:
          FloatingPointError: parameters have become infinite or NaN.
        """
        config, average, state = self._config, self.average, self.state
        began, share = time.monotonic(), self.share_done
        done, losses = self.iteration * config.updates, None
        for number in range(done, done + config.updates):
            scale = jnp.float32(schedules.learning_rate_scale(config, share, number))
            average, state, losses = self._learn(average, state, self._learned, scale)
        assert losses is not None  # there is at least one step
        if not state.finite:
            raise FloatingPointError(
                f"loss or parameters are no longer finite at iteration "
                f"{self.iteration + 1}"
            )
        took = time.monotonic() - began
        state = dataclasses.replace(
            state, iteration=state.iteration + 1, seconds=state.seconds + took
        )
        self.average, self.state = average, state
        return {
            "iteration": self.iteration,
            "seconds": float(state.seconds),
            "updates": self.iteration * config.updates,
            "loss": float(losses.total),
            "policy": float(losses.policy),
            "policy_divergence": float(losses.policy_divergence),
            "value": float(losses.value),
            **self.measure(),
            "updates_per_second": config.updates / took,
        }

    def measure(self) -> dict[str, float]:
        """How near the averaged parameters come to the teachers on held-out positions.

        The divergence of the policy in nats, the squared error of the value, and the
        share of positions in which the best move of both is the same.
        """
        measured = [self._measure(self.average, batch) for batch in self._held_out]
        losses, agreements = zip(*measured, strict=True)
        return {
            "held_out_divergence": fmean(float(m.policy_divergence) for m in losses),
            "held_out_value": fmean(float(m.value) for m in losses),
            "held_out_agreement": fmean(map(float, agreements)),
        }


def _make_programs(config: DistillConfig, env: Any, net: NetFn) -> tuple[Any, Any]:
    """The compiled parts of a fit; the first consumes average and state.

    learn(average, state, lessons, learning_rate_scale) -> (average, state, losses)
    measure(average, lessons) -> (losses, agreement)
    """
    packing, optimizer = Packing(env), make_optimizer(config)

    def batch_of(lessons: Lessons) -> Batch:
        states = jax.vmap(packing.unpack)(lessons.position)
        return Batch(
            observation=jax.vmap(env.observe)(states),
            legal_action_mask=states.legal_action_mask,
            policy_target=jnp.asarray(lessons.policy_target),
            outcome=jnp.asarray(lessons.value_target),
            search_value=jnp.asarray(lessons.value_target),
        )

    def losses_of(params, batch: Batch) -> Losses:
        return learner.losses(
            net,
            params,
            batch,
            value_weight=config.value_weight,
            search_value_share=1.0,  # there are no outcomes
        )

    # One step a call, see jaxsearch.learn.programs.
    @functools.partial(jax.jit, donate_argnames=("average", "state"))
    def learn(average, state: FitState, lessons: Lessons, learning_rate_scale):
        key, sample_key, symmetry_key = jax.random.split(state.key, 3)
        rows = jax.random.randint(sample_key, (config.batch,), 0, len(lessons))
        batch = batch_of(lessons.rows(rows))
        batch = learner.augment(symmetry_key, batch, env.symmetries)
        params, opt_state, losses = learner.update(
            optimizer,
            lambda params: losses_of(params, batch),
            state.params,
            state.opt_state,
            learning_rate_scale=learning_rate_scale,
        )
        average = optax.incremental_update(params, average, 1 - config.average_decay)
        state = dataclasses.replace(state, params=params, opt_state=opt_state, key=key)
        return average, state, losses

    @jax.jit
    def measure(average, lessons: Lessons):
        batch = batch_of(lessons)
        told = net(average, batch.observation).prior_logits
        best = jnp.argmax(jnp.where(batch.legal_action_mask, told, -jnp.inf), axis=-1)
        agrees = best == jnp.argmax(batch.policy_target, axis=-1)
        return losses_of(average, batch), jnp.mean(agrees, dtype=jnp.float32)

    return learn, measure
