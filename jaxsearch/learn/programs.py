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
from jaxsearch.learn.packing import Packing
from jaxsearch.learn.searches import make_resignation, make_searches
from jaxsearch.learn.settings import LearnerSettings, Settings
from jaxsearch.search import two_player_model
from jaxsearch.search.two_player import EvaluateFn


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingState:
    """All that a run needs to go on, apart from the averaged parameters."""

    params: Any
    opt_state: optax.OptState
    replay: replay.Replay
    games: self_play.Games  # [B], that are being played
    key: jax.Array
    iteration: jax.Array  # [] int32
    updates: jax.Array  # [] int32: learning steps taken
    finished: jax.Array  # [] int32: games finished
    learnable: jax.Array  # [] int32: positions of full searches played
    seconds: jax.Array  # [] float32: time spent in iterations
    finite: jax.Array  # [] bool: so are all numbers that learning steps gave


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Drawable:
    """What the replay holds for the learning steps of an iteration."""

    found: replay.Returns
    weights: jax.Array  # [L, B] float32
    count: jax.Array  # [] int32: positions that may be drawn


class Programs(NamedTuple):
    """The compiled parts of a run; `average` are the averaged parameters.

    start(params) -> state
    play(average, state, window) -> (state, drawable, counts): moves in all games
    learn(average, state, drawable, learning_rate_scale) -> (average, state, losses)
    next_batch(average, state, drawable) -> what the next learning step learns from
    search_trees(params, state) -> the trees of a move in all games, for their size
    evaluate(average, state) -> what the net says of all games, for its time

    play consumes the state, learn the average and the state. `window` is the number of
    positions, the newest, that are learned from. A learning step that gives infinities
    or NaN clears `state.finite`; it and all that follow leave average, key and count
    of updates as they are, so that `next_batch` gives the batch of that step again.
    """

    start: Any
    play: Any
    learn: Any
    next_batch: Any
    search_trees: Any
    evaluate: Any


