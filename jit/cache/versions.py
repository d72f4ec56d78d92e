"""What compiled code depends on besides its graph and its options: tosaic itself, LLVM, NumPy, and this machine.

All of it is found without importing LLVM, which alone takes longer than all else that a second start does.
"""
from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import struct
import sys
from collections.abc import Iterator

import numpy as np

from .. import api

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("jit", "lowering", "runtime")
SOURCES = (".py", ".lark")
CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
"""Lines of Linux's description of a processor that say what it can do; the others change from moment to moment."""


@functools.cache
def versions() -> tuple[str, ...] | None:
    """tosaic's sources, LLVM and NumPy; None where they cannot be told, so that nothing is kept."""
    own, llvm = source_digest(), llvm_version()
    return None if own is None or llvm is None else (own, llvm, np.__version__)


def source_digest() -> str | None:
    """SHA-256 of tosaic's sources, by content; None where there are none, or one has changed since this process began to
    import them and may be another than what it runs."""
    found = hashlib.sha256()
    newest = 0.0
    try:
        paths = sorted(path for name in FOLDERS for path in files_below(os.path.join(ROOT, name)))
        for path in paths:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            try:
                status = os.fstat(descriptor)
                data = os.read(descriptor, status.st_size + 1)
            finally:
                os.close(descriptor)
            newest = max(newest, status.st_mtime)
            found.update(f"{path[len(ROOT):]} {len(data)}\n".encode())
            found.update(data)
    except OSError:
        return None
    return found.hexdigest() if paths and newest < api.IMPORTED else None


def files_below(folder: str) -> Iterator[str]:
    """tosaic's own files in a folder and those below."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SOURCES):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path)


def llvm_version() -> str | None:
    """llvmlite's own file of its version, and the size of its library."""
    return package_version("llvmlite", "_version.py", "binding")


@functools.cache
def package_version(package: str, file: str | None = None, libraries: str = "") -> str | None:
    """What tells two versions of an installed package apart, without importing it: its first file (or another one), and
    names and sizes of what lies beside it in `libraries`."""
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
    return hashlib.sha256(repr((text, sizes)).encode()).hexdigest()


@functools.cache
def machine() -> tuple[object, ...]:
    """What the code of the target "host" depends on: the processor with its features, and its second cache."""
    sysconf_names = getattr(os, "sysconf_names", {})
    cache = os.sysconf("SC_LEVEL2_CACHE_SIZE") if "SC_LEVEL2_CACHE_SIZE" in sysconf_names else 0
    return sys.platform, sys.byteorder, struct.calcsize("P"), platform.machine(), cache, processor()


def processor() -> str:
    """The processor as Linux describes it, else as LLVM does."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            first = file.read(1 << 14).split(b"\n\n")[0].decode()
        fields = dict(line.partition(":")[::2] for line in first.splitlines())
        known = {name.strip(): value.strip() for name, value in fields.items()}
        if known.get("flags"):
            return "\n".join(f"{name}: {known.get(name, '')}" for name in CPU_FIELDS)
    except (OSError, ValueError):
        pass
    from ...lowering.native.features import host
    return repr(host())
