"""SHA-256 without OpenSSL for small data: loading OpenSSL takes longer than all else of the cache at a start.

Python's own function is in a module of the standard library without a public name; if it is missing, `hashlib` has one.
"""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Protocol

OPENSSL_BYTES = 1 << 19
"""Minimum bytes for which OpenSSL, which is several times faster, is worth loading."""
MODULES = ("_sha2", "_sha256", "hashlib")
"""Modules from Python 3.12 on, before it, and in all versions."""


class Digest(Protocol):
    """The interface of the objects that `hashlib` creates."""

    def update(self, data: bytes | memoryview, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...


def sha256(data: bytes | memoryview = b"", nbytes: int = 0) -> Digest:
    """Return the SHA-256 of `data`, to which `nbytes` more bytes will be added."""
    return (openssl() if len(data) + nbytes >= OPENSSL_BYTES else own())(data)


def openssl() -> Callable[[bytes | memoryview], Digest]:
    import hashlib
    return hashlib.sha256


@functools.cache
def own() -> Callable[[bytes | memoryview], Digest]:
    for name in MODULES:
        try:
            found: Callable[[bytes | memoryview], Digest] = importlib.import_module(name).sha256
        except (ImportError, AttributeError):
            continue
        return found
    return openssl()
