"""Our searches beside mctx's: the same visits? how long? how much memory?"""

import statistics
import time
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxsearch.arena.noiseless_search import noiseless_search
from jaxsearch.arena.openings import random_openings
from jaxsearch.search.two_player import EvaluateFn

SEARCHES = ("puct", "gumbel", "mctx-puct", "mctx-gumbel")


@dataclass(frozen=True, kw_only=True)
class SearchCost:
    """What one search of a whole batch costs."""

    search: str
    seconds: float  # median of the runs
    simulations_per_second: float
    compile_seconds: float
    tree_bytes: int
    bytes_per_node: float  # tree bytes / (batch * (simulations + 1))
    working_bytes: int | None  # temporary memory of the program, None if unknown


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Four searches of the same roots. Gumbel chooses otherwise: only its cost counts.

    `equal_rows` is the share of roots for which puct and mctx-puct visited every action
    equally often.
    """

    game: str
    simulations: int
    batch: int
    equal_rows: float
    costs: tuple[SearchCost, ...]


def check_compare(env: Any, simulations: int, batch: int, repeats: int) -> None:
    """Raises ValueError for a game or numbers that cannot be compared."""
    if env.num_players != 2:
        raise ValueError(
            f"a comparison needs a game of 2 players, {env.id} has {env.num_players}"
        )
    for name, value in (
        ("simulations", simulations),
        ("batch", batch),
        ("repeats", repeats),
    ):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def compare_searches(
    env: Any,
    evaluate: EvaluateFn,
    params: Any,
    *,
    simulations: int,
    batch: int,
    plies: int,
    repeats: int = 5,
    key: jax.Array,
) -> Comparison:
    """Searches random positions with each of `SEARCHES`, at mctx's defaults.

    Args:
      env: a game of two players.
      evaluate: a net, or `hashed_evaluate(env)`. Scores with ties (equal priors, say)
        make unequal visits, as mctx breaks ties at random.
      params: of `evaluate`.
      simulations: for each root.
      batch: roots.
      plies: random moves from the start to a root.
      repeats: runs of each search; they take turns, and the median counts.
      key: consumed.

    Raises:
      ValueError: see `check_compare` and `random_openings`.
    """
    check_compare(env, simulations, batch, repeats)
    roots_key, search_key = jax.random.split(key)
    roots = random_openings(env, count=batch, num_plies=plies, key=roots_key).states
    arguments = (params, search_key, roots)
    programs, compile_seconds, tree_bytes = [], [], []
    for search in SEARCHES:
        run = noiseless_search(
            env, evaluate, search=search, num_simulations=simulations
        )

        def visits_and_action(params, key, states, run=run):
            output = run(params, key, states)
            return output.search_tree.summary().visit_counts, output.action

        start = time.perf_counter()
        programs.append(jax.jit(visits_and_action).lower(*arguments).compile())
        compile_seconds.append(time.perf_counter() - start)
        tree = jax.eval_shape(run, *arguments).search_tree
        tree_bytes.append(
            sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        )

    visits = {
        search: np.asarray(program(*arguments)[0])
        for search, program in zip(SEARCHES, programs, strict=True)
    }
    seconds = _time_in_turns(programs, arguments, repeats)
    costs = []
    for number, search in enumerate(SEARCHES):
        memory = programs[number].memory_analysis()
        costs.append(
            SearchCost(
                search=search,
                seconds=seconds[number],
                simulations_per_second=batch * simulations / seconds[number],
                compile_seconds=compile_seconds[number],
                tree_bytes=tree_bytes[number],
                bytes_per_node=tree_bytes[number] / (batch * (simulations + 1)),
                working_bytes=memory.temp_size_in_bytes if memory else None,
            )
        )
    return Comparison(
        game=env.id,
        simulations=simulations,
        batch=batch,
        equal_rows=float((visits["puct"] == visits["mctx-puct"]).all(axis=1).mean()),
        costs=tuple(costs),
    )


def _time_in_turns(programs, arguments, repeats) -> list[float]:
    """Median seconds of each program; a slow moment of the machine hits all alike."""
    seconds: list[list[float]] = [[] for _ in programs]
    for _ in range(repeats):
        for program, record in zip(programs, seconds, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(program(*arguments))
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in seconds]
