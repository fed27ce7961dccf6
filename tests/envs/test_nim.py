import itertools

import jax
import numpy as np
import pytest

import envs
from tests.envs.positions import play, record

RECORDS = record("nim")["positions"]
MAX_HEAP, NUM_HEAPS = 7, 4
POSITIONS = np.array(
    list(itertools.product(range(MAX_HEAP + 1), repeat=NUM_HEAPS)), np.int8
)  # [8^4, 4], in the order of their digits


def _bouton(heaps: np.ndarray, misere: bool) -> np.ndarray:
    """Whether the mover wins: the nim-sum, but for misère with heaps of one only."""
    nim_sum = np.bitwise_xor.reduce(heaps, axis=1)
    if not misere:
        return nim_sum != 0
    return np.where(heaps.max(axis=1) <= 1, nim_sum == 0, nim_sum != 0)


@pytest.fixture(scope="module", params=[False, True], ids=["normal", "misere"])
def solved(request):
    """The game of four heaps of seven, its winners, and its winning moves [N, A]."""
    env = envs.make("nim", heaps=(MAX_HEAP,) * NUM_HEAPS, misere=request.param)
    start = env.init()
    states = jax.vmap(env._position, (0, None))(POSITIONS, start.current_player)
    actions = np.arange(env.num_actions, dtype=np.int32)
    step = jax.jit(jax.vmap(jax.vmap(env.step, (None, 0)), (0, None)))
    after = jax.tree.map(np.asarray, step(states, actions))
    mask = np.asarray(states.legal_action_mask)
    number = after.heaps.astype(int) @ (MAX_HEAP + 1) ** np.arange(NUM_HEAPS)[::-1]
    wins = np.zeros(len(POSITIONS), bool)
    winning = np.zeros(mask.shape, bool)
    for row in np.argsort(POSITIONS.sum(axis=1), kind="stable"):
        if states.terminated[row]:
            wins[row] = states.rewards[row, 0] > 0
            continue
        over, rewards = after.terminated[row], after.rewards[row, :, 0]
        won = np.where(over, rewards > 0, ~wins[number[row]])
        winning[row] = won & mask[row]
        wins[row] = winning[row].any()
    return env, wins, winning


def test_winner_is_bouton_s(solved):
    env, wins, _ = solved
    np.testing.assert_array_equal(wins, _bouton(POSITIONS, env.misere))


def test_recorded_positions_have_the_known_winner_and_winning_moves(solved):
    env, wins, winning = solved
    assert len(RECORDS) == 12
    for entry in RECORDS:
        heaps = entry["piles"] + [0] * (NUM_HEAPS - len(entry["piles"]))
        row = int(np.ravel_multi_index(heaps, (MAX_HEAP + 1,) * NUM_HEAPS))
        assert wins[row] == entry[f"mover_wins_{'misere' if env.misere else 'normal'}"]
        if not env.misere:
            moves = [divmod(int(a), MAX_HEAP) for a in np.flatnonzero(winning[row])]
            moves = [[heap, less + 1] for heap, less in moves]
            assert moves == entry["winning_moves_normal"]


@pytest.mark.parametrize("entry", RECORDS, ids=lambda entry: str(entry["piles"]))
def test_recorded_piles_make_a_game(entry):
    env = envs.make("nim", heaps=entry["piles"])
    state = env.init()
    assert state.heaps.tolist() == entry["piles"]
    assert state.legal_action_mask.sum() == sum(entry["piles"])
    for heap, take in entry["winning_moves_normal"]:
        text = f"{heap + 1}:{take}"
        action = env.text_to_action(state, text)
        assert action == heap * max(entry["piles"]) + take - 1
        assert env.action_to_text(state, action) == text


