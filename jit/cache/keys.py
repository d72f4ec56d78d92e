"""Cache keys: digests of plain values, and the exception for values that no key can hold."""
from __future__ import annotations

from typing import Any

from .sha256 import sha256

PACKAGE = __name__.partition(".")[0] + "."


class NotKept(Exception):
    """The code depends on something that no key can hold, such as a user's own code."""


def digest(value: object) -> bytes:
    """Return the SHA-256 of nested tuples of texts, bytes, numbers, bools and None."""
    text = repr(value).encode(errors="surrogatepass")
    return sha256(text).digest()


def is_own(definition: Any) -> bool:
    """True if a class or function is tosaic's."""
    return str(definition.__module__).startswith(PACKAGE)
