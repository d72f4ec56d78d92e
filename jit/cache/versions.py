"""The dependencies of compiled code besides its graph and its options: tosaic itself, LLVM, NumPy, and this machine.

All are determined without importing LLVM, which alone takes longer than all else that a second start does.
"""
from __future__ import annotations

import functools
import importlib.util
import os
import platform
import struct
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...runtime import import_time
from .folder import folder
from .sha256 import OPENSSL_BYTES, sha256

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("jit", "lowering", "runtime")
SOURCES = (".py", ".lark", ".json")
RESTED_NS = 2_000_000_000
"""Minimum age, in nanoseconds, of a file's last change, so that a change within the clock's resolution shows."""
CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
"""Lines of Linux's description of a processor that give its capabilities; the others change from moment to moment."""


@functools.cache
def versions() -> tuple[str, ...] | None:
    """Return the versions of tosaic's sources, LLVM and NumPy; None if they are unknown, so that nothing is kept."""
    own, llvm = source_digest(), llvm_version()
    return None if own is None or llvm is None else (own, llvm, np.__version__)


def source_digest() -> str | None:
    """Return the SHA-256 of tosaic's sources, by content; None if there are none, or if one has changed since this process
    began to import them and may differ from the code that runs."""
    try:
        stamps = Stamps([], [])
        for name in FOLDERS:
            add_stamps(stamps, os.path.join(ROOT, name))
        if not stamps.paths or stamps.modified >= import_time.IMPORTED * 1e9:
            return None
        key, where = key_of_stamps(stamps), folder()
        known = where.read("file", key) if where and key else None
        if known is not None:
            return str(known.fields["sources"])
        found = digest_of(sorted(stamps.paths))
        if where and key:
            where.write("file", key, {"sources": found})
        return found
    except OSError:
        return None


class Stamps(NamedTuple):
    """The file system's description of the sources: their paths, in the order in which it lists them, and for each four
    numbers: size, inode number, modification time and change time, in nanoseconds. Each start makes hundreds of them: hence two
    lists."""
    paths: list[str]
    numbers: list[int]

    @property
    def modified(self) -> int:
        """Time of the newest modification."""
        return max(self.numbers[2::4])

    @property
    def changed(self) -> int:
        return max(self.numbers[3::4])


def key_of_stamps(stamps: Stamps) -> bytes | None:
    """Return the key that the digest of files is remembered by, if they have rested. It is computed at each start, so it must
    be quick."""
    if os.name != "posix" or time.time_ns() - max(stamps.modified, stamps.changed) <= RESTED_NS:
        return None
    names = "\n".join(stamps.paths).replace(ROOT, "")
    try:
        numbers = np.array(stamps.numbers, np.int64).tobytes()
    except OverflowError:
        return None
    return sha256(f"sources {ROOT}\n{names}\n".encode(errors="surrogateescape") + numbers).digest()


def digest_of(paths: Sequence[str]) -> str:
    """Return the SHA-256 of files' contents and of their paths below the root."""
    found = sha256(nbytes=OPENSSL_BYTES)
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            data = os.read(descriptor, os.fstat(descriptor).st_size + 1)
        finally:
            os.close(descriptor)
        found.update(f"{path[len(ROOT):]} {len(data)}\n".encode())
        found.update(data)
    return found.hexdigest()


def add_stamps(stamps: Stamps, folder: str) -> None:
    """Append the stamps of tosaic's own files in a folder and its subfolders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SOURCES):
                s = entry.stat()
                stamps.paths.append(entry.path)
                stamps.numbers.extend((s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns))
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                add_stamps(stamps, entry.path)


def llvm_version() -> str | None:
    """Return a digest of llvmlite's own file of its version, and of the size of its library."""
    return package_version("llvmlite", "_version.py", "binding")


@functools.cache
def package_version(package: str, file: str | None = None, libraries: str = "") -> str | None:
    """Return a digest that distinguishes two versions of an installed package, without importing it: of its first file (or
    another one), and of names and sizes of the libraries beside it in `libraries`."""
    try:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            return None
        home = os.path.dirname(spec.origin)
        with open(os.path.join(home, file) if file else spec.origin, "rb") as opened:
            text = opened.read()
        with os.scandir(os.path.join(home, libraries)) as entries:
            sizes = sorted((e.name, e.stat().st_size) for e in entries if e.name.endswith((".so", ".dylib", ".dll", ".pyd")))
    except (OSError, ImportError, ValueError):
        return None
    return sha256(repr((text, sizes)).encode()).hexdigest()


@functools.cache
def machine() -> tuple[object, ...]:
    """Return the dependencies of code for the target "host": the processor with its features, and its second-level cache."""
    sysconf_names = getattr(os, "sysconf_names", {})
    cache = os.sysconf("SC_LEVEL2_CACHE_SIZE") if "SC_LEVEL2_CACHE_SIZE" in sysconf_names else 0
    return sys.platform, sys.byteorder, struct.calcsize("P"), platform.machine(), cache, processor()


def processor() -> str:
    """Return the processor as Linux describes it, else as LLVM does."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            first = file.read(1 << 14).split(b"\n\n")[0].decode()
        fields = dict(line.partition(":")[::2] for line in first.splitlines())
        known = {name.strip(): value.strip() for name, value in fields.items()}
        if known.get("flags"):
            return "\n".join(f"{name}: {known.get(name, '')}" for name in CPU_FIELDS)
    except (OSError, ValueError):
        pass
    import dataclasses

    from ...lowering.target.presets import host
    machine = host()
    return repr([getattr(machine, f.name) for f in dataclasses.fields(machine)])
