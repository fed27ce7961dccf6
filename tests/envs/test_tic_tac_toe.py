import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from tests.envs.positions import play, record

ENV = envs.make("tic_tac_toe")
COUNTS = record("tictactoe")


@pytest.fixture(scope="module")
def plies():
    return envs.perft(ENV, ENV.init(), 9, merge=True, play_last=True).plies


def test_all_games_have_the_known_lengths_and_outcomes(plies):
    by_length = {
        str(ply): sum(level.ended.values())
        for ply, level in enumerate(plies)
        if sum(level.ended.values())
    }
    assert by_length == COUNTS["games_by_length"]
    outcomes = {
        name: sum(level.ended[reward] for level in plies)
        for name, reward in (("first", 1), ("second", -1), ("draw", 0))
    }
    assert outcomes == COUNTS["outcomes"]
    assert sum(outcomes.values()) == COUNTS["games_total"] == 255168


def test_positions_have_the_known_counts(plies):
    assert [level.games for level in plies] == COUNTS["sequences_per_ply"]
    assert [level.positions for level in plies] == COUNTS["distinct_positions_per_ply"]
    assert sum(level.positions for level in plies) == COUNTS["distinct_total"] == 5478


def test_win_on_the_last_cell_is_a_win():
    # X O X      the ninth move, X in the corner, fills the board and a diagonal
    # X X O
    # O O X
    before = play(ENV, [0, 1, 2, 5, 3, 6, 4, 7])
    assert not before.terminated
    state = ENV.step(before, 8)
    assert state.terminated
    np.testing.assert_array_equal(state.rewards, [1, -1])
    assert ENV.draw(state).endswith("X wins")


def test_full_board_without_a_line_is_a_draw():
    # X O X
    # X O O
    # O X X
    state = play(ENV, [0, 1, 2, 4, 3, 5, 7, 6, 8])
    assert state.terminated and not state.truncated
    np.testing.assert_array_equal(state.rewards, [0, 0])
    assert ENV.draw(state).endswith("draw")


def test_reward_comes_once_and_the_board_stays_after_the_end():
    # Row 0 of the batch: X wins at ply 5. Row 1 goes on, from the same first moves.
    #   X X X          X X .
    #   O O .          O O .
    #   . . .          . . X
    step = jax.jit(jax.vmap(ENV.step))
    states = jax.vmap(ENV.init)(jax.random.split(jax.random.key(0), 2))
    for action in (0, 3, 1, 4):
        states = step(states, jnp.array([action, action]))
        assert not states.rewards.any()
    states = step(states, jnp.array([2, 8]))
    np.testing.assert_array_equal(states.terminated, [True, False])
    np.testing.assert_array_equal(states.rewards, [[1, -1], [0, 0]])
    final = states.board[0]
    np.testing.assert_array_equal(final, [0, 0, 0, 1, 1, -1, -1, -1, -1])

    for actions in ([5, 5], [0, 2]):  # O takes 5 in row 1, which wins; then both stay
        states = step(states, jnp.array(actions))
        np.testing.assert_array_equal(states.board[0], final)
        np.testing.assert_array_equal(states.rewards[0], [0, 0])
        assert states.terminated[0] and not states.legal_action_mask[0].any()
    assert states.terminated[1]
    assert ENV.draw(jax.tree.map(lambda leaf: leaf[0], states)).endswith("X wins")


def test_observation_shows_the_mover_first():
    state = ENV.from_text("X../.O./..X")
    mine, yours = np.moveaxis(np.asarray(ENV.observe(state)), -1, 0).astype(int)
    np.testing.assert_array_equal(mine, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])  # O to move
    np.testing.assert_array_equal(yours, [[1, 0, 0], [0, 0, 0], [0, 0, 1]])


def test_symmetries_are_the_eight_of_the_square():
    symmetries = ENV.symmetries
    assert len(symmetries) == 8
    assert len({tuple(row) for row in symmetries.cells.tolist()}) == 8
    np.testing.assert_array_equal(symmetries.cells, symmetries.actions)
    # A quarter turn against the clock moves the top right corner to the top left.
    assert symmetries.cells[1].tolist() == [2, 5, 8, 1, 4, 7, 0, 3, 6]


def test_drawing_shows_marks_and_the_numbers_of_free_cells():
    assert ENV.draw(ENV.from_text("X.O/.X./..O")) == (
        " X │ 2 │ O \n───┼───┼───\n 4 │ X │ 6 \n───┼───┼───\n 7 │ 8 │ O \nX to move"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X.O/.X.", "three rows"),
        ("X.O/.X./..O.", "three rows"),
        ("X.O/.Y./..O", "three rows"),
        ("", "three rows"),
        ("XX./.../...", "2 X and 0 O"),
        ("O../.../...", "0 X and 1 O"),
        ("XXX/OO./..O", "X has three in a row and yet O moved last"),
        ("XXX/OOO/...", "X has three in a row and yet O moved last"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ENV.from_text(text)


def test_text_takes_lines_and_small_letters():
    state = ENV.from_text("x.o\n.x.\n..o\n")
    assert ENV.to_text(state) == "X.O/.X./..O"


def test_state_takes_32_bytes():
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(ENV.init())) == 32
    assert "32 bytes" in envs.TicTacToe.__doc__
