import dataclasses

import jax
import numpy as np
import pytest

import envs
from tests.envs.batches import starts, step_all
from tests.envs.positions import jitted_step

ENV = envs.make("oware")


def _sown(seeds, house, grand_slam):
    """Plays on a list of 12 houses, the mover's first: seed by seed.

    Returns:
      The houses, how many were captured, and whether it would have been a grand slam.
    """
    seeds = list(seeds)
    hand, seeds[house], place = seeds[house], 0, house
    while hand:
        place = (place + 1) % 12
        if place != house:
            seeds[place] += 1
            hand -= 1
    taken, place = [], place
    while place >= 6 and seeds[place] in (2, 3):
        taken.append(place)
        place -= 1
    gain = sum(seeds[place] for place in taken)
    slam = gain > 0 and gain == sum(seeds[6:])
    if slam and grand_slam == "nothing":
        return seeds, 0, slam
    return [0 if k in taken else n for k, n in enumerate(seeds)], gain, slam


def _moves(seeds, grand_slam):
    """The legal houses of the mover."""
    houses = [house for house in range(6) if seeds[house]]
    if not any(seeds[6:]):
        houses = [h for h in houses if any(_sown(seeds, h, "nothing")[0][6:])]
    if grand_slam == "forbidden":
        houses = [h for h in houses if not _sown(seeds, h, grand_slam)[2]]
    return houses


def _random_positions(rng, number):
    """Houses from the mover on: sparse, crowded, with big heaps, with few opponents."""
    weights = rng.random((number, 12)) ** rng.choice([1, 4, 12], (number, 1))
    weights[:, 6:] *= rng.choice([0.0, 0.05, 1.0], (number, 1))
    weights /= weights.sum(axis=1, keepdims=True)
    totals = rng.integers(2, 49, number)
    return np.array(
        [rng.multinomial(t, w) for t, w in zip(totals, weights, strict=True)]
    )


@pytest.mark.parametrize("grand_slam", ["nothing", "capture", "forbidden"])
def test_random_positions_are_played_as_by_sowing_seed_by_seed(grand_slam):
    env = envs.make("oware", grand_slam=grand_slam)
    rng = np.random.default_rng(7)
    houses = _random_positions(rng, 4000)
    # Grand slams are rare: the last one or two houses of the other hold one seed each.
    slams = np.zeros((1000, 12), int)
    slams[:, 6] = 1
    slams[:, 7] = rng.integers(2, size=1000)
    slams[:, 5] = rng.integers(1, 3, 1000)
    slams[:, :5] = rng.integers(0, 4, (1000, 5))
    houses = np.concatenate([houses, slams])
    legal = [_moves(row, grand_slam) for row in houses]
    rows = [row for row, moves in enumerate(legal) if moves]
    houses, legal = houses[rows], [legal[row] for row in rows]
    actions = np.array([rng.choice(moves) for moves in legal])
    players = rng.integers(2, size=len(rows)).astype(np.int32)
    seeds = houses.reshape(-1, 2, 6).astype(np.int8)
    seeds = np.where(players[:, None, None] == 0, seeds, seeds[:, ::-1])
    states = dataclasses.replace(
        starts(env, len(rows)),
        seeds=seeds,
        current_player=players,
        legal_action_mask=np.array([[h in m for h in range(6)] for m in legal]),
    )
    after = step_all(env, states, actions)
    kinds = {"slam": 0, "stuck": 0, "big": 0, "captured": 0}
    for row, (action, player) in enumerate(zip(actions, players, strict=True)):
        sown, gain, slam = _sown(houses[row], action, grand_slam)
        following = sown[6:] + sown[:6]
        moves = _moves(following, grand_slam)
        stores = [0, 0]
        stores[player] = gain
        stuck = not moves and gain < 25
        if stuck:
            stores[player] += sum(sown[:6])
            stores[1 - player] += sum(sown[6:])
            sown = [0] * 12
        over = stuck or gain >= 25
        rows = [sown[:6], sown[6:]]
        assert after.seeds[row].tolist() == (rows if player == 0 else rows[::-1])
        assert after.stores[row].tolist() == stores
        mask = [house in moves and not over for house in range(6)]
        assert after.legal_action_mask[row].tolist() == mask
        assert bool(after.terminated[row]) == over and not after.truncated[row]
        lead = np.sign(stores[0] - stores[1]) * over
        assert after.rewards[row].tolist() == [lead, -lead]
        kinds["slam"] += slam
        kinds["stuck"] += stuck
        kinds["big"] += houses[row][action] >= 12
        kinds["captured"] += gain > 0
    wanted = {"slam", "stuck", "big", "captured"} - (
        {"slam"} if grand_slam == "forbidden" else set()
    )
    assert all(kinds[kind] >= 10 for kind in wanted), kinds


