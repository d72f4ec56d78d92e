"""The tests in the cache folder: written once for a version, a selection and a seed, by one process at a time."""
from __future__ import annotations

import hashlib
import os
import shutil
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import selection as selecting
from .environment import TOOLS, cache, locked
from .generate import generate_in_processes, operators_of
from .report import operator_of
from .selection import Selection


def selected(version: str, selection: str) -> Selection | None:
    """What the command line calls compact, ci, or all (None)."""
    return None if selection == "all" else Selection(version, selection == "ci")


WHOLE = "1/1"
"""All operators, as a part of them."""


def place(version: str, selection: str, seed: int, rotation: str = WHOLE) -> Path:
    """Where the tests are. Its name changes with the tools' version and with what is selected, so nothing old is run."""
    made_by = TOOLS.encode() + (b"" if selection == "all" else Path(selecting.__file__).read_bytes())
    part = "" if rotation == WHOLE else f"-{rotation.replace('/', 'of')}"
    return cache() / "tests" / f"{version}-{selection}-{seed}{part}-{hashlib.sha1(made_by).hexdigest()[:8]}"


def rotated(names: Sequence[str], rotation: str) -> list[str]:
    """One of n parts of the operators: every n-th of them, so that those with many tests are spread over the parts."""
    part, parts = map(int, rotation.split("/"))
    return list(names[part - 1::parts])


def suite(version: str, selection: str, seed: int, rotation: str = WHOLE) -> Path:
    """The folder of the tests, which are written if they are not there, on all processors, as whoever else wants them waits:
    all of 1.1 in a quarter of an hour (on two). What the generator cannot write is listed beside them
    (`generator_failures`)."""
    wanted = place(version, selection, seed, rotation)
    stem = wanted.name.rpartition("-")[0]
    with locked(wanted.with_name(stem)):
        if not wanted.exists():
            for old in wanted.parent.glob(f"{stem}-????????"):
                shutil.rmtree(old)
            scratch = wanted.with_name(f"{wanted.name}.partial")
            shutil.rmtree(scratch, ignore_errors=True)
            generate_in_processes(os.cpu_count() or 1, version, scratch, seed, rotated(operators_of(version), rotation),
                                  selected(version, selection))
            os.rename(scratch, wanted)
    return wanted


def choose(tests: Iterable[Path], version: str, selection: str) -> list[Path]:
    """A selection among tests that are there. A folder, an operator's tests of a size of kernel, stands for the generator's
    batches of it: in the selection for each change of the code, it has each combination of types, word and rule once."""
    chosen = selected(version, selection)
    if chosen is None:
        return list(tests)
    folders: dict[Path, list[str]] = defaultdict(list)
    for test in tests:
        folders[test.parent].append(test.name)
    return [folder / name for folder, names in folders.items()
            for name in chosen.choose(operator_of(folder / names[0]), folder.name, names)]
