"""Type check and lint of the whole source, as tests."""
from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed (the extra `test` has it)")
def test_types_are_right(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tosaic").symlink_to(ROOT)  # the repository is the package, whatever its folder is called
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "tosaic.jit", "-p",
               "tosaic.lowering", "-p", "tosaic.runtime", "-m", "tosaic.tests.project.every_public_name", "--cache-dir",
               str(ROOT / ".mypy_cache")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path,
                            env={**os.environ, "MYPYPATH": str(tmp_path)})
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed (the extra `test` has it)")
def test_lint_finds_nothing() -> None:
    result = subprocess.run([sys.executable, "-m", "ruff", "check", str(ROOT)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
