"""Constants and variables of an object file: symbols with their bytes, in LLVM IR or, where there are many bytes, in
module assembly that includes a file while the object is made. (In this process neither is needed: pointers are
enough.)
"""
from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np

from ....runtime.errors import temporary_file
from ...graph.types import Array
from ...machine_code.llvm_writer import data
from ...target.target import Target
from .variables import CVariable

INLINE_BYTES = 4096
"""Maximum number of bytes of a constant that is written as text."""


def alignment_of(target: Target) -> int:
    """Return the alignment of constants and variables, in bytes: a vector or a cache line, the smaller, and at least eight."""
    return max(8, min(target.vector_bytes, target.costs.cache_line_bytes))


def bytes_of(array: Array) -> bytes:
    """Return an array as the target's memory holds it (little-endian)."""
    return np.ascontiguousarray(array).tobytes()


def workspace_lines(name: str, nbytes: int, alignment: int, target: Target) -> list[str]:
    """Return zero-initialized memory of the object, in a section of its own for linker scripts."""
    section = f".bss.{name}" if target.is_elf else ""
    return [data(name, "global", f"[{nbytes} x i8]", "zeroinitializer", section, alignment)]


def initializer(data: bytes) -> str:
    """Return bytes as a constant of LLVM IR of type [n x i8]."""
    if not any(data):
        return "zeroinitializer"
    return 'c"\\' + data.hex("\\") + '"'


def array(name: str, kind: str, contents: bytes, alignment: int, section: str = "") -> str:
    """Return the definition of an array of bytes."""
    return data(name, kind, f"[{len(contents)} x i8]", initializer(contents), section, alignment)


class ObjectConstants:
    """The constants of one object, equal ones once. A context: its files are deleted when it ends, and the object must have
    been made by then."""

    def __init__(self, prefix: str, target: Target) -> None:
        self.prefix, self.target = prefix, target
        self.lines: list[str] = []
        self.nbytes = 0
        self._symbols: dict[tuple[int, bytes], str] = {}
        with temporary_file():
            self._folder = tempfile.TemporaryDirectory(prefix="tosaic-")

    def __enter__(self) -> ObjectConstants:
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.cleanup()

    def symbol(self, array: Array) -> str:
        """Return the symbol of a constant with these bytes."""
        contents = bytes_of(array)
        key = len(contents), hashlib.sha256(contents).digest()
        if key not in self._symbols:
            name = self._symbols[key] = f"{self.prefix}.constant_{len(self._symbols)}"
            self.nbytes += len(contents)
            self._define(name, contents, alignment_of(self.target))
        return self._symbols[key]

    def pool(self, name: str, contents: bytes, alignment: int) -> None:
        """Define the symbol of a constant pool, in a section of its own for linker scripts."""
        self.nbytes += len(contents)
        self._define(name, contents, alignment, f".rodata.{name}")

    def _define(self, name: str, contents: bytes, alignment: int, section: str = "") -> None:
        """Define a symbol, which other objects see if it has a `section` of its own."""
        self.lines += (self._included if self._is_included(contents) else self._written)(name, contents, alignment, section)

    def _is_included(self, contents: bytes) -> bool:
        """True if the bytes come from a file: if they are many, and the host's LLVM assembler can write the target's code."""
        from ...target.presets import host
        same = self.target.architecture == host().architecture
        return len(contents) > INLINE_BYTES and same and "linux" in self.target.triple

    def _written(self, name: str, contents: bytes, alignment: int, section: str) -> list[str]:
        linkage = "" if section else "internal unnamed_addr "
        return [array(name, f"{linkage}constant", contents, alignment, section if self.target.is_elf else "")]

    def _included(self, name: str, contents: bytes, alignment: int, section: str) -> list[str]:
        path = Path(self._folder.name, name)
        with temporary_file():
            path.write_bytes(contents)
        kind = f"{self.target.section_mark}progbits"
        hidden = () if section else (f".hidden {name}",)
        assembly = (f'.section {section or f".rodata.{name}"},"a",{kind}', f".balign {alignment}", *hidden, f".globl {name}",
                    f".type {name}, {kind[0]}object", f".size {name}, {len(contents)}", f"{name}:",
                    f'.incbin "{in_assembly(str(path))}"')
        return [f'module asm "{in_ir(line)}"' for line in assembly] + [
            data(name, f"external {'' if section else 'hidden '}constant", f"[{len(contents)} x i8]", align=alignment)]


def in_assembly(text: str) -> str:
    """Return text for an assembler string: characters that are not plain become octal escapes."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in text.encode())


def in_ir(text: str) -> str:
    """Return text for an LLVM IR string: characters that are not plain become hexadecimal escapes."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())


def variable_lines(variable: CVariable, target: Target) -> list[str]:
    """Return the symbols of a variable: zeros, in sections that a linker script can place, and the checksum of its type."""
    if variable.use.external:
        return [data(variable.symbol, "external global", f"[{variable.nbytes} x i8]", align=variable.alignment),
                data(variable.flag, "external global", "i8"), data(variable.type_symbol, "external constant", "i32")]
    sections = (variable.section, f".bss.{variable.flag}", f".rodata.{variable.type_symbol}") if target.is_elf else ("", "", "")
    weak = "weak " * variable.is_shared
    return [data(variable.symbol, f"{weak}global", f"[{variable.nbytes} x i8]", "zeroinitializer", sections[0],
                 variable.alignment),
            data(variable.flag, f"{weak}global", "i8", "0", sections[1]),
            data(variable.type_symbol, f"{weak}constant", "i32", f"{variable.checksum}", sections[2])]
