"""Games written as tables: the model that the tests of the searches work on.

Letters in the shapes: B searches side by side, S states, A actions. A search starts in
state 0. Rewards are from the mover's view; a discount of -1 means that the opponent
moves next, 0 that the edge ends the game.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from numpy.typing import ArrayLike

from jaxsearch import (
    gumbel_policy,
    mctx_gumbel_policy,
    mctx_puct_policy,
    puct_policy,
)
from tests.search import reference_search as reference


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """One game for each of the B searches."""

    next_states: np.ndarray  # [B, S, A] int32
    rewards: np.ndarray  # [B, S, A] float
    discounts: np.ndarray  # [B, S, A] float
    values: np.ndarray  # [B, S] float: view of the player to move
    prior_logits: np.ndarray  # [B, S, A] float

    def __getitem__(self, rows) -> "Tables":
        """The games of some rows, in that order: a slice or a list of indices."""
        return jax.tree.map(lambda table: table[rows], self)


def make_tables(
    next_states: ArrayLike,
    *,
    rewards: ArrayLike = 0.0,
    discounts: ArrayLike = -1.0,
    values: ArrayLike = 0.0,
    prior_logits: ArrayLike = 0.0,
    batch_size: int = 1,
    dtype: type = np.float32,
) -> Tables:
    """The same hand-made game [S, A] for every row; a number stands for all entries."""
    states = np.asarray(next_states, np.int32)

    def of_edges(table, dtype=dtype):
        return np.broadcast_to(np.asarray(table, dtype), (batch_size, *states.shape))

    return Tables(
        next_states=of_edges(states, np.int32),
        rewards=of_edges(rewards),
        discounts=of_edges(discounts),
        values=np.broadcast_to(np.asarray(values, dtype), (batch_size, len(states))),
        prior_logits=of_edges(prior_logits),
    )


def random_tables(
    random: np.random.Generator,
    batch_size: int,
    num_actions: int,
    *,
    num_states: int = 24,
    discounts: tuple[float, ...] = (-1.0,),
    terminals: float = 0.0,
    rewards: float = 0.0,
    illegal: float = 0.0,
    dtype: type = np.float32,
) -> Tables:
    """A random game for every row; continuous values, so that ties are rare.

    Args:
      discounts: those of the edges that go on, drawn evenly.
      terminals: share of the edges that end the game, with a random reward.
      rewards: largest size of the rewards on the other edges.
      illegal: share of the actions that are illegal, with the lowest logit there is;
        every state keeps a legal one.
    """
    shape = (batch_size, num_states, num_actions)
    ends = random.random(shape) < terminals
    size = np.where(ends, 1.0, rewards)
    legal = random.random(shape) >= illegal
    legal |= (
        np.arange(num_actions)
        == random.integers(num_actions, size=shape[:2])[..., None]
    )
    lowest = jnp.finfo(dtype).min
    return Tables(
        next_states=random.integers(num_states, size=shape, dtype=np.int32),
        rewards=(size * random.uniform(-1, 1, shape)).astype(dtype),
        discounts=np.where(ends, 0, random.choice(discounts, shape)).astype(dtype),
        values=random.uniform(-1, 1, shape[:2]).astype(dtype),
        prior_logits=np.where(legal, random.normal(size=shape), lowest).astype(dtype),
    )


def random_mask(
    random: np.random.Generator, batch_size: int, num_actions: int
) -> np.ndarray:
    """Illegal actions [B, A] bool of roots, from none to all but one of a row."""
    share = random.random((batch_size, 1))
    illegal = random.random((batch_size, num_actions)) < share
    kept = random.integers(num_actions, size=(batch_size, 1))
    return illegal & (np.arange(num_actions)[None, :] != kept)


def root_of(tables: Tables) -> mctx.RootFnOutput:
    values, logits = jnp.asarray(tables.values), jnp.asarray(tables.prior_logits)
    return mctx.RootFnOutput(
        prior_logits=logits[:, 0],
        value=values[:, 0],
        embedding=jnp.zeros_like(values[:, 0], jnp.int32),
    )


def recurrent_fn(tables, key, action, state):
    """mctx's model; the params are the tables and the embedding is the state [B]."""
    del key

    def of_edge(table):
        return jax.vmap(lambda row, s, a: row[s, a])(table, state, action)

    def of_state(table):
        return jax.vmap(lambda row, s: row[s])(table, next_state)

    next_state = of_edge(tables.next_states)
    output = mctx.RecurrentFnOutput(
        reward=of_edge(tables.rewards),
        discount=of_edge(tables.discounts),
        prior_logits=of_state(tables.prior_logits),
        value=of_state(tables.values),
    )
    return output, next_state


