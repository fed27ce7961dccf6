"""The presets: each can be trained, and flags beat it."""

import jax
import pytest

import train
from jaxsearch.learn.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_preset_can_be_trained(name):
    config = train.parse(["--preset", name])
    assert config.preset == name
    config.check()
    assert config.folder == f"runs/{config.env}"
    jax.eval_shape(lambda: train.make_agent(config).params)


def test_flags_beat_the_preset_and_it_the_defaults():
    flags = ["--preset", "go_9x9", "--games", "64", "--env-options", "komi=5.5"]
    config = train.parse(flags)
    assert (config.games, config.env_options) == (64, ("komi=5.5",))
    preset = PRESETS["go_9x9"].settings
    assert config.simulations == preset["simulations"] != train.Config().simulations


def test_unknown_preset_lists_those_there_are(capsys):
    assert train.main(["--preset", "conect_four"]) == 2
    error = capsys.readouterr().err
    assert "did you mean 'connect_four'? choose one of tic_tac_toe, " in error
