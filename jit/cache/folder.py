"""The folder of the cache: where it is, whether it can be trusted, reading and writing entries, and what goes when it is
full.

Nothing here fails: what the file system refuses is not there.
"""
from __future__ import annotations

import functools
import mmap
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args

from ...runtime.arena import Array
from ...runtime.errors import printable
from ...runtime.machine_code import is_debugged
from .entry_file import CacheEntry, Fields, deserialised, serialised

Kind = Literal["code", "entry", "model", "file", "tuning", "known", "interface"]
LIMIT = 1 << 30
"""Bytes that the folder may hold where nobody says another number."""
ABANDONED = 3600
"""Seconds after which a file that was never renamed belongs to a writer that is gone."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
PARTIAL = ".new-"
LARGE_ENTRY_BYTES = 1 << 20
"""Bytes of an entry from which its constants are not read only to see that they are what they were."""
TOUCH_SECONDS = 3600
"""Seconds that the time of an entry's last use may be late."""
BLOCK_BYTES = 4096
"""Bytes that a file takes a multiple of."""
LARGE_ENTRY_DIVISOR = 1024
"""An entry is large that is more than this part of the limit."""
SHRINKING_FIRST_BYTES = 4
"""Of the 256 first bytes of a key, those whose small entries make room."""

_noted: set[str] = set()


class Usage(NamedTuple):
    """What the folder holds."""
    entries: int
    nbytes: int


class CachedFile(NamedTuple):
    """A file of the folder, and what it takes on the disk. `used` is when it was read or written last, in nanoseconds."""
    path: str
    nbytes: int
    used: int