@pytest.mark.parametrize(("misere", "rewards"), [(False, [1, -1]), (True, [-1, 1])])
def test_last_object_decides(misere, rewards):
    env = envs.make("nim", heaps=(2, 1), misere=misere)
    state = play(env, [0, 2, 0])  # 2 1 -> 1 1 -> 1 0 -> 0 0, the first player last
    assert state.terminated and not state.legal_action_mask.any()
    np.testing.assert_array_equal(state.rewards, rewards)
    assert env.draw(state).splitlines()[-1] == (
        "second wins (the last object loses)"
        if misere
        else "first wins (the last object wins)"
    )


def test_observation_is_each_heap_one_hot():
    env = envs.make("nim", heaps=(2, 3))
    shown = env.observe(env.from_text("0 2 first"))
    assert shown.shape == env.observation_shape == (2, 4)
    np.testing.assert_array_equal(shown, [[1, 0, 0, 0], [0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("heaps", "size"),
    [
        ((3, 4, 5), 1),
        ((3, 3), 2),
        ((2, 5, 2), 2),
        ((1, 1, 1, 1), 24),
        ((2, 2, 2, 5, 5), 12),
        ((1,) * 5, 5),  # 120 permutations are more than 24: five rotations
        ((1,) * 30, 1),
        ((1, 1, 1, 1, 2, 2), 24),  # no room for the two: they stay
    ],
)
def test_symmetries_exchange_equal_heaps(heaps, size):
    symmetries = envs.make("nim", heaps=heaps).symmetries
    orders = {tuple(row) for row in symmetries.cells.tolist()}
    assert len(symmetries) == len(orders) == size
    for a in orders:
        assert tuple(heaps[slot] for slot in a) == heaps
        for b in orders:
            assert tuple(a[slot] for slot in b) in orders  # a group
    cells, actions = symmetries.cells[-1], symmetries.actions[-1]
    np.testing.assert_array_equal(actions // max(heaps), np.repeat(cells, max(heaps)))


def test_drawing_shows_heaps_and_what_was_taken():
    env = envs.make("nim", heaps=(1, 3))
    assert env.draw(env.from_text("1 2 second")) == (
        "1 │ ● · · │ 1\n2 │ ● ● · │ 2\nsecond to move (the last object wins)"
    )


def test_text_names_the_player_to_move_or_means_the_first():
    env = envs.make("nim")
    assert env.to_text(env.from_text("1 2 3")) == "1 2 3 first"
    assert env.to_text(env.from_text("0 0 5 Second")) == "0 0 5 second"
    state = env.from_text("0 0 0 second")
    np.testing.assert_array_equal(state.rewards, [1, -1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2", "3 heaps"),
        ("1 2 3 4", "3 heaps"),
        ("", "3 heaps"),
        ("1 2 6 first", "heap 3 of '1 2 6 first' is '6'"),
        ("1 -2 3", "heap 2 of '1 -2 3' is '-2'"),
        ("1 2 3 third", "3 heaps"),
    ],
)
def test_impossible_text_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        envs.make("nim").from_text(text)


@pytest.mark.parametrize(
    "heaps", [(), "345", 3, (3, 0), (3, -1), (3, 128), (3, 2.0), (True, 2), None]
)
def test_impossible_heaps_are_refused(heaps):
    with pytest.raises(ValueError, match="whole numbers from 1 to 127, got"):
        envs.make("nim", heaps=heaps)


def test_misere_that_is_not_a_bool_is_refused():
    with pytest.raises(ValueError, match="True or False, got 'no'"):
        envs.make("nim", misere="no")


def test_largest_heap_is_played():
    env = envs.make("nim", heaps=(127, 127))
    state = env.step(env.init(), 126)
    assert state.heaps.tolist() == [0, 127]


def test_state_takes_14_bytes_a_heap_and_an_action():
    for heaps, size in (((3, 4, 5), 32), ((1, 3, 5, 7), 14 + 4 + 28)):
        state = envs.make("nim", heaps=heaps).init()
        assert sum(leaf.nbytes for leaf in jax.tree.leaves(state)) == size
    assert "14 + H + A bytes, 32 of them" in envs.Nim.__doc__
