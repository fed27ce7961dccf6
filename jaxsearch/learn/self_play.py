"""Self-play: B games at once, each move chosen by a search, all on the device.

Every row of games draws from random streams of its own: what happens in it does not
depend on the other rows, nor on how the rows are spread over devices.
"""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from jaxsearch import keys
from jaxsearch.learn.packing import Packing
from jaxsearch.learn.replay import Plies
from jaxsearch.learn.targets import Course, FinalBoard
from jaxsearch.search import Tree, TwoPlayerModel
from jaxsearch.vector import is_finished, random_actions, select_rows

NOBODY = -1


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class Games:
    """B rows of games in play, each with what its next move needs to know."""

    states: Any  # [B]
    keys: jax.Array  # [B]: of the rows, for ever
    moves: jax.Array  # [B] int32: made in the row so far; numbers its random draws
    ply: jax.Array  # [B] int32: of the present game, random opening included
    low_plies: jax.Array  # [B, 2] int32: moves in a row at which each saw itself lost
    plays_on: jax.Array  # [B] bool: nobody may resign in this game
    gave_up: jax.Array  # [B] int32: who would have resigned if allowed, or NOBODY


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class GameCounts:
    """What came of some plies and how their games ended: [] int32 but where said."""

    plies: jax.Array
    games: jax.Array
    wins_first: jax.Array  # by player 0
    wins_second: jax.Array
    draws: jax.Array
    truncated: jax.Array
    resigned: jax.Array  # among the wins
    full_searches: jax.Array  # plies that are learned from
    # Ended games that were played on, though one would have resigned.
    gave_up: jax.Array
    wrongly: jax.Array  # of those, the ones that this player did not lose
    evaluations: jax.Array  # [] float32: positions given to the net
    useful: jax.Array  # [] float32: of those, the new and unfinished ones


@dataclass(frozen=True, kw_only=True)
class Resignation:
    """When a player gives up: at a value below `-value` in so many moves of its own."""

    value: float = 0.9
    plies: int = 3
    play_on_share: float = 0.1  # of the games, to tell how often it would be wrong


SearchFn = Callable[..., mctx.PolicyOutput]
"""`(params, keys [B], root, recurrent_fn, invalid_actions, ply [B])` to mctx's."""


InitFn = Callable[[jax.Array], Any]
"""`(key) -> state`, unbatched."""


class Searches(NamedTuple):
    """The searches of self-play: full ones, and others that only choose the move."""

    full: SearchFn
    fast: SearchFn | None = None


def start_games(
    env: Any,
    row_keys: jax.Array,
    *,
    opening_plies: int,
    play_on_share: float = 0.0,
    init: InitFn | None = None,
) -> Games:
    """Rows [B] of games after 0 to `opening_plies` random moves.

    The number of moves is drawn evenly for each game. A random move that would end the
    game is not played.

    Args:
      row_keys: [B], kept for all games of the rows.
      play_on_share: the share of games in which nobody may resign.
      init: where games start, before those moves; `env.init` by default.
    """
    draws = keys.split(row_keys, 2)[0]
    init = init or env.init
    return _new_games(env, init, draws, opening_plies, play_on_share, row_keys)


