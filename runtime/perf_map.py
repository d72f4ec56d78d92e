"""The file in which `perf` finds the names of functions that are in no file: `/tmp/perf-PID.map`, a line for each with its
address, its bytes and its name. Python's own support of perf writes to the same file.

Lines are added when code is mapped, of a cache too; a child of `fork` begins a file of its own, with those of its parent.
"""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

Functions = Iterable[tuple[str, int, int]]
"""Name, offset, bytes."""


class PerfMap:
    """The file of this process. It is made for this user alone, and never through a link."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.after_fork)

    @property
    def path(self) -> Path:
        """Where perf looks: the folder is the system's, whatever TMPDIR says, as perf does not ask that."""
        folder = Path("/tmp")
        return (folder if folder.is_dir() else Path(tempfile.gettempdir())) / f"perf-{os.getpid()}.map"

    def add(self, base: int, functions: Functions) -> None:
        """Name the functions of code that begins at `base`."""
        lines = [f"{base + offset:x} {nbytes:x} tosaic.{name}" for name, offset, nbytes in functions if nbytes]
        self.lines += lines
        self.write(lines)

    def write(self, lines: list[str]) -> None:
        """Put lines at the end of the file, at once. Nobody is told where that cannot be: the code runs all the same."""
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
