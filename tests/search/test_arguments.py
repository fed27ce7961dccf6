"""What does not fit together is refused, with what was got and what was expected."""

import re
from functools import partial

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


def test_lists_are_accepted():
    output = trace(invalid_actions=[[False, True]] * 3, prior_logits=[[0.0, 0.0]] * 3)
    assert output.action_weights.shape == (3, 2)
