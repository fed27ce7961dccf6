import re

import jax
import numpy as np
import pytest

import envs
from tests.envs.positions import jitted_step

FIVE = envs.make("goofspiel_5")


def _batch(env, games, seed):
    """Random games side by side, turn by turn: states and the bids in them, [B, 2]."""
    rng = np.random.default_rng(seed)
    states = jax.vmap(env.init)(jax.random.split(jax.random.key(seed), games))
    step, turns = jax.jit(jax.vmap(env.step)), []
    for _ in range(env.num_cards):
        mask = np.asarray(states.legal_action_mask)
        bids = np.argmax(rng.random(mask.shape) * mask, axis=2).astype(np.int32)
        turns.append((jax.tree.map(np.asarray, states), bids))
        states = step(states, bids)
    turns.append((jax.tree.map(np.asarray, states), None))
    return turns


def _points(env, states):
    """The points of each player, [B, 2], from what player 1 sees."""
    seen = np.asarray(jax.jit(jax.vmap(lambda state: env.observe(state, 1)))(states))
    numbers = np.arange(1, env.num_cards + 1)
    return np.stack([(seen[..., plane] * numbers).sum(axis=1) for plane in (5, 4)], 1)


# OpenSpiel plays the last turn itself, in which both have one card left, and its point
# difference is that to the mean of both players, which is half of ours.
@pytest.mark.parametrize(
    ("name", "order", "returns", "games"),
    [
        ("goofspiel_5", "random", "win_loss", 40),
        ("goofspiel_4", "descending", "point_difference", 20),
        *(
            pytest.param(name, order, returns, games, marks=pytest.mark.slow)
            for name, games in (("goofspiel_5", 2000), ("goofspiel_13", 300))
            for order in ("random", "ascending", "descending")
            for returns in ("win_loss", "point_difference")
        ),
    ],
)
def test_random_games_are_those_of_open_spiel(name, order, returns, games):
    import pyspiel

    env = envs.make(name, prizes=order, returns=returns)
    settings = {
        "num_cards": env.num_cards,
        "points_order": order,
        "returns_type": returns,
        "imp_info": False,
    }
    theirs = pyspiel.load_game("goofspiel", settings)
    turns = _batch(env, games, seed=env.num_cards)
    points = [_points(env, states) for states, _ in turns]
    for game in range(games):
        state = theirs.new_initial_state()
        for turn, (ours, bids) in enumerate(turns):
            if state.is_chance_node():
                state.apply_action(int(ours.prizes[game, turn]) - 1)
            shown = str(state)
            if turn < env.num_cards - 1:
                assert not state.is_terminal() and not ours.terminated[game]
                sequence = re.search(r"Point card sequence: (.*)", shown)[1].split()
                prizes = ours.prizes[game, : turn + 1].tolist()
                assert [int(prize) for prize in sequence] == prizes
                for player in (0, 1):
                    legal = np.flatnonzero(ours.legal_action_mask[game, player])
                    assert legal.tolist() == state.legal_actions(player)
                    hand = re.search(rf"P{player} hand: (.*)", shown)[1].split()
                    assert [int(card) - 1 for card in hand] == legal.tolist()
            if turn != env.num_cards - 1:
                total = re.search(r"Points: (\d+) (\d+)", shown).groups()
                assert [int(p) for p in total] == points[turn][game].tolist()
            if turn < env.num_cards - 1:
                state.apply_actions(bids[game].tolist())
        assert state.is_terminal() and ours.terminated[game]
        factor = 1 if returns == "win_loss" else 2
        np.testing.assert_allclose(
            ours.rewards[game], factor * np.array(state.returns())
        )


def _taken(prizes, bids, ties):
    """Points of both players by the rules read aloud, the first turn first."""
    points, stake = [0, 0], 0
    for prize, first, second in zip(prizes.tolist(), *bids.tolist(), strict=True):
        stake += prize
        if first != second:
            points[first < second] += stake
        if first != second or ties == "discard":
            stake = 0
    return points


