"""Signs, discounts and masks of `two_player_model`, on a game small enough to check.

    0 (A moves) --a0, A gets 0.5--> 1 (B moves) --a0--> 3: B wins
                                                --a1--> 4: draw
                --a1--------------> 2 (A moves again) --a0--> 5: A wins
                                                      --a1--> 6: stopped, A gets 0.25

At position 1 action 1 is illegal.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import puct_policy, two_player_model

NEXT = np.array([[1, 2], [3, 4], [5, 6], [3, 3], [4, 4], [5, 5], [6, 6]])
MOVER = np.array([0, 1, 0, 0, 1, 1, 1])
REWARD_OF_A = np.array([[0.5, 0], [-1, 0], [1, 0.25], [0, 0], [0, 0], [0, 0], [0, 0]])
LEGAL = np.array([[1, 1], [1, 0], [1, 1], [0, 0], [0, 0], [0, 0], [0, 0]], bool)
TERMINATED = np.array([0, 0, 0, 1, 1, 1, 0], bool)
TRUNCATED = np.array([0, 0, 0, 0, 0, 0, 1], bool)
VALUES = np.array([0.1, 0.2, 0.3, np.nan, np.nan, np.nan, np.nan], np.float32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    position: jax.Array  # int32
    current_player: jax.Array  # int32
    legal_action_mask: jax.Array  # [A] bool
    rewards: jax.Array  # [P] float32
    terminated: jax.Array  # bool
    truncated: jax.Array  # bool


class SevenPositions:
    id = "seven_positions"
    num_players = 2
    num_actions = 2

    def at(self, position, reward_of_a=0.0):
        def look_up(table):
            return jnp.asarray(table)[position]

        return State(
            position=jnp.int32(position),
            current_player=look_up(MOVER).astype(jnp.int32),
            legal_action_mask=look_up(LEGAL),
            rewards=jnp.array([1.0, -1.0]) * reward_of_a,
            terminated=look_up(TERMINATED),
            truncated=look_up(TRUNCATED),
        )

    def step(self, state, action, key=None):
        next_position = jnp.asarray(NEXT)[state.position, action]
        return self.at(next_position, jnp.asarray(REWARD_OF_A)[state.position, action])


def evaluate(params, key, states):
    del key
    return jnp.zeros(states.legal_action_mask.shape) + params, jax.vmap(
        lambda position: jnp.asarray(VALUES)[position]
    )(states.position)


ENV = SevenPositions()
MODEL = two_player_model(ENV, evaluate)


def states_at(positions):
    return jax.vmap(ENV.at)(jnp.array(positions))


@pytest.mark.parametrize(
    ("position", "action", "reward", "discount"),
    [
        (0, 0, 0.5, -1),  # the opponent moves next
        (0, 1, 0, 1),  # the same player moves again
        (1, 0, 1, 0),  # B wins: +1 for B, who moved
        (1, 1, 0, 0),  # a draw
        (2, 0, 1, 0),  # A wins
        (2, 1, 0.25, 0),  # stopped by a move cap
    ],
)
def test_rewards_and_discounts_are_the_movers(position, action, reward, discount):
    output, states = MODEL.recurrent_fn(
        0.0, None, jnp.array([action]), states_at([position])
    )
    assert states.position[0] == NEXT[position, action]
    np.testing.assert_array_equal(output.reward, [reward])
    np.testing.assert_array_equal(output.discount, [discount])
    np.testing.assert_array_equal(output.value, VALUES[NEXT[position, action]])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_illegal_actions_get_the_lowest_logit(dtype):
    def evaluate_in_dtype(params, key, states):
        prior_logits, value = evaluate(params, key, states)
        return prior_logits.astype(dtype), value.astype(dtype)

    model = two_player_model(ENV, evaluate_in_dtype)
    root = model.root_fn(2.0, None, states_at([0, 1]))
    output, _ = model.recurrent_fn(2.0, None, jnp.array([0]), states_at([0]))
    lowest = jnp.finfo(dtype).min
    np.testing.assert_array_equal(root.prior_logits, [[2, 2], [2, lowest]])
    np.testing.assert_array_equal(output.prior_logits, [[2, lowest]])
    assert {leaf.dtype for leaf in output.values()} == {jnp.dtype(dtype)}


# A move of A at 0 is worth: a0  0.5 - 1 = -0.5, for B then wins;
#                            a1  at best 1, for A moves again and wins.
def test_search_finds_the_win_of_the_player_who_moves_twice():
    @jax.jit
    def run(states):
        return puct_policy(
            0.0,
            jax.random.key(0),
            MODEL.root_fn(0.0, jax.random.key(0), states),
            MODEL.recurrent_fn,
            200,
            ~states.legal_action_mask,
            dirichlet_fraction=0,
            temperature=0,
        )

    output = run(states_at([0, 1, 2, 3]))
    np.testing.assert_array_equal(output.action, [1, 0, 0, -1])
    summary = output.search_tree.summary()
    qvalues, value = np.asarray(summary.qvalues), np.asarray(summary.value)
    # a0 at 0: visited n times, once with the value of position 1, then with B's win.
    n = summary.visit_counts[0, 0]
    np.testing.assert_allclose(qvalues[0, 0], 0.5 - (0.2 + (n - 1)) / n, rtol=1e-5)
    assert 0.9 < qvalues[0, 1] <= 1
    np.testing.assert_array_equal(qvalues[1], [1, 0])
    np.testing.assert_array_equal(qvalues[2], [1, 0.25])
    np.testing.assert_allclose(value[1], (0.2 + 200) / 201, rtol=1e-5)
    np.testing.assert_array_equal(output.action_weights[3], [0, 0])


def test_game_of_three_players_is_refused():
    class ThreePlayers(SevenPositions):
        id = "three_players"
        num_players = 3

    with pytest.raises(ValueError, match="game of 2 players, three_players has 3"):
        two_player_model(ThreePlayers(), evaluate)
