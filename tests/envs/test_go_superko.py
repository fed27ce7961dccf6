"""The rules of Go, every step compared with a slow reference on tiny boards."""

import jax
import numpy as np
import pytest

from tests.envs import go_reference as reference
from tests.envs.go_games import batched, cells, go
from tests.envs.positions import jitted_step

ALL_RULES = [
    (ko, suicide)
    for ko in ("positional", "situational", "simple")
    for suicide in (False, True)
]


def compare_games(env, games, seed):
    """Plays random games that seldom pass; returns how many moves superko closed."""
    size = env.size
    init, step = batched(env)
    states = jax.tree.map(np.asarray, init(games))
    positions = [reference.start(size, env.ko, env.suicide)] * games
    rng = np.random.default_rng(seed)
    live, closed = set(range(games)), 0
    while live:
        boards = cells(states)
        actions = np.zeros(games, np.int32)
        for game in sorted(live):
            position = positions[game]
            assert tuple(boards[game]) == position.board
            ended = position.passes == 2
            capped = not ended and position.ply == env.length
            assert states.terminated[game] == ended
            assert states.truncated[game] == capped
            mask = states.legal_action_mask[game]
            if ended or capped:
                assert not mask.any()
                lead = np.sign(reference.area(position.board, size) - env.komi)
                np.testing.assert_array_equal(states.rewards[game], [lead, -lead])
                live.remove(game)
                continue
            assert not states.rewards[game].any()
            legal = reference.legal(position)
            assert mask.tolist() == legal, position
            free = reference.legal(position._replace(earlier=frozenset()))
            closed += sum(free) - sum(legal)
            choices = np.flatnonzero(mask)
            if len(choices) > 1 and rng.random() < 0.9:
                choices = choices[:-1]
            actions[game] = rng.choice(choices)
            positions[game] = reference.play(position, int(actions[game]))
        states = jax.tree.map(np.asarray, step(states, actions))
    return closed


@pytest.mark.parametrize(("ko", "suicide"), ALL_RULES)
def test_masks_boards_and_results_equal_the_reference(ko, suicide):
    env = go(3, ko=ko, suicide=suicide, max_plies=60)
    closed = compare_games(env, games=8, seed=1)
    assert (closed > 0) == (ko != "simple")


@pytest.mark.slow
@pytest.mark.parametrize(("ko", "suicide"), ALL_RULES)
@pytest.mark.parametrize(
    ("size", "games", "max_plies"),
    [(2, 500, 80), (3, 400, 200), (4, 150, 200), (5, 60, 300)],
)
def test_many_games_equal_the_reference(size, games, max_plies, ko, suicide):
    env = go(size, ko=ko, suicide=suicide, max_plies=max_plies)
    closed = compare_games(env, games, seed=size)
    if ko == "simple":
        assert closed == 0
    elif size < 5:
        assert closed > 0


def test_only_the_last_ply_of_a_known_game_repeats(record_of_226_moves):
    env = go(19)
    state = env.init()
    boards = [cells(state).tobytes()]
    *moves, last = record_of_226_moves
    for action in moves:
        assert state.legal_action_mask[action]
        state = jitted_step(env)(state, action)
        boards.append(cells(state).tobytes())
    assert len(set(boards)) == len(boards) == 226
    assert last == 305 and not state.legal_action_mask[305]
    simple = go(19, ko="simple")
    free = simple.init()
    for action in record_of_226_moves:
        assert free.legal_action_mask[action]
        free = jitted_step(simple)(free, action)
    assert cells(free).tobytes() == boards[220]


@pytest.fixture
def record_of_226_moves():
    # From a game server by way of a public bug report about Go on 19x19.
    text = """
    300 60 288 72 97 67 63 81 40 59 41 61 58 42 77 102 84 83 64 65 111 46 54 73
    53 71 74 263 282 262 298 52 93 315 296 295 277 316 317 311 205 207 206 260
    279 188 226 245 225 167 227 283 302 240 222 280 284 264 276 320 301 299 319
    318 337 336 338 294 147 335 238 221 200 183 166 163 127 255 217 249 160 125
    310 291 309 330 268 250 290 272 215 197 216 271 248 229 267 180 211 219 218
    256 257 220 237 179 196 109 148 230 159 326 327 307 289 185 186 157 181 161
    162 142 199 203 143 126 210 209 124 122 212 155 172 153 134 135 152 173 154
    305 324 153 190 228 154 168 149 153 275 274 154 23 116 153 204 184 154 136
    108 88 89 69 232 269 306 325 287 323 343 344 242 346 347 261 285 329 328 178
    33 32 34 13 86 87 85 342 66 47 48 68 29 45 324 247 304 343 175 270 286 348
    156 137 138 119 158 139 176 266 345 138 177 21 39 22 99 100 174 153 123 141
    154 346 324 153 345 305
    """
    return [int(word) for word in text.split()]


def test_what_is_forgotten_may_be_repeated_after_text():
    # The start position of a ko fight, read from text: the board before is unknown.
    env = go(5)
    state = env.from_text("A3 B3 B4 C4 B2 C2 E1 D3 C3")
    again = env.from_text(env.to_text(state))
    assert not state.legal_action_mask[11] and not again.legal_action_mask[11]
    for action in (0, 4):
        state = jitted_step(env)(state, action)
        again = jitted_step(env)(again, action)
    np.testing.assert_array_equal(state.legal_action_mask, again.legal_action_mask)
    assert env.history_fields == ("past",)
    assert go(5, ko="simple").history_fields == ()
