import re

import jax
import numpy as np
import pytest

import envs
from tests.envs.positions import jitted_step

FOUR = envs.make("tron_4x4")
UP, RIGHT, DOWN, LEFT = range(4)
STEPS = {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}


class Reference:
    """The rules with sets of cells, one game."""

    def __init__(self, size):
        near, far = size // 4, size - 1 - size // 4
        self.size = size
        self.heads = [(near, near), (far, far)]
        self.trails = [{head} for head in self.heads]
        self.crashed = [False, False]

    def target(self, player, action):
        (row, column), (down, right) = self.heads[player], STEPS[action]
        return row + down, column + right

    def is_free(self, cell):
        inside = all(0 <= at < self.size for at in cell)
        return inside and cell not in self.trails[0] | self.trails[1]

    def play(self, actions):
        cells = [self.target(player, actions[player]) for player in (0, 1)]
        free = [self.is_free(cell) for cell in cells]
        for player in (0, 1):
            self.crashed[player] = not free[player] or cells[0] == cells[1]
        for player, cell in enumerate(cells):
            if not self.crashed[player]:
                self.heads[player] = cell
                self.trails[player].add(cell)

    @property
    def rewards(self):
        if all(self.crashed) or not any(self.crashed):
            return [0, 0]
        return [-1, 1] if self.crashed[0] else [1, -1]

    def planes(self, player):
        planes = np.zeros((self.size, self.size, 4), bool)
        for plane, one in enumerate((player, 1 - player)):
            for cell in self.trails[one]:
                planes[*cell, plane] = True
            planes[*self.heads[one], 2 + plane] = True
        return planes


def _choose(rng, game, player, careful):
    """A random move, and of a careful game mostly one that does not crash."""
    moves = range(4)
    if careful and rng.random() < 0.99:
        moves = [a for a in moves if game.is_free(game.target(player, a))] or moves
    return int(rng.choice(moves))


# Half of the games are careful, so that they fill the board.
def _compare(size, games, rng, step, observe):
    """Compares games step by step; returns the turns of the longest."""
    env = envs.make(f"tron_{size}x{size}")
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(0), games))
    references = [Reference(size) for _ in range(games)]
    live, turns = np.ones(games, bool), 0
    while True:
        seen = jax.tree.map(np.asarray, states)
        shown = np.asarray(observe(states))
        for row in np.flatnonzero(live):
            game = references[row]
            assert seen.rewards[row].tolist() == game.rewards
            assert seen.terminated[row] == any(game.crashed)
            assert seen.crashed[row].tolist() == game.crashed
            assert (seen.legal_action_mask[row] == (not any(game.crashed))).all()
            for player in (0, 1):
                assert seen.heads[row, player].tolist() == [*game.heads[player]]
                np.testing.assert_array_equal(shown[player, row], game.planes(player))
        live = ~seen.terminated
        if not live.any():
            return turns
        actions = np.zeros((games, 2), np.int32)
        for row in np.flatnonzero(live):
            game = references[row]
            actions[row] = [_choose(rng, game, player, row % 2) for player in (0, 1)]
            game.play(actions[row].tolist())
        states, turns = step(states, actions), turns + 1


