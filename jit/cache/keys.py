"""What keys are made of: digests of plain values, and what cannot be in one."""
from __future__ import annotations

from typing import Any

from .sha256 import sha256

PACKAGE = __name__.partition(".")[0] + "."


class NotKept(Exception):
    """What is to be compiled depends on something that no key can hold, such as a user's own code."""


def digest(value: object) -> bytes:
    """SHA-256 of nested tuples of texts, bytes, numbers, bools and None."""
    text = repr(value).encode(errors="surrogatepass")
    return sha256(text).digest()


def is_own(definition: Any) -> bool:
    """True if a class or function is tosaic's."""
    return str(definition.__module__).startswith(PACKAGE)
