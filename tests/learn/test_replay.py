"""The replay window: insertion into the ring, what is drawn from it, and how often."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch.learn import replay
from tests.learn.plies import make_course, make_plies, play_out

ALL = 10**6


def window_of(plies, capacity=None):
    empty = replay.empty_replay(
        plies, capacity or plies.learned.size, len(plies.learned)
    )
    return replay.insert(empty, plies)


def over(shape):
    """Plies of games that all end at once."""
    return make_course(np.zeros(shape), np.zeros((*shape, 2)), np.ones(shape))


def drawn_positions(window, count, *, seed=0, newest=ALL, surprise_share=0.0, **more):
    found = replay.returns(window)
    weights = replay.weights(window, found, newest, surprise_share)
    key = jax.random.key(seed)
    drawn = replay.sample(key, window, found, weights, count, **more)
    return np.asarray(drawn.plies.position), drawn.outcome


def test_ring_keeps_the_newest_rows_and_their_returns():
    random = np.random.default_rng(0)
    count, batch_size, window, inserted = 3, 5, None, []
    for step in range(9):
        shape = count, batch_size
        gains = random.integers(-2, 3, shape)
        course = make_course(
            random.integers(0, 2, shape),
            np.stack([gains, -gains], axis=-1),
            random.random(shape) < 0.3,
        )
        numbers = step * 100 + 1 + np.arange(count * batch_size).reshape(shape)
        plies = make_plies(course, numbers)
        if window is None:
            window = replay.empty_replay(plies, 12 * batch_size, count)
        window = replay.insert(window, plies)
        inserted.append(plies)
        # The ring holds the last 12 rows; the same rows in a straight line.
        rows = jax.tree.map(lambda *x: np.concatenate(x)[-12:], *inserted)
        straight = replay.returns(window_of(rows))
        in_ring = replay.returns(window)
        expected = zip(
            rows.position.ravel(),
            np.asarray(straight.value).ravel(),
            np.asarray(straight.known).ravel(),
            strict=True,
        )
        places = {int(n): i for i, n in enumerate(window.plies.position.ravel())}
        for number, value, known in expected:
            assert in_ring.value.ravel()[places[int(number)]] == value
            assert in_ring.known.ravel()[places[int(number)]] == known


def test_capacity_is_rounded_up_to_whole_insertions():
    plies = make_plies(over((4, 3)))
    assert replay.empty_replay(plies, 25, 4).plies.learned.shape == (12, 3)
    assert replay.empty_replay(plies, 1, 4).plies.learned.shape == (4, 3)


def test_sample_draws_evenly_and_known_returns_only():
    # Column 0 ends at row 1, column 1 runs on; half of the ring is not written.
    ended = [[0, 0], [1, 0], [0, 0], [0, 0]]
    plies = make_plies(make_course(np.zeros((4, 2)), np.zeros((4, 2, 2)), ended))
    positions, _ = drawn_positions(window_of(plies, 16), 4000)
    numbers, counts = np.unique(positions, return_counts=True)
    np.testing.assert_array_equal(numbers, [0, 2])
    assert abs(counts[0] - 2000) < 5 * np.sqrt(1000)  # five standard deviations


def test_sample_returns_the_return_of_its_plies():
    course = play_out("tic_tac_toe", [0, 3, 1, 4, 2])
    positions, values = drawn_positions(window_of(make_plies(course)), 100)
    np.testing.assert_array_equal(values, np.where(positions % 2 == 0, 1, -1))


def test_plies_of_fast_searches_are_not_drawn():
    learned = np.array([[True, False], [False, True]])
    plies = make_plies(over((2, 2)), learned=learned)
    positions, _ = drawn_positions(window_of(plies), 200)
    np.testing.assert_array_equal(np.unique(positions), [0, 3])


def test_only_the_newest_rows_of_the_window_are_drawn():
    plies = make_plies(over((2, 3)))
    window = replay.empty_replay(plies, 18, 2)
    for step in range(4):  # 4 insertions of 2 rows into 6: the ring has turned
        window = replay.insert(
            window, make_plies(over((2, 3)), plies.position + 10 * step)
        )
    positions, _ = drawn_positions(window, 500, newest=3)
    np.testing.assert_array_equal(np.unique(positions), [23, 24, 25, *range(30, 36)])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_surprising_positions_are_drawn_more_often(share):
    surprise = np.array([[0.0, 1.0, 2.0, 5.0]])
    plies = make_plies(over((1, 4)), surprise=surprise)
    count = 20_000
    positions, _ = drawn_positions(window_of(plies), count, surprise_share=share)
    counts = np.bincount(positions, minlength=4)
    probs = (1 - share) / 4 + share * surprise[0] / surprise.sum()
    deviation = np.sqrt(count * probs * (1 - probs))
    assert (abs(counts - count * probs) <= 5 * deviation).all()


def test_no_surprise_at_all_is_drawn_evenly():
    plies = make_plies(over((1, 4)), surprise=np.zeros((1, 4)))
    positions, _ = drawn_positions(window_of(plies), 4000, surprise_share=1.0)
    assert (abs(np.bincount(positions) - 1000) < 5 * np.sqrt(750)).all()


def test_sample_holds_no_more_of_one_game_than_allowed():
    # 40 games: of 25 plies in one column, of a single ply in the others.
    shape = 25, 14
    ended = np.ones(shape)
    ended[:-1, 0] = 0
    course = make_course(np.zeros(shape), np.zeros((*shape, 2)), ended)
    window = window_of(make_plies(course))
    free, _ = drawn_positions(window, 64)
    assert (free % 14 == 0).sum() > 1
    for most in (1, 2):
        positions, _ = drawn_positions(window, 64, most_of_game=most)
        assert (positions % 14 == 0).sum() == most
        others = positions[positions % 14 != 0]
        assert np.unique(others, return_counts=True)[1].max() <= most


def test_sample_is_full_where_there_are_too_few_games():
    course = play_out("tic_tac_toe", [0, 3, 1, 4, 2])
    positions, _ = drawn_positions(window_of(make_plies(course)), 64, most_of_game=2)
    assert len(positions) == 64


def test_weights_of_one_row_are_never_drawn_past():
    # Rounding of a running sum could choose the ply behind the last one of a weight.
    weights = jnp.zeros(1000).at[:3].set(jnp.array([1e-3, 1e3, 1e-3]))
    index = jax.vmap(lambda share: replay._draw(share, weights))(
        jnp.linspace(0, 1, 999)
    )
    assert set(np.unique(index)) <= {0, 1, 2}


# Case R52: 512 even draws from 5,000 games of equal length meet 487 of them on average,
# with a deviation of 4.7.
def test_draws_are_spread_over_the_games():
    shape = 8, 2500
    course = make_course(np.zeros(shape), np.zeros((*shape, 2)), np.ones(shape))
    course = dataclasses.replace(
        course, terminated=jnp.asarray(np.arange(8)[:, None] % 4 == 3).repeat(2500, 1)
    )
    window = window_of(make_plies(course))
    number = np.arange(8 * 2500).reshape(shape)
    game = (number // 2500 // 4) * 2500 + number % 2500
    distinct = []
    for seed in range(20):
        position, _ = drawn_positions(window, 512, seed=seed)
        distinct.append(len(np.unique(game.ravel()[position])))
    assert abs(np.mean(distinct) - 487) < 3 * 4.7 / np.sqrt(20)
