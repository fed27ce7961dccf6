"""A strict session: a guarded backend, eight devices, no silent conversions.

What was compiled once is kept for the other tests and their programs.
"""

import atexit
import importlib.metadata
import os
import shutil
import tempfile
from pathlib import Path

import pytest

if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # JAX reads it when it is imported
    compiled = tempfile.mkdtemp(prefix="jaxsearch-compiled-")
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"

# Most of a test's time is compiling. Without LLVM's optimisation and with XLA's older
# code for fusions it takes a quarter. benchmarks.check runs with what users have, and
# `XLA_FLAGS=--xla_backend_optimization_level=3 pytest` runs all tests so.
if "--xla_backend_optimization_level" not in os.environ.get("XLA_FLAGS", ""):
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=0"]
    if importlib.metadata.version("jaxlib") < "0.12":  # which does not know the flag
        flags.append("--xla_cpu_use_fusion_emitters=false")
    os.environ["XLA_FLAGS"] = " ".join(flags)

from jaxsearch import backend

backend.protect()

import jax  # noqa: E402

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Raw uint32 keys may be made and passed on, but drawing from one is an error; a test
# of raw keys, or of pgx, says `with jax.legacy_prng_key("allow"):`.
jax.config.update("jax_legacy_prng_key", "error")

_MOST_MAPS = 30_000  # Linux lets a process have 65,530, and XLA crashes beyond


@pytest.fixture(autouse=True, scope="module")
def few_compiled_programs():
    """Drops compiled programs when they have become many: each holds memory maps."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > _MOST_MAPS:
        jax.clear_caches()
