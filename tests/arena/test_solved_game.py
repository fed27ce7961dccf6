"""Games solved as a whole, and players followed through all replies."""

import functools

import jax
import numpy as np
import pytest

import envs
from jaxsearch.arena.players import Player
from jaxsearch.arena.positions import evaluate_positions
from jaxsearch.arena.solved_game import play_all_replies, solve_game
from tests.arena.minimax import moves, outcome

ENV = envs.make("tic_tac_toe")


def boards_of(states):
    """The positions as tests.arena.minimax takes them."""
    marks = np.array(list("01."))[np.asarray(states.board)]
    boards = ["".join(row) for row in marks]
    return list(zip(boards, np.asarray(states.current_player).tolist(), strict=True))


def test_outcomes_of_tic_tac_toe_are_those_of_minimax():
    game = solve_game(ENV)
    positions = boards_of(game.states)
    assert len(set(positions)) == len(positions) == 4520
    for row, position in enumerate(positions):
        after = moves(*position)
        assert set(np.flatnonzero(game.outcomes[row] != -2)) == set(after)
        for cell, there in after.items():
            assert game.outcomes[row, cell] == -outcome(*there)
            number = game.after[row, cell]
            assert number == -1 if not moves(*there) else positions[number] == there


# Won unless the heaps sum to 0 without carrying.
def test_outcomes_of_nim_are_those_of_its_theory():
    game = solve_game(envs.make("nim", heaps=(1, 2, 3)))
    heaps = np.asarray(game.states.heaps)
    sums = functools.reduce(np.bitwise_xor, heaps.T)
    np.testing.assert_array_equal(game.outcomes.max(axis=1), np.where(sums, 1, -1))


def first_moves(game, keeps):
    return np.argmax(game.keeps_outcome if keeps else game.outcomes > -2, axis=1)


@pytest.mark.parametrize("opening_plies", [0, 3])
def test_player_is_followed_through_all_replies(opening_plies):
    game = solve_game(ENV)
    perfect = play_all_replies(game, first_moves(game, True), opening_plies)
    assert (perfect.spoiled, perfect.lost) == (0, 0)
    # The player who marks the first empty cell, followed in another way.
    result = play_all_replies(game, first_moves(game, False), opening_plies)
    counts = replies_to_first_cell(opening_plies)
    assert (result.positions, result.spoiled, result.lost) == counts


def replies_to_first_cell(opening_plies):
    """Positions that come up for the player, and how many it spoils and loses."""
    own = set()

    def follow(position, seat, seen):
        if position in seen:
            return
        seen.add(position)
        after = moves(*position)
        if not after:
            return
        if position[1] == seat:
            own.add(position)
        plies = 9 - position[0].count(".")
        followed = after.values()
        if position[1] == seat and plies >= opening_plies:
            followed = [after[min(after)]]
        for there in followed:
            follow(there, seat, seen)

    for seat in (0, 1):
        follow(("." * 9, 0), seat, set())
    chosen = {p: -outcome(*moves(*p)[min(moves(*p))]) for p in own}
    spoiled = [p for p in own if chosen[p] < outcome(*p)]
    return len(own), len(spoiled), sum(chosen[p] == -1 for p in spoiled)


def test_perfect_player_keeps_every_outcome_of_tic_tac_toe():
    game = solve_game(ENV)
    codes = {p: n for n, p in enumerate(boards_of(game.states))}

    def choose(params, key, states):
        del key
        numbers = [codes.get(position, 0) for position in boards_of(states)]
        return params[np.array(numbers)]

    player = Player(name="perfect", params=first_moves(game, True), choose=choose)
    with jax.disable_jit():
        result = evaluate_positions(ENV, player)
    assert (result.positions, result.share) == (4520, 1.0)
    assert result.all_replies is not None
    assert result.all_replies.spoiled == 0
