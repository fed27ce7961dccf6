import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.hex import START, UNKNOWN, _join
from tests.envs.positions import jitted_step, play, record

GOLDEN = record("golden_games")["sets"]
ENV = envs.make("hex_5x5")
PLAIN = envs.make("hex_3x3", swap=False)


def _joined(board, player):
    """Whether a player's stones on [N, N] of 0, 1 and -1 join the player's sides."""
    stones = board == player if player == 0 else (board == player).T
    reached = np.zeros_like(stones)
    reached[0] = stones[0]
    while True:
        near = reached.copy()
        near[1:] |= reached[:-1]
        near[:-1] |= reached[1:]
        near[:, 1:] |= reached[:, :-1]
        near[:, :-1] |= reached[:, 1:]
        near[1:, :-1] |= reached[:-1, 1:]
        near[:-1, 1:] |= reached[1:, :-1]
        near &= stones
        if np.array_equal(near, reached):
            return bool(near[-1].any())
        reached = near


@pytest.mark.parametrize(
    ("name", "game"),
    [
        (f"hex_{size}x{size}", game)
        for size in (5, 11)
        for game in GOLDEN[f"hex{size}_swap"]["games"]
    ],
)
def test_recorded_games_have_the_known_mask_sizes_and_results(name, game):
    env = envs.make(name)
    step, state, counts = _step(name), env.init(), []
    for action in game["actions"]:
        assert not state.terminated and not state.rewards.any()
        counts.append(int(state.legal_action_mask.sum()))
        state = step(state, action)
    assert counts == game["legal_counts"]
    assert state.terminated and not state.legal_action_mask.any()
    np.testing.assert_array_equal(state.rewards, game["returns"])


_STEPS = {}


def _step(name):
    return _STEPS.setdefault(name, jax.jit(envs.make(name).step))


@pytest.mark.parametrize("player", [0, 1])
def test_short_diagonal_joins_and_long_diagonal_does_not(player):
    # . . X      (0, 2), (1, 1), (2, 0) are neighbours: both players' sides are joined.
    #  . X .
    #   X . .
    short = ["..X/.X./X..", "..O/.O./O.."][player]
    long = ["X../.X./..X", "O../.O./..O"][player]
    for text, joins in ((short, True), (long, False)):
        board = np.array([[".XO".index(c) - 1 for c in row] for row in text.split("/")])
        labels = jnp.zeros(9, jnp.int16)
        for cell in np.flatnonzero(board.reshape(-1) >= 0).tolist():
            labels, won = _join(labels, np.int32(player), np.int32(cell), 3)
        assert bool(won) == joins == _joined(board, player)


def test_every_full_board_has_exactly_one_winner():
    for size, count in ((11, 1000), (2, 24), (3, 300)):
        random = np.random.default_rng(size)
        orders = np.argsort(random.random((count, size * size)), axis=1)
        wins, labels = _fill(size, orders.astype(np.int32))
        first = wins.argmax(axis=1)  # of the plies; the game would have ended there
        for row in range(count):
            board = np.where(labels[row] > 0, 0, 1).reshape(size, size)
            winners = [_joined(board, player) for player in (0, 1)]
            assert sum(winners) == 1 and wins[row].any()
            assert winners.index(True) == first[row] % 2
            assert set(np.flatnonzero(wins[row]) % 2) == {first[row] % 2}


def _fill(size, orders):
    """Whether each ply joins both sides [B, N * N], and the labels of full boards."""

    def fill(order):
        def place(labels, ply_and_cell):
            ply, cell = ply_and_cell
            return _join(labels, ply % 2, cell, size)

        plies = np.arange(size * size, dtype=np.int32)
        empty = jnp.zeros(size * size, jnp.int16)
        labels, wins = jax.lax.scan(place, empty, (plies, order))
        return wins, labels

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(fill))(orders))


def test_100_games_are_won_on_the_last_cell():
    random, step = np.random.default_rng(0), jitted_step(PLAIN)
    played = 0
    while played < 100:
        order = random.permutation(9).tolist()
        board = np.full(9, -1)
        for ply, cell in enumerate(order[:8]):
            board[cell] = ply % 2
        board = board.reshape(3, 3)
        if _joined(board, 0) or _joined(board, 1):
            continue
        played += 1
        state = PLAIN.init()
        for cell in order[:8]:
            state = step(state, cell)
            assert not state.terminated
        assert np.flatnonzero(state.legal_action_mask).tolist() == order[8:]
        state = step(state, order[8])
        assert state.terminated and not state.truncated
        np.testing.assert_array_equal(state.rewards, [1, -1])


