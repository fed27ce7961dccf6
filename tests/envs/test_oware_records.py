"""Oware against what is known: recorded positions, counts, games, and OpenSpiel."""

import itertools

import numpy as np
import pytest

import envs
from tests.envs.batches import (
    check_golden_game,
    count_games,
    differences_from,
    open_spiel,
)
from tests.envs.positions import jitted_step, record

ENV = envs.make("oware")
REPEATS = envs.make("oware", max_plies=500, repetition=True)
RECORD = record("oware")
GAMES = record("golden_games")["sets"]["oware"]["games"]
WHOLE = ("seeds", "stores", "current_player")  # a position but for its history


def _text(position):
    """A record's position, houses in sowing order from South's first, as our text."""
    north, south = position["seeds"][:5:-1], position["seeds"][:6]
    rows = "/".join(",".join(map(str, row)) for row in (north, south))
    south, north = position["score"]
    return f"{rows} {south}-{north} {('South', 'North')[position['player']]}"


@pytest.mark.parametrize("env", [ENV, REPEATS], ids=["default", "repetition"])
@pytest.mark.parametrize(
    "position",
    [entry for entry in RECORD["positions"] if "actions" not in entry],
    ids=lambda entry: entry["name"],
)
def test_recorded_positions_have_the_known_moves_and_outcomes(position, env):
    state = env.from_text(_text(position))
    if "legal" in position:
        assert np.flatnonzero(state.legal_action_mask).tolist() == position["legal"]
        return
    after = position["after"]
    state = jitted_step(env)(state, position["action"])
    assert state.seeds.ravel().tolist() == after["seeds"]
    assert state.stores.tolist() == after["score"]
    assert int(state.current_player) == after["player"]
    assert bool(state.terminated) == after.get("terminal", False)
    rewards = [0, 0]
    if "winner" in after:
        rewards = [1, -1] if after["winner"] == 0 else [-1, 1]
    np.testing.assert_array_equal(state.rewards, rewards)


def test_recorded_repetition_ends_the_game_where_that_is_the_rule():
    position = next(p for p in RECORD["positions"] if p["name"] == "repetition_ends")
    for env, ends in ((REPEATS, True), (ENV, False)):
        state = env.from_text(_text(position))
        for action in position["actions"]:
            assert not state.terminated and state.legal_action_mask[action]
            state = jitted_step(env)(state, action)
        assert bool(state.terminated) == ends and not state.rewards.any()
        wanted = position["after"] if ends else position
        assert state.seeds.ravel().tolist() == wanted["seeds"]
        assert state.stores.tolist() == wanted["score"]
    assert not state.truncated


@pytest.mark.parametrize(
    "num_plies", [7, pytest.param(10, marks=pytest.mark.slow)], ids=str
)
def test_counts_of_games_are_the_known_ones(num_plies):
    counts, _ = count_games(ENV, num_plies, WHOLE)
    assert counts == {ply: RECORD["perft"][str(ply)] for ply in counts}
    assert len(counts) == num_plies


@pytest.mark.parametrize(
    "num_plies", [5, pytest.param(8, marks=pytest.mark.slow)], ids=str
)
def test_counts_of_captures_are_the_known_ones(num_plies):
    """The record has all captures in the tree down to a depth."""
    env = envs.make("oware", max_plies=num_plies, repetition=True)
    _, captures = count_games(
        env, num_plies, WHOLE, mark=lambda states: states.captured == states.plies
    )
    in_tree = itertools.accumulate(captures.values())
    known = [RECORD["captures_in_tree"].get(str(ply), 0) for ply in captures]
    assert list(in_tree) == known


def test_golden_games_are_played():
    """The record ends a game at its first repeated position since a capture."""
    assert len(GAMES) == 10
    for game in GAMES:
        check_golden_game(REPEATS, game)


def _position_of_text(text):
    """Both rows in order of sowing, and the stores, as OpenSpiel writes them."""
    lines = text.removeprefix("[FINISHED]\n").splitlines()
    stores = [int(line.split("= ")[1].split()[0]) for line in (lines[5], lines[0])]
    north, south = (
        [int(seeds) for seeds in line.split()] for line in (lines[2], lines[3])
    )
    return south, north[::-1], stores


def _position(state):
    """The rows and stores; OpenSpiel gives out the rows after 25, too."""
    seeds, stores = state.seeds, state.stores
    if state.terminated:
        seeds, stores = seeds * 0, stores + seeds.sum(axis=1)
    return (*seeds.tolist(), stores.tolist())


@pytest.mark.parametrize("num_games", [40, pytest.param(2000, marks=pytest.mark.slow)])
def test_every_step_equals_open_spiel(num_games):
    rival = open_spiel("oware", _position_of_text)  # which ends at a repetition
    assert differences_from(rival, REPEATS, _position, num_games, seed=2) == []
