"""Plies made by hand, for tests of targets and of the replay."""

import jax.numpy as jnp
import numpy as np

import envs
from jaxsearch.learn.replay import Plies
from jaxsearch.learn.targets import Course


def make_course(player, rewards, terminated, truncated=None, search_value=None):
    """The course [T, B] of games."""
    player = jnp.asarray(player, jnp.int32)
    zeros = np.zeros(player.shape)
    return Course(
        player=player,
        rewards=jnp.asarray(rewards, jnp.float32),
        search_value=jnp.asarray(
            zeros if search_value is None else search_value, jnp.float32
        ),
        terminated=jnp.asarray(terminated, bool),
        truncated=jnp.asarray(zeros if truncated is None else truncated, bool),
    )


def make_plies(course, position=None, *, surprise=None, learned=None):
    """Plies [T, B]; a position is a number that tells one from another."""
    shape = course.player.shape
    if position is None:
        position = np.arange(course.player.size).reshape(shape)
    return Plies(
        position=jnp.asarray(position, jnp.int32),
        policy_target=jnp.full((*shape, 2), 0.5),
        surprise=jnp.asarray(np.ones(shape) if surprise is None else surprise),
        learned=jnp.asarray(np.ones(shape, bool) if learned is None else learned),
        course=course,
    )


def play_out(game, actions, search_value=None):
    """The course [T, 1] of one game."""
    env = envs.make(game)
    state, players, rewards, ended = env.init(), [], [], []
    for action in actions:
        players.append([int(state.current_player)])
        state = env.step(state, action)
        rewards.append([np.asarray(state.rewards)])
        ended.append([bool(state.terminated)])
    return make_course(players, rewards, ended, search_value=search_value)
