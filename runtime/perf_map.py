"""The file in which `perf` finds the names of functions that are in no object file: `/tmp/perf-PID.map`, a line for each with
its address, its size in bytes and its name. Python's own support of perf writes to the same file.

Lines are added when code is mapped, including code from a cache; a child of `fork` begins a file of its own, with the lines of
its parent.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

Functions = Iterable[tuple[str, int, int]]
"""Name, offset, bytes."""


class PerfMap:
    """The file of this process. It is created with permissions for this user only, and never through a link."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.after_fork)

    @property
    def path(self) -> Path:
        """Path of the file, in the folder that perf reads: always the system's, because perf ignores TMPDIR."""
        folder = Path("/tmp")
        return (folder if folder.is_dir() else Path(tempfile.gettempdir())) / f"perf-{os.getpid()}.map"

    def add(self, base: int, functions: Functions) -> None:
        """Add the functions of code that begins at `base`."""
        lines = [f"{base + offset:x} {nbytes:x} tosaic.{name}" for name, offset, nbytes in functions if nbytes]
        self.lines += lines
        self.write(lines)

    def write(self, lines: list[str]) -> None:
        """Append lines to the file, in one write. Errors are ignored: the code runs without the file, too."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        try:
            file = os.open(self.path, flags, 0o600)
        except OSError:
            return
        try:
            os.write(file, "".join(f"{line}\n" for line in lines).encode())
        finally:
            os.close(file)

    def after_fork(self) -> None:
        if self.lines:
            self.write(self.lines)


process = PerfMap()