def play(
    env: Any,
    model: TwoPlayerModel,
    searches: Searches,
    params: Any,
    games: Games,
    full: jax.Array,
    *,
    opening_plies: int,
    resignation: Resignation | None = None,
    reuse_tree: bool = False,
    record_final: bool = False,
    init: InitFn | None = None,
) -> tuple[Games, Plies, GameCounts]:
    """Plays T moves in each of B games; a finished game is replaced at once.

    Returns the games to go on from, the plies [T, B, ...] and the counts of games that
    ended.

    Args:
      full: [T] bool, the plies that get a full search; all games share them, so that
        no row waits for another (playout cap randomization: D. Wu, "Accelerating
        Self-Play Learning in Go", 2019, section 3.1).
      reuse_tree: whether a search goes on with the tree of the one before it, within
        these T moves; the searches give their trees room for it.
      record_final: whether to record what `env.auxiliary_targets` says of final boards.
      init: as of `start_games`.
    """
    packing = Packing(env)
    play_on_share = resignation.play_on_share if resignation else 0.0

    def ply(carry, full):
        games, tree = carry
        states, mover = games.states, games.states.current_player
        draws = jax.vmap(jax.random.fold_in)(games.keys, games.moves)
        root_keys, search_keys, step_keys, start_keys = keys.split(draws, 4)
        root = model.root_fn(params, root_keys, states)
        invalid_actions = ~states.legal_action_mask

        def run(search) -> tuple[jax.Array, jax.Array, jax.Array, Any, _Work]:
            output = search(
                params,
                search_keys,
                root,
                model.recurrent_fn,
                invalid_actions,
                games.ply,
                **({"tree": tree} if reuse_tree else {}),
            )
            weights = jnp.asarray(output.action_weights, jnp.float32)
            value = jnp.asarray(output.search_tree.summary().value, jnp.float32)
            tree_after = output.search_tree if reuse_tree else None
            work = _work(tree, output.search_tree)
            return output.action, weights, value, tree_after, work

        fast = searches.fast
        if fast is None:
            chosen = run(searches.full)
        else:  # one scalar for all rows: only one of them runs
            chosen = jax.lax.cond(full, lambda: run(searches.full), lambda: run(fast))
        action, weights, value, tree, work = chosen
        moved = jax.vmap(env.step)(states, action, step_keys)
        rewards, terminated = moved.rewards, moved.terminated
        low_plies, gave_up = games.low_plies, games.gave_up
        resigns = jnp.zeros_like(terminated)
        if resignation:
            low_plies = _count_low(low_plies, mover, value < -resignation.value)
            of_mover = jax.vmap(lambda row, player: row[player])(low_plies, mover)
            lost = of_mover >= resignation.plies
            resigns = lost & ~games.plays_on
            gave_up = jnp.where(lost & (gave_up == NOBODY), mover, gave_up)
            rewards = jnp.where(resigns[:, None], _loss_of(mover, rewards), rewards)
            terminated = terminated | resigns
        truncated = moved.truncated & ~resigns
        record = Plies(
            position=jax.vmap(packing.pack)(states),
            policy_target=weights,
            surprise=_divergence(weights, root.prior_logits),
            learned=jnp.broadcast_to(full, mover.shape),
            course=Course(
                player=mover,
                rewards=rewards,
                search_value=value,
                terminated=terminated,
                truncated=truncated,
            ),
            final=_final_board(env, moved, ~resigns) if record_final else None,
        )
        of_gave_up = jax.vmap(lambda row, player: row[player])(
            rewards, jnp.maximum(gave_up, 0)
        )
        told = (terminated | truncated) & games.plays_on & (gave_up != NOBODY)
        notes = resigns, told, told & (of_gave_up > -1)
        going_on = dataclasses.replace(
            games,
            states=moved,
            moves=games.moves + 1,
            ply=games.ply + 1,
            low_plies=low_plies,
            gave_up=gave_up,
        )
        fresh = _new_games(
            env,
            init or env.init,
            start_keys,
            opening_plies,
            play_on_share,
            games.keys,
        )
        fresh = dataclasses.replace(fresh, moves=going_on.moves)
        ended = terminated | truncated
        if tree is not None:
            tree = tree.advance(action, reset=ended)
        return (select_rows(ended, fresh, going_on), tree), (record, notes, work)

    tree = None
    if reuse_tree:  # without nodes, so that every row starts anew
        search = functools.partial(search_positions, model, searches.full)
        like = jax.eval_shape(search, params, games.keys, games.states).search_tree
        tree = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
    (games, _), (plies, notes, work) = jax.lax.scan(ply, (games, tree), full)
    return games, plies, _count_games(plies, work, *notes)


def search_positions(
    model: TwoPlayerModel, search: SearchFn, params: Any, row_keys: Any, states: Any
) -> mctx.PolicyOutput:
    """A search of positions [B], apart from any game. The keys [B] are consumed."""
    root_keys, search_keys = keys.split(row_keys, 2)
    return search(
        params,
        search_keys,
        model.root_fn(params, root_keys, states),
        model.recurrent_fn,
        ~states.legal_action_mask,
        jnp.zeros_like(states.current_player),
    )


