"""What final boards tell: from the game, through the replay, to the net."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import envs
import nets
import train
from jaxsearch.learn import replay
from jaxsearch.learn.targets import FinalBoard
from tests.learn.plies import make_course, make_plies
from tests.learn.test_programs import Run

GO = {
    **{"env": "go_3x3", "env_options": ("komi=0.5", "ko='simple'"), "net": "resnet"},
    **{"width": 8, "depth": 1, "simulations": 2, "games": 16, "plies": 8},
    **{"positions": 1024, "batch": 64, "learning_rate": 1e-2, "opening_plies": 4},
    **{"resign_value": 0.1, "resign_plies": 1, "play_on_share": 0.7},
}


# Black has the left column and the corner beside it, White the right one.
@pytest.mark.parametrize("mover", ["X", "O"])
def test_go_tells_whose_the_points_are_and_the_score(mover):
    env = envs.make("go_3x3", komi=2.5)
    told = env.auxiliary_targets(env.from_text(f"X.O/X.O/.XO {mover} - 2 9 pass"))
    np.testing.assert_array_equal(told.ownership, [[1, 0, -1], [1, 0, -1], [1, 1, -1]])
    assert told.ownership.dtype == np.int8
    assert float(told.score) == 4 - 3 - 2.5


# Each ply's own number, and that of its game's last ply: the score there tells it.
def test_drawn_plies_have_the_final_board_of_their_own_game_in_their_movers_view():
    random = np.random.default_rng(0)
    window, straight = None, []
    for step in range(7):  # the last 4 are kept
        shape = 3, 5
        ended = random.random(shape) < 0.4
        players = random.integers(0, 2, shape)
        course = make_course(players, np.zeros((*shape, 2)), ended)
        numbers = (100 * step + np.arange(15).reshape(shape)).astype(np.float32)
        known = ended & (random.random(shape) < 0.8)
        final = FinalBoard(
            ownership=jnp.broadcast_to(jnp.int8([1, 0, -1]), (*shape, 3)),
            score=jnp.asarray(numbers),
            known=jnp.asarray(known),
        )
        plies = dataclasses.replace(make_plies(course, numbers), final=final)
        if window is None:
            window = replay.empty_replay(plies, 60, 3)
        window = replay.insert(window, plies)
        straight.append((numbers, players, ended, known))
    numbers, players, ended, known = map(np.concatenate, zip(*straight, strict=True))
    expected = {}
    for column in range(5):
        last = None
        for row in reversed(range(len(numbers))):
            last = row if ended[row, column] else last
            if last is not None and known[last, column]:
                sign = 1 - 2 * players[row, column]
                expected[numbers[row, column]] = sign, sign * numbers[last, column]
    found = replay.returns(window)
    weights = jnp.ones((12, 5))
    drawn = replay.sample(jax.random.key(0), window, found, weights, 400)
    assert drawn.plies.final is None
    seen = set()
    for number, owned, score, is_known in zip(
        *map(np.asarray, (drawn.plies.position, drawn.final.ownership)),
        *map(np.asarray, (drawn.final.score, drawn.final.known)),
        strict=True,
    ):
        assert is_known == (number in expected)
        if is_known:
            sign, last = expected[number]
            assert score == last
            np.testing.assert_array_equal(owned, [sign, 0, -sign])
        seen.add((bool(is_known), int(number)))
    assert len(seen) == 60 and {known for known, _ in seen} == {True, False}


def test_heads_leave_the_rest_of_the_net_as_it_is():
    def make(**more):
        net = nets.make("resnet", (3, 3, 2), 10, width=8, rngs=nnx.Rngs(0), **more)
        return net, net.predict(jnp.ones((2, 3, 3, 2)))

    (plain, told), (net, more) = make(), make(auxiliary_heads=True)
    assert told.ownership_logits is None and told.score is None
    assert more.ownership_logits.shape == (2, 3, 3) and more.score.shape == (2,)
    np.testing.assert_array_equal(more.prior_logits, told.prior_logits)
    np.testing.assert_array_equal(more.value, told.value)
    assert not hasattr(plain, "score_out") and hasattr(net, "score_out")


def test_net_learns_final_boards_of_self_play():
    made = Run(**GO, auxiliary_weight=1.0)
    made.play(6)
    plies = jax.device_get(made.replay.plies)
    final, course = plies.final, plies.course
    ended = course.terminated | course.truncated
    assert final.known.any() and not (final.known & ~ended).any()
    assert (ended & ~final.known).any()  # games that were given up
    gained = course.rewards[..., 0][final.known]
    np.testing.assert_array_equal(np.sign(final.score[final.known]), gained)
    area = final.ownership.astype(int).sum(axis=(2, 3)) - 0.5
    np.testing.assert_array_equal(area[final.known], final.score[final.known])
    losses = [made.learn() for _ in range(40)]
    ownership, score = (
        np.array([float(getattr(each, name)) for each in losses])
        for name in ("ownership", "score")
    )
    assert abs(ownership[0] - np.log(2)) < 0.1
    assert ownership[-8:].mean() < ownership[:8].mean() - 0.05
    assert score[-8:].mean() < 0.9 * score[:8].mean()


def test_game_that_tells_only_the_result_is_refused(tmp_path, capsys):
    flags = ["--env", "tic_tac_toe", "--auxiliary-weight", "1"]
    assert train.main(["--run", str(tmp_path / "run"), *flags]) == 2
    error = capsys.readouterr().err
    assert "tic_tac_toe tells nothing of a final board but the result" in error
    assert error.count("\n") == 1
