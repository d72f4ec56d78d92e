"""What Arm's reference model gives for a test, computed once and kept beside the test.

The model is called as Arm's runner calls it for compliance: in precise mode (floats in fp64), at level 8K. Its files
get the names that the runner gives them, so `tosa_verify` can be pointed at them by hand. What would take more than
`KEEP` bytes is computed again each time: 4 % of the tests would need three quarters of the room.
"""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environment import tool

RUNNER = "runner.tosa_refmodel_compliance_sut_run"
"""Arm's runner puts the name of the module that made a result into the result's file name."""

KEEP = 16 << 20
"""Bytes of one test's reference that are kept at most."""

TIMEOUT = 900
"""Seconds that the reference model may take for one test; the slowest of the suite takes a minute."""


class NoReference(Exception):
    """The reference model gives nothing to compare with; the message says what it said."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Files of what the reference gives for one output: results (data, then scale of a block-scaled tensor), and bounds."""
    results: tuple[Path, ...]
    bounds: tuple[Path, ...]


def stored(file: Path) -> Path:
    """The name that Arm's runner gives to a result of the reference."""
    return file.with_suffix(f".{RUNNER}{file.suffix}")


def needs_bounds(desc: dict[str, Any]) -> bool:
    """True if the verifier needs the bounds of dot products, too."""
    return bool(desc.get("test_requirements", {}).get("bounds_file_required", False))


def expected(desc: dict[str, Any], file: str, folder: Path) -> Expected:
    """What `folder` has for one output, `file` being its name in desc.json."""
    data = folder / stored(Path(file))
    scale = folder / stored(Path(file).with_stem(f"{Path(file).stem}_scale"))
    bounds = folder / stored(Path(f"bounds_{file}"))
    return Expected((data, scale) if scale.exists() else (data,), (bounds,) if needs_bounds(desc) else ())


def is_there(desc: dict[str, Any], folder: Path) -> bool:
    """True if every file of the reference is in `folder`."""
    found = [expected(desc, file, folder) for file in desc["ofm_file"]]
    return all(path.exists() for e in found for path in (*e.results, *e.bounds))


def compute(test: Path, desc: dict[str, Any], folder: Path) -> None:
    """Run the reference model on a test; its files are in `folder` afterwards. Raises NoReference."""
    command = [str(tool("tosa_reference_model")), "--tosa_level", "EIGHTK", "--operator_fbs", str(tool("tosa.fbs")),
               "--test_desc", str(test / "desc.json"), "--output_dir", str(folder), "--precise_mode=1"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise NoReference(f"the reference model takes more than {TIMEOUT} s") from None
    if result.returncode:
        raise NoReference(f"the reference model ends with status {result.returncode}: {result.stderr.strip()[-500:]}")
    for path in list(folder.glob("*.npy")):
        path.replace(stored(path))
    if not is_there(desc, folder):
        raise NoReference(f"the reference model has written {sorted(p.name for p in folder.iterdir())} alone: "
                          f"{result.stderr.strip()[-500:]}")


@contextmanager
def reference(test: Path, desc: dict[str, Any]) -> Iterator[Path]:
    """The folder with the reference's files for a positive test: the test's own, or one that goes away afterwards."""
    if is_there(desc, test):
        yield test
        return
    scratch = test / f".reference-{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        compute(test, desc, scratch)
        files = list(scratch.iterdir())
        if sum(path.stat().st_size for path in files) <= KEEP:
            for path in files:
                path.replace(test / path.name)
            yield test
        else:
            yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
