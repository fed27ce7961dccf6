"""The backend guard against JAX's known wrong case, and the choice of a device."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jaxsearch import backend

ROOT = Path(__file__).parents[1]
FUSION = "--xla_cpu_experimental_ynn_fusion_type"
ORDER = "--xla_cpu_enable_concurrency_optimized_scheduler"

# Prints how many of 40,001 sums of squares of a matrix-vector product are wrong.
KNOWN_WRONG_CASE = """
import jax, jax.numpy as jnp, numpy as np
random = np.random.default_rng(0)
matrix = random.standard_normal((3, 3)).astype(np.float32)
rows = random.standard_normal((40_001, 3)).astype(np.float32)
got = jax.jit(jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2)))(rows)
expected = ((rows.astype(np.float64) @ matrix.T.astype(np.float64)) ** 2).sum(axis=1)
print((~np.isclose(got, expected, rtol=1e-3, atol=1e-3)).sum())
"""


def run(program: str) -> str:
    """Runs a program in a fresh process without this session's XLA flags."""
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    environment["JAX_PLATFORMS"] = "cpu"
    command = [sys.executable, "-c", program]
    return subprocess.check_output(command, cwd=ROOT, env=environment, text=True)


@pytest.fixture
def not_started(monkeypatch):
    monkeypatch.setattr(backend, "_backend_started", lambda: False)


@pytest.mark.skipif(
    importlib.metadata.version("jaxlib") != "0.10.2",
    reason="only jaxlib 0.10.2 is known to have the fault",
)
def test_unprotected_backend_is_wrong():
    assert int(run(KNOWN_WRONG_CASE)) > 1000


def test_protected_backend_is_right():
    protect = "from jaxsearch import backend; backend.protect()"
    assert int(run(protect + KNOWN_WRONG_CASE)) == 0


def test_protect_imports_no_jax():
    path = str(ROOT / "jaxsearch" / "backend.py")
    program = f"import runpy, sys; runpy.run_path({path!r})['protect']()"
    assert run(program + "; print('jax' in sys.modules)").strip() == "False"


def test_protect_adds_its_flags_once_to_the_flags_of_the_user(monkeypatch, not_started):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    backend.protect()
    backend.protect()
    assert os.environ["XLA_FLAGS"] == f"--xla_dump_to=here {FUSION}= {ORDER}=false"


def test_protect_keeps_the_choice_of_the_user(monkeypatch, not_started):
    monkeypatch.setenv("XLA_FLAGS", f"{FUSION}=1")
    backend.protect()
    assert os.environ["XLA_FLAGS"] == f"{FUSION}=1 {ORDER}=false"


def test_protect_leaves_an_unknown_jaxlib_alone(monkeypatch, not_started):
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.99.0")
    backend.protect()
    assert "XLA_FLAGS" not in os.environ


def test_protect_warns_when_jax_has_started(monkeypatch):
    jax.devices()
    monkeypatch.delenv("XLA_FLAGS")
    with pytest.warns(RuntimeWarning, match="already started"):
        backend.protect()
    assert "XLA_FLAGS" not in os.environ


@pytest.mark.parametrize("platform", ["auto", "cpu"])
def test_select_accepts_what_is_there(platform):
    backend.select(platform)
    assert jax.default_backend() == "cpu"


# A GPU that is asked for and is not there stops with a hint, never a slow run.
@pytest.mark.parametrize(("platform", "extra"), [("gpu", "cuda"), ("tpu", "tpu")])
def test_select_refuses_an_absent_device_with_a_hint(monkeypatch, platform, extra):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    with pytest.raises(ValueError) as error:
        backend.select(platform)
    message = str(error.value)
    assert f"asked for device '{platform}'" in message
    assert "sees are: cpu;" in message
    command = f'pip install -e ".[{extra}]" --constraint constraints.txt'
    assert message.endswith(f".venv/bin/python -m {command}")
    assert f".venv/bin/python -m {command}" in (ROOT / "README.md").read_text()
    assert "JAX_PLATFORMS" not in message
    assert "\n" not in message


def test_select_names_the_variable_that_hides_devices(monkeypatch):
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    with pytest.raises(ValueError, match=r"unset JAX_PLATFORMS \(now cpu\)"):
        backend.select("gpu")


def test_select_refuses_an_unknown_name():
    with pytest.raises(ValueError, match="'cuda': choose one of auto, cpu, gpu, tpu"):
        backend.select("cuda")


def test_describe_names_backend_devices_and_versions():
    line = backend.describe()
    assert line.startswith("backend cpu, 8 devices (cpu), jax ")
    assert f"jaxlib {importlib.metadata.version('jaxlib')}" in line
    assert "\n" not in line
