"""What a look into a source shows, before anything reads it: its first bytes, its size, and the names in an archive or a
folder. `file_kinds` tells from it what the source is."""
from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

from ...runtime.errors import Problem
from ...runtime.records import dataclass

HEAD = 1 << 12
"""Bytes that are looked at: a page, in which every mark of a kind stands."""
MOST_NAMES = 10_000
"""Names of an archive or a folder that are looked at."""
ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Glimpse:
    """`head` is the first page at most of `size` bytes; `names` are those in an archive or a folder, with slashes. `is_whole`
    is False of an archive whose table of contents cannot be read."""
    head: bytes
    size: int
    names: tuple[str, ...] = ()
    is_folder: bool = False
    is_whole: bool = True

    @property
    def text(self) -> str | None:
        """The head as text; None where it is none. A letter that the page's end cuts is left out."""
        head = self.head.removeprefix(b"\xef\xbb\xbf")
        try:
            found = head.decode()
        except UnicodeDecodeError as error:
            if self.size <= len(self.head) or error.start < len(head) - 3:
                return None
            found = head[:error.start].decode()
        return None if "\0" in found else found

    def ends_with(self, *endings: str) -> bool:
        """True if for each ending there is a name in the archive or folder that ends so."""
        return all(any(name.endswith(ending) for name in self.names) for ending in endings)

    def has(self, *names: str) -> bool:
        return set(names) <= set(self.names)


def glimpse_of_path(path: str | os.PathLike[str]) -> Glimpse:
    """A look into a folder, or into a file that can be read again."""
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
    """The look at bytes, with the names in the archive that they may be."""
    if not head.startswith(ZIP) or file is None:
        return Glimpse(head, size)
    import zipfile  # only archives need it, and what it imports
    try:
        with zipfile.ZipFile(file) as archive:
            return Glimpse(head, size, tuple(archive.namelist()[:MOST_NAMES]))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
        return Glimpse(head, size, is_whole=False)


def inside(folder: Path) -> Iterator[str]:
    """The names in a folder, with a slash behind those of folders."""
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number == MOST_NAMES:
                return
            yield entry.name + "/" * entry.is_dir()
