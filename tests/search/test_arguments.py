"""What does not fit together is refused, with what was got and what was expected."""

import re
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import (
    gumbel_policy,
    mctx_gumbel_policy,
    mctx_puct_policy,
    puct_policy,
)
from jaxsearch.search.policy_names import policy_named, policy_names
from tests.search.table_model import make_tables, recurrent_fn, root_of

TABLES = make_tables([[0, 1], [1, 0]], batch_size=3)  # B = 3, A = 2


def trace(policy=puct_policy, model=recurrent_fn, num_simulations=4, **changes):
    """Traces a search; some fields of the root and the mask may be changed."""
    invalid_actions = changes.pop("invalid_actions", None)
    max_depth = changes.pop("max_depth", None)
    root = root_of(TABLES).replace(**changes)

    def run(root, invalid_actions):
        key = jax.random.key(0)
        return policy(
            TABLES, key, root, model, num_simulations, invalid_actions, max_depth
        )

    return jax.eval_shape(lambda: run(root, invalid_actions))


def refused(*parts: str):
    """A ValueError whose message holds all parts in this order."""
    return pytest.raises(ValueError, match=".*".join(map(re.escape, parts)))


def test_fitting_arguments_are_accepted():
    output = trace(invalid_actions=np.zeros((3, 2), bool), max_depth=2)
    assert output.action_weights.shape == (3, 2)


@pytest.mark.parametrize(
    "policy", [puct_policy, gumbel_policy, mctx_puct_policy, mctx_gumbel_policy]
)
@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"num_simulations": 0}, ["num_simulations", "at least 1", "got 0"]),
        ({"num_simulations": -3}, ["num_simulations", "at least 1", "got -3"]),
        ({"num_simulations": 2.5}, ["num_simulations", "whole", "got 2.5"]),
        ({"max_depth": 0}, ["max_depth", "at least 1", "got 0"]),
        (
            {"prior_logits": np.zeros(2, np.float32)},
            ["root.prior_logits", "(2,)", "[B, A]"],
        ),
        (
            {"prior_logits": np.zeros((3, 0), np.float32)},
            ["root.prior_logits", "(3, 0)", "[B, A]"],
        ),
        (
            {"value": np.zeros((3, 1), np.float32)},
            ["root.value", "(3, 1)", "expected (3,)"],
        ),
        (
            {"embedding": {"board": np.zeros((2, 5), np.int8)}},
            ["root.embedding['board']", "(2, 5)", "expected", "3"],
        ),
        (
            {"invalid_actions": np.zeros(2, bool)},
            ["invalid_actions", "(2,)", "expected (3, 2)"],
        ),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else "",
)
def test_bad_argument_is_refused(policy, changes, parts):
    with refused(*parts):
        trace(policy, **changes)


@pytest.mark.parametrize(
    ("field", "shape", "expected"),
    [
        ("prior_logits", (3, 5), "(3, 2)"),
        ("value", (3, 1), "(3,)"),
        ("reward", (), "(3,)"),
        ("discount", (1,), "(3,)"),
    ],
)
def test_bad_output_of_the_model_is_refused(field, shape, expected):
    def model(*arguments):
        output, embedding = recurrent_fn(*arguments)
        return output.replace(**{field: jnp.zeros(shape)}), embedding

    with refused("recurrent_fn returned", field, str(shape), "expected", expected):
        trace(model=model)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda state: state.astype(jnp.int16), ["int16[3]", "int32[3]"]),
        (lambda state: state[:2], ["int32[2]", "int32[3]"]),
        (lambda state: {"state": state}, ["'state'", "expected"]),
    ],
    ids=["dtype", "shape", "structure"],
)
def test_changed_embedding_is_refused(change, parts):
    def model(*arguments):
        output, embedding = recurrent_fn(*arguments)
        return output, change(embedding)

    with refused("recurrent_fn returned", "embedding", *parts):
        trace(model=model)


def test_unknown_search_is_refused_with_the_names_there_are():
    with refused(
        "unknown search 'mcts': choose one of gumbel, puct, mctx-puct, mctx-gumbel"
    ):
        policy_named("mcts")


def test_named_searches_are_the_policies():
    policies = [policy_named(name) for name in policy_names()]
    ours, theirs = [gumbel_policy, puct_policy], [mctx_puct_policy, mctx_gumbel_policy]
    assert policies == ours + theirs


def test_root_priors_of_another_shape_are_refused():
    with refused("root_prior_probs", "(3,)", "expected (3, 2)"):
        puct_policy(
            TABLES,
            jax.random.key(0),
            root_of(TABLES),
            recurrent_fn,
            4,
            root_prior_probs=jnp.ones(3),
        )


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("temperature", -1.0, "0 to inf"),
        ("temperature", float("nan"), "0 to inf"),
        ("dirichlet_fraction", 1.5, "0 to 1"),
        ("dirichlet_fraction", -0.1, "0 to 1"),
        ("dirichlet_alpha", 0, "1e-30 to 1e+30"),
        ("c_puct", -1.0, "0 to 1e+30"),
        ("c_puct", float("nan"), "0 to 1e+30"),
        ("pb_c_base", 0, "1e-30 to 1e+30"),
        ("pb_c_init", float("inf"), "0 to 1e+30"),
    ],
)
def test_number_out_of_range_is_refused(option, value, allowed):
    with refused(option, allowed, f"got {value}"):
        trace(partial(puct_policy, **{option: value}))


