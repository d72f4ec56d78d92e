"""The separate virtual environment that holds Arm's conformance tools, made once and then found again.

`tosa-tools` pins old versions of packages that tosaic takes newer ones of, and installs generic names (`tests`,
`runner`, `generator`), so it has an environment of its own. tosaic is not installed there: `variables` puts this
checkout on Python's path, so one environment serves every checkout. Nothing here needs more than the standard
library.

Everything lies in one folder, `$TOSAIC_CONFORMANCE` or `~/.cache/tosaic/conformance`: the environment, and the tests
that `suite.py` writes.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: the folder that is the package tosaic."""

TOOLS = "tosa-tools==2026.8.0"
"""Arm's generator, reference model, verifier and runner. The one place that says which version."""

DEPENDENCIES = ("llvmlite>=0.50", "lark>=1.2", "rich>=13")
"""What tosaic needs beside what `tosa-tools` brings (numpy, ml_dtypes)."""

COMPLETE = "tosaic-conformance-complete"
"""A file in the environment, written last: without it the environment is half made, and is made again."""


class Unavailable(Exception):
    """The tools cannot be had on this machine; the message is the reason."""


def cache() -> Path:
    """The folder of the environment and of the tests."""
    chosen = os.environ.get("TOSAIC_CONFORMANCE")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "tosaic" / "conformance"


def folder() -> Path:
    """Where the environment for this Python and this version of the tools is."""
    return cache() / f"{TOOLS.replace('==', '-')}-py{sys.version_info.major}{sys.version_info.minor}"


def python() -> Path:
    """Its interpreter."""
    return folder() / "bin" / "python"


def is_inside() -> bool:
    """True if this process runs in that environment."""
    return Path(sys.prefix).resolve() == folder().resolve()


@contextlib.contextmanager
def locked(place: Path) -> Iterator[None]:
    """Alone, among all processes of this machine, in making `place`."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_name(place.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure() -> Path:
    """The environment's interpreter; made if it is not there. Raises Unavailable, with the reason."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or not platform.libc_ver()[0].startswith("glibc"):
        raise Unavailable(f"{TOOLS} exists for Linux on x86-64 with glibc alone, this is {sys.platform}, {platform.machine()}")
    place = folder()
    with locked(place):
        if not (place / COMPLETE).exists():
            make(place)
    return python()


def make(place: Path) -> None:
    """A new environment with the tools and what tosaic needs."""
    if place.is_symlink():
        raise Unavailable(f"{place} points to an environment that is not complete: it has no file {COMPLETE}")
    shutil.rmtree(place, ignore_errors=True)
    try:
        venv.create(place, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"no virtual environment can be made in {place}: {error}") from error
    command = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", TOOLS, *DEPENDENCIES]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.startswith("ERROR")] or result.stderr.splitlines()
        shutil.rmtree(place, ignore_errors=True)
        raise Unavailable(f"pip cannot install {TOOLS}: {lines[-1] if lines else f'exit status {result.returncode}'}")
    (place / COMPLETE).write_text(TOOLS + "\n")


def variables() -> dict[str, str]:
    """Environment variables with which Python finds tosaic, the package `tests.conformance`, and the systems under test."""
    link = cache() / "checkouts" / str(ROOT).strip("/").replace("/", "-") / "tosaic"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        with contextlib.suppress(FileExistsError):
            link.symlink_to(ROOT)
    paths = (link.parent, ROOT, ROOT / "tests" / "conformance" / "systems")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "TOSAIC_CONFORMANCE": str(cache()),
            "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def enter(module: str, arguments: list[str]) -> None:
    """Go on in the environment's Python as `python -m module arguments`, unless this is it already."""
    wanted = variables()
    if not is_inside() or os.environ.get("PYTHONPATH") != wanted["PYTHONPATH"]:
        interpreter = ensure()
        os.execve(interpreter, [str(interpreter), "-m", module, *arguments], wanted)


def tool(name: str) -> Path:
    """A file that the package installs beside its Python modules: `bin/NAME`. Inside the environment alone."""
    return Path(sysconfig.get_path("purelib")) / "bin" / name


if __name__ == "__main__":  # `python tests/conformance/environment.py`: have the tools, or fail with the reason
    try:
        print(ensure())
    except Unavailable as reason:
        sys.exit(f"the conformance suite cannot be had: {reason}")
