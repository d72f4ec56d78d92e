"""What a start imports: a module too many is the first that a user waits for, and no other test would see it."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .models import ADD

MODEL = "import tosaic, numpy as np; tosaic.load('add.mlir')(np.ones(4, np.float32))"
FUNCTION = """import tosaic, numpy as np
@tosaic.jit
def double(x): return x * 2
double(np.ones(4, np.float32))"""
SHOWN = "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
MOST_OF_A_MODEL, MOST_OF_A_FUNCTION = 55, 190
"""Modules of tosaic that a second start may import."""
UNUSED = {"llvmlite", "lark", "zipfile", "hashlib", "importlib.metadata", "email", "subprocess", "tempfile", "argparse"}
"""What a second start has no use for."""


def imported(folder: Path, code: str) -> set[str]:
    """The modules of a process that runs some code in a folder, in which its cache is."""
    path = folder / "program.py"
    path.write_text(code + SHOWN)
    (folder / "add.mlir").write_text(ADD)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "TOSAIC_CACHE": str(folder / "cache")})
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(("code", "most"), [(MODEL, MOST_OF_A_MODEL), (FUNCTION, MOST_OF_A_FUNCTION)],
                         ids=["model", "function"])
def test_a_second_start_imports_few_modules(tmp_path: Path, code: str, most: int) -> None:
    first, second = imported(tmp_path, code), imported(tmp_path, code)
    assert "llvmlite" in first and "importlib.metadata" not in first
    own = sorted(m for m in second if m.startswith("tosaic."))
    assert len(own) <= most, own
    assert not second & UNUSED - imported(tmp_path, "import numpy")


def test_the_command_line_shows_its_version_and_help_without_numpy(tmp_path: Path) -> None:
    for option in ("--version", "--help"):
        found = imported(tmp_path, f"import contextlib, io, tosaic.jit.command_line.cli as cli\n"
                                   f"with contextlib.redirect_stdout(io.StringIO()): assert cli.main(['{option}']) == 0")
        assert "argparse" in found and not found & {"numpy", "llvmlite", "tosaic.lowering.pipeline", "tomllib"}