@pytest.mark.parametrize(
    ("size", "games"),
    [
        (5, 64),
        (10, 64),
        (17, 16),
        *(
            pytest.param(size, games, marks=pytest.mark.slow)
            for size, games in ((10, 10_000), (2, 500), (8, 2000), (16, 500), (32, 200))
        ),
    ],
)
def test_random_games_are_those_of_the_rules_with_sets(size, games):
    env = envs.make(f"tron_{size}x{size}")
    step = jax.jit(jax.vmap(env.step))
    players = np.arange(2, dtype=np.int32)
    observe = jax.jit(jax.vmap(jax.vmap(env.observe, (0, None)), (None, 0)))
    longest, rng = 0, np.random.default_rng(size)
    batch = min(games, 500)
    for _ in range(games // batch):
        turns = _compare(
            size, batch, rng, step, lambda states: observe(states, players)
        )
        longest = max(longest, turns)
    assert longest >= size  # some games were long enough to fill much of the board


START = "..../.A../..B./...."

# From the start of 4 x 4, which is
#
# . . . .
# . A . .
# . . B .
# . . . .
GOLDEN = {
    "to one cell from the side": ([(RIGHT, UP)], f"{START} both crashed", 0),
    "to one cell from above": ([(DOWN, LEFT)], f"{START} both crashed", 0),
    "A off the board": (
        [(UP, DOWN), (UP, RIGHT)],
        ".A../.a../..b./..bB A crashed",
        -1,
    ),
    "B off the board": (
        [(UP, DOWN), (RIGHT, DOWN)],
        ".aA./.a../..b./..B. B crashed",
        1,
    ),
    "both off the board": (
        [(UP, DOWN), (UP, DOWN)],
        ".A../.a../..b./..B. both crashed",
        0,
    ),
    "straight back": (
        [(UP, RIGHT), (DOWN, UP)],
        ".A../.a.B/..bb/.... A crashed",
        -1,
    ),
    "into the other's trail": (
        [(RIGHT, DOWN), (DOWN, RIGHT)],
        "..../.aA./..b./..bB A crashed",
        -1,
    ),
    "round the corner into the own trail": (
        [(LEFT, RIGHT), (UP, DOWN), (RIGHT, LEFT), (DOWN, LEFT)],
        "aA../aa../..bb/.Bbb A crashed",
        -1,
    ),
}


@pytest.mark.parametrize(("turns", "text", "reward"), GOLDEN.values(), ids=GOLDEN)
def test_known_games_end_as_the_rules_say(turns, text, reward):
    game, state = Reference(4), FOUR.init()
    for turn in turns:
        assert not state.terminated and not any(game.crashed)
        game.play(turn)
        state = jitted_step(FOUR)(state, np.array(turn, np.int32))
    assert state.terminated and not state.truncated
    np.testing.assert_array_equal(state.rewards, [reward, -reward])
    assert game.rewards == [reward, -reward]
    assert FOUR.to_text(state) == text


# Heads are an odd way apart here, as they never are after the usual start.
ODD = "..../aAB./..b./...."


@pytest.mark.parametrize(
    ("turn", "crashed", "text"),
    [
        ((RIGHT, LEFT), [True, True], f"{ODD} both crashed"),  # would change places
        ((RIGHT, UP), [True, False], "..B./aAb./..b./.... A crashed"),
        ((UP, LEFT), [False, True], ".A../aaB./..b./.... B crashed"),
    ],
)
def test_cell_that_a_head_is_leaving_is_a_wall(turn, crashed, text):
    state = jitted_step(FOUR)(FOUR.from_text(ODD), np.array(turn))
    assert state.crashed.tolist() == crashed
    assert FOUR.to_text(state) == text


def test_every_move_is_legal_until_the_end():
    state = FOUR.init()
    assert state.legal_action_mask.all() and state.legal_action_mask.shape == (2, 4)
    state = jitted_step(FOUR)(state, np.array([RIGHT, UP]))
    assert not state.legal_action_mask.any()


@pytest.mark.parametrize("size", [2, 3, 4, 9, 10, 32])
def test_start_looks_the_same_to_both(size):
    env = envs.make(f"tron_{size}x{size}")
    seen = [np.asarray(env.observe(env.init(), player)) for player in (0, 1)]
    np.testing.assert_array_equal(seen[0], np.rot90(seen[1], 2))
    assert seen[0].sum() == 4  # two cells, each in a trail and a head plane


def test_game_turned_about_with_players_exchanged_has_the_opposite_rewards():
    env, rng = envs.make("tron_5x5"), np.random.default_rng(3)
    step = jax.jit(jax.vmap(env.step))
    keys = jax.random.split(jax.random.key(0), 32)
    states = others = jax.vmap(env.init)(keys)
    while not states.terminated.all():
        actions = rng.integers(0, 4, (32, 2), dtype=np.int32)
        states = step(states, actions)
        others = step(others, (actions[:, ::-1] + 2) % 4)
        np.testing.assert_array_equal(states.rewards, -others.rewards)
        np.testing.assert_array_equal(states.heads, 4 - others.heads[:, ::-1])
        np.testing.assert_array_equal(states.terminated, others.terminated)


def test_symmetry_is_the_mirror_in_the_diagonal():
    cells, actions = FOUR.symmetries.cells, FOUR.symmetries.actions
    assert len(FOUR.symmetries) == 2
    np.testing.assert_array_equal(cells[1].reshape(4, 4), np.arange(16).reshape(4, 4).T)
    assert actions[1].tolist() == [LEFT, DOWN, RIGHT, UP]


# aA..
# .a..
# ..bB
# ....
def test_observation_is_from_the_player_s_view():
    state = FOUR.from_text("aA../.a../.bbB/....")
    mine = [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    yours = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 0, 0]]
    for player, planes in enumerate(((mine, yours), (yours, mine))):
        seen = np.asarray(FOUR.observe(state, player))
        np.testing.assert_array_equal(seen[..., 0], planes[0])
        np.testing.assert_array_equal(seen[..., 1], planes[1])
        heads = [(0, 1), (2, 3)] if player == 0 else [(2, 3), (0, 1)]
        for plane, head in zip((2, 3), heads, strict=True):
            assert np.argwhere(seen[..., plane]).tolist() == [[*head]]


