"""What holds for every net: shapes, types, modes, independence, clear refusals."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import nets

BOARD, ACTIONS, BATCH = (4, 5, 2), 6, 3

NETS = [
    pytest.param("mlp", {"width": 16, "depth": 3}, id="mlp"),
    pytest.param("mlp", {"width": 16, "depth": 3, "residual": True}, id="mlp-residual"),
    pytest.param("resnet", {"width": 8, "depth": 2}, id="resnet"),
]


def make(name, sizes, seed=0):
    """A net all of whose layers matter, as after some training."""
    net = nets.make(name, BOARD, ACTIONS, rngs=nnx.Rngs(seed), **sizes)
    graphdef, params = nnx.split(net)
    random = np.random.default_rng(seed)
    shaken = jax.tree.map(
        lambda x: x + 0.1 * random.standard_normal(x.shape).astype(x.dtype), params
    )
    return nnx.merge(graphdef, shaken)


def observations(seed=0):
    return jnp.asarray(np.random.default_rng(seed).random((BATCH, *BOARD)) < 0.4)


@pytest.mark.parametrize("compute", nets.net.DTYPES)
@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_outputs_have_the_promised_shapes_and_types(name, sizes, compute):
    net = make(name, {**sizes, "dtype": compute})
    for dtype in (bool, jnp.int8, jnp.float32):
        prior_logits, value = jax.eval_shape(net, observations().astype(dtype))
        assert prior_logits.shape == (BATCH, ACTIONS)
        assert value.shape == (BATCH,)
        assert prior_logits.dtype == value.dtype == jnp.float32


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_boolean_and_float_observations_give_the_same(name, sizes):
    net = make(name, sizes)
    x = observations()
    jax.tree.map(np.testing.assert_array_equal, net(x), net(x.astype(jnp.float32)))


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_all_state_is_float32_parameters(name, sizes):
    net = nets.make(name, BOARD, ACTIONS, rngs=nnx.Rngs(0), dtype="bfloat16", **sizes)
    _, params, rest = nnx.split(net, nnx.Param, ...)
    assert not jax.tree.leaves(rest)
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_new_net_is_near_uniform_and_near_zero(name, sizes):
    net = nets.make(name, BOARD, ACTIONS, rngs=nnx.Rngs(0), **sizes)
    prior_logits, value = net(observations())
    np.testing.assert_allclose(jax.nn.softmax(prior_logits), 1 / ACTIONS, atol=0.1)
    np.testing.assert_allclose(value, 0, atol=0.4)


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_batch_may_be_empty(name, sizes):
    prior_logits, value = make(name, sizes)(observations()[:0])
    assert prior_logits.shape == (0, ACTIONS)
    assert value.shape == (0,)


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_values_stay_between_minus_one_and_one(name, sizes):
    graphdef, params = nnx.split(make(name, sizes))
    huge = nnx.merge(graphdef, jax.tree.map(lambda x: 100 * x, params))
    _, value = huge(observations())
    assert float(jnp.abs(value).max()) == 1.0


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_bfloat16_stays_close_to_float32(name, sizes):
    exact = make(name, sizes)(observations())
    rounded = make(name, {**sizes, "dtype": "bfloat16"})(observations())
    for a, b in zip(exact, rounded, strict=True):
        np.testing.assert_allclose(a, b, atol=0.05)
        assert float(jnp.abs(a - b).max()) > 0


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_rows_of_a_batch_are_independent(name, sizes):
    net = make(name, sizes)
    x = observations()
    changed = x.at[0].set(~x[0])
    for before, after in zip(net(x), net(changed), strict=True):
        assert not np.allclose(before[0], after[0], atol=1e-4)
        np.testing.assert_array_equal(before[1:], after[1:])


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_weights_follow_the_key(name, sizes):
    def weights(rngs):
        net = nets.make(name, BOARD, ACTIONS, rngs=rngs, **sizes)
        return np.concatenate([x.ravel() for x in jax.tree.leaves(nnx.state(net))])

    first = weights(nnx.Rngs(1))
    np.testing.assert_array_equal(first, weights(nnx.Rngs(jax.random.key(1))))
    assert (first != weights(nnx.Rngs(2))).any()


@pytest.mark.parametrize("graph_mode", [True, False], ids=["graph", "tree"])
@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_split_net_evaluates_and_learns_under_jit_in_both_modes(
    name, sizes, graph_mode
):
    with nnx.set_graph_mode(graph_mode):
        net = nets.make(name, BOARD, ACTIONS, rngs=nnx.Rngs(0), **sizes)
        graphdef, params = nnx.split(net)
        x = observations()

        @jax.jit
        def evaluate(params):
            return nnx.merge(graphdef, params)(x)

        @jax.jit
        def learn(params):
            def loss(params):
                prior_logits, value = evaluate(params)
                return (
                    -jax.nn.log_softmax(prior_logits)[:, 0].mean()
                    + ((value - 1) ** 2).mean()
                )

            value, gradient = jax.value_and_grad(loss)(params)
            step = jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient)
            return step, value

        for eager, jitted in zip(net(x), evaluate(params), strict=True):
            np.testing.assert_allclose(eager, jitted, atol=1e-5)
        losses = []
        for _ in range(20):
            params, loss = learn(params)
            losses.append(float(loss))
        assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_every_parameter_learns(name, sizes):
    graphdef, params = nnx.split(make(name, sizes))

    def loss(params):
        prior_logits, value = nnx.merge(graphdef, params)(observations())
        return jax.nn.log_softmax(prior_logits)[:, 0].sum() + value.sum()

    for path, gradient in jax.tree.leaves_with_path(jax.grad(loss)(params)):
        assert float(jnp.abs(gradient).max()) > 0, jax.tree_util.keystr(path)


def test_sizes_are_selectable():
    def count(**sizes):
        def state():
            net = nets.make("resnet", BOARD, ACTIONS, rngs=nnx.Rngs(0), **sizes)
            return nnx.state(net)

        return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(state)))

    def conv(k, c, d):
        return k * k * c * d + d

    # 4 x 5 cells: stem, 2 blocks, policy head, value head.
    assert count(
        width=7, depth=2, policy_channels=3, value_channels=5, value_width=11
    ) == (
        conv(3, 2, 7)
        + 4 * conv(3, 7, 7)
        + 3 * 7  # norms: one a block and one before the heads
        + conv(1, 7, 3)
        + conv(1, 20 * 3, ACTIONS)
        + conv(1, 7, 5)
        + conv(1, 20 * 5, 11)
        + conv(1, 11, 1)
    )


def test_new_resnet_starts_as_its_stem_and_heads():
    net = nets.ResNet(BOARD, ACTIONS, width=8, depth=5, rngs=nnx.Rngs(0))
    whole = net(observations())
    net.blocks = nnx.List([])
    jax.tree.map(np.testing.assert_array_equal, whole, net(observations()))


def test_example_of_the_package_runs():
    code = re.findall(r"^    (.*)", nets.__doc__, re.MULTILINE)
    names = {}
    exec("\n".join(code), names)
    assert (names["prior_logits"].shape, names["value"].shape) == ((1, 7), (1,))


def test_names_lists_the_nets():
    assert nets.names() == ("mlp", "resnet")


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("transformer", {}, "unknown net 'transformer': choose one of mlp, resnet"),
        (["mlp"], {}, r"unknown net \['mlp'\]"),
        ("mlp", {"blocks": 2}, "mlp has no blocks: it takes .* width=128, depth=2"),
        ("resnet", {"residual": True}, "resnet has no residual: .* policy_channels=4"),
        ("resnet", {"width": 0}, "width is 0: give an integer of at least 1"),
        ("mlp", {"depth": -1}, "depth is -1"),
        ("resnet", {"value_width": 2.5}, "value_width is 2.5"),
        ("resnet", {"depth": True}, "depth is True"),
        ("mlp", {"dtype": "float16"}, "'float16': .* one of float32, bfloat16"),
    ],
)
def test_bad_names_and_sizes_are_refused(name, sizes, message):
    with pytest.raises(ValueError, match=message):
        nets.make(name, BOARD, ACTIONS, rngs=nnx.Rngs(0), **sizes)


def test_resnet_refuses_observations_without_a_board():
    with pytest.raises(ValueError, match=r"got \[7, 3\]: .*--net mlp$"):
        nets.make("resnet", (7, 3), ACTIONS, rngs=nnx.Rngs(0))


@pytest.mark.parametrize("shape", [BOARD, (BATCH, 4, 5, 3), (BATCH, 5, 4, 2), ()])
def test_observations_of_another_shape_are_refused(shape):
    net = nets.make("mlp", BOARD, ACTIONS, rngs=nnx.Rngs(0))
    with pytest.raises(ValueError, match=r"made for \[batch, 4, 5, 2\]"):
        net(jnp.zeros(shape))


@pytest.mark.parametrize(("name", "sizes"), NETS)
def test_value_is_the_chance_of_a_win_less_that_of_a_loss(name, sizes):
    net = nets.make(name, BOARD, ACTIONS, value_head="wdl", rngs=nnx.Rngs(0), **sizes)
    told = net.predict(observations())
    assert told.outcome_logits.shape == (len(told.value), 3)
    assert (np.ptp(told.outcome_logits, axis=1) > 0).all()
    chances = np.asarray(jax.nn.softmax(told.outcome_logits, axis=1))
    np.testing.assert_allclose(told.value, chances[:, 0] - chances[:, 2], atol=1e-6)


def test_head_that_there_is_not_is_refused():
    scalar = nets.make("mlp", BOARD, ACTIONS, rngs=nnx.Rngs(0))
    assert scalar.predict(observations()).outcome_logits is None
    with pytest.raises(ValueError, match="unknown value_head 'wld': choose one of sc"):
        nets.make("mlp", BOARD, ACTIONS, value_head="wld", rngs=nnx.Rngs(0))