def _at(rows, *, env=ENV, stores="0-0", player="South", plies=0):
    """A position from North's row, f to a, and South's, A to F."""
    return env.from_text(f"{rows} {stores} {player} {plies}")


def test_twelve_seeds_pass_their_house_and_twentyfour_pass_it_twice():
    for heap, row in ((12, "1,1,1,1,1,1/0,2,1,1,1,1"), (23, "2,2,2,2,2,2/0,3,2,2,2,2")):
        state = _at(f"0,0,0,0,0,0/{heap},0,0,0,0,0")
        after = jitted_step(ENV)(state, 0)
        assert ENV.to_text(after).split()[0] == row
    assert after.stores.tolist() == [0, 0]  # the last seed fell in the own row


def test_all_but_one_seed_are_captured_and_a_grand_slam_is_not():
    # f  e  d  c  b  a
    # 0  0  0  0  1  1     F sows b's and a's second seeds
    # 0  0  0  0  1  2     E.g. F: a and b hold two each: all that North has
    slam = "0,0,0,0,1,1/0,0,0,0,1,2"
    after = jitted_step(ENV)(_at(slam), 5)
    assert after.stores.tolist() == [0, 0]
    assert ENV.to_text(after).startswith("0,0,0,0,2,2/0,0,0,0,1,0")
    more = slam.replace("0,0", "1,0", 1)  # a seed in f is left: no grand slam
    after = jitted_step(ENV)(_at(more), 5)
    assert after.stores.tolist() == [4, 0]
    assert ENV.to_text(after).startswith("1,0,0,0,0,0/0,0,0,0,1,0")
    captures = envs.make("oware", grand_slam="capture")
    after = jitted_step(captures)(_at(slam, env=captures), 5)
    # North cannot move: South takes the last seed too.
    assert after.terminated and after.stores.tolist() == [5, 0]
    np.testing.assert_array_equal(after.rewards, [1, -1])
    forbidden = envs.make("oware", grand_slam="forbidden")
    state = _at(slam, env=forbidden)
    assert np.flatnonzero(state.legal_action_mask).tolist() == [4]


def test_empty_opponent_is_fed_and_one_who_cannot_be_ends_the_game():
    legal = _at("0,0,0,0,0,0/1,0,4,0,2,0").legal_action_mask
    assert np.flatnonzero(legal).tolist() == [2, 4]
    # North plays its last seed away to South's A, and South has nothing in reach.
    state = _at("1,0,0,0,0,0/3,2,0,0,0,0", stores="20-22", player="North")
    after = jitted_step(ENV)(state, 5)
    assert after.terminated and not after.truncated
    assert after.stores.tolist() == [26, 22] and not after.seeds.any()
    np.testing.assert_array_equal(after.rewards, [1, -1])
    assert ENV.draw(after).endswith("South wins")


