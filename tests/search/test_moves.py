"""The choice of a move from visits, at every temperature, and by lower bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import NO_ACTION, action_log_probs, lcb_action, sample_action

SAMPLES = 1000


def probs(weights, temperature) -> np.ndarray:
    weights = jnp.array([weights], jnp.float32)
    return np.exp(np.asarray(action_log_probs(weights, temperature)[0]))


def sample(weights, temperature) -> np.ndarray:
    weights = jnp.tile(jnp.array([weights], jnp.float32), (SAMPLES, 1))
    return np.asarray(sample_action(jax.random.key(0), weights, temperature))


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (1.0, [0.98912, 0.00989, 0.00099]),
        (0.5, [0.999899, 0.0000999899, 0.000000999899]),
        (0.1, [1.0, 1e-20, 1e-30]),
        (0.02, [1.0, 0.0, 0.0]),
        (1e-3, [1.0, 0.0, 0.0]),
        (0.0, [1.0, 0.0, 0.0]),
    ],
)
def test_low_temperatures_sharpen_without_overflow(temperature, expected):
    visits = np.array([1000, 10, 1])
    np.testing.assert_allclose(
        probs(visits, temperature), expected, rtol=1e-3, atol=1e-30
    )
    # Visit shares are the same weights.
    np.testing.assert_allclose(
        probs(visits / 1011, temperature), expected, rtol=1e-3, atol=1e-30
    )


@pytest.mark.parametrize("temperature", [0.0, 1e-3, 0.01, 1.0, np.inf])
def test_equal_visits_stay_equal_at_every_temperature(temperature):
    np.testing.assert_allclose(probs([3] * 5, temperature), [0.2] * 5, rtol=1e-6)
    counts = np.bincount(sample([3] * 5, temperature), minlength=5)
    assert np.all(counts > SAMPLES / 10)


@pytest.mark.parametrize("temperature", [1e9, np.inf])
def test_high_temperatures_choose_evenly_among_the_visited(temperature):
    np.testing.assert_allclose(
        probs([2, 13, 1, 0], temperature), [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-6
    )
    counts = np.bincount(sample([2, 13, 1, 0], temperature), minlength=4)
    assert counts[3] == 0
    assert np.all(counts[:3] > SAMPLES / 4)


def test_temperature_zero_takes_the_most_visited():
    assert np.all(sample([2, 13, 1, 0], 0.0) == 1)
    assert np.all(sample([2, 13.001, 13, 0], 0.0) == 1)


def test_samples_follow_the_weights():
    counts = np.bincount(sample([1, 2, 0, 1], 1.0), minlength=4)
    np.testing.assert_allclose(counts / SAMPLES, [0.25, 0.5, 0, 0.25], atol=0.05)


def test_temperature_may_differ_between_rows():
    weights = jnp.tile(jnp.array([[1.0, 3.0]]), (2 * SAMPLES, 1))
    temperature = jnp.repeat(jnp.array([0.0, np.inf]), SAMPLES)
    actions = np.asarray(sample_action(jax.random.key(1), weights, temperature))
    assert np.all(actions[:SAMPLES] == 1)
    assert 0.4 < actions[SAMPLES:].mean() < 0.6


@pytest.mark.parametrize("temperature", [0.0, 1.0, np.inf])
def test_row_without_weights_has_no_action(temperature):
    weights = jnp.array([[0.0, 0.0], [0.0, 1.0]])
    actions = sample_action(jax.random.key(0), weights, temperature)
    assert actions.dtype == jnp.int32
    np.testing.assert_array_equal(actions, [NO_ACTION, 1])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"z": 1.0}, 1),
        ({"z": 4.0}, 1),  # 0.5 - 4 * 0.1 / 10 = 0.46, 0.52 - 4 * 0.1 / 7 = 0.463
        ({"z": 6.0}, 0),  # 0.5 - 6 * 0.1 / 10 = 0.44, 0.52 - 6 * 0.1 / 7 = 0.434
        ({"z": 0.0}, 1),
        ({"z": 0.0, "min_visit_share": 0.05}, 2),
        ({"z": 0.0, "min_visit_share": 0.0}, 2),
        ({"z": 10.0, "min_visit_share": 0.0}, 0),
        ({"z": 0.0, "min_visit_share": 1.0}, 0),
    ],
)
def test_lower_bound_weighs_the_mean_against_its_doubt(options, expected):
    action = lcb_action(
        jnp.array([[100, 49, 5, 0]]),
        jnp.array([[0.5, 0.52, 0.9, jnp.nan]]),
        jnp.array([[0.1, 0.1, 0.5, jnp.nan]]),
        **options,
    )
    assert action.dtype == jnp.int32
    np.testing.assert_array_equal(action, [expected])


def test_equal_bounds_go_to_the_more_visited_then_the_lowest():
    visit_counts = jnp.array([[5, 8, 8], [8, 8, 8], [0, 0, 0], [0, 0, 1]])
    actions = lcb_action(visit_counts, jnp.ones((4, 3)), jnp.zeros((4, 3)))
    np.testing.assert_array_equal(actions, [1, 0, NO_ACTION, 2])


@pytest.mark.parametrize(
    "options", [{"z": -1}, {"min_visit_share": 1.5}, {"min_visit_share": -0.1}]
)
def test_lower_bound_refuses_numbers_out_of_range(options):
    ones = jnp.ones((1, 2))
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be a number"):
        lcb_action(ones.astype(int), ones, ones, **options)


def test_temperature_that_is_no_number_takes_the_most_visited_under_tracing():
    weights = jnp.tile(jnp.array([[0.0, 0.3, 0.7]]), (SAMPLES, 1))
    sampled = jax.jit(sample_action)(jax.random.key(0), weights, jnp.nan)
    assert np.all(sampled == 2)
    sampled = jax.jit(sample_action)(jax.random.key(0), weights, -1.0)
    assert np.all(sampled == 2)


@pytest.mark.parametrize("temperature", [-1, float("nan"), np.array([0.5, -0.5])])
def test_temperature_out_of_range_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature must be a number from 0 to inf"):
        sample_action(jax.random.key(0), jnp.ones((2, 2)), temperature)


def test_weight_that_is_not_finite_counts_as_none():
    weights = jnp.array([[0.0, np.inf, 0.5], [np.nan, 0.0, 0.5], [0.0, np.nan, 0.0]])
    for seed in range(20):
        actions = sample_action(jax.random.key(seed), weights, 1.0)
        np.testing.assert_array_equal(actions, [2, 2, NO_ACTION])


def test_numpy_integers_are_counts():
    counts = np.array([[3, 1], [0, 0]])
    assert counts.dtype == np.int64
    action = lcb_action(counts, np.zeros((2, 2)), np.zeros((2, 2)))
    np.testing.assert_array_equal(action, [0, NO_ACTION])


@pytest.mark.parametrize(
    ("weights", "temperature", "message"),
    [
        (np.ones(3), 1.0, r"action_weights has shape \(3,\), expected \[B, A\]"),
        (np.ones((2, 3, 4)), 1.0, "action_weights has shape"),
        (np.ones((2, 3)), np.ones(3), r"temperature has shape \(3,\), .*row, \(2,\)"),
        (np.ones((2, 2)), np.ones((2, 1)), r"temperature has shape \(2, 1\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(weights, temperature, message):
    with pytest.raises(ValueError, match=message):
        sample_action(jax.random.key(0), weights, temperature)
