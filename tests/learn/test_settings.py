"""Settings that no run can have are refused before anything compiles."""

import pytest

from jaxsearch.learn.settings import Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"search": "mctx-gumbel", "temperature_half_life": 5.0},
            "--temperature-half-life 5.0 is for --search puct or gumbel or mctx-puct",
        ),
        (
            {"search": "mctx-puct", "forced_playouts": 2.0},
            "--forced-playouts 2.0 is for --search puct, got --search mctx-puct",
        ),
        (
            {"search": "puct", "considered_actions": 4},
            "--considered-actions 4 is for --search gumbel or mctx-gumbel",
        ),
        (
            {"search": "mctx-gumbel", "reuse_tree": True},
            "--reuse-tree is for --search puct or gumbel",
        ),
        (
            {"fast_simulations": 16},
            "--fast-simulations 16 must be fewer than --simulations 16",
        ),
        (
            {"fast_simulations": 4, "full_share": 0.0},
            "--full-share 0 leaves no search to learn from",
        ),
        ({"full_share": 1.5}, "--full-share is a share from 0 to 1, got 1.5"),
        ({"resign_value": 1.5}, "--resign-value is a share from 0 to 1, got 1.5"),
        ({"resign_plies": 0}, "--resign-plies must be above 0, got 0"),
        ({"surprise_share": -0.1}, "--surprise-share must be 0 or more, got -0.1"),
        (
            {"first_positions": 70_000},
            "--first-positions 70000 is more than --positions 60000",
        ),
        ({"bootstrap_plies": -1}, "--bootstrap-plies must be 0 or more, got -1"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings).check()


def test_settings_that_fit_are_not_refused():
    Settings().check()
    Settings(
        search="puct",
        fast_simulations=8,
        temperature_half_life=10.0,
        forced_playouts=2.0,
        root_temperature=1.2,
        resign_value=0.9,
        reuse_tree=True,
        first_positions=10_000,
        reanalyse_share=0.25,
    ).check()


def test_positions_searched_again_divide_among_the_devices():
    assert Settings(batch=64, reanalyse_share=0.3, devices=4).reanalysed == 20
    assert Settings().reanalysed == 0