def test_twentyfour_each_is_a_draw_and_twentyfive_win_at_once():
    # South takes North's last two but one: 24, and the game goes on.
    state = _at("1,0,0,0,0,1/0,0,0,0,0,1", stores="22-23")
    after = jitted_step(ENV)(state, 5)
    assert after.stores.tolist() == [24, 23] and not after.terminated
    # North's seed reaches A, and South cannot feed: South takes it, or 24 and 24.
    drawn = jitted_step(ENV)(
        _at("1,0,0,0,0,0/0,0,0,0,0,0", stores="23-24", player="North"), 5
    )
    assert drawn.terminated and drawn.stores.tolist() == [24, 24]
    assert not drawn.rewards.any() and ENV.draw(drawn).endswith("draw")
    won = jitted_step(ENV)(_at("1,0,0,0,0,1/5,0,0,0,0,1", stores="23-10"), 5)
    assert won.terminated and won.stores.tolist() == [25, 10]
    assert won.seeds.sum() == 6  # what is on the board stays there
    assert not won.legal_action_mask.any()


def test_cap_truncates_and_is_no_draw():
    env = envs.make("oware", max_plies=3)
    state = env.init()
    for action in (0, 1, 2):
        assert not (state.truncated or state.terminated)
        state = jitted_step(env)(state, action)
    assert state.truncated and not state.terminated and not state.rewards.any()
    assert not state.legal_action_mask.any()
    read = env.from_text(env.to_text(state))
    jax.tree.map(np.testing.assert_array_equal, read, state)
    # An end by the rules on the last ply is an end, not a cap.
    last = _at("1,0,0,0,0,1/5,0,0,0,0,1", env=env, stores="23-10", plies=2)
    won = jitted_step(env)(last, 5)
    assert won.terminated and not won.truncated
    np.testing.assert_array_equal(won.rewards, [1, -1])
    assert ENV.options["max_plies"] == 200
    endless = envs.make("oware", max_plies=None)
    state = _at("1,0,0,0,0,1/5,0,0,0,0,1", env=endless, plies=32767)
    after = jitted_step(endless)(state, 0)
    assert not after.truncated and int(after.plies) == 32768
    read = endless.from_text(endless.to_text(after))
    jax.tree.map(np.testing.assert_array_equal, read, after)


def test_plies_without_a_cap_are_counted_as_far_as_they_can_be():
    endless = envs.make("oware", max_plies=None)
    last = 2**31 - 1
    state = _at("1,0,0,0,0,1/5,0,0,0,0,1", env=endless, plies=last)
    after = jitted_step(endless)(state, 0)
    assert int(after.plies) == last and str(last) in envs.Oware.__doc__
    read = endless.from_text(endless.to_text(after))
    jax.tree.map(np.testing.assert_array_equal, read, after)
    zeros = endless.from_text(f"{START} {'0' * 5000}7")
    assert int(zeros.plies) == 7
    with pytest.raises(ValueError, match="has 2147483648 plies; the cap is 2147483647"):
        endless.from_text(f"{START} {last + 1}")


def test_capture_starts_the_history_anew():
    env = envs.make("oware", max_plies=20, repetition=True)
    state = _at("1,0,0,0,0,1/0,0,0,0,0,1", env=env, plies=4)
    assert int(state.captured) == 4
    state = jitted_step(env)(state, 5)  # captures two
    assert int(state.captured) == 5 and int(state.plies) == 5
    assert state.history.shape == (21, 12)
    np.testing.assert_array_equal(state.history[5], state.seeds.ravel())


def test_observation_is_the_movers_view():
    state = ENV.from_text("12,0,3,0,0,1/2,0,0,0,0,5 10-15 North")
    shown = np.asarray(ENV.observe(state))
    assert shown.shape == (2, 6, 15) and shown.dtype == np.float32
    # North's own row is the lower one now, from a to f.
    np.testing.assert_allclose(shown[1, :, 12] * 12, [1, 0, 0, 3, 0, 12])
    np.testing.assert_allclose(shown[0, :, 12] * 12, [5, 0, 0, 0, 0, 2])
    np.testing.assert_array_equal(shown[1, 3, :12], [1, 1, 1] + [0] * 9)
    assert (shown[1, 5, :12] == 1).all() and not shown[1, 1, :13].any()
    np.testing.assert_allclose(shown[..., 13] * 24, np.full((2, 6), 15))
    np.testing.assert_allclose(shown[..., 14] * 24, np.full((2, 6), 10))


