# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (the fields of mctx's dataclasses are not visible to type checkers)
"""Searching for a given time: chunks of simulations, driven from the host."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from jaxsearch import keys
from jaxsearch.search.arguments import check_count, check_numbers


class TimedOutput(NamedTuple):
    """What a timed search found."""

    output: mctx.PolicyOutput
    num_simulations: int  # of each row; 0 if no chunk fitted: the move is the priors'
    seconds: float  # it took


class TimedSearch:
    """Searches in chunks until the time is up, going on with one tree.

        search = TimedSearch(policy, model.recurrent_fn, chunk=64, capacity=20_000)
        search.warm_up(params, key, root, illegal)  # compiles, and times a chunk
        output, num_simulations, _ = search(params, key, root, illegal, seconds=0.5)

    A move is there from the start: the priors', then that of the last chunk finished.
    Another chunk is begun only if one like the slowest so far ends in time, so that a
    limit is kept but for a chunk that is slower than all before.

    With `gumbel_policy` each chunk is a sequential halving of its own.
    """

    def __init__(
        self,
        policy: Callable[..., mctx.PolicyOutput],
        recurrent_fn: mctx.RecurrentFn,
        *,
        chunk: int,
        capacity: int,
        max_depth: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Compiles nothing yet.

        Args:
          policy: `puct_policy` or `gumbel_policy`, or a `partial` of one with options.
            Noise is drawn anew for each chunk: `dirichlet_fraction=0` for none.
          chunk: simulations between two looks at the clock, at least 1.
          capacity: nodes a row has room for, more than `chunk`. In a full tree
            simulations go on without new nodes, see `Tree.not_stored`.
          clock: seconds, for tests.

        Raises:
          ValueError: for a count below 1 or a capacity not above `chunk`.
        """
        check_count("chunk", chunk)
        check_count("capacity", capacity)
        if capacity <= chunk:
            raise ValueError(
                f"capacity is {capacity}, expected more than the {chunk} simulations "
                "of a chunk"
            )
        self._chunk = chunk
        self._clock = clock
        self._slowest = 0.0
        options = {"capacity": capacity}
        self._start = jax.jit(
            lambda params, key, root, illegal: policy(
                params,
                key,
                root,
                recurrent_fn,
                chunk,
                illegal,
                max_depth,
                budgets=jnp.zeros(jnp.shape(root.value), jnp.int32),
                **options,
            )
        )
        self._go_on = jax.jit(
            lambda params, key, root, illegal, tree: policy(
                params, key, root, recurrent_fn, chunk, illegal, max_depth, tree=tree
            ),
            donate_argnames="tree",
        )

    def warm_up(
        self,
        params: Any,
        rng_key: jax.Array,
        root: mctx.RootFnOutput,
        invalid_actions: jax.Array | None = None,
    ) -> float:
        """Compiles for arguments of these shapes; the seconds that a chunk takes."""
        run = partial(self, params, rng_key, root, invalid_actions)
        run(seconds=0.0)
        run(seconds=float("inf"), max_simulations=self._chunk)
        self._slowest = 0.0
        run(seconds=float("inf"), max_simulations=self._chunk)
        return self._slowest

    def __call__(
        self,
        params: Any,
        rng_key: jax.Array,
        root: mctx.RootFnOutput,
        invalid_actions: jax.Array | None = None,
        *,
        seconds: float,
        max_simulations: int | None = None,
    ) -> TimedOutput:
        """Searches B positions for `seconds`, or until `max_simulations` are made.

        Args:
          max_simulations: no chunk is begun that would go beyond it.

        Raises:
          ValueError: for a time that is negative or not a number.
        """
        check_numbers(seconds=(seconds, 0, float("inf")))
        begin = self._clock()
        most = float("inf") if max_simulations is None else max_simulations
        made = 0
        output = jax.block_until_ready(
            self._start(params, rng_key, root, invalid_actions)
        )
        now = self._clock()
        while made + self._chunk <= most and now + self._slowest < begin + seconds:
            rng_key, key = keys.split(rng_key, 2)
            tree = output.search_tree
            output = jax.block_until_ready(
                self._go_on(params, key, root, invalid_actions, tree)
            )
            made += self._chunk
            finished = self._clock()
            self._slowest = max(self._slowest, finished - now)
            now = finished
        return TimedOutput(output, made, now - begin)
