"""The reader of a model's bytes, and of the graphs in them.

The bytes of a file determine its format: `TOSA` at byte 4 marks a .tosa, `TFL3` there a .tflite, from which the bridge and a
converter make a module; a message of protobuf that begins with a version is ONNX; MLIR bytecode has a magic number; everything
else must be MLIR text. `file_kinds` rejects other kinds of files beforehand.
"""
from __future__ import annotations

import importlib
import mmap
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem, TypeProblem, class_of
from ..cache.sha256 import sha256

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module


def is_text(source: Any) -> bool:
    """True if a source is MLIR text, and not the path of a file."""
    return isinstance(source, str) and ("\n" in source or "{" in source)


ONNX_BEGINS = 0x08
"""The first byte of an ONNX file: the key of its first field, `ir_version`, which every model has. No text begins with it, and
flatbuffers and bytecode have their own magic numbers."""


def is_onnx(data: str | bytes | memoryview) -> bool:
    """True if bytes, or the first eight of them, are those of an ONNX model."""
    return not isinstance(data, str) and data[:1] == bytes((ONNX_BEGINS,)) and data[4:8] not in (b"TOSA", b"TFL3")


def read_module(data: str | bytes | memoryview, name: str, folder: Path | None = None) -> Module:
    """Read the module of a text or of a file's bytes, without verification. `name` is its name in problems; `folder` contains
    the files that an ONNX model refers to."""
    if is_onnx(data):
        from ...lowering.onnx.read import read_model
        assert not isinstance(data, str)
        return read_model(data, name, folder)
    if isinstance(data, memoryview):
        data = bytes(data)
    if isinstance(data, bytes) and data[4:8] == b"TOSA":
        from ...lowering.flatbuffer.reader import read_module as read_flatbuffer
        return read_flatbuffer(data, name)
    if isinstance(data, bytes) and data[4:8] == b"TFL3":
        from .tflite.from_tflite import module_of_tflite
        return module_of_tflite(data, name, import_compiler)
    if isinstance(data, bytes) and data.startswith(b"ML\xefR"):
        return module_of_bytecode(data, name)
    from ...lowering.text.reader import read_module as read_mlir
    return read_mlir(data, name)


def module_of_bytecode(data: bytes, name: str) -> Module:
    """Read the module of MLIR bytecode; raise a Problem if it has anything but functions and operators of TOSA."""
    from ...lowering.bytecode.reader import read_module as read_bytecode
    from ...lowering.bytecode.sections import Unreadable
    from ...lowering.dialects.foreign_dialects import advice, dialect_in
    try:
        return read_bytecode(memoryview(data), name)
    except Unreadable as error:
        foreign = dialect_in(data)
        what = f"it is of the dialect {foreign}" if foreign else f"{error}"
        raise Problem(f"{name} is MLIR bytecode that cannot be read: {what}", kind="file",
                      help=advice(f"{foreign}.") or "print it as text, with mlir-opt or tosa-opt, and give that") from None


COMPILER = ("pipeline", "native.process.concurrent_codegen", "native.process.load", "tflite.assemble")
"""Modules of lowering that import all others."""


def import_compiler() -> None:
    """Import the compiler and LLVM during idle time."""
    for name in COMPILER:
        importlib.import_module(f"...lowering.{name}", __package__)
    from ...lowering.machine_code.codegen import binding
    binding()


DOORS = {"onnx": "tosaic.from_onnx(model)", "torch": "tosaic.from_torch(module, x)", "keras": "tosaic.from_tensorflow(model)",
         "tensorflow": "tosaic.from_tensorflow(function, x)"}
"""The function that takes an object of each package."""


def read_bytes(source: Any) -> tuple[bytes, str]:
    """Return the bytes of a source, and its name for messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "<bytes>"
    if hasattr(source, "read"):
        data = source.read()
        return data.encode() if isinstance(data, str) else data, str(getattr(source, "name", "<stream>"))
    if not isinstance(source, str | os.PathLike):
        door = DOORS.get(type(source).__module__.split(".")[0])
        raise TypeProblem(f"a model cannot be read from {class_of(source)}", kind="argument",
                          help=f"{door} takes it" if door else "pass a path, an open file, bytes, or MLIR text")
    return first_bytes(source, -1), str(os.fspath(source))


def first_bytes(source: str | os.PathLike[str], count: int) -> bytes:
    """Return the first bytes of a file, or all of them for -1."""
    path = os.fspath(source)
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{path} cannot be read: {reason}", kind="file") from None


def file_bytes(path: str | os.PathLike[str]) -> bytes | memoryview:
    """Return the bytes of a file, which is opened only once, as a pipe cannot be read again. An ONNX file is memory-mapped: its
    weights stay in the file until its code is compiled, so it must not change meanwhile."""
    try:
        with open(path, "rb", buffering=0) as file:
            head = file.read(8)
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return head + file.read()
            if not is_onnx(head):
                file.seek(0)  # so that all of it is read directly to its final memory
                return file.read()
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise Problem(f"{os.fspath(path)} cannot be read: {getattr(error, 'strerror', None) or error}", kind="file") from None


def read_again(path: str, digest: str) -> bytes | memoryview:
    """Return the bytes of a file that the cache knew; raise a Problem if they have changed."""
    data = file_bytes(path)
    if sha256(data).hexdigest() != digest:
        raise Problem(f"{path} has changed since it was loaded", kind="file", help="load it again")
    return data