@pytest.mark.parametrize("size", [2, 5, 8])
def test_every_ply_has_the_chains_of_a_search_from_stone_to_stone(size):
    env, random = envs.Hex(size=size), np.random.default_rng(size)
    step = jax.jit(env.step)
    for _ in range(5):
        state = env.init()
        while not state.terminated:
            action = int(random.choice(np.flatnonzero(state.legal_action_mask)))
            state = step(state, action)
            text = env.to_text(state)
            read = env.from_text(text)  # which finds the chains stone by stone
            ours, theirs = np.asarray(state.labels), np.asarray(read.labels)
            np.testing.assert_array_equal(np.sign(ours), np.sign(theirs))
            np.testing.assert_array_equal(ours % 4, theirs % 4)
            pairs = set(zip(ours.tolist(), theirs.tolist(), strict=True))
            assert len(pairs) == len(set(ours.tolist())) == len(set(theirs.tolist()))
            for name in ("legal_action_mask", "rewards", "terminated"):
                np.testing.assert_array_equal(getattr(state, name), getattr(read, name))
            board = np.array(
                [
                    [".XO".index(c) - 1 for c in row]
                    for row in text.split()[0].split("/")
                ]
            )
            mover = 1 - int(state.current_player)
            assert bool(state.terminated) == _joined(board, mover)


def test_swap_moves_the_stone_across_the_diagonal_and_changes_its_colour():
    # . . X . .      . . . . .     player 0 moves next
    #  . . . . .      . . . . .
    #   . . . . .  ->  O . . . .
    state = play(ENV, [2])
    assert state.legal_action_mask[25] and state.legal_action_mask.sum() == 25
    assert ENV.draw(state).splitlines()[-1] == (
        "○ to move, who may swap (● top to bottom, ○ left to right)"
    )
    swapped = jitted_step(ENV)(state, ENV.text_to_action(state, "swap"))
    assert ENV.to_text(swapped) == "...../...../O..../...../..... X"
    assert swapped.legal_action_mask.sum() == 24 and not swapped.legal_action_mask[25]
    assert ENV.from_text("c1 swap").last == swapped.last == 10
    # The stone touches the left: with b3 to e3 it joins left and right.
    for move in ("a1", "b3", "a2", "c3", "b1", "d3", "b2", "e3"):
        assert not swapped.terminated
        swapped = jitted_step(ENV)(swapped, ENV.text_to_action(swapped, move))
    assert swapped.terminated
    np.testing.assert_array_equal(swapped.rewards, [-1, 1])


def test_swap_is_legal_at_the_second_ply_only():
    for moves in ((), (3, 7), (3, 7, 8), (3, 25), (3, 25, 9)):
        state = play(ENV, moves)
        assert not state.legal_action_mask[25]
        lost = jitted_step(ENV)(state, 25)
        assert lost.terminated and lost.rewards[state.current_player] == -1
        np.testing.assert_array_equal(lost.labels, state.labels)
    assert play(ENV, (12,)).legal_action_mask[25]  # on the diagonal it stays in place
    np.testing.assert_array_equal(np.flatnonzero(play(ENV, (12, 25)).labels), [12])


def test_game_without_swap_has_no_such_action():
    assert PLAIN.num_actions == 9 and PLAIN.observation_shape == (3, 3, 3)
    assert envs.make("hex_3x3").num_actions == 10
    assert play(PLAIN, [4]).legal_action_mask.sum() == 8
    with pytest.raises(ValueError, match="'swap' is not a legal move here"):
        PLAIN.text_to_action(play(PLAIN, [4]), "swap")


def test_observation_shows_the_mover_first_the_sides_and_the_swap():
    planes = np.moveaxis(np.asarray(ENV.observe(play(ENV, [2]))), -1, 0)
    assert planes.dtype == bool and planes.shape == (4, 5, 5)
    assert not planes[0].any() and np.argwhere(planes[1]).tolist() == [[0, 2]]
    assert planes[2].all() and planes[3].all()
    planes = np.moveaxis(np.asarray(ENV.observe(play(ENV, [2, 9]))), -1, 0)
    assert np.argwhere(planes[0]).tolist() == [[0, 2]]
    assert np.argwhere(planes[1]).tolist() == [[1, 4]]
    assert not planes[2].any() and not planes[3].any()


@pytest.mark.parametrize("env", [ENV, PLAIN], ids=["swap", "no_swap"])
def test_symmetry_is_half_a_turn(env):
    maps, cells = env.symmetries, env.size**2
    assert len(maps) == 2
    np.testing.assert_array_equal(maps.cells[1], np.arange(cells)[::-1])
    np.testing.assert_array_equal(maps.actions[1][:cells], maps.cells[1])
    assert maps.actions[1][cells:].tolist() == [cells] * env.swap


def test_text_takes_rows_lines_and_moves():
    state = play(ENV, [2, 25, 6])
    text = "...../.X.../O..../...../..... O"
    assert ENV.to_text(state) == text and state.last == 6
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text("c1 SWAP b2"), state)
    for other in (text.lower(), text.replace("/", "\n")):
        read = ENV.from_text(other)
        assert read.last == UNKNOWN and ENV.to_text(read) == text
        np.testing.assert_array_equal(read.legal_action_mask, state.legal_action_mask)
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(""), ENV.init())
    assert ENV.from_text("...../...../...../...../..... X").last == START
    # The one stone of a position is known to be the last, so that it can be swapped.
    read = ENV.from_text("..X../...../...../...../..... O")
    jax.tree.map(np.testing.assert_array_equal, read, play(ENV, [2]))