def make_programs(
    settings: Settings, env: Any, net: NetFn, evaluate: EvaluateFn
) -> Programs:
    """The programs of a run.

    Args:
      env: the game.
      net: `(params, observations [B, ...]) -> Prediction`.
      evaluate: the same for states, as `two_player_model` takes it.
    """
    settings = settings.on_devices(len(jax.devices()))
    model = two_player_model(env, evaluate)
    searches = make_searches(settings)
    resignation = make_resignation(settings)
    search_positions = functools.partial(
        self_play.search_positions, model, searches.full
    )
    optimizer = make_optimizer(settings)
    packing = Packing(env)

    devices = jax.devices()[: settings.devices]
    # Each device plays its own games and waits for no other inside a search.
    mesh = jax.make_mesh(
        (len(devices),),
        ("games",),
        axis_types=(jax.sharding.AxisType.Auto,),
        devices=devices,
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
            games=place(state.games, by_game),
        )

    @functools.partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(everywhere, by_game, everywhere),
        out_specs=(by_game, by_ply_and_game, everywhere),
        check_vma=False,  # mctx's searches do not pass the check
    )
    def play_games(params, games, full):
        games, plies, counts = self_play.play(
            env,
            model,
            searches,
            params,
            games,
            full,
            opening_plies=settings.opening_plies,
            resignation=resignation,
            reuse_tree=settings.reuse_tree,
        )
        return games, plies, jax.lax.psum(counts, "games")

    @jax.jit
    def start(params) -> TrainingState:
        key, rows_key = jax.random.split(jax.random.key(settings.seed))
        games = self_play.start_games(
            env,
            jax.random.split(rows_key, settings.games),
            opening_plies=settings.opening_plies,
            play_on_share=resignation.play_on_share if resignation else 0.0,
        )
        full = jnp.ones(settings.plies, bool)
        plies = jax.eval_shape(play_games, params, games, full)[1]
        state = TrainingState(
            params=params,
            opt_state=optimizer.init(params),
            replay=replay.empty_replay(plies, settings.positions, settings.plies),
            games=games,
            key=key,
            iteration=jnp.int32(0),
            updates=jnp.int32(0),
            finished=jnp.int32(0),
            learnable=jnp.int32(0),
            seconds=jnp.float32(0),
            finite=jnp.bool_(True),
        )
        return placed(state)

    @functools.partial(jax.jit, donate_argnames="state")
    def play(average, state: TrainingState, window):
        key, full_key = jax.random.split(state.key)
        share = settings.full_share if settings.fast_simulations else 1.0
        full = jax.random.uniform(full_key, (settings.plies,)) < share
        games, plies, counts = play_games(average, state.games, full)
        state = dataclasses.replace(
            state,
            replay=replay.insert(state.replay, plies),
            games=games,
            key=key,
            iteration=state.iteration + 1,
            finished=state.finished + counts.games,
            learnable=state.learnable + counts.full_searches,
        )
        found = replay.returns(state.replay, bootstrap_plies=settings.bootstrap_plies)
        rows = -(-window // settings.games)
        weights = replay.weights(state.replay, found, rows, settings.surprise_share)
        drawable = Drawable(
            found=found, weights=weights, count=jnp.sum(weights > 0, dtype=jnp.int32)
        )
        return placed(state), place(drawable, everywhere), counts

    def draw_batch(average, key, state: TrainingState, drawable: Drawable):
        """The positions of a learning step, some of them searched again."""
        sample_key, search_key, symmetry_key = jax.random.split(key, 3)
        plies, outcome = replay.sample(
            sample_key,
            state.replay,
            drawable.found,
            drawable.weights,
            settings.batch,
            most_of_game=settings.most_of_game,
        )
        states = jax.vmap(packing.unpack)(plies.position)
        policy_target, search_value = plies.policy_target, plies.course.search_value
        if count := settings.reanalysed:
            some = jax.tree.map(lambda x: x[:count], states)
            row_keys = jax.random.split(search_key, count)
            output = search_positions(average, row_keys, some)
            policy_target = policy_target.at[:count].set(output.action_weights)
            value = output.search_tree.summary().value
            search_value = search_value.at[:count].set(value)
        batch = learner.Batch(
            observation=jax.vmap(env.observe)(states),
            legal_action_mask=states.legal_action_mask,
            policy_target=policy_target,
            outcome=outcome,
            search_value=search_value,
        )
        return learner.augment(symmetry_key, place(batch, by_game), env.symmetries)

    @jax.jit
    def next_batch(average, state: TrainingState, drawable: Drawable):
        batch_key = jax.random.split(state.key)[1]
        return place(draw_batch(average, batch_key, state, drawable), everywhere)

    # One step a call: on the CPU the gradient of a convolution is about a hundred
    # times slower inside a loop of XLA's than outside.
    @functools.partial(jax.jit, donate_argnames=("average", "state"))
    def learn(average, state: TrainingState, drawable: Drawable, learning_rate_scale):
        key, batch_key = jax.random.split(state.key)
        batch = draw_batch(average, batch_key, state, drawable)

        def loss_fn(params):
            return learner.losses(
                net,
                params,
                batch,
                value_weight=settings.value_weight,
                search_value_share=settings.search_value_share,
            )

        params, opt_state, losses = learner.update(
            optimizer,
            loss_fn,
            state.params,
            state.opt_state,
            learning_rate_scale=learning_rate_scale,
        )
        finite = state.finite & learner.all_finite((losses, params, opt_state))
        moved = optax.incremental_update(params, average, 1 - settings.average_decay)
        average = jax.tree.map(functools.partial(jnp.where, finite), moved, average)
        average = place(average, everywhere)
        state = dataclasses.replace(
            state,
            params=params,
            opt_state=opt_state,
            key=jnp.where(finite, key, state.key),
            updates=state.updates + finite,
            finite=finite,
        )
        return average, placed(state), losses

    def search_trees(params, state: TrainingState):
        return search_positions(
            params, state.games.keys, state.games.states
        ).search_tree

    @jax.jit
    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(everywhere, by_game), out_specs=by_game
    )
    def evaluate_games(params, games):
        return evaluate(params, games.keys, games.states)

    def evaluate_all(average, state: TrainingState):
        return evaluate_games(average, state.games)

    return Programs(start, play, learn, next_batch, search_trees, evaluate_all)


def make_optimizer(settings: LearnerSettings) -> optax.GradientTransformation:
    """The optimizer at the peak of the learning rate."""
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        steps = optax.chain(
            optax.add_decayed_weights(decay), optax.sgd(rate, momentum=0.9)
        )
    else:
        steps = optax.adamw(rate, weight_decay=decay)
    return optax.chain(optax.clip_by_global_norm(settings.clip), steps)
