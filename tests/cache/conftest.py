"""A cache of its own for each test, and other processes that use it."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tosaic.jit.cache.folder import Folder

SCENARIOS = Path(__file__).with_name("scenarios.py")

Process = Callable[..., dict[str, Any]]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """The cache of this process, on and empty."""
    path = tmp_path / "cache"
    monkeypatch.setenv("TOSAIC_CACHE", str(path))
    return Folder(str(path))


def run_scenarios(folder: Path, *names: str, **environment: str) -> dict[str, Any]:
    """Run functions of `scenarios.py`, all of them if none is named, in a new process that works in a folder and has its
    cache there: their answers by name."""
    result = subprocess.run([sys.executable, str(SCENARIOS), *names], capture_output=True, text=True, cwd=folder,
                            env={**os.environ, "TOSAIC_CACHE": str(folder / "cache"), **environment}, timeout=600)
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


@pytest.fixture
def process(cache: Folder, tmp_path: Path) -> Process:
    """`run_scenarios` with this test's cache."""
    return lambda *names, **environment: run_scenarios(tmp_path, *names, **environment)


def files(cache: Folder, kind: str = "*") -> list[Path]:
    """The entries of a kind."""
    return sorted(Path(cache.path).glob(f"*.{kind}"))
