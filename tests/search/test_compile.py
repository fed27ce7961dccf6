"""A search is compiled once, and a second start takes it from JAX's cache."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

from jaxsearch import puct_policy, qtransform_fixed_scale
from tests.search.table_model import random_tables, recurrent_fn, root_of

ROOT = Path(__file__).parents[2]

# Prints the processor time that compiling takes: unlike wall time it does not depend
# on what else the machine does.
START = """
from jaxsearch import backend
backend.protect()
import time
import jax, numpy as np
from jaxsearch import puct_policy
from tests.search.table_model import make_tables, recurrent_fn, root_of
tables = make_tables([[0] * 9], batch_size=16)
search = jax.jit(lambda tables, key: puct_policy(
    tables, key, root_of(tables), recurrent_fn, 16, dirichlet_fraction=0).action)
lowered = search.lower(tables, jax.random.key(0))
start = time.process_time()
lowered.compile()
print(time.process_time() - start)
"""


def test_search_is_traced_once_for_all_values_of_its_arguments():
    traces = []

    @jax.jit
    def search(tables, key, temperature, c_puct):
        traces.append(tables.values.shape)
        output = puct_policy(
            tables,
            key,
            root_of(tables),
            recurrent_fn,
            4,
            qtransform=qtransform_fixed_scale,
            dirichlet_fraction=0,
            temperature=temperature,
            c_puct=c_puct,
        )
        return output.action

    random = np.random.default_rng(0)
    for move in range(50):
        search(random_tables(random, 2, 3), jax.random.key(move), 1.0, 1.5)
    assert len(traces) == 1
    tables = random_tables(random, 2, 3)
    search(tables, jax.random.key(99), 0.25, 1.5)
    search(tables, jax.random.key(99), 0.25, 3.0)
    assert len(traces) == 1
    search(random_tables(random, 5, 3), jax.random.key(0), 1.0, 1.5)
    assert len(traces) == 2
    assert search._cache_size() == 2


def test_second_start_compiles_faster_with_a_cache(tmp_path):
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-c", START]
    first, second = (
        float(subprocess.check_output(command, cwd=ROOT, env=environment, text=True))
        for _ in range(2)
    )
    assert second < 0.7 * first
