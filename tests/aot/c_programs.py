"""Compiles and runs C programs that use an object file and its header."""
from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tosaic.jit.aot import Artifact

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
COMPILERS = {"c99": ["gcc", "-std=c99", *STRICT, "-Wstrict-prototypes"], "c++": ["g++", "-std=c++11", *STRICT, "-xc++"]}

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
languages = pytest.mark.parametrize("language", [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(command[0]) is None, reason=f"there is no {command[0]}"))
    for name, command in COMPILERS.items()])


def build(folder: Path, source: str, artifacts: Sequence[Artifact], language: str = "c99",
          flags: Sequence[str] = ()) -> Path:
    """The program of a C source that is linked with the objects."""
    (folder / "main.c").write_text(source)
    program = folder / "program"
    command = [*COMPILERS[language], *flags, "-I", str(artifacts[0].header.parent), str(folder / "main.c"), "-xnone",
               *(str(a.object) for a in artifacts), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, data: bytes = b"") -> bytes:
    """What the program writes when it reads `data`."""
    done = subprocess.run([str(program)], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def undefined(artifact: Artifact) -> set[str]:
    """What the object needs from elsewhere, as nm says."""
    done = subprocess.run(["nm", "-u", str(artifact.object)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if line.strip()}
