"""The games that searches are measured on, and the programs that search them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx
from flax import nnx

import envs
import nets
from benchmarks import synthetic_game
from jaxsearch.arena.hashed_evaluation import hash_rows
from jaxsearch.search.policy_names import policy_named
from jaxsearch.search.two_player import EvaluateFn, two_player_model


class Model(NamedTuple):
    """B roots, and how a search goes on from them."""

    params: Any
    states: Any  # [B, ...]
    num_actions: int
    # (params, states) to the roots and the mask of their illegal actions, or None.
    root_fn: Callable[[Any, Any], tuple[mctx.RootFnOutput, jax.Array | None]]
    recurrent_fn: Callable[..., Any]

    @property
    def arguments(self) -> tuple:
        """What the programs take: the params, a key and the states, on the device."""
        return jax.device_put((self.params, jax.random.key(0), self.states))


def synthetic(batch_size: int, num_actions: int, num_legal: int | None = None) -> Model:
    """The game without rules, see `benchmarks.synthetic_game`."""

    def root_fn(tables, states):
        root = synthetic_game.root_of(tables, states)
        mask = None if num_legal is None else jnp.isneginf(root.prior_logits)
        return root, mask

    return Model(
        params=synthetic_game.make_tables(num_actions, num_legal=num_legal),
        states=synthetic_game.root_states(batch_size),
        num_actions=num_actions,
        root_fn=root_fn,
        recurrent_fn=synthetic_game.recurrent_fn,
    )


def tic_tac_toe(batch_size: int) -> Model:
    """The real game from its start: even priors, values hashed from the board."""

    def evaluate(params, key, states):
        del params, key
        board = states.board
        value = 2 * hash_rows(board, 1)[:, 0] - 1
        return jnp.zeros(board.shape, value.dtype), value

    return _of_game("tic_tac_toe", batch_size, evaluate, params=())


def connect_four(batch_size: int, **sizes: Any) -> Model:
    """The real game from its start, with a residual net of these sizes, untrained."""
    env = envs.make("connect_four")
    shape, num_actions = env.observation_shape, env.num_actions
    net = nets.make("resnet", shape, num_actions, rngs=nnx.Rngs(0), **sizes)
    graphdef, params = nnx.split(net)

    def evaluate(params, key, states):
        del key
        return nnx.merge(graphdef, params)(jax.vmap(env.observe)(states))

    return _of_game("connect_four", batch_size, evaluate, params)


def search_program(
    model: Model, policy_name: str, num_simulations: int, **options: Any
) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """A search of all roots: `(params, key, states) -> (action, action_weights)`."""
    policy = partial(policy_named(policy_name), **options)

    def search(params, key, states):
        root, mask = model.root_fn(params, states)
        output = policy(params, key, root, model.recurrent_fn, num_simulations, mask)
        return output.action, output.action_weights

    return search


def _of_game(name: str, batch_size: int, evaluate: EvaluateFn, params: Any) -> Model:
    env = envs.make(name)
    model = two_player_model(env, evaluate)

    def root_fn(params, states):
        root = model.root_fn(params, jax.random.key(0), states)
        return root, ~states.legal_action_mask

    return Model(
        params=params,
        states=jax.vmap(lambda _: env.init(None))(jnp.arange(batch_size)),
        num_actions=env.num_actions,
        root_fn=root_fn,
        recurrent_fn=model.recurrent_fn,
    )
