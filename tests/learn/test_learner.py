"""The learning step: symmetries, masks, losses."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import envs
import nets
from jaxsearch.learn import learner
from jaxsearch.learn.learner import Batch
from jaxsearch.learn.targets import FinalBoard


def make_batch(observation, mask, policy, outcome=None):
    batch_size = len(observation)
    return Batch(
        observation=jnp.asarray(observation),
        legal_action_mask=jnp.asarray(mask),
        policy_target=jnp.asarray(policy, jnp.float32),
        outcome=jnp.zeros(batch_size) if outcome is None else jnp.asarray(outcome),
        search_value=jnp.linspace(-1, 1, batch_size),
    )


# A stone in the second column; under the mirror it stands in the sixth.
def test_board_mask_and_policy_are_mirrored_together():
    env = envs.make("connect_four")
    state = env.step(env.init(), 1)
    board = np.asarray(env.observe(state))
    mask = np.arange(7) != 6
    policy = np.arange(7) / 21
    count = 400
    batch = make_batch([board] * count, [mask] * count, [policy] * count)
    result = learner.augment(jax.random.key(0), batch, env.symmetries)
    mirrored = np.asarray(result.observation)[:, 5, 5, 1]  # bottom row, sixth column
    assert abs(mirrored.sum() - count / 2) < 5 * np.sqrt(count / 4)
    for row, is_mirrored in enumerate(mirrored):
        step = -1 if is_mirrored else 1
        np.testing.assert_array_equal(result.observation[row], board[:, ::step])
        np.testing.assert_array_equal(result.legal_action_mask[row], mask[::step])
        np.testing.assert_allclose(result.policy_target[row], policy[::step])
    np.testing.assert_array_equal(result.search_value, batch.search_value)


# Turns by a quarter are not their own inverses, as the mirror is.
def test_policy_stays_on_its_stone_under_every_symmetry():
    env = envs.make("tic_tac_toe")
    state = env.step(env.init(), 1)  # a stone at (0, 1)
    count = 200
    batch = make_batch(
        [np.asarray(env.observe(state))] * count,
        [np.asarray(state.legal_action_mask)] * count,
        [np.eye(9)[1]] * count,
    )
    result = learner.augment(jax.random.key(0), batch, env.symmetries)
    stones = np.asarray(result.observation).sum(axis=3).reshape(count, 9)
    np.testing.assert_array_equal(stones, result.policy_target)
    np.testing.assert_array_equal(stones == 0, result.legal_action_mask)
    assert len(np.unique(stones.argmax(axis=1))) == 4


# A stone's colour owns its point, and nobody the others.
def test_ownership_is_turned_with_the_board():
    env = envs.make("go_3x3", komi=0.5)
    state = env.from_text("X../.XO/..O O")
    board, owned = env.observe(state), np.array([[-1, 0, 0], [0, -1, 1], [0, 0, 1]])
    count = 100
    legal, passing = np.ones(10, bool), np.eye(10)[9]
    batch = make_batch([np.asarray(board)] * count, [legal] * count, [passing] * count)
    final = FinalBoard(
        ownership=jnp.asarray([owned] * count, jnp.int8),
        score=jnp.arange(count, dtype=jnp.float32),
        known=jnp.arange(count) % 2 == 0,
    )
    batch = dataclasses.replace(batch, final=final)
    result = learner.augment(jax.random.key(0), batch, env.symmetries)
    stones = np.asarray(result.observation).astype(int)
    owned = stones[..., 0] - stones[..., 1]
    np.testing.assert_array_equal(result.final.ownership, owned)
    assert len(np.unique(np.asarray(result.final.ownership), axis=0)) == 8
    np.testing.assert_array_equal(result.final.score, final.score)
    np.testing.assert_array_equal(result.final.known, final.known)


# Two boards of two points; the third is unknown.
def test_auxiliary_losses_equal_those_worked_out_by_hand():
    told = types.SimpleNamespace(
        ownership_logits=jnp.log(jnp.array([[3.0, 1], [1, 1 / 3], [9, 9]])),
        score=jnp.array([2.0, -1, 100]),
    )
    final = FinalBoard(
        ownership=jnp.array([[1, -1], [0, 1], [1, 1]], jnp.int8),
        score=jnp.array([-2.0, 29, 0]),
        known=jnp.array([True, True, False]),
    )
    ownership, score, total = learner.auxiliary_losses(told, final)
    chances = np.array([[0.75, 0.5], [0.5, 0.25]])
    expected = -np.log(chances).mean()
    np.testing.assert_allclose(ownership, expected, rtol=1e-5)
    np.testing.assert_allclose(score, (4 + 30) / 2)
    robust = (4**2 / 2 + 10 * (30 - 5)) / 2
    np.testing.assert_allclose(total, expected + 0.004 * robust, rtol=1e-5)


def test_value_target_mixes_the_outcome_with_the_search_value():
    outcome, search_value = jnp.array([1.0, -1.0, 0.0]), jnp.array([0.6, 0.2, -0.4])
    for share, expected in {
        0.0: [1.0, -1.0, 0.0],
        0.25: [0.9, -0.7, -0.1],
        1.0: [0.6, 0.2, -0.4],
    }.items():
        target = learner.value_targets(outcome, search_value, share)
        np.testing.assert_allclose(target, expected, rtol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_outcome_targets_are_chances_of_the_same_mean(share):
    outcome, search_value = jnp.array([1.0, -1.0, 0.0]), jnp.array([0.6, 0.2, -0.4])
    chances = learner.outcome_targets(outcome, search_value, share)
    assert (np.asarray(chances) >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(
        chances[:, 0] - chances[:, 2],
        learner.value_targets(outcome, search_value, share),
        atol=1e-6,
    )
    if share == 0:  # what happened has all the chance
        np.testing.assert_array_equal(chances, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


def net(params, observations):
    del observations
    return nets.Prediction(
        prior_logits=params["logits"],
        value=params["value"],
        outcome_logits=params.get("outcome"),
    )


BATCH = make_batch(
    np.zeros((2, 1)),
    [[True, True, False], [True, False, True]],
    [[0.75, 0.25, 0], [1, 0, 0]],
    outcome=[1.0, -1.0],
)
PARAMS = {
    "logits": jnp.array([[0.0, 0.0, 9.0], [1.0, 50.0, 0.0]]),
    "value": jnp.array([0.5, -0.5]),
}


def losses(params, *, value_weight=1.0):
    return learner.losses(
        net, params, BATCH, value_weight=value_weight, search_value_share=0.0
    )


def test_losses_equal_those_worked_out_by_hand():
    result = losses(PARAMS, value_weight=2.0)
    # Row 0: two equal legal logits. Row 1: log(1 + 1/e).
    policy = (np.log(2) + np.log1p(np.exp(-1))) / 2
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / 2
    np.testing.assert_allclose(result.policy, policy, rtol=1e-6)
    np.testing.assert_allclose(result.policy_divergence, policy - entropy, rtol=1e-5)
    np.testing.assert_allclose(result.value, 0.25)
    np.testing.assert_allclose(result.total, policy + 2 * 0.25, rtol=1e-6)


# Even chances in row 0, e to 1 to 1 for a loss in row 1, which is what happened.
def test_net_with_outcomes_learns_their_chances():
    params = PARAMS | {"outcome": jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])}
    result = losses(params)
    expected = (np.log(3) + np.log(2 + np.e) - 1) / 2
    np.testing.assert_allclose(result.total - result.policy, expected, rtol=1e-5)
    np.testing.assert_allclose(result.value, 0.25)  # still told as a squared error
    gradient = jax.grad(lambda params: losses(params).total)(params)["outcome"]
    assert gradient[0, 0] < 0 < gradient[0, 2]


def test_illegal_actions_take_no_part_in_the_loss():
    def loss(params):
        return losses(params).total

    gradient = jax.grad(loss)(PARAMS)["logits"]
    illegal = ~np.asarray(BATCH.legal_action_mask)
    np.testing.assert_array_equal(np.asarray(gradient)[illegal], 0)
    assert (np.asarray(gradient)[~illegal] != 0).all()
    shifted = PARAMS | {"logits": PARAMS["logits"] + 7 * illegal}
    assert loss(shifted) == loss(PARAMS)


def test_steps_lower_the_loss_on_a_fixed_batch():
    optimizer, params = optax.sgd(0.2), PARAMS
    opt_state, totals = optimizer.init(params), []
    for _ in range(20):
        params, opt_state, result = learner.update(
            optimizer,
            losses,
            params,
            opt_state,
            learning_rate_scale=jnp.float32(1),
        )
        totals.append(float(result.total))
    assert totals == sorted(totals, reverse=True)
    assert totals[-1] < totals[0] - 0.2


def test_a_scale_of_zero_changes_no_parameter():
    optimizer = optax.adam(0.05)
    params, _, _ = learner.update(
        optimizer,
        losses,
        PARAMS,
        optimizer.init(PARAMS),
        learning_rate_scale=jnp.float32(0),
    )
    np.testing.assert_array_equal(params["logits"], PARAMS["logits"])
