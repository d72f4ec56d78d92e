"""Reading a model's bytes, and the graphs in them.

What a file is shows in its bytes: `TOSA` at byte 4 is a .tosa, `TFL3` there is a .tflite, of which the bridge and a converter
make a module; everything else has to be MLIR text.
"""
from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ..cache.sha256 import sha256

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module


def is_text(source: Any) -> bool:
    """Whether a source is MLIR text, not the path of a file."""
    return isinstance(source, str) and ("\n" in source or "{" in source)


def read_module(data: str | bytes, name: str) -> Module:
    """The module of a text or of a file's bytes, not verified yet. `name` is what problems call it."""
    if isinstance(data, bytes) and data[4:8] == b"TOSA":
        from ...lowering.flatbuffer.reader import read_module as read_flatbuffer
        return read_flatbuffer(data, name)
    if isinstance(data, bytes) and data[4:8] == b"TFL3":
        from .tflite.from_tflite import module_of_tflite
        return module_of_tflite(data, name, import_compiler)
    from ...lowering.text.reader import read_module as read_mlir
    return read_mlir(data, name)


COMPILER = ("pipeline", "native.process.concurrent_codegen", "native.process.load", "tflite.assemble")
"""Modules of lowering that bring all others."""


def import_compiler() -> None:
    """Import what compiles, where there is nothing else to do."""
    for name in COMPILER:
        importlib.import_module(f"...lowering.{name}", __package__)


def read_bytes(source: Any) -> tuple[bytes, str]:
    """The bytes of a source, and its name for messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    if hasattr(source, "read"):
        data = source.read()
        return data.encode() if isinstance(data, str) else data, str(getattr(source, "name", "<stream>"))
    if not isinstance(source, str | os.PathLike):
        raise Problem(f"a model cannot be read from a {type(source).__name__}", kind="argument",
                      help="pass a path, an open file, bytes, or MLIR text")
    return first_bytes(source, -1), str(os.fspath(source))


def first_bytes(source: str | os.PathLike[str], count: int) -> bytes:
    """The first bytes of a file, all of them for -1."""
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{path} cannot be read: {reason}", kind="file") from None


def read_again(path: str, digest: str) -> bytes:
    """The bytes of a file that the cache knew; a Problem where they are others now."""
    data, _ = read_bytes(path)
    if sha256(data).hexdigest() != digest:
        raise Problem(f"{path} has changed since it was loaded", kind="file", help="load it again")
    return data
