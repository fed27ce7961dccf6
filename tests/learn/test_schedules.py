"""What changes over a run: learning rate, learning steps, the window."""

import pytest

from jaxsearch.learn import schedules
from jaxsearch.learn.settings import Settings


def test_learning_rate_warms_up_and_falls_as_a_cosine():
    settings = Settings(warm_up=99)
    rates = [
        schedules.learning_rate_scale(settings, share, updates)
        for share, updates in ((0.0, 0), (0.0, 49), (0.0, 99), (0.5, 999), (1.0, 999))
    ]
    assert rates == pytest.approx([0.01, 0.5, 1.0, 0.5, 0.05])


def test_learning_rate_can_stay():
    settings = Settings(schedule="constant", warm_up=0)
    for share in (0.0, 0.5, 1.0):
        assert schedules.learning_rate_scale(settings, share, 5) == 1


# 100 games of 10 plies are 1,000 positions an iteration; 4 draws of each in batches of
# 500 are 8 steps.
def test_steps_keep_to_the_samples_per_position():
    settings = Settings(games=100, plies=10, batch=500, samples_per_position=4.0)
    updates = taken = 0
    for iteration in range(1, 20):
        taken = schedules.updates_due(settings, 1000 * iteration, updates)
        updates += taken
        assert updates == 8 * iteration
    assert schedules.updates_due(settings, 1000 * 20, updates + 100) == 0


def test_steps_that_waited_for_the_replay_are_made_up_slowly():
    settings = Settings(games=100, plies=10, batch=500, samples_per_position=4.0)
    assert schedules.updates_due(settings, 1000 * 20, 0) == 16


def test_fast_searches_give_nothing_to_sample():
    settings = Settings(
        games=100,
        plies=10,
        batch=500,
        samples_per_position=4.0,
        fast_simulations=4,
        full_share=0.25,
    )
    assert schedules.updates_due(settings, 250, 0) == 2
    assert schedules.updates_due(settings, 250 * 40, 0) == 4


def test_steps_are_those_of_the_flag_without_a_ratio():
    assert schedules.updates_due(Settings(updates=7), 0, 100) == 7


# n / w = 16: 1 + 0.4 (16^0.75 - 1) / 0.75 = 1 + 0.4 * 7 / 0.75.
def test_window_grows_with_the_positions_played():
    settings = Settings(games=100, plies=10, positions=20_000, first_positions=2_000)
    assert schedules.window(settings, 1) == 2_000
    assert schedules.window(settings, 2) == 2_000
    assert schedules.window(settings, 32) == int(2_000 * (1 + 0.4 * 7 / 0.75))
    assert schedules.window(settings, 10_000) == 20_000
    assert schedules.window(Settings(positions=5_000), 1) == 5_000
