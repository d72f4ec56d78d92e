"""The folder of the cache: its location, its ownership checks, reading and writing entries, and removing entries when it is
full.

Nothing here fails: what the file system refuses counts as missing.
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
"""Default maximum size of the folder, in bytes."""
ABANDONED = 3600
"""Age, in seconds, after which a file that was never renamed belongs to a writer that is gone."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
PARTIAL = ".new-"
LARGE_ENTRY_BYTES = 1 << 20
"""Minimum bytes of an entry whose constants are not read again merely to check that they are unchanged."""
TOUCH_SECONDS = 3600
"""Maximum delay, in seconds, of the recorded time of an entry's last use."""
BLOCK_BYTES = 4096
"""Block size, in bytes, to which a file's disk use is rounded up."""
LARGE_ENTRY_DIVISOR = 1024
"""Fraction of the limit, as a divisor, above which an entry is large."""
SHRINKING_FIRST_BYTES = 4
"""Number of the 256 first bytes of a key whose small entries trigger a check of the folder's size."""

_noted: set[str] = set()


class Usage(NamedTuple):
    """The number of entries in the folder and their size."""
    entries: int
    nbytes: int


class CachedFile(NamedTuple):
    """A file of the folder, and its size on the disk. `used` is the time of its last read or write, in nanoseconds."""
    path: str
    nbytes: int
    used: int


class Folder(NamedTuple):
    """The cache's folder, which may not exist yet; it holds at most `limit` bytes."""
    path: str
    limit: int = LIMIT

    def read(self, kind: Kind, key: bytes) -> CacheEntry | None:
        """Return the entry of that key, mapped from its file; None if there is none that is complete and this user's own."""
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
        """Record that a file was used, and, for a large file, that it is as written."""
        with suppress(OSError):
            if is_touched := time.time() - status.st_mtime > TOUCH_SECONDS:
                os.utime(path)
            if status.st_size >= LARGE_ENTRY_BYTES and (is_touched or not is_known):
                now = os.stat(path)
                if (now.st_dev, now.st_ino, now.st_size) == (status.st_dev, status.st_ino, status.st_size):
                    self.remember(key, now)

    def knows(self, key: bytes, status: os.stat_result) -> bool:
        """True if a large file is the one that was written or read completely since the system was started, by its identity,
        size and times, as git does. So any change by a program that writes files, and a crash, lead to another check."""
        stamp = stamp_of(status)
        found = self.read("known", key) if stamp else None
        return found is not None and found.fields["stamp"] == stamp

    def remember(self, key: bytes, status: os.stat_result) -> None:
        stamp = stamp_of(status)
        if stamp:
            self.write("known", key, {"stamp": stamp})

    def write(self, kind: Kind, key: bytes, fields: Fields, arrays: Sequence[Array] = ()) -> bool:
        """Keep an entry; return whether it was possible. Remove other entries if there is no room: check at every large entry,
        and at one in 64 of the others, because the check takes longer than writing one."""
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
        """Remove all entries; return their usage."""
        found = self.usage()
        for path in [*(k.path for k in self.kept()), *self.abandoned(0)]:
            with suppress(OSError):
                os.unlink(path)
        return found

    def shrink(self) -> None:
        """Remove the least recently used entries until the rest is within the limit, and the files of killed writers."""
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
        """Yield the files of entries."""
        for entry, status in self.files():
            key, _, kind = entry.partition(".")
            if len(key) == 64 and kind in get_args(Kind):
                nbytes = -(-status.st_size // BLOCK_BYTES) * BLOCK_BYTES
                yield CachedFile(os.path.join(self.path, entry), nbytes, status.st_mtime_ns)

    def abandoned(self, seconds: float) -> Iterator[str]:
        """Yield files that were begun at least `seconds` ago, and never renamed."""
        for entry, status in self.files():
            if entry.startswith(PARTIAL) and time.time() - status.st_mtime >= seconds:
                yield os.path.join(self.path, entry)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        with suppress(OSError):
            for name in os.listdir(self.path):
                with suppress(OSError):
                    yield name, os.lstat(os.path.join(self.path, name))

    def is_trusted(self) -> bool:
        """True if the folder exists and nobody else can put files into it."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        return stat.S_ISDIR(status.st_mode) and is_own(self.path, status, "chmod 700")


CLOSED_BY_EXEC = getattr(os, "O_CLOEXEC", 0)
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NOT_WAITED_FOR = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def mapped(path: str) -> tuple[mmap.mmap, os.stat_result]:
    """Return a file's bytes and status. Raise OSError if it is not a regular file or not this user's own, ValueError if it is
    empty. Do not wait for a pipe or a device with an entry's name."""
    descriptor = os.open(path, os.O_RDONLY | CLOSED_BY_EXEC | NO_LINK | NOT_WAITED_FOR | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not is_own(path, status, "chmod 600"):
            raise PermissionError
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), status
    finally:
        os.close(descriptor)


def stamp_of(status: os.stat_result) -> list[Any]:
    """Return fields that identify a file while it does not change; an empty list if the system cannot be identified."""
    started = boot()
    return [started, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns] if started else []


@functools.cache
def boot() -> str:
    """Return a name of this run of the system: within one run, the file contents in memory are complete as written."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:  # a codec for text is a module to import
            return file.read().decode().strip()
    except (OSError, ValueError):
        return ""


def is_own(path: str, status: os.stat_result, remedy: str) -> bool:
    """True if a file belongs to this user and nobody else may write it; otherwise print a note, once."""
    if not hasattr(os, "geteuid"):  # this system has no such owners and modes
        return True
    foreign, shared = status.st_uid != os.geteuid(), bool(status.st_mode & 0o022)
    if (foreign or shared) and path not in _noted:
        _noted.add(path)
        cause = "it belongs to another user" if foreign else f"other users may write to it ({remedy} changes that)"
        warnings.warn(f"tosaic takes no machine code from {printable(path)}: {cause}", RuntimeWarning, stacklevel=2)
    return not (foreign or shared)


def folder() -> Folder | None:
    """Return the folder that the environment selects; None if the cache is off. It is off for debuggers, too: code of the cache
    has no lines."""
    chosen = os.environ.get("TOSAIC_CACHE", "")
    if chosen.strip().lower() == "off" or is_debugged():
        return None
    path = os.path.expanduser(chosen or os.path.join(user_caches(), "code"))
    return None if path.startswith("~") else Folder(os.path.abspath(path), limit())


def user_caches() -> str:
    """Return tosaic's folder within this user's caches: `~/Library/Caches/tosaic` on macOS, `%LOCALAPPDATA%\\tosaic\\Cache` on
    Windows, elsewhere by the XDG Base Directory Specification."""
    if sys.platform in ("darwin", "win32"):
        import platformdirs  # it would return the same elsewhere; importing it takes milliseconds of each start
        return platformdirs.user_cache_dir("tosaic", appauthor=False)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.join("~", ".cache"), "tosaic")


def limit() -> int:
    """Return the maximum bytes that the folder may hold."""
    text = os.environ.get("TOSAIC_CACHE_LIMIT", "").strip().upper()
    if not text:
        return LIMIT
    found = re.fullmatch(r"([0-9]{1,15})\s*([KMG]?)(?:I?B)?", text)
    return int(found[1]) * UNITS[found[2]] if found else LIMIT
