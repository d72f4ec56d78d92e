"""What the tests of projects share: projects made, their examples compiled and run, commands that must succeed."""
from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[2] / "samples"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1")


def needs(*commands: str) -> pytest.MarkDecorator:
    """A mark that skips a test where a command is not installed."""
    missing = [c for c in commands if shutil.which(c) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def succeed(*command: str | Path, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints; it must end with 0."""
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def compiled_example(project: Path, flags: Sequence[str] = ()) -> Path:
    """The example of a project for make or CMake, compiled by gcc in one command without a warning."""
    program = project / "example" / "program"
    objects = [*project.glob("src/*.o"), *project.glob("src/*.c"), *project.glob("example/*.c")]
    succeed("gcc", *STRICT, *flags, f"-I{project / 'include'}", *objects, "-lm", "-o", program)
    return program


def said_by(program: Path) -> tuple[str, int]:
    """What an example says, and how it ends."""
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=300)
    return done.stdout, done.returncode