def test_moves_have_names():
    state = FOUR.init()
    for player in (0, 1):
        names = [FOUR.action_to_text(state, player, action) for action in range(4)]
        assert names == ["up", "right", "down", "left"]
        assert FOUR.text_to_action(state, player, "left ") == LEFT
    with pytest.raises(
        ValueError, match=r"'north' is not a legal move .* up right down"
    ):
        FOUR.text_to_action(state, 1, "north")


def test_drawing_shows_trails_and_the_end():
    assert FOUR.draw(FOUR.from_text(".aA./.a../..b./..B. B crashed")) == (
        "┌─────────┐\n│ · a A · │\n│ · a · · │\n│ · · b · │\n│ · · B · │\n"
        "└─────────┘\nA wins"
    )
    assert FOUR.draw(FOUR.init()).splitlines()[-1] == "A and B to move"


def test_picture_crosses_out_who_crashed():
    for end, crosses in (("", 0), (" B crashed", 1), (" both crashed", 2)):
        rows = ".aA./.a../..b./..B." if crosses == 1 else START
        picture = FOUR.to_svg(FOUR.from_text(rows + end))
        assert picture.count('stroke="#c01818"') == 2 * crosses
        names = re.findall(r"<text[^>]*>(.*?)</text>", picture)
        ends = "A and B to move", "A wins", "draw"
        assert names == [*("AB", "A", "")[crosses], ends[crosses]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "4 rows of 4"),
        ("..../.A../..B.", "4 rows of 4"),
        ("..../.A../..B./.....", "4 rows of 4"),
        ("..../.A../..B./...x", "4 rows of 4"),
        ("..../.a../..B./....", "0 heads A; it must be one"),
        ("..../.A../..B./...B", "2 heads B; it must be one"),
        (".a../.A../..B./....", "A has made 1 moves and B 0"),
        (f"{START} A crashed", "A has made 0 moves and B 0"),
        ("..../.A../..B./..b. B crashed", "A has made 0 moves and B 1"),
        (
            f"{START} C crashed",
            "followed by 'C crashed'; it may be followed by A",
        ),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=f"tron_4x4: .*{message}"):
        FOUR.from_text(text)


@pytest.mark.parametrize("size", [1, 0, -4, 33, 10.0, "10", True, None])
def test_impossible_size_is_refused(size):
    with pytest.raises(ValueError, match=f"from 2 to 32, got {size!r}"):
        envs.Tron(size)


@pytest.mark.parametrize("name", ["tron_1x1", "tron_33x33"])
def test_name_of_an_impossible_size_is_refused(name):
    with pytest.raises(ValueError, match="size is a whole number from 2 to 32"):
        envs.make(name)


@pytest.mark.parametrize("name", ["tron_10x9", "tron_10", "tron_010x010"])
def test_name_of_no_square_is_refused(name):
    with pytest.raises(ValueError, match="unknown game"):
        envs.make(name)


@pytest.mark.parametrize(("size", "num_bytes"), [(8, 40), (10, 64), (32, 280)])
def test_state_takes_24_bytes_and_the_bits_of_its_rows(size, num_bytes):
    state = envs.make(f"tron_{size}x{size}").init()
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == num_bytes
    assert "64 bytes for 10 x 10" in envs.Tron.__doc__