class Folder(NamedTuple):
    """The cache's folder, which may not exist yet; it holds `limit` bytes at most."""
    path: str
    limit: int = LIMIT

    def read(self, kind: Kind, key: bytes) -> CacheEntry | None:
        """The entry of that key, mapped from its file; None where there is none that is whole and this user's own."""
        path = self.file(kind, key)
        try:
            if not self.is_trusted():
                return None
            data, status = mapped(path)
            is_known = status.st_size >= LARGE_ENTRY_BYTES and self.knows(key, status)
            found = deserialised(data, key, is_known)
        except (OSError, ValueError):
            return None
        if found is not None:
            self.note_use(path, key, status, is_known)
        return found

    def note_use(self, path: str, key: bytes, status: os.stat_result, is_known: bool) -> None:
        """That a file has been used, and, of a large one, that it is what was written."""
        with suppress(OSError):
            if is_touched := time.time() - status.st_mtime > TOUCH_SECONDS:
                os.utime(path)
            if status.st_size >= LARGE_ENTRY_BYTES and (is_touched or not is_known):
                now = os.stat(path)
                if (now.st_dev, now.st_ino, now.st_size) == (status.st_dev, status.st_ino, status.st_size):
                    self.remember(key, now)

    def knows(self, key: bytes, status: os.stat_result) -> bool:
        """True if a large file is the one that has been written or read whole since the system was started, by its identity,
        size and times, as git does. So a change by whatever writes files, and a crash, lead to another look."""
        stamp = stamp_of(status)
        found = self.read("known", key) if stamp else None
        return found is not None and found.fields["stamp"] == stamp

    def remember(self, key: bytes, status: os.stat_result) -> None:
        stamp = stamp_of(status)
        if stamp:
            self.write("known", key, {"stamp": stamp})

    def write(self, kind: Kind, key: bytes, fields: Fields, arrays: Sequence[Array] = ()) -> bool:
        """Keep an entry; whether it could be. Other entries go where there is no room: looked for at every large entry, and
        at one in 64 of the others, because it takes longer than to write one."""
        parts = serialised(key, fields, arrays)
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
                written = os.fstat(file.fileno()).st_ino
            os.replace(partial, self.file(kind, key))
            if sum(map(len, parts)) >= LARGE_ENTRY_BYTES and (status := os.stat(self.file(kind, key))).st_ino == written:
                self.remember(key, status)
        except OSError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(partial)
        if sum(map(len, parts)) > self.limit // LARGE_ENTRY_DIVISOR or key[0] < SHRINKING_FIRST_BYTES:
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

    def kept(self) -> Iterator[CachedFile]:
        """The files of entries."""
        for entry, status in self.files():
            key, _, kind = entry.partition(".")
            if len(key) == 64 and kind in get_args(Kind):
                nbytes = -(-status.st_size // BLOCK_BYTES) * BLOCK_BYTES
                yield CachedFile(os.path.join(self.path, entry), nbytes, status.st_mtime_ns)

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
        """True if the folder is there and nobody else can put files into it."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and is_own(self.path, status, "chmod 700")


CLOSED_BY_EXEC = getattr(os, "O_CLOEXEC", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NOT_WAITED_FOR = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def mapped(path: str) -> tuple[mmap.mmap, os.stat_result]:
    """A file's bytes, and what the file system says of it; OSError where it is no file or not this user's own, ValueError
    where it is empty. A pipe or a device that has an entry's name is not waited for."""
    descriptor = os.open(path, os.O_RDONLY | CLOSED_BY_EXEC | NO_LINK | NOT_WAITED_FOR | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not is_own(path, status, "chmod 600"):
            raise PermissionError
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), status
    finally:
        os.close(descriptor)


def stamp_of(status: os.stat_result) -> list[Any]:
    """What a file has in common with itself alone, as long as it does not change; nothing where that cannot be said."""
    started = boot()
    return [started, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns] if started else []


@functools.cache
def boot() -> str:
    """What names this run of the system: what its memory has of a file is what was written, and no half of it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:  # a codec for text is a module to import
            return file.read().decode().strip()
    except (OSError, ValueError):
        return ""


def is_own(path: str, status: os.stat_result, remedy: str) -> bool:
    """True if a file belongs to this user and nobody else may write it; a note, once, where that is not so."""
    if not hasattr(os, "geteuid"):  # no such owners and modes on this system
        return True
    foreign, shared = status.st_uid != os.geteuid(), bool(status.st_mode & 0o022)
    if (foreign or shared) and path not in _noted:
        _noted.add(path)
        cause = "it belongs to another user" if foreign else f"other users may write to it ({remedy} changes that)"
        warnings.warn(f"tosaic takes no machine code from {printable(path)}: {cause}", RuntimeWarning, stacklevel=2)
    return not (foreign or shared)


def folder() -> Folder | None:
    """The folder as the environment says; None where the cache is off, which it is for debuggers, too: code of the cache has no
    lines."""
    chosen = os.environ.get("TOSAIC_CACHE", "")
    if chosen.strip().lower() == "off" or is_debugged():
        return None
    path = os.path.expanduser(chosen or os.path.join(user_caches(), "code"))
    return None if path.startswith("~") else Folder(os.path.abspath(path), limit())


def user_caches() -> str:
    """Where this user's programs keep what they can make again, and in it the place of tosaic: `~/Library/Caches/tosaic` on
    macOS, `%LOCALAPPDATA%\\tosaic\\Cache` on Windows, elsewhere as the XDG Base Directory Specification says."""
    if sys.platform in ("darwin", "win32"):
        import platformdirs  # it would say the same elsewhere; importing it takes milliseconds of each start
        return platformdirs.user_cache_dir("tosaic", appauthor=False)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.join("~", ".cache"), "tosaic")


def limit() -> int:
    """The most bytes that the folder may hold."""
    text = os.environ.get("TOSAIC_CACHE_LIMIT", "").strip().upper()
    if not text:
        return LIMIT
    found = re.fullmatch(r"([0-9]{1,15})\s*([KMG]?)(?:I?B)?", text)
    return int(found[1]) * UNITS[found[2]] if found else LIMIT