@pytest.mark.parametrize(
    ("env", "text", "message"),
    [
        (PLAIN, "b1 swap", "move 2 of 'b1 swap', swap, is not legal: .* switched off"),
        (ENV, "swap", "move 1 of 'swap', swap, is not legal: swapping answers"),
        (ENV, "b1 b2 swap", "move 3 of 'b1 b2 swap', swap, is not legal"),
        (ENV, "b1 b1", "move 2 of 'b1 b1', b1, is on an occupied cell"),
        (ENV, "b1 f1", "move 2 of 'b1 f1', f1, is not on the board"),
        (ENV, "b0", "b0, is not on the board"),
        (ENV, "a6", "a6, is not on the board"),
        (PLAIN, "a1 b1 a2 b2 a3 c1", "move 6 of .*, c1, comes after X has won"),
        (PLAIN, "b", "3 rows of 3 X, O and . from the top and X or O"),
        (PLAIN, ".../.../...", "3 rows of 3 X, O"),
        (PLAIN, ".../.../... Z", "3 rows of 3 X, O"),
        (PLAIN, ".../.Y./... X", "3 rows of 3 X, O"),
        (PLAIN, ".../..../... X", "3 rows of 3 X, O"),
        (PLAIN, ".../... X", "3 rows of 3 X, O"),
        (PLAIN, ".../.../... O", "X has 0 more stones than O; with O to move it is 1$"),
        (PLAIN, ".../.O./... X", "X has -1 more stones than O; with X to move it is 0"),
        (
            ENV,
            "XX.../...../...../...../..... X",
            "2 more .* with X to move it is -1 or",
        ),
        (PLAIN, "XO./XO./X.. X", "X has 1 more"),
        (PLAIN, "XO./XO./XO. X", "X has joined both sides and yet O moved last"),
        (PLAIN, "XXX/XXX/OOO X", "X has 3 more"),
    ],
)
def test_impossible_text_is_refused(env, text, message):
    with pytest.raises(ValueError, match=message):
        env.from_text(text)


def test_sides_joined_twice_over_are_refused():
    # X O O X      either column of X is enough: the game had ended before
    #  X O O X
    #   X . O X
    #    X O O X     with another stone for the count
    rows = "XOOX/XOOX/X.OX/XOOX O"
    with pytest.raises(ValueError, match="no last move of X can have joined"):
        envs.Hex(size=4).from_text(rows)
    won = envs.Hex(size=4).from_text("X.../XOO./X.../XO.. O")
    assert won.terminated
    np.testing.assert_array_equal(won.rewards, [1, -1])


@pytest.mark.parametrize("size", [0, 1, 20, -3, "11", 11.0, True, None])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(ValueError, match="whole number from 2 to 19, got"):
        envs.Hex(size=size)


def test_swap_that_is_not_a_bool_is_refused():
    with pytest.raises(ValueError, match="swap is True or False, got 1"):
        envs.make("hex_5x5", swap=1)


def test_names_tell_the_size():
    for size in (2, 7, 19):
        env = envs.make(f"hex_{size}x{size}", swap=False)
        assert env.options == {"size": size, "swap": False}
        assert env.id == f"hex_{size}x{size}"
    assert envs.Hex().options == {"size": 11, "swap": True}
    with pytest.raises(ValueError, match="hex_5x5 has size 5, but size=6 was given"):
        envs.make("hex_5x5", size=6)


def test_drawing_leans_to_the_right():
    assert ENV.draw(play(ENV, [2, 9])) == (
        "  a b c d e\n"
        "1 · · ● · ·\n"
        " 2 · · · · ○\n"
        "  3 · · · · ·\n"
        "   4 · · · · ·\n"
        "    5 · · · · ·\n"
        "● to move (● top to bottom, ○ left to right)"
    )


def test_svg_shows_cells_stones_and_the_last_one():
    drawing = ENV.to_svg(play(ENV, [2, 9]))
    assert drawing.count("<polygon") == 25
    assert drawing.count("<circle") == 3  # two stones and the mark
    assert "red to move" in drawing
    assert (
        ENV.to_svg(ENV.from_text(ENV.to_text(play(ENV, [2, 9])))).count("<circle") == 2
    )


@pytest.mark.parametrize(
    ("size", "swap", "expected"), [(11, True, 380), (11, False, 379), (19, True, 1100)]
)
def test_state_takes_the_documented_bytes(size, swap, expected):
    state = envs.Hex(size=size, swap=swap).init()
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == expected
    assert expected == 16 + 3 * size * size + swap
    assert state.labels.dtype == np.int16
    assert "380 for 11 x 11" in envs.Hex.__doc__


@pytest.mark.parametrize(("size", "swap"), [(2, True), (4, False)])
def test_contract_holds(size, swap):
    envs.check_env(envs.Hex(size=size, swap=swap), games=8)