def _new_games(env, init, draws, opening_plies, play_on_share, row_keys) -> Games:
    init_keys, length_keys, share_keys, moves_keys = keys.split(draws, 4)
    states = jax.vmap(init)(init_keys)
    lengths = jax.vmap(lambda key: jax.random.randint(key, (), 0, opening_plies + 1))(
        length_keys
    )

    def ply(number, carry):
        states, played = carry
        draws = jax.vmap(jax.random.fold_in, (0, None))(moves_keys, number)
        action_keys, step_keys = keys.split(draws, 2)
        actions = random_actions(action_keys, states)
        moved = jax.vmap(env.step)(states, actions, step_keys)
        plays = (number < lengths) & ~is_finished(moved)
        return select_rows(plays, moved, states), played + plays

    zeros = jnp.zeros_like(states.current_player)
    states, played = jax.lax.fori_loop(0, opening_plies, ply, (states, zeros))
    return Games(
        states=states,
        keys=row_keys,
        moves=zeros,
        ply=played,
        low_plies=jnp.stack([zeros, zeros], axis=1),
        plays_on=jax.vmap(jax.random.uniform)(share_keys) < play_on_share,
        gave_up=jnp.full_like(zeros, NOBODY),
    )


def _final_board(env, states, played_out) -> FinalBoard:
    """Of states [B]; unknown where a game goes on, or stopped without being scored."""
    told = jax.vmap(env.auxiliary_targets)(states)
    scored = states.terminated | jnp.any(states.rewards != 0, axis=-1)
    known = is_finished(states) & played_out & scored
    return FinalBoard(ownership=told.ownership, score=told.score, known=known)


def _count_low(low_plies, mover, is_low):
    """The counts [B, 2] after a move: one more, or none, for its mover."""
    of_mover = jnp.arange(2, dtype=mover.dtype)[None, :] == mover[:, None]
    counted = jnp.where(is_low[:, None], low_plies + 1, 0)
    return jnp.where(of_mover, counted, low_plies)


def _loss_of(mover, rewards):
    players = jnp.arange(rewards.shape[1], dtype=mover.dtype)[None, :]
    return jnp.where(players == mover[:, None], -1.0, 1.0).astype(rewards.dtype)


def _divergence(weights, prior_logits):
    """Kullback-Leibler divergence [B] of targets from the net's policy, in nats."""
    log_prior = jax.nn.log_softmax(prior_logits, axis=-1)
    log_target = jnp.log(jnp.where(weights > 0, weights, 1))
    terms = jnp.where(weights > 0, weights * (log_target - log_prior), 0)
    return jnp.sum(terms, axis=-1).astype(jnp.float32)


class _Work(NamedTuple):
    """What the searches of B rows asked of the net."""

    rounds: jax.Array  # [] int32: evaluations of all rows together
    useful: jax.Array  # [B] int32: of them, new positions that are not finished


def _work(before: Any, tree: Any) -> _Work:
    """The work of searches that made a tree, from one before it or from None."""

    ours = isinstance(tree, Tree)  # in mctx's searches no row stops early
    rounds = jnp.max(tree.simulations) if ours else jnp.int32(tree.num_simulations)

    def live(tree):
        visits = tree.visits if ours else tree.node_visits
        return jnp.sum((visits > 0) & ~is_finished(tree.embeddings), axis=1)

    known = 1 if before is None else jnp.maximum(live(before), 1)
    return _Work(1 + rounds, 1 + live(tree) - known)


def _count_games(plies: Plies, work: _Work, resigns, gave_up, wrongly) -> GameCounts:
    course = plies.course
    first = course.rewards[..., 0]

    def count(condition):
        return jnp.sum(condition, dtype=jnp.int32)

    return GameCounts(
        plies=jnp.int32(course.player.size),
        games=count(course.terminated | course.truncated),
        wins_first=count(course.terminated & (first > 0)),
        wins_second=count(course.terminated & (first < 0)),
        draws=count(course.terminated & (first == 0)),
        truncated=count(course.truncated),
        resigned=count(resigns),
        full_searches=count(plies.learned),
        gave_up=count(gave_up),
        wrongly=count(wrongly),
        evaluations=jnp.sum(work.rounds, dtype=jnp.float32) * plies.learned.shape[1],
        useful=jnp.sum(work.useful, dtype=jnp.float32),
    )
