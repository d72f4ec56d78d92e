"""Constants and variables of an object file: symbols with their bytes, in LLVM IR or, where there are many bytes, in
module assembly that includes a file while the object is made. (In this process neither is needed: pointers are
enough.)
"""
from __future__ import annotations

import hashlib
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ....runtime.errors import Problem, temporary_file
from ....runtime.records import dataclass
from ...graph.types import Array
from ...loops.program import VariableUse
from ...machine_code.llvm_writer import Writer, constant, data, symbol
from ...target.target import Target

INLINE_BYTES = 4096
"""Constants up to this size are written as text."""


def alignment_of(target: Target) -> int:
    """What constants and variables are aligned to, in bytes: a vector, and at least eight."""
    return max(8, target.vector_bytes)


def bytes_of(array: Array) -> bytes:
    """An array as it lies in the target's memory (little-endian)."""
    return np.ascontiguousarray(array).tobytes()


def workspace_lines(name: str, nbytes: int, alignment: int, target: Target) -> list[str]:
    """Memory of the object's own, all zeros at first, in a section that a linker script can tell from others."""
    section = f".bss.{name}" if target.is_elf else ""
    return [data(name, "global", f"[{nbytes} x i8]", "zeroinitializer", section, alignment)]


def initializer(data: bytes) -> str:
    """Bytes as a constant of LLVM IR of type [n x i8]."""
    if not any(data):
        return "zeroinitializer"
    return 'c"\\' + data.hex("\\") + '"'


def array(name: str, kind: str, contents: bytes, alignment: int, section: str = "") -> str:
    """The definition of bytes."""
    return data(name, kind, f"[{len(contents)} x i8]", initializer(contents), section, alignment)


class ObjectConstants:
    """The constants of one object, equal ones once. A context: its files are gone when it ends, and the object must
    have been made by then."""

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
        """The symbol of a constant with these bytes."""
        contents = bytes_of(array)
        key = len(contents), hashlib.sha256(contents).digest()
        if key not in self._symbols:
            name = self._symbols[key] = f"{self.prefix}.constant_{len(self._symbols)}"
            self.nbytes += len(contents)
            self._define(name, contents, alignment_of(self.target))
        return self._symbols[key]

    def pool(self, name: str, contents: bytes, alignment: int) -> None:
        """Define the symbol of a constant pool, in a section that a linker script can tell from others."""
        self.nbytes += len(contents)
        self._define(name, contents, alignment, f".rodata.{name}")

    def _define(self, name: str, contents: bytes, alignment: int, section: str = "") -> None:
        """A symbol that other objects see if it has a `section` of its own."""
        self.lines += (self._included if self._is_included(contents) else self._written)(name, contents, alignment, section)

    def _is_included(self, contents: bytes) -> bool:
        """Whether the bytes come from a file: if they are many, and LLVM's assembler for the target is here (the
        host's)."""
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
        kind = "%progbits" if self.target.architecture == "arm" else "@progbits"
        hidden = () if section else (f".hidden {name}",)
        assembly = (f'.section {section or ".rodata"},"a",{kind}', f".balign {alignment}", *hidden, f".globl {name}",
                    f".type {name}, {kind[0]}object", f".size {name}, {len(contents)}", f"{name}:",
                    f'.incbin "{in_assembly(str(path))}"')
        return [f'module asm "{in_ir(line)}"' for line in assembly] + [
            data(name, f"external {'' if section else 'hidden '}constant", f"[{len(contents)} x i8]", align=alignment)]


def in_assembly(text: str) -> str:
    """Text between quotes for the assembler: what is not plain in octal."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in text.encode())


def in_ir(text: str) -> str:
    """Text between quotes for LLVM IR: what is not plain in hexadecimal."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in text.encode())


@dataclass(frozen=True, slots=True)
class ObjectVariable:
    """A variable of an object. Its symbols are weak, so that objects which name the same variable share it;
    `checksum` of the type is one of them, and tells a run when another object's variable has another type. Those of an external
    one are another object's, without which a program does not link."""
    use: VariableUse
    symbol: str

    @property
    def flag(self) -> str:
        return f"{self.symbol}_is_written"

    @property
    def type_symbol(self) -> str:
        return f"{self.symbol}_type"

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.symbol, self.flag, self.type_symbol

    @property
    def checksum(self) -> int:
        return zlib.crc32(f"{self.use.element}{list(self.use.buffer.shape)}".encode()) & 0x7FFFFFFF

    @property
    def initial(self) -> Array | None:
        return None if self.use.initial is None else self.use.initial.data

    def definitions(self, target: Target) -> list[str]:
        """Its symbols, with the initial value."""
        if self.use.external:
            return [data(self.symbol, "external global", f"[{self.use.buffer.nbytes} x i8]", align=alignment_of(target)),
                    data(self.flag, "external global", "i8"), data(self.type_symbol, "external constant", "i32")]
        initial = bytes(self.use.buffer.nbytes) if self.initial is None else bytes_of(self.initial)
        return [array(self.symbol, "weak global", initial, alignment_of(target)),
                data(self.flag, "weak global", "i8", f"{int(self.initial is not None)}"),
                data(self.type_symbol, "weak constant", "i32", f"{self.checksum}")]

    def reset(self, w: Writer, constants: ObjectConstants) -> None:
        """Bring it back to its initial value, or to not written."""
        nbytes = self.use.buffer.nbytes
        if self.initial is None or not any(bytes_of(self.initial)):
            w.fill(symbol(self.symbol), 0, nbytes)
        else:
            w.copy(symbol(self.symbol), symbol(constants.symbol(self.initial)), nbytes)
        w.store(constant("i8", int(self.initial is not None)), symbol(self.flag))


def same_declaration(first: VariableUse, second: VariableUse) -> None:
    """A Problem unless two programs of one object declare a variable alike."""
    if (first.element, first.buffer.shape) == (second.element, second.buffer.shape):
        return
    raise Problem(f"variable {first.buffer.name} is declared with two types in one object", second.position,
                  kind="variable", help="give one of them another name")


def variables_of(uses: Sequence[VariableUse]) -> dict[str, VariableUse]:
    """The variables of several programs by name, each once; a Problem where two declarations disagree. What one program
    declares is not external to the others."""
    found: dict[str, VariableUse] = {}
    for use in sorted(uses, key=lambda use: use.external):
        same_declaration(found.setdefault(use.buffer.name, use), use)
    return found
