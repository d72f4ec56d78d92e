"""The properties of a source before anything reads it: its first bytes, its size, and the names in an archive or a folder.
`file_kinds` derives the kind of the source from them."""
from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from ...runtime.errors import Problem
from ...runtime.records import dataclass

HEAD = 1 << 12
"""Number of bytes to look at: a page, which contains every mark of a kind."""
MOST_NAMES = 10_000
"""Maximum number of names of an archive or a folder to look at."""
ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A look at a source: `head` is the first of its `size` bytes, at most a page; `names` are those in an archive or a folder,
    with slashes. `is_whole` is False for an archive whose table of contents cannot be read."""
    head: bytes
    size: int
    names: tuple[str, ...] = ()
    is_folder: bool = False
    is_whole: bool = True

    @property
    def text(self) -> str | None:
        """The head as text; None if it is not text. A character that the page's end cuts is omitted."""
        head = self.head.removeprefix(b"\xef\xbb\xbf")
        try:
            found = head.decode()
        except UnicodeDecodeError as error:
            if self.size <= len(self.head) or error.start < len(head) - 3:
                return None
            found = head[:error.start].decode()
        return None if "\0" in found else found

    def ends_with(self, *endings: str) -> bool:
        """True if for each ending the archive or folder has a name with this ending."""
        return all(any(name.endswith(ending) for name in self.names) for ending in endings)

    def has(self, *names: str) -> bool:
        return set(names) <= set(self.names)


def glimpse_of_path(path: str | os.PathLike[str]) -> Glimpse:
    """Return a glimpse of a folder, or of a file that can be read again."""
    try:
        if os.path.isdir(path):
            return Glimpse(b"", 0, tuple(sorted(inside(Path(path)))), True)
        with open(path, "rb") as file:
            head, size = file.read(HEAD), os.fstat(file.fileno()).st_size
            return with_names(head, size, file)
    except (OSError, ValueError) as error:
        raise Problem(f"{os.fspath(path)} cannot be read: {getattr(error, 'strerror', None) or error}", kind="file") from None


def glimpse_of_bytes(data: bytes | memoryview) -> Glimpse:
    head = bytes(data[:HEAD])
    return with_names(head, len(data), io.BytesIO(data) if head.startswith(ZIP) else None)


def with_names(head: bytes, size: int, file: io.BufferedIOBase | None) -> Glimpse:
    """Return the glimpse of bytes, with the names in the archive if they are one."""
    if not head.startswith(ZIP) or file is None:
        return Glimpse(head, size)
    import zipfile  # only archives need it, and what it imports
    try:
        with zipfile.ZipFile(file) as archive:
            return Glimpse(head, size, tuple(archive.namelist()[:MOST_NAMES]))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
        return Glimpse(head, size, is_whole=False)


def inside(folder: Path) -> Iterator[str]:
    """Yield the names in a folder, with a slash after those of folders."""
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number == MOST_NAMES:
                return
            yield entry.name + "/" * entry.is_dir()