def with_finished_value(value: float):
    """The model that returns `value` and logits of it at finished positions."""

    def model(tables, key, action, state):
        output, next_state = recurrent_fn(tables, key, action, state)
        finished = output.discount == 0
        return output.replace(
            value=jnp.where(finished, value, output.value),
            prior_logits=jnp.where(finished[:, None], value, output.prior_logits),
        ), next_state

    return model


WITHOUT_NOISE = {
    puct_policy: {"dirichlet_fraction": 0},
    mctx_puct_policy: {"dirichlet_fraction": 0},
    gumbel_policy: {"gumbel_scale": 0},
    mctx_gumbel_policy: {"gumbel_scale": 0},
}


def search(
    tables: Tables,
    num_simulations: int,
    illegal: np.ndarray | None = None,
    *,
    model: mctx.RecurrentFn = recurrent_fn,
    policy: Callable[..., mctx.PolicyOutput] = puct_policy,
    seed: int = 0,
    c_puct: ArrayLike | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """Searches every row; without noise and for the most visited move by default.

    Returns `action`, `action_weights`, and what the summary of the tree holds.
    """
    if illegal is None:
        illegal = np.zeros_like(tables.prior_logits[:, 0], bool)
    if policy in (puct_policy, mctx_puct_policy):
        options = {"temperature": 0, **options}
    options = {**WITHOUT_NOISE[policy], **options}
    return jax.device_get(
        _search(
            tables,
            jax.random.key(seed),
            illegal,
            c_puct,
            num_simulations=num_simulations,
            model=model,
            policy=policy,
            options=tuple(options.items()),
        )
    )


@partial(jax.jit, static_argnames=("num_simulations", "model", "policy", "options"))
def _search(tables, key, illegal, c_puct, *, num_simulations, model, policy, options):
    options = dict(options)
    if c_puct is not None:
        options["c_puct"] = c_puct
    output = policy(
        tables, key, root_of(tables), model, num_simulations, illegal, **options
    )
    return result_of(output)


def search_tree(
    tables: Tables,
    num_simulations: int,
    illegal: np.ndarray | None = None,
    *,
    policy: Callable[..., mctx.PolicyOutput] = puct_policy,
    **options: Any,
) -> Any:
    """The tree of a search of every row; without noise by default."""
    options = {**WITHOUT_NOISE[policy], **options}
    return _search_tree(
        tables,
        illegal,
        num_simulations=num_simulations,
        policy=policy,
        options=tuple(options.items()),
    )


@partial(jax.jit, static_argnames=("num_simulations", "policy", "options"))
def _search_tree(tables, illegal, *, num_simulations, policy, options):
    return policy(
        tables,
        jax.random.key(0),
        root_of(tables),
        recurrent_fn,
        num_simulations,
        illegal,
        **dict(options),
    ).search_tree


def result_of(output: mctx.PolicyOutput) -> dict[str, Any]:
    """What a search of any policy came to."""
    summary = output.search_tree.summary()
    return {
        "action": output.action,
        "action_weights": output.action_weights,
        "visit_counts": summary.visit_counts,
        "value": summary.value,
        "qvalues": summary.qvalues,
    }


def reference_search(
    row: Tables,
    num_simulations: int,
    illegal: np.ndarray,
    root_logits: np.ndarray | None = None,
    root_state: int = 0,
    **options: Any,
) -> reference.Result:
    """The plain Python search of one row, with other logits at the root if given."""
    next_states, rewards, discounts, values, prior_logits = (
        table.tolist()
        for table in (
            row.next_states,
            row.rewards,
            row.discounts,
            row.values,
            row.prior_logits,
        )
    )

    def step(state, action):
        next_state = next_states[state][action]
        return (
            next_state,
            rewards[state][action],
            discounts[state][action],
            values[next_state],
            prior_logits[next_state],
        )

    return reference.search(
        step,
        values[root_state],
        prior_logits[root_state] if root_logits is None else root_logits.tolist(),
        num_simulations,
        legal=(~illegal).tolist(),
        root_state=root_state,
        **options,
    )
