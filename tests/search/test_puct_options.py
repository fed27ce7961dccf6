"""Options of `puct_policy` beyond mctx's, and the inputs that it accepts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsearch import (
    NO_ACTION,
    ConstantUrgency,
    gumbel_policy,
    mctx_gumbel_policy,
    mctx_puct_policy,
    puct_policy,
    qtransform_fixed_scale,
)
from tests.search.reference_search import Puct
from tests.search.table_model import (
    random_mask,
    random_tables,
    recurrent_fn,
    reference_search,
    root_of,
    search,
)


# AlphaGo Zero's rule, as in its pseudocode: the root starts at N = 0, so that the
# first choice is a tie, which the highest prior wins.
def test_constant_c_puct_of_each_row_is_alphago_zeros_rule():
    random = np.random.default_rng(1)
    tables = random_tables(random, 64, 5, terminals=0.1, illegal=0.2)
    illegal = random_mask(random, 64, 5)
    c_puct = np.geomspace(0.25, 8, 64).astype(np.float32)
    result = search(
        tables,
        32,
        illegal,
        c_puct=c_puct,
        qtransform=qtransform_fixed_scale,
        first_play_urgency=ConstantUrgency(-0.2),
        count_root_evaluation=False,
    )
    expected = [
        reference_search(
            tables[row],
            32,
            illegal[row],
            method=Puct(
                c_puct=float(c),
                transform="fixed_scale",
                first_play_urgency=-0.2,
                count_root_evaluation=False,
            ),
        )
        for row, c in enumerate(c_puct)
    ]
    untied = np.array([min(r.gaps[1:], default=1) > 1e-5 for r in expected])
    assert untied.mean() > 0.8
    np.testing.assert_array_equal(
        result["visit_counts"][untied],
        np.array([r.visit_counts for r in expected])[untied],
    )
    np.testing.assert_allclose(
        result["value"][untied],
        np.array([r.value for r in expected])[untied],
        atol=1e-5,
    )


# One legal action at the root, so that the node below it gets dozens of children.
def test_wide_node_is_searched_as_the_reference_does():
    with jax.enable_x64(True):
        tables = random_tables(np.random.default_rng(3), 2, 80, dtype=np.float64)
        illegal = np.arange(80)[None, :] != np.array([[7], [61]])
        result = search(tables, 75, illegal)
    for row in range(2):
        expected = reference_search(tables[row], 75, illegal[row])
        assert min(expected.gaps) > 1e-10
        np.testing.assert_allclose(result["value"][row], expected.value, atol=1e-10)


@pytest.mark.parametrize(
    "policy",
    [puct_policy, gumbel_policy, mctx_puct_policy, mctx_gumbel_policy],
    ids=lambda p: p.__name__,
)
def test_finished_root_has_no_action_and_leaves_the_others_alone(policy):
    tables = random_tables(np.random.default_rng(4), 3, 4)
    illegal = np.zeros((3, 4), bool)
    expected = search(tables, 12, illegal, policy=policy)
    illegal[1] = True
    result = search(tables, 12, illegal, policy=policy)
    assert result["action"][1] == NO_ACTION
    np.testing.assert_array_equal(result["action_weights"][1], np.zeros(4))
    for name in ("action", "action_weights", "visit_counts", "qvalues", "value"):
        np.testing.assert_array_equal(result[name][[0, 2]], expected[name][[0, 2]])
    assert not any(np.isnan(value).any() for value in result.values())
    if policy in (puct_policy, gumbel_policy):  # mctx searches it nevertheless
        np.testing.assert_array_equal(result["visit_counts"][1], np.zeros(4))
        np.testing.assert_array_equal(result["value"][1], tables.values[1, 0])


def test_embedding_may_be_a_tree_of_keys_and_small_types():
    tables = random_tables(np.random.default_rng(5), 3, 4)
    keys = jax.random.split(jax.random.key(9), 3)

    def embedded(state, key, depth):
        return {
            "state": state,
            "key": key,
            "depth": (depth, jnp.repeat(depth[:, None], 2, axis=1) > 1),
        }

    def model(tables, key, action, embedding):
        output, state = recurrent_fn(tables, key, action, embedding["state"])
        next_keys = jax.vmap(jax.random.fold_in)(embedding["key"], action)
        return output, embedded(state, next_keys, embedding["depth"][0] + 1)

    root = root_of(tables)
    root = root.replace(
        embedding=embedded(root.embedding, keys, jnp.zeros_like(keys, jnp.int8))
    )
    output = jax.jit(
        lambda: puct_policy(
            tables, jax.random.key(0), root, model, 12, dirichlet_fraction=0
        )
    )()
    tree = output.search_tree
    np.testing.assert_array_equal(
        tree.summary().visit_counts, search(tables, 12)["visit_counts"]
    )
    parents, actions = np.asarray(tree.parents), np.asarray(tree.actions)
    depth, deep = (np.asarray(x) for x in tree.embeddings["depth"])
    assert depth.dtype == np.int8
    below = jax.vmap(jax.random.fold_in, (None, 0))  # the keys of all actions
    folded = jax.vmap(jax.vmap(below, (0, None)), (0, None))(
        tree.embeddings["key"], jnp.arange(4)
    )
    folded, keys = map(jax.random.key_data, (folded, tree.embeddings["key"]))
    rows, nodes = np.mgrid[:3, 1:13]
    parent, action = parents[rows, nodes], actions[rows, nodes]
    np.testing.assert_array_equal(depth[rows, nodes], depth[rows, parent] + 1)
    np.testing.assert_array_equal(deep[..., 0], depth > 1)
    np.testing.assert_array_equal(deep[..., 1], depth > 1)
    np.testing.assert_array_equal(
        np.asarray(keys)[rows, nodes], np.asarray(folded)[rows, parent, action]
    )


def test_bfloat16_inputs_are_searched_in_float32():
    tables = random_tables(np.random.default_rng(6), 8, 5, dtype=jnp.bfloat16)
    widened = jax.tree.map(
        lambda x: x.astype(np.float32) if x.dtype == jnp.bfloat16 else x, tables
    )
    result, expected = search(tables, 24), search(widened, 24)
    for name in expected:
        assert result[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(result[name], expected[name])


def test_raw_keys_give_what_typed_keys_give():
    tables = random_tables(np.random.default_rng(7), 2, 4)
    typed = jax.random.key(3)
    run = jax.jit(
        lambda key: (
            puct_policy(
                tables, key, root_of(tables), recurrent_fn, 2, dirichlet_fraction=0
            ).action
        )
    )
    expected = run(typed)
    with jax.legacy_prng_key("allow"):
        np.testing.assert_array_equal(run(jax.random.key_data(typed)), expected)


def test_root_priors_given_as_probabilities_are_used_as_they_are():
    tables = random_tables(np.random.default_rng(4), 32, 5, terminals=0.1, illegal=0.2)
    illegal = random_mask(np.random.default_rng(5), 32, 5)
    probs = np.random.default_rng(6).dirichlet(np.ones(5), 32).astype(np.float32)
    root = root_of(tables)

    @partial(jax.jit, static_argnames="dirichlet_fraction")
    def run(root, probs, dirichlet_fraction):
        return puct_policy(
            tables,
            jax.random.key(0),
            root,
            recurrent_fn,
            8,
            illegal,
            root_prior_probs=probs,
            dirichlet_fraction=dirichlet_fraction,
        ).search_tree

    tree = run(root, probs, dirichlet_fraction=0)
    np.testing.assert_array_equal(
        tree.root_prior_probs, np.where(illegal, np.float32(0), probs)
    )
    legal_probs = np.where(illegal, 0, probs)
    legal_probs /= legal_probs.sum(axis=1, keepdims=True)
    of_logits = run(
        root.replace(prior_logits=jnp.log(legal_probs)), None, dirichlet_fraction=0
    )
    of_probs = run(root, legal_probs, dirichlet_fraction=0)
    np.testing.assert_array_equal(
        of_probs.summary().visit_counts, of_logits.summary().visit_counts
    )

    noisy = run(root, legal_probs, dirichlet_fraction=0.5).root_prior_probs
    assert not np.allclose(noisy, legal_probs, atol=0.01)
    np.testing.assert_allclose(np.sum(noisy, axis=1), 1, rtol=1e-5)
    assert np.all(np.asarray(noisy)[illegal] == 0)
