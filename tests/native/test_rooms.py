"""The folders of `lowering/native` and their order, and where instructions of one family of processors are spelled."""
from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tosaic

LOWERING = Path(str(tosaic.__file__)).parent / "lowering"
NATIVE = LOWERING / "native"
MAY_IMPORT = {"llvm": set[str](), "driver": {"llvm"}, "process": {"llvm", "driver"}, "c_object": {"llvm", "driver"},
              "c_source": {"driver", "c_object", "llvm"}}
FAMILIES = {"x86": ("x86", "amx"), "aarch64": ("aarch64",)}
"""The files of `llvm` that spell intrinsics of a family."""


def imported(path: Path) -> Iterator[str]:
    """The folders of `native` that a file imports from, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            yield from [node.module.split(".")[0]] if node.module else [name.name for name in node.names]


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_those_before_it(folder: str) -> None:
    for path in sorted((NATIVE / folder).glob("*.py")):
        assert set(imported(path)) <= MAY_IMPORT[folder], path


def test_every_folder_is_in_the_order_and_says_what_it_is_for() -> None:
    assert {path.parent.name for path in NATIVE.glob("*/*.py")} == set(MAY_IMPORT)
    for path in (*NATIVE.rglob("__init__.py"), LOWERING / "machine_code" / "__init__.py"):
        text = ast.parse(path.read_text())
        assert ast.get_docstring(text) and len(text.body) == 1, path


@pytest.mark.parametrize("family", FAMILIES)
def test_intrinsics_of_a_family_of_processors_stand_in_files_of_their_own(family: str) -> None:
    own = {NATIVE / "llvm" / f"{name}.py" for name in FAMILIES[family]} | {
        LOWERING / "target" / "features.py", LOWERING / "target" / "processors.py"}
    assert {path for path in LOWERING.rglob("*.py") if re.search(rf"llvm\.{family}\.", path.read_text())} <= own


def test_machine_code_stands_below_what_it_is_made_for() -> None:
    for path in (LOWERING / "machine_code").glob("*.py"):
        levels = [(node.level, node.module or "") for node in ast.walk(ast.parse(path.read_text()))
                  if isinstance(node, ast.ImportFrom) and node.level > 1]
        assert all(level > 2 or module.startswith("target") for level, module in levels), path