@pytest.mark.parametrize("ties", ["discard", "carry"])
@pytest.mark.parametrize("returns", ["win_loss", "point_difference"])
def test_rewards_are_the_points_of_a_plain_count(ties, returns):
    env = envs.make("goofspiel_6", ties=ties, returns=returns)
    turns, num_ties = _batch(env, 64, seed=1), 0
    for turn, (states, _) in enumerate(turns):
        points = _points(env, states)
        for game in range(64):
            played = states.prizes[game, :turn], states.bids[game, :, :turn]
            wanted = _taken(*played, ties)
            assert points[game].tolist() == wanted
            num_ties += bool((played[1][0] == played[1][1]).any())
            difference = float(wanted[0] - wanted[1]) * (turn == 6)
            if returns == "win_loss":
                difference = np.sign(difference)
            np.testing.assert_array_equal(
                states.rewards[game], [difference, -difference]
            )
    assert num_ties > 100  # else the option was hardly looked at


def test_every_order_of_prizes_is_as_likely():
    env = envs.make("goofspiel_3")
    keys = jax.random.split(jax.random.key(7), 6000)
    prizes = np.asarray(jax.jit(jax.vmap(env.init))(keys).prizes)
    orders, counts = np.unique(prizes, axis=0, return_counts=True)
    assert len(orders) == 6
    # 1000 each, with a standard deviation of 29.
    assert counts.min() > 850 and counts.max() < 1150


@pytest.mark.parametrize(
    ("order", "prizes"), [("ascending", [1, 2, 3, 4]), ("descending", [4, 3, 2, 1])]
)
def test_fixed_order_looks_at_no_key(order, prizes):
    env = envs.make("goofspiel_4", prizes=order)
    for key in (None, jax.random.key(1), jax.random.key(2)):
        assert env.init(key).prizes.tolist() == prizes


def test_start_without_a_key_is_the_same_every_time():
    assert FIVE.init().prizes.tolist() == FIVE.init(jax.random.key(0)).prizes.tolist()


# prize   3    1    5  2  4
# first   2    5               took the 1, holds 1 3 4
# second  4    1               took the 3, holds 2 3 5
MIDDLE = "3:2-4 1:5-1 5 2 4"


def test_observation_shows_hands_and_prizes_from_the_player_s_view():
    state = FIVE.from_text(MIDDLE)
    rows = {
        "first": [1, 0, 1, 1, 0],
        "second": [0, 1, 1, 0, 1],
        "up": [0, 0, 0, 0, 1],
        "to come": [0, 1, 0, 1, 0],
        "taken by first": [1, 0, 0, 0, 0],
        "taken by second": [0, 0, 1, 0, 0],
    }
    first, second, up, to_come, *taken = rows.values()
    seen = np.asarray(FIVE.observe(state, 0)).T
    np.testing.assert_array_equal(seen, [first, second, up, to_come, *taken])
    seen = np.asarray(FIVE.observe(state, 1)).T
    np.testing.assert_array_equal(seen, [second, first, up, to_come, *taken[::-1]])


def test_observation_hides_the_order_of_prizes_to_come():
    one, other = (FIVE.from_text(f"3:2-4 1:5-1 5 {end}") for end in ("2 4", "4 2"))
    for player in (0, 1):
        np.testing.assert_array_equal(
            FIVE.observe(one, player), FIVE.observe(other, player)
        )
    assert FIVE.draw(one) == FIVE.draw(other)
    assert FIVE.to_svg(one) == FIVE.to_svg(other)


def test_tied_prizes_are_at_stake_in_the_next_turn_if_they_carry():
    text = "5:2-2 4:3-3 3 2 1"
    stakes = {"discard": [0, 0, 1, 0, 0], "carry": [0, 0, 1, 1, 1]}
    for ties, stake in stakes.items():
        env = envs.make("goofspiel_5", ties=ties)
        state = env.from_text(text)
        np.testing.assert_array_equal(env.observe(state, 0)[:, 2], stake)
        state = jitted_step(env)(state, np.array([3, 4]))  # second bids more
        taken = np.array([0, 0, 1, 0, 0]) if ties == "discard" else np.array(stake)
        np.testing.assert_array_equal(env.observe(state, 1)[:, 4], taken)


def test_prizes_tied_in_the_last_turn_are_nobody_s():
    env = envs.make("goofspiel_2", ties="carry", returns="point_difference")
    state = env.from_text("2:1-1 1:2-2")
    assert state.terminated
    np.testing.assert_array_equal(state.rewards, [0, 0])
    assert not env.observe(state, 0).any()


def test_game_of_one_card_is_a_draw():
    env = envs.make("goofspiel_1")
    state = jitted_step(env)(env.init(jax.random.key(0)), np.array([0, 0]))
    assert state.terminated
    np.testing.assert_array_equal(state.rewards, [0, 0])
    assert env.draw(state).splitlines()[-1] == "draw"


