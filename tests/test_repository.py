"""Rules for the files of the repository itself."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VAGUE_NAMES = {"utils", "common", "helpers", "misc", "base2"}
MAX_LINES = 400

# Assembled from parts, so that this file does not find itself.
DOWNLOAD = re.compile(
    r"://\S+\.(whl|zip|tgz|tar\.\w+|npz|bin|ckpt|safetensors)\b"
    r"|\bgit" + r"\+https|--(extra-)?index" + r"-url|--find" + r"-links"
)
DEPRECATED_JAX = re.compile(
    r"\bpmap\b|\bPRNGKey\b|jax\.experimental\.(shard_map|maps|pjit)|\bwith mesh\b"
    r"|device_put_(replicated|sharded)|use_mesh\b|jax\.tree_(map|leaves)\b|lax\.pvary"
    r"|jax\.core\.\w+|jax\.linear_util|xla_computation|host_callback"
)


def tracked(pattern: str = "*") -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--", pattern], cwd=ROOT, capture_output=True
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listing.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def test_file_names_say_what_is_inside():
    assert not [path for path in tracked() if path.stem in VAGUE_NAMES]


def test_python_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in tracked("*.py")}
    assert not {path: n for path, n in lengths.items() if n > MAX_LINES}


def test_no_file_holds_a_download_address():
    found = {}
    for path in tracked():
        try:
            match = DOWNLOAD.search(path.read_text())
        except UnicodeDecodeError:  # a picture
            continue
        if match:
            found[path] = match[0]
    assert not found


# What a JAX release deprecates today fails at import or first call in the next.
def test_source_uses_no_deprecated_jax_names():
    found = {}
    for path in tracked("*.py"):
        if "tests" not in path.relative_to(ROOT).parts:
            found[path] = [
                match[0] for match in DEPRECATED_JAX.finditer(path.read_text())
            ]
    assert not {path: names for path, names in found.items() if names}
