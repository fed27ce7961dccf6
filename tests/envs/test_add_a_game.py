"""The worked example of docs/add_a_game.md, run as it stands there."""

import functools
import pathlib
import re

import jax
import jax.numpy as jnp
import pytest

import envs
from jaxsearch import puct_policy, two_player_model

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "add_a_game.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)


def uniform_evaluate(params, key, states):
    shape = states.legal_action_mask.shape
    return jnp.zeros(shape), jnp.zeros(shape[0])


@pytest.fixture(scope="module")
def guide():
    """The names that the guide's code defines, after all of it has run."""
    names = {"__name__": "add_a_game"}
    for block in BLOCKS:
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


def test_guide_runs_and_its_game_passes_the_check(guide):
    assert len(BLOCKS) == 5
    assert "envs.check_env(Treblecross())" in BLOCKS[1]
    assert guide["won"].terminated
    assert "envs.check_env(MatchingPennies())" in BLOCKS[4]
    assert guide["both_chose"].terminated


# Else it could not be imported before the other games, where its name may put it.
def test_guide_s_files_take_only_the_contract_from_the_games():
    assert re.findall(r"\benvs\b.*", BLOCKS[0]) == [
        "envs.env import Env, State, Symmetries, win_rewards"
    ]
    assert re.findall(r"\benvs\b.*", BLOCKS[3]) == [
        "envs.env import win_rewards",
        "envs.simultaneous import SimultaneousEnv, SimultaneousState",
    ]


@pytest.mark.parametrize("size", [3, 4, 5, 6, 7])
def test_guide_s_game_is_won_by_the_first_but_for_six_cells(guide, size):
    # A mark next to, or one off another loses, so that a mark takes its cell and two on
    # either side: octal game 0.007 on size + 2 cells, whose nim-values
    # start 0 0 0 1 1 1 2 2 0 3 (Berlekamp, Conway and Guy, Winning Ways, chapter 4).
    env = guide["Treblecross"](size=size)
    read = functools.cache(lambda text: bool(env.from_text(text).terminated))

    @functools.cache
    def mover_wins(text):
        for cell in (cell for cell in range(size) if text[cell] == "."):
            after = text[:cell] + "X" + text[cell + 1 :]
            if read(after) or not mover_wins(after):
                return True
        return False

    assert mover_wins("." * size) == (size != 6)


# The caveat of the guide: the value is 0, as each side can show heads half of the time.
def test_tree_search_on_the_view_of_pennies_sees_losses_for_the_first(guide):
    model = two_player_model(guide["view"], uniform_evaluate)
    states = jax.tree.map(lambda leaf: leaf[None], guide["view"].init())
    root = model.root_fn(None, jax.random.key(0), states)
    result = jax.jit(lambda key: puct_policy(None, key, root, model.recurrent_fn, 256))(
        jax.random.key(1)
    )
    values = result.search_tree.summary().qvalues[0]
    assert (values < -0.8).all()


def test_guide_lists_every_member_that_a_game_writes():
    text = GUIDE.read_text()
    members = {
        *envs.Game.__annotations__,
        *envs.Env.__abstractmethods__,
        *envs.SimultaneousEnv.__abstractmethods__,
    }
    assert {"id", "history_fields", "_play", "observe", "from_text"} < members
    for name in members:
        assert f"`{name}" in text, name
