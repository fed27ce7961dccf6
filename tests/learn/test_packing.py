"""States come out of the replay as they went in, in less memory."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from jaxsearch.learn.packing import Packing


@pytest.mark.parametrize("name", ["connect_four", "nim", "tic_tac_toe"])
def test_unpacked_state_is_the_one_that_was_packed(name):
    env = envs.make(name)
    packing, state = Packing(env), env.init()
    for _ in range(4):
        action = np.flatnonzero(state.legal_action_mask)[0]
        state = env.step(state, action)
        packed = jax.jit(packing.pack)(state)
        again = jax.jit(packing.unpack)(packed)
        jax.tree.map(np.testing.assert_array_equal, again, state)
        for leaf, expected in zip(*map(jax.tree.leaves, (again, state)), strict=True):
            assert leaf.dtype == expected.dtype
    bits = packed.legal_action_mask
    assert bits.dtype == np.uint8 and len(bits) == -(-env.num_actions // 8)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Remembering(envs.TicTacToeState):
    earlier: jax.Array  # [9, 9] int8


class WithHistory(envs.TicTacToe):
    history_fields = ("earlier",)

    def init(self, key=None):
        state = super().init(key)
        fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)}
        return Remembering(**fields, earlier=jnp.full((9, 9), -1, jnp.int8))


def test_history_is_left_out_and_comes_back_as_that_of_a_new_game():
    env = WithHistory()
    state = dataclasses.replace(env.init(), earlier=jnp.ones((9, 9), jnp.int8))
    packing = Packing(env)
    packed = packing.pack(state)
    assert packed.earlier is None
    again = packing.unpack(packed)
    np.testing.assert_array_equal(again.earlier, env.init().earlier)
    np.testing.assert_array_equal(again.board, state.board)
