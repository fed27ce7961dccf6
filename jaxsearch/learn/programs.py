"""The programs that run on the device: play some moves in every game, take a step."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsearch import backend
from jaxsearch.learn import learner, replay, self_play
from jaxsearch.learn.learner import NetFn
from jaxsearch.learn.packing import Packing
from jaxsearch.learn.searches import make_resignation, make_searches
from jaxsearch.learn.settings import LearnerSettings, Settings
from jaxsearch.learn.starts import any_of
from jaxsearch.search import two_player_model
from jaxsearch.search.two_player import EvaluateFn


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingState:
    """What a run needs to go on beside averaged parameters and replay.

    It needs no key: what is drawn depends on the seed, the iteration, and the number of
    the learning step.
    """

    params: Any
    opt_state: optax.OptState
    games: self_play.Games  # [B], that are being played
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
    start_replay(params) -> replay, without positions; only shapes are looked at
    play(average, state) -> (state, plies, counts): moves in all games
    insert(replay, plies, window) -> (replay, drawable)
    draw(replay, drawable, updates) -> drawn, for the learning step after so many
    batch(average, state, drawn) -> what that step learns from
    learn(average, state, drawn, learning_rate_scale) -> (average, state, losses)
    search_trees(params, state) -> the trees of a move in all games, for their size
    evaluate(average, state) -> what the net says of all games, for its time

    play consumes the state, insert the replay, learn the average and the state.
    `window` is the number of positions, the newest, that are learned from. The replay
    may be on other devices than the rest: `plies` and `drawn` go there and back as
    `plies_sharding` and `drawn_sharding` say.

    A learning step that gives infinities or NaN clears `state.finite`; it and all that
    follow leave average and count of updates as they are, so that `draw` and `batch`
    give what that step learned from.
    """

    start: Any
    start_replay: Any
    play: Any
    insert: Any
    draw: Any
    batch: Any
    learn: Any
    search_trees: Any
    evaluate: Any
    plies_sharding: NamedSharding
    drawn_sharding: NamedSharding


