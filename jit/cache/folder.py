"""The folder of the cache: where it is, whether it can be trusted, reading and writing entries, and what goes when it is
full.

Nothing here fails: what the file system refuses is not there.
"""
from __future__ import annotations

import mmap
import os
import re
import stat
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple, get_args

from ...runtime.arena import Array
from .entry import Entry, Fields, packed, unpacked

Kind = Literal["code", "entry", "model", "file", "tuning"]
LIMIT = 1 << 30
"""Bytes that the folder may hold where nobody says another number."""
ABANDONED = 3600
"""Seconds after which a file that was never renamed belongs to a writer that is gone."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
PARTIAL = ".new-"
BLOCK = 4096
"""Bytes that a file takes a multiple of."""
FEW = 1024
"""An entry is large that is more than this part of the limit."""
SELDOM = 4
"""Of the 256 first bytes of a key, those whose small entries make room."""

_noted: set[str] = set()


class Usage(NamedTuple):
    """What the folder holds."""
    entries: int
    nbytes: int


class Kept(NamedTuple):
    """A file of the folder, and what it takes on the disk. `used` is when it was read or written last, in nanoseconds."""
    path: str
    nbytes: int
    used: int


class Folder(NamedTuple):
    """The cache's folder, which may not exist yet; it holds `limit` bytes at most."""
    path: str
    limit: int = LIMIT

    def read(self, kind: Kind, key: bytes) -> Entry | None:
        """The entry of that key, mapped from its file; None where there is none that is whole and this user's own."""
        path = self.file(kind, key)
        try:
            if not self.is_trusted():
                return None
            found = unpacked(mapped(path), key)
        except (OSError, ValueError):
            return None
        with suppress(OSError):
            if found is not None:
                os.utime(path)
        return found

    def write(self, kind: Kind, key: bytes, fields: Fields, arrays: Sequence[Array] = ()) -> bool:
        """Keep an entry; whether it could be. Other entries go where there is no room: looked for at every large entry, and
        at one in 64 of the others, because it takes longer than to write one."""
        parts = packed(key, fields, arrays)
        if sum(map(len, parts)) > self.limit:
            return False
        partial = os.path.join(self.path, f"{PARTIAL}{os.getpid()}-{os.urandom(8).hex()}")
        try:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(self.path, 0o700)
            if not self.is_trusted():
                return False
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSED_BY_EXEC, 0o600), "wb") as file:
                file.writelines(parts)
            os.replace(partial, self.file(kind, key))
        except OSError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(partial)
        if sum(map(len, parts)) > self.limit // FEW or key[0] < SELDOM:
            self.shrink()
        return True

    def usage(self) -> Usage:
        kept = list(self.kept())
        return Usage(len(kept), sum(k.nbytes for k in kept))

    def clear(self) -> Usage:
        """Remove all entries; what they were."""
        found = self.usage()
        for path in [*(k.path for k in self.kept()), *self.abandoned(0)]:
            with suppress(OSError):
                os.unlink(path)
        return found

    def shrink(self) -> None:
        """Remove what was not used for longest, until the rest is within the limit; and what killed writers left."""
        kept = list(self.kept())
        nbytes = sum(k.nbytes for k in kept)
        for each in sorted(kept, key=lambda k: (k.used, k.path)) if nbytes > self.limit else ():
            if nbytes <= self.limit:
                break
            nbytes -= each.nbytes
            with suppress(OSError):
                os.unlink(each.path)
        for path in list(self.abandoned(ABANDONED)):
            with suppress(OSError):
                os.unlink(path)

    def file(self, kind: Kind, key: bytes) -> str:
        return os.path.join(self.path, f"{key.hex()}.{kind}")

    def kept(self) -> Iterator[Kept]:
        """The files of entries."""
        for entry, status in self.files():
            key, _, kind = entry.partition(".")
            if len(key) == 64 and kind in get_args(Kind):
                yield Kept(os.path.join(self.path, entry), -(-status.st_size // BLOCK) * BLOCK, status.st_mtime_ns)

    def abandoned(self, seconds: float) -> Iterator[str]:
        """Files that were begun so long ago, and never renamed."""
        for entry, status in self.files():
            if entry.startswith(PARTIAL) and time.time() - status.st_mtime >= seconds:
                yield os.path.join(self.path, entry)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        with suppress(OSError):
            for name in os.listdir(self.path):
                with suppress(OSError):
                    yield name, os.lstat(os.path.join(self.path, name))

    def is_trusted(self) -> bool:
        """Whether the folder is there and nobody else can put files into it."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and is_own(self.path, status, "chmod 700")


CLOSED_BY_EXEC = getattr(os, "O_CLOEXEC", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def mapped(path: str) -> mmap.mmap:
    """A file's bytes; OSError where it is not this user's own, ValueError where it is empty."""
    descriptor = os.open(path, os.O_RDONLY | CLOSED_BY_EXEC | NO_LINK | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not is_own(path, status, "chmod 600"):
            raise PermissionError
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)


def is_own(path: str, status: os.stat_result, remedy: str) -> bool:
    """Whether a file belongs to this user and nobody else may write it; a note, once, where that is not so."""
    if not hasattr(os, "geteuid"):  # no such owners and modes on this system
        return True
    foreign, shared = status.st_uid != os.geteuid(), bool(status.st_mode & 0o022)
    if (foreign or shared) and path not in _noted:
        _noted.add(path)
        cause = "it belongs to another user" if foreign else f"other users may write to it ({remedy} changes that)"
        warnings.warn(f"tosaic takes no machine code from {path}: {cause}", RuntimeWarning, stacklevel=2)
    return not (foreign or shared)


def folder() -> Folder | None:
    """The folder as the environment says; None where the cache is off."""
    chosen = os.environ.get("TOSAIC_CACHE", "")
    if chosen.strip().lower() == "off":
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as its specification says
        base = os.path.join("~", ".cache")
    path = os.path.expanduser(chosen or os.path.join(base, "tosaic", "code"))
    return None if path.startswith("~") else Folder(os.path.abspath(path), limit())


def limit() -> int:
    """The most bytes that the folder may hold."""
    text = os.environ.get("TOSAIC_CACHE_LIMIT", "").strip().upper()
    if not text:
        return LIMIT
    found = re.fullmatch(r"([0-9]{1,15})\s*([KMG]?)(?:I?B)?", text)
    return int(found[1]) * UNITS[found[2]] if found else LIMIT