def test_bool_is_no_count():
    with refused("num_simulations", "whole", "got True"):
        trace(num_simulations=True)


def test_lists_and_whole_numbers_are_accepted():
    given = {
        "invalid_actions": [[False, True]] * 3,
        "prior_logits": [[0, 0]] * 3,
        "value": [0, 1, 0],
    }
    puct = partial(
        puct_policy,
        budgets=[1, 2, 3],
        c_puct=[1.0, 2.0, 3.0],
        root_prior_probs=[[0.5, 0.5]] * 3,
        temperature=[0.0, 1.0, 2.0],
    )
    gumbel = partial(gumbel_policy, gumbel_scale=[0.0, 1.0, 2.0])
    for policy in (puct, puct_policy, gumbel, mctx_puct_policy, mctx_gumbel_policy):
        assert trace(policy, **given).action_weights.shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "error", "parts"),
    [
        ({"temperature": np.ones(2)}, ValueError, "temperature has shape (2,)"),
        ({"root_prior_temperature": np.ones((3, 1))}, ValueError, "has shape (3, 1)"),
        ({"c_puct": [1.0, -1.0, 2.0]}, ValueError, "c_puct must be a number from 0"),
        ({"first_play_urgency": -1.0}, TypeError, "must be a function or None"),
        ({"variance_scaling": True}, TypeError, "must be VarianceScaling or None"),
        ({"qtransform": "fixed"}, TypeError, "qtransform must be a function"),
        ({"solve": "no"}, TypeError, "solve must be bool or None, got 'no'"),
        ({"tree": TABLES}, TypeError, "tree must be Tree or None"),
    ],
)
def test_options_of_puct_are_looked_at_before_the_search(options, error, parts):
    with pytest.raises(error, match=re.escape(parts)):
        trace(partial(puct_policy, **options))


@pytest.mark.parametrize(
    "policy", [puct_policy, gumbel_policy, mctx_puct_policy, mctx_gumbel_policy]
)
@pytest.mark.parametrize(
    ("key", "got"),
    [
        (None, "None"),
        (3, "3"),
        (np.ones(2), "an array of float64 of shape (2,)"),
        (np.zeros((4, 2), np.uint32), "an array of uint32 of shape (4, 2)"),
        (jax.random.split(jax.random.key(0)), "an array of key<fry> of shape (2,)"),
    ],
    ids=["none", "number", "floats", "raw keys", "keys"],
)
def test_what_is_not_one_key_is_refused(policy, key, got):
    message = f"rng_key is {got}, expected one key for the whole batch"
    with pytest.raises(TypeError, match=re.escape(message)):
        policy(TABLES, key, root_of(TABLES), recurrent_fn, 4)


class Output(NamedTuple):
    reward: Any
    discount: Any
    prior_logits: Any
    value: Any


# Whatever has the four fields will do, and whole numbers are numbers.
@pytest.mark.parametrize("policy", [puct_policy, gumbel_policy])
def test_model_may_return_its_own_kind_of_output(policy):
    def model(params, key, action, embedding):
        zeros = jnp.zeros(3, jnp.int32)
        return Output(
            zeros, [-1, -1, -1], jnp.zeros((3, 2), jnp.int32), zeros
        ), embedding

    assert trace(policy, model).action_weights.shape == (3, 2)
    for returned, kinds in (
        (0, "int"),
        ((0, 0), r"\['int', 'int'\]"),
        ((0, 0, 0), "tuple"),
        (None, "NoneType"),
    ):
        message = f"recurrent_fn returned {kinds}, expected a pair"
        with pytest.raises(TypeError, match=message):
            trace(policy, lambda *arguments: returned)  # noqa: B023


def test_numpy_numbers_are_numbers():
    for policy in (puct_policy, gumbel_policy, mctx_puct_policy, mctx_gumbel_policy):
        trace(policy, num_simulations=np.uint8(255))
    trace(partial(gumbel_policy, max_num_considered_actions=np.int64(1)))


@pytest.mark.parametrize("value", [1j, "0.5", {}])
def test_what_is_no_number_is_refused(value):
    for policy, name in ((puct_policy, "c_puct"), (gumbel_policy, "gumbel_scale")):
        with pytest.raises(TypeError, match=f"{name} must be a number, got"):
            trace(partial(policy, **{name: value}))


def test_list_of_traced_numbers_is_one_for_each_row():
    @jax.jit
    def search(c):
        options = {"c_puct": [c] * 3, "temperature": [c] * 3}
        return puct_policy(
            TABLES, jax.random.key(0), root_of(TABLES), recurrent_fn, 2, **options
        ).action

    assert jax.eval_shape(search, 1.0).shape == (3,)


def test_complex_and_bool_numbers_are_refused():
    for name in ("prior_logits", "value"):
        values = getattr(root_of(TABLES), name)
        for dtype in (bool, complex):
            with pytest.raises(TypeError, match=rf"root.{name} is of .*expected real"):
                trace(**{name: np.asarray(values).astype(dtype)})
    with pytest.raises(TypeError, match="root is dict, expected mctx"):
        puct_policy(TABLES, jax.random.key(0), {}, recurrent_fn, 4)  # pyright: ignore[reportArgumentType]
    with refused("max_depth", "below 2**31"):
        trace(max_depth=10**12)
