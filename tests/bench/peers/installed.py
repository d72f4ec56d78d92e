"""tosaic as an installed package is: with its modules compiled. pip does so for the peers; a checkout whose Python may write no
bytecode compiles every module again in every process, which would count as its start."""
from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from collections.abc import Mapping

PROGRAM = """
import compileall, pathlib, tosaic
home = pathlib.Path(tosaic.__file__).parent
for name in (".", "jit", "lowering", "runtime"):
    compileall.compile_dir(home / name, quiet=2, maxlevels=0 if name == "." else 10)
"""


@functools.cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Where the compiled modules lie, until this process ends."""
    return tempfile.TemporaryDirectory(prefix="tosaic-bytecode-")


@functools.cache
def compiled(environment: frozenset[tuple[str, str]]) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], env=dict(environment), check=False, stdin=subprocess.DEVNULL)


def with_bytecode(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that imports tosaic as if it were installed."""
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = {**kept, "PYTHONPYCACHEPREFIX": folder().name}
    compiled(frozenset((name, found[name]) for name in found if name in ("PATH", "HOME", "PYTHONPATH", "PYTHONPYCACHEPREFIX")))
    return found
