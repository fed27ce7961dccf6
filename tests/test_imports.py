"""Imports go down the house, never up, and start no JAX backend."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = ("benchmarks", "envs", "evaluate", "jaxsearch", "nets", "tests", "train")
FREE = (
    *sys.stdlib_module_names,
    *("jaxsearch.backend", "jaxsearch.keys", "jaxsearch.vector"),
)

# What a folder may import, besides FREE and itself. "*" is every other library.
ALLOWED = {
    "envs": ("numpy", "jax"),
    "nets": ("jax", "flax"),
    "jaxsearch": ("*",),
    "jaxsearch/search": ("numpy", "jax", "mctx"),
    "jaxsearch/learn": ("*", "jaxsearch.search"),
    "jaxsearch/arena": (
        *("*", "jaxsearch.search", "jaxsearch.learn"),
        "jaxsearch.program",  # train.py distill runs there
    ),
    "jaxsearch/play": ("*", "jaxsearch.search", "jaxsearch.learn", "jaxsearch.arena"),
}

# mctx runs in one file; elsewhere the search takes its types, which are interfaces.
MCTX_FILES = ("mctx_policies.py",)
MCTX_TYPES = (
    "PolicyOutput",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RootFnOutput",
    "SearchSummary",
)


@pytest.mark.parametrize("folder", ALLOWED)
def test_folder_imports_only_what_lies_below_it(folder):
    allowed = (*ALLOWED[folder], *FREE, folder.replace("/", "."))
    for path in (ROOT / folder).rglob("*.py"):
        for name, at_module_level in imports(path):
            # A game's notation may call its library inside the function that needs it.
            lazy = folder == "envs" and not at_module_level
            library = name.split(".")[0] not in PROJECT
            permitted = under(name, allowed) or (library and ("*" in allowed or lazy))
            assert permitted, f"{path.relative_to(ROOT)} imports {name}"


def test_search_takes_only_types_from_mctx():
    for path in (ROOT / "jaxsearch/search").rglob("*.py"):
        if path.name in MCTX_FILES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            used = []
            if isinstance(node, ast.ImportFrom) and under(node.module or "", ("mctx",)):
                used = [alias.name for alias in node.names]
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = [node.attr] if node.value.id == "mctx" else []
            for name in used:
                assert name in MCTX_TYPES, f"{path.name} uses mctx.{name}"


def test_importing_everything_starts_no_backend():
    program = "\n".join(
        [
            *(f"import {name}" for name in modules()),
            "from jax._src import xla_bridge",
            "raise SystemExit(xla_bridge.backends_are_initialized())",
        ]
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def under(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == p or name.startswith(p + ".") for p in prefixes)


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Names that a file imports, and whether it does so at module level."""
    tree = ast.parse(path.read_text())
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node not in inside
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node not in inside


def modules() -> list[str]:
    files = [ROOT / "train.py", ROOT / "evaluate.py"]
    for folder in ("benchmarks", "envs", "jaxsearch", "nets"):
        files += sorted((ROOT / folder).rglob("*.py"))
    dotted = (".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files)
    return [name.removesuffix(".__init__") for name in dotted]