def test_played_card_cannot_be_bid_again():
    state = FIVE.from_text(MIDDLE)
    np.testing.assert_array_equal(
        state.legal_action_mask, [[1, 0, 1, 1, 0], [0, 1, 1, 0, 1]]
    )
    after = jitted_step(FIVE)(state, np.array([1, 1]))  # the first has bid the 2
    assert after.terminated
    np.testing.assert_array_equal(after.rewards, [-1, 1])
    assert FIVE.to_text(after) == MIDDLE


def test_drawing_shows_turns_hands_and_points():
    assert FIVE.draw(FIVE.from_text(MIDDLE)) == (
        "prizes │ 3 1 5 ? ? │\n"
        " first │ 2 5 · · · │ 1 points, holds 1 3 4\n"
        "second │ 4 1 · · · │ 3 points, holds 2 3 5\n"
        "first and second to move"
    )
    env = envs.make("goofspiel_10", prizes="ascending")
    drawing = env.draw(env.init())
    assert drawing.splitlines()[0] == "prizes │  1  2  3  4  5  6  7  8  9 10 │"
    won = envs.make("goofspiel_2").from_text("2:2-1 1:1-2")
    assert FIVE.status(won, ("first", "second")) == "first wins"


def test_picture_shows_the_cards_that_are_known():
    texts = re.findall(r"<text[^>]*>(.*?)</text>", FIVE.to_svg(FIVE.from_text(MIDDLE)))
    assert texts == [
        *("first", "2", "5", "prizes", "3", "1", "5", "?", "?", "second", "4", "1"),
        *("first: 1 points, holds 1 3 4", "second: 3 points, holds 2 3 5"),
        "first and second to move",
    ]


def test_largest_game_counts_its_points():
    env = envs.make("goofspiel_100", returns="point_difference", prizes="descending")
    # The second bids one more for each prize but the first, which the 100 takes.
    bids = [(100, 1), *((n, n + 1) for n in range(1, 100))]
    turns = zip(range(100, 0, -1), bids, strict=True)
    text = " ".join(f"{prize}:{a}-{b}" for prize, (a, b) in turns)
    state = env.from_text(text)
    np.testing.assert_array_equal(state.rewards, [100 - 4950, 4950 - 100])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "5 prizes in order"),
        ("1 2 3 4", "5 prizes in order"),
        ("1 2 3 4 5 6", "5 prizes in order"),
        ("1 2 3 4 x", "'x' is not a prize"),
        ("1:2 2 3 4 5", "'1:2' is not a prize"),
        ("1:2-3-4 2 3 4 5", "is not a prize"),
        ("1 2 3 4 6", "'6' has the prize 6; cards are 1 to 5"),
        ("1 2 3 4 0", "the prize 0; cards are 1 to 5"),
        ("1 2 3 4 4", "the prize 4 a second time"),
        ("1:6-1 2 3 4 5", "the first bid 6; cards are 1 to 5"),
        ("1:1-0 2 3 4 5", "the second bid 0; cards are 1 to 5"),
        ("1:1-2 2:1-3 3 4 5", "the first bid 1 a second time"),
        ("1:1-2 2:2-2 3 4 5", "the second bid 2 a second time"),
        ("1 2:1-3 3 4 5", "'2:1-3' has bids though '1' has none yet"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=f"goofspiel_5: .*{message}"):
        FIVE.from_text(text)


def test_prizes_out_of_their_order_are_refused():
    env = envs.make("goofspiel_3", prizes="descending")
    with pytest.raises(ValueError, match="prizes 3 1 2; they are descending here: 3 2"):
        env.from_text("3 1 2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_cards": 0}, "from 1 to 100, got 0"),
        ({"num_cards": 101}, "from 1 to 100, got 101"),
        ({"num_cards": 5.0}, "from 1 to 100, got 5.0"),
        ({"num_cards": True}, "from 1 to 100, got True"),
        ({"prizes": "sorted"}, "prizes is one of random, ascending, descending, got"),
        ({"ties": True}, "ties is one of discard, carry, got True"),
        ({"returns": ["win_loss"]}, "returns is one of win_loss, point_difference"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        envs.Goofspiel(**options)


def test_state_takes_10_bytes_and_5_a_card():
    for num_cards, size in ((5, 35), (13, 75)):
        state = envs.make(f"goofspiel_{num_cards}").init()
        assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == size
    assert "10 + 5 * N bytes, 35 for five cards" in " ".join(
        envs.Goofspiel.__doc__.split()
    )
