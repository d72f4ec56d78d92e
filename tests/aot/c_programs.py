"""Compiles and runs C programs that use an object file and its header."""
from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tosaic.jit.aot import Artifact

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
DIALECTS = [(compiler, f"-std={standard}") for compilers, standards in (
    (("gcc", "clang"), ("c99", "c11", "c17")), (("g++", "clang++"), ("c++11", "c++20"))) for compiler in compilers
    for standard in standards]
"""Compilers, and what they compile for."""

COMPILERS = {"c99": ["gcc", "-std=c99", *STRICT, "-Wstrict-prototypes"], "c++": ["g++", "-std=c++11", *STRICT, "-xc++"]}

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
languages = pytest.mark.parametrize("language", [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(command[0]) is None, reason=f"there is no {command[0]}"))
    for name, command in COMPILERS.items()])

dialects = pytest.mark.parametrize(("compiler", "standard"), [
    pytest.param(*dialect, id=" ".join(dialect),
                 marks=pytest.mark.skipif(shutil.which(dialect[0]) is None, reason=f"there is no {dialect[0]}"))
    for dialect in DIALECTS])


def build_in(compiler: str, standard: str, folder: Path, source: str, artifacts: Sequence[Artifact]) -> Path:
    """The program of a source, compiled by that compiler for that standard without a warning."""
    (folder / "main.c").write_text(source + "\n")
    command = [compiler, standard, *STRICT, *["-xc++"] * ("++" in standard), *(f"-I{a.header.parent}" for a in artifacts),
               str(folder / "main.c"), "-xnone", *(str(a.object) for a in artifacts), "-o", str(folder / "program")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "program"


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


def without_stack(header: str) -> str:
    """A header without its bounds of the stack, which change with LLVM."""
    return re.sub(r"(?<=_STACK_BYTES )\d+", "N", header)


def run(program: Path, data: bytes = b"") -> bytes:
    """What the program writes when it reads `data`."""
    done = subprocess.run([str(program)], input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def undefined(artifact: Artifact) -> set[str]:
    """What the object needs from elsewhere, as nm says."""
    done = subprocess.run(["nm", "-u", str(artifact.object)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if line.strip()}


@dataclass(frozen=True)
class Section:
    """A section of an object, as readelf says."""
    name: str
    type: str
    nbytes: int
    flags: str

    @property
    def is_initialised(self) -> bool:
        """True if start-up code must copy it from flash."""
        return "W" in self.flags and self.type != "NOBITS"


def sections(path: Path) -> list[Section]:
    done = subprocess.run(["readelf", "-SW", str(path)], capture_output=True, text=True, check=True)
    rows = re.findall(r"^ +\[ *\d+\] (\S+) +([A-Z_]+) +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ +([A-Za-z]*) ", done.stdout,
                      re.MULTILINE)
    assert len(rows) + 1 == int(re.findall(r"There are (\d+) section headers", done.stdout)[0])
    return [Section(name, type, int(size, 16), flags) for name, type, size, flags in rows]


def writable(path: Path) -> list[str]:
    """Symbols in sections that can be written, as readelf says."""
    numbers = {str(i) for i, s in enumerate(sections(path), 1) if "W" in s.flags}
    done = subprocess.run(["readelf", "-sW", str(path)], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r" +\d+:", line)]
    return [row[7] for row in rows if len(row) > 7 and row[6] in numbers]