def test_moves_are_named_by_the_houses_of_the_mover():
    state = ENV.init()
    assert [ENV.action_to_text(state, action) for action in range(6)] == list("ABCDEF")
    state = jitted_step(ENV)(state, 3)
    assert [ENV.action_to_text(state, action) for action in range(6)] == list("abcdef")
    with pytest.raises(
        ValueError, match="'A' is not a legal move here; a move is an own"
    ):
        ENV.text_to_action(state, "A")


def test_text_takes_a_position_or_the_moves_from_the_start():
    state = ENV.init()
    for action in (3, 5, 0, 1):
        state = jitted_step(ENV)(state, action)
    text = "1,5,5,5,0,5/1,6,6,2,6,6 0-0 South 4"
    assert ENV.to_text(state) == text
    for other in ("DfAb", "D f A b", text, text.lower(), text.replace(" ", "  ")):
        jax.tree.map(np.testing.assert_array_equal, ENV.from_text(other), state)
    assert int(ENV.from_text(text[:-2]).plies) == 0
    jax.tree.map(np.testing.assert_array_equal, ENV.from_text(""), ENV.init())


START = "4,4,4,4,4,4/4,4,4,4,4,4 0-0 South"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DF", "move 2 of 'DF', F, is no house of North, the mover"),
        ("AfAg", "got 'AfAg'; a position is North's row"),
        ("AaA", "move 3 of .*, A, is not legal there; legal are"),
        (START[2:], "a position is North's row from f to a"),
        (START + " x", "a position is"),
        (START.replace("South", "East"), "a position is"),
        (START.replace("4", "-4", 1), "a position is"),
        (START.replace("0-0", "0"), "a position is"),
        (START.replace("0-0", "1-0"), "has 49 seeds; there are 48"),
        (START.replace("4", "44444444", 1), "seeds; there are 48"),
        (START + " 201", "has 201 plies; the cap is 200"),
        (
            START + " " + "9" * 5000,
            "number 15 of the text, 9999999999..., has 5000 dig",
        ),
        (
            "8" * 5000 + START[1:],
            "^oware: number 1 of the text, 8888888888..., has 5000",
        ),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        ENV.from_text(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"grand_slam": "allowed"},
            "one of nothing, capture, forbidden, got 'allowed'",
        ),
        ({"grand_slam": ["nothing"]}, "one of nothing"),
        (
            {"max_plies": 0},
            "max_plies is a whole number from 1 to 32767, or None, got 0",
        ),
        ({"max_plies": 1e3}, "got 1000.0"),
        ({"max_plies": True}, "got True"),
        ({"repetition": 1}, "repetition is True or False, got 1"),
        ({"repetition": True, "max_plies": None}, "repetition needs a max_plies"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        envs.Oware(**options)


def test_drawings_show_houses_captures_and_who_is_to_move():
    state = ENV.from_text("12,0,3,0,0,1/2,0,0,0,0,5 10-15 North")
    assert ENV.draw(state) == (
        "      f  e  d  c  b  a\n"
        "15 │ 12  0  3  0  0  1 │\n"
        "   │  2  0  0  0  0  5 │ 10\n"
        "      A  B  C  D  E  F\n"
        "North to move"
    )
    drawing = ENV.to_svg(state)
    assert drawing.count("<circle") == 12 + 23  # houses and seeds
    assert drawing.count('stroke="#ffd75e"') == 3  # a, d and f may be played


@pytest.mark.parametrize(
    ("options", "size"), [({}, 38), ({"repetition": True}, 42 + 12 * 201)], ids=str
)
def test_state_takes_the_bytes_it_says(options, size):
    state = envs.make("oware", **options).init()
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == size
    assert "38 bytes" in envs.Oware.__doc__


@pytest.mark.parametrize(
    "options",
    [{"max_plies": 60}, {"repetition": True}, {"grand_slam": "forbidden"}],
    ids=str,
)
def test_contract_is_kept(options):
    envs.check_env(envs.make("oware", **options))
