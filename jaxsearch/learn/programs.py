"""The programs that run on the device: play some moves in every game, take a step."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsearch.learn import learner, replay, self_play
from jaxsearch.learn.learner import NetFn
from jaxsearch.learn.settings import Settings
from jaxsearch.search import two_player_model
from jaxsearch.search.policy_names import policy_named
from jaxsearch.search.two_player import EvaluateFn


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingState:
    """All that a run needs to go on, apart from the averaged parameters."""

    params: Any
    opt_state: optax.OptState
    replay: replay.Replay
    states: Any  # [B] of the game: the games that are being played
    key: jax.Array
    iteration: jax.Array  # [] int32
    updates: jax.Array  # [] int32: learning steps taken
    games: jax.Array  # [] int32: games finished
    seconds: jax.Array  # [] float32: time spent in iterations


class Programs(NamedTuple):
    """The compiled parts of a run; `average` are the averaged parameters.

    start(params) -> state
    play(average, state) -> (state, outcomes, counts): moves in all games
    learn(average, state, outcomes, learning_rate_scale) -> (average, state, losses)
    search_trees(params, state) -> the trees of a move in all games, for their size

    play consumes the state, learn the average and the state.
    """

    start: Any
    play: Any
    learn: Any
    search_trees: Any


def make_programs(
    settings: Settings, env: Any, net: NetFn, evaluate: EvaluateFn
) -> Programs:
    """The programs of a run.

    Args:
      env: the game.
      net: `(params, observations [B, ...]) -> (prior_logits [B, A], value [B])`.
      evaluate: the same for states, as `two_player_model` takes it.
    """
    model = two_player_model(env, evaluate)
    policy = policy_named(settings.search)
    options = {"temperature": settings.temperature} if "puct" in settings.search else {}
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(settings.learning_rate, weight_decay=settings.weight_decay),
    )

    def search(params, key, root, recurrent_fn, invalid_actions):
        return policy(
            params,
            key,
            root,
            recurrent_fn,
            settings.simulations,
            invalid_actions,
            **options,
        )

    # Each device plays its own games and waits for no other inside a search.
    mesh = jax.make_mesh(
        (settings.devices,),
        ("games",),
        axis_types=(jax.sharding.AxisType.Auto,),
        devices=jax.devices()[: settings.devices],
    )
    by_game, by_ply_and_game, everywhere = P("games"), P(None, "games"), P()

    def place(tree, spec):
        return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, spec))

    def placed(state: TrainingState) -> TrainingState:
        """The state with its games and their plies spread over the devices."""
        kept = state.replay
        return dataclasses.replace(
            place(state, everywhere),
            replay=dataclasses.replace(
                place(kept, everywhere), plies=place(kept.plies, by_ply_and_game)
            ),
            states=place(state.states, by_game),
        )

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(everywhere, everywhere, by_game),
        out_specs=(by_game, by_ply_and_game, everywhere),
        check_vma=False,  # mctx's searches do not pass the check
    )
    def play_games(params, key, states):
        key = jax.random.fold_in(key, jax.lax.axis_index("games"))
        states, plies, counts = self_play.play(
            env,
            model,
            search,
            params,
            key,
            states,
            num_plies=settings.plies,
            opening_plies=settings.opening_plies,
        )
        return states, plies, jax.lax.psum(counts, "games")

    @jax.jit
    def start(params) -> TrainingState:
        key, start_key = jax.random.split(jax.random.key(settings.seed))
        states = self_play.start_games(
            env, start_key, settings.games, settings.opening_plies
        )
        plies = jax.eval_shape(play_games, params, key, states)[1]
        state = TrainingState(
            params=params,
            opt_state=optimizer.init(params),
            replay=replay.empty_replay(plies, settings.positions, settings.plies),
            states=states,
            key=key,
            iteration=jnp.int32(0),
            updates=jnp.int32(0),
            games=jnp.int32(0),
            seconds=jnp.float32(0),
        )
        return placed(state)

    @functools.partial(jax.jit, donate_argnames="state")
    def play(average, state: TrainingState):
        key, play_key = jax.random.split(state.key)
        states, plies, counts = play_games(average, play_key, state.states)
        state = dataclasses.replace(
            state,
            replay=replay.insert(state.replay, plies),
            states=states,
            key=key,
            iteration=state.iteration + 1,
            games=state.games + counts.games,
        )
        outcomes = place(replay.outcomes(state.replay), everywhere)
        return placed(state), outcomes, counts

    # One step a call: on the CPU the gradient of a convolution is about a hundred
    # times slower inside a loop of XLA's than outside.
    @functools.partial(jax.jit, donate_argnames=("average", "state"))
    def learn(average, state: TrainingState, outcomes, learning_rate_scale):
        key, sample_key, symmetry_key = jax.random.split(state.key, 3)
        plies, result = replay.sample(
            sample_key, state.replay, outcomes, settings.batch
        )
        plies, result = place((plies, result), by_game)
        params, opt_state, losses = learner.update(
            net,
            optimizer,
            state.params,
            state.opt_state,
            learner.augment(symmetry_key, plies, env.symmetries),
            learner.value_targets(
                result, plies.search_value, settings.search_value_share
            ),
            value_weight=settings.value_weight,
            learning_rate_scale=learning_rate_scale,
        )
        average = optax.incremental_update(params, average, 1 - settings.average_decay)
        average = place(average, everywhere)
        state = dataclasses.replace(
            state,
            params=params,
            opt_state=opt_state,
            key=key,
            updates=state.updates + 1,
        )
        return average, placed(state), losses

    def search_trees(params, state: TrainingState):
        root = model.root_fn(params, state.key, state.states)
        illegal = ~state.states.legal_action_mask
        return search(params, state.key, root, model.recurrent_fn, illegal).search_tree

    return Programs(start, play, learn, search_trees)
