"""Small runs of training, and what came of them."""

import re

import jax
import numpy as np

import train
from jaxsearch.learn.checkpoint import Checkpoints
from jaxsearch.learn.programs import make_programs
from jaxsearch.learn.run_folder import RunFolder

SMALL = [
    *("--env", "tic_tac_toe", "--net", "mlp", "--width", "16", "--depth", "1"),
    *("--search", "puct", "--simulations", "4", "--games", "8", "--plies", "4"),
    *("--batch", "16", "--updates", "2", "--positions", "256", "--no-evaluate"),
    *("--devices", "1", "--sample-every", "0"),
]
TIMED = re.compile("^seconds$|_per_second$|^(search|net|learning)_share$")


def iterations_of(run):
    return [metrics["iteration"] for metrics in RunFolder(run).read_metrics()]


def curve_of(run):
    """The metrics without what hangs on the clock."""
    return [
        {name: m[name] for name in m if not TIMED.search(name)}
        for m in RunFolder(run).read_metrics()
    ]


def last_state(run):
    """The parts of a run's newest checkpoint, apart from the time that it took."""
    agent = train.make_agent(RunFolder(run).read_config(train.Config))
    programs = make_programs(agent.config, agent.env, agent.net, agent.evaluate)
    state, replay = programs.start(agent.params), programs.start_replay(agent.params)
    with Checkpoints(run / "checkpoints", agent.config.lasting()) as checkpoints:
        step, parts, damaged = checkpoints.load_newest(
            agent=agent.params, state=state, replay=replay
        )
    assert not damaged
    seconds = parts["state"].seconds
    leaves = [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(parts)
        if leaf is not seconds
    ]
    return step, leaves


def assert_same_state(one, other):
    (step, leaves), (other_step, other_leaves) = last_state(one), last_state(other)
    assert step == other_step
    assert len(leaves) == len(other_leaves) > 30
    for (path, x), (other_path, y) in zip(leaves, other_leaves, strict=True):
        assert path == other_path
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y, err_msg=path)
