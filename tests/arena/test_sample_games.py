"""Sample games: what is saved can be played again, and other programs read it."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.arena.sample_games import GameSampler, read_sample, replay
from jaxsearch.learn.interruption import Interruption
from jaxsearch.learn.settings import Settings


def sampler(env, folder, **options):
    def evaluate(params, key, states):
        batch_size = states.current_player.shape[0]
        return jnp.zeros((batch_size, env.num_actions)) + params, jnp.zeros(batch_size)

    agent = SimpleNamespace(env=env, evaluate=evaluate)
    settings = Settings(search="puct", simulations=2)
    return GameSampler(agent, settings, folder, **options)


def test_saved_games_can_be_played_again(tmp_path):
    env = envs.make("tic_tac_toe")
    sampler(env, tmp_path / "games").save(0.0, 20, Interruption())
    path = tmp_path / "games" / "0000020.txt"
    assert [file.name for file in (tmp_path / "games").iterdir()] == ["0000020.txt"]
    games = read_sample(path.read_text())
    assert [game.random_moves for game in games] == [0, 1, 2, 3]
    assert len({game.moves for game in games}) == 4
    for game in games:
        states = replay(env, game)
        assert not any(state.terminated for state in states[:-1])
        assert states[-1].terminated
        won = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}[game.result]
        np.testing.assert_array_equal(states[-1].rewards, [won, -won])
        assert env.draw(states[-1]) in path.read_text()
    other = tmp_path / "other"
    again = sampler(env, other)
    again.save(0.0, 20, Interruption())
    assert (other / path.name).read_text() == path.read_text()
    again.save(0.0, 40, Interruption())
    assert read_sample((other / "0000040.txt").read_text()) != games
    interrupted = Interruption()
    interrupted.signal_name = "SIGTERM"
    again.save(0.0, 60, interrupted)
    assert len(list(other.iterdir())) == 2


def test_games_of_go_are_saved_as_sgf_too(tmp_path):
    env = envs.make("go_3x3", komi=0.5, max_plies=6)
    again = sampler(env, tmp_path, record=envs.write_record)
    again.save(0.0, 1, Interruption())
    path = tmp_path / "0000001.txt"
    games = read_sample(path.read_text())
    records = path.with_suffix(".sgf").read_text().split("(;")[1:]
    assert len(records) == 4
    for game, record in zip(games, records, strict=True):
        played = env.from_text("(;" + record)
        assert env.to_text(played) == env.to_text(replay(env, game)[-1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it holds no game"),
        ("game 1\nstart: ./.\nrandom moves: 0\nmoves: 1\n", "has no line 'result'"),
        ("game 1\nstart: .\nrandom moves: x\nmoves:\nresult: *\n", "invalid literal"),
    ],
)
def test_text_that_is_no_sample_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_sample(text)
