"""The shape of the repository: packages, the direction of imports, what importing costs."""
from __future__ import annotations

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
LAYERS = {"runtime": 1, "lowering": 2, "jit": 3}
SOURCES = sorted(p for layer in LAYERS for p in (ROOT / layer).rglob("*.py"))


def imported(path: pathlib.Path) -> set[str]:
    """Top-level folders that a module imports from, its own package's relative imports resolved."""
    here = path.relative_to(ROOT).parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[:len(here) - node.level]
            target = (*base, *(node.module or "").split("."))
            found.add(target[0])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tosaic."):
            found.add(node.module.split(".")[1])
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_from_jit_to_lowering_to_runtime(path: pathlib.Path) -> None:
    layer = LAYERS[path.relative_to(ROOT).parts[0]]
    assert all(LAYERS[other] <= layer for other in imported(path) if other in LAYERS)


def test_every_folder_of_the_source_is_a_package() -> None:
    folders = {p.parent for p in SOURCES}
    assert [f for f in folders if not (f / "__init__.py").is_file()] == []


def test_importing_tosaic_loads_none_of_the_heavy_packages() -> None:
    code = ("import sys, tosaic; tosaic.jit, tosaic.Problem; "
            "print(*sorted({'llvmlite', 'lark', 'rich', 'ml_dtypes'} & set(sys.modules)))")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert result.stdout.strip() == ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_begins_by_saying_what_it_is(path: pathlib.Path) -> None:
    text = path.read_text()
    assert not text.strip() or ast.get_docstring(ast.parse(text))