def make_programs(
    settings: Settings,
    env: Any,
    net: NetFn,
    evaluate: EvaluateFn,
    *,
    host_replay: bool = False,
    starts: Any = None,
) -> Programs:
    """The programs of a run.

    Args:
      env: the game.
      net: `(params, observations [B, ...]) -> Prediction`.
      evaluate: the same for states, as `two_player_model` takes it.
      host_replay: whether the replay is in the memory of the host, and its programs run
        there.
      starts: states [N] from which games start, each as often as another; by default
        they start as the game does.

    Raises:
      ValueError: the replay is to be there, and JAX has no CPU or several processes.
    """
    if host_replay and jax.process_count() > 1:
        raise ValueError(
            "--replay-memory host is for a run in one process: leave it out, and lower "
            "--positions if memory is short"
        )
    settings = settings.on_devices(len(jax.devices()))
    model = two_player_model(env, evaluate)
    searches = make_searches(settings)
    resignation = make_resignation(settings)
    search_positions = functools.partial(
        self_play.search_positions, model, searches.full
    )
    optimizer = make_optimizer(settings)
    packing = Packing(env)
    init = env.init if starts is None else any_of(starts)

    devices = jax.devices()[: settings.devices]
    # Each device plays its own games and waits for no other inside a search.
    mesh = _mesh(devices)
    replay_mesh = _mesh([backend.host_device()]) if host_replay else mesh
    by_game, by_ply_and_game, everywhere = P("games"), P(None, "games"), P()

    def place(tree, spec, mesh=mesh):
        return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, spec))

    def placed(state: TrainingState) -> TrainingState:
        """The state with its games spread over the devices."""
        return dataclasses.replace(
            place(state, everywhere), games=place(state.games, by_game)
        )

    def placed_replay(kept: replay.Replay) -> replay.Replay:
        return dataclasses.replace(
            place(kept, everywhere, replay_mesh),
            plies=place(kept.plies, by_ply_and_game, replay_mesh),
        )

    def run_keys():
        """Of the rows of games, of which searches are full, of the learning steps."""
        return jax.random.split(jax.random.key(settings.seed), 3)

    def step_keys(updates):
        """Of a learning step: what it draws, searches again, and turns."""
        return jax.random.split(jax.random.fold_in(run_keys()[2], updates), 3)

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
            record_final=settings.auxiliary_weight > 0,
            init=init,
        )
        return games, plies, jax.lax.psum(counts, "games")

    def start_games():
        return self_play.start_games(
            env,
            jax.random.split(run_keys()[0], settings.games),
            opening_plies=settings.opening_plies,
            play_on_share=resignation.play_on_share if resignation else 0.0,
            init=init,
        )

    @jax.jit
    def start(params) -> TrainingState:
        state = TrainingState(
            params=params,
            opt_state=optimizer.init(params),
            games=start_games(),
            iteration=jnp.int32(0),
            updates=jnp.int32(0),
            finished=jnp.int32(0),
            learnable=jnp.int32(0),
            seconds=jnp.float32(0),
            finite=jnp.bool_(True),
        )
        return placed(state)

    def start_replay(params) -> replay.Replay:
        full = jnp.ones(settings.plies, bool)
        plies = jax.eval_shape(play_games, params, jax.eval_shape(start_games), full)[1]

        @jax.jit
        def empty():
            return placed_replay(
                replay.empty_replay(plies, settings.positions, settings.plies)
            )

        return empty()

    @functools.partial(jax.jit, donate_argnames="state")
    def play(average, state: TrainingState):
        full_key = jax.random.fold_in(run_keys()[1], state.iteration)
        share = settings.full_share if settings.fast_simulations else 1.0
        full = jax.random.uniform(full_key, (settings.plies,)) < share
        games, plies, counts = play_games(average, state.games, full)
        state = dataclasses.replace(
            state,
            games=games,
            iteration=state.iteration + 1,
            finished=state.finished + counts.games,
            learnable=state.learnable + counts.full_searches,
        )
        return placed(state), plies, counts

    @functools.partial(jax.jit, donate_argnames="kept")
    def insert(kept: replay.Replay, plies: replay.Plies, window):
        kept = replay.insert(kept, plies)
        found = replay.returns(kept, bootstrap_plies=settings.bootstrap_plies)
        rows = -(-window // settings.games)
        weights = replay.weights(kept, found, rows, settings.surprise_share)
        drawable = Drawable(
            found=found, weights=weights, count=jnp.sum(weights > 0, dtype=jnp.int32)
        )
        return placed_replay(kept), place(drawable, everywhere, replay_mesh)

    @jax.jit
    def draw(kept: replay.Replay, drawable: Drawable, updates) -> replay.Drawn:
        drawn = replay.sample(
            step_keys(updates)[0],
            kept,
            drawable.found,
            drawable.weights,
            settings.batch,
            most_of_game=settings.most_of_game,
        )
        return place(drawn, by_game, replay_mesh)

    def make_batch(average, state: TrainingState, drawn: replay.Drawn):
        """The positions of a learning step, some of them searched again."""
        _, search_key, symmetry_key = step_keys(state.updates)
        plies, states = drawn.plies, jax.vmap(packing.unpack)(drawn.plies.position)
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
            outcome=drawn.outcome,
            search_value=search_value,
            final=drawn.final,
        )
        return learner.augment(symmetry_key, place(batch, by_game), env.symmetries)

    @jax.jit
    def batch(average, state: TrainingState, drawn: replay.Drawn):
        return place(make_batch(average, state, drawn), everywhere)

    # One step a call: on the CPU the gradient of a convolution is about a hundred
    # times slower inside a loop of XLA's than outside.
    @functools.partial(jax.jit, donate_argnames=("average", "state"))
    def learn(average, state: TrainingState, drawn, learning_rate_scale):
        batch = make_batch(average, state, drawn)

        def loss_fn(params):
            return learner.losses(
                net,
                params,
                batch,
                value_weight=settings.value_weight,
                search_value_share=settings.search_value_share,
                auxiliary_weight=settings.auxiliary_weight,
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

    return Programs(
        start=start,
        start_replay=start_replay,
        play=play,
        insert=insert,
        draw=draw,
        batch=batch,
        learn=learn,
        search_trees=search_trees,
        evaluate=evaluate_all,
        plies_sharding=NamedSharding(replay_mesh, by_ply_and_game),
        drawn_sharding=NamedSharding(mesh, by_game),
    )


def _mesh(devices: list[Any]) -> Mesh:
    auto = (jax.sharding.AxisType.Auto,)
    return jax.make_mesh((len(devices),), ("games",), axis_types=auto, devices=devices)


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
