"""The linker of code for this process: relocatable ELF objects for x86-64 become an `Image` that runs at any address, which a
cache can keep and a later process map without LLVM.

Sections are placed in sequence, distances between them are filled in, and calls of C functions go through stubs with a slot for
the address. LLVM's own loader takes an object with anything else in it.
"""
from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Iterator, Sequence

from ...runtime.machine_code import Image
from ...runtime.records import dataclass

SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
SYMTAB, RELA, NOBITS, UNWIND = 2, 4, 8, 0x70000001
WRITE, ALLOC = 1, 2
X86_64 = 62
PC32, PLT32, PC64 = 2, 4, 24
FUNCTION = 2
GLOBAL_OR_WEAK = (1, 2)
STUB = bytes.fromhex("ff25020000006690") + bytes(8)
"""Jump to the address in the next 8 bytes: jmp [rip + 2], two bytes of nothing, the slot."""
SLOT = 8
SHORTEST, LONGEST = -(1 << 31), (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Section:
    """A section header."""
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def is_loaded(self) -> bool:
        """True if the section is part of the image; nobody unwinds through the code, so its unwind tables are not."""
        return bool(self.flags & ALLOC) and self.type != UNWIND and self.size > 0


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str
    section: int
    value: int
    nbytes: int
    is_global: bool
    is_function: bool


def image_of(objects: Sequence[bytes]) -> Image | None:
    """Return the image of objects that call each other: linked if this process can map it and all their contents are known;
    else a single object as it is, and None for several."""
    found = linked(objects) if is_supported() else None
    return found or (Image(objects[0], form="object") if len(objects) == 1 else None)


def is_supported() -> bool:
    """True if this process can map linked images."""
    return sys.platform.startswith(("linux", "freebsd")) and platform.machine().lower() in ("x86_64", "amd64")


def linked(objects: Sequence[bytes]) -> Image | None:
    """Return the objects as one image; None if one contains something unknown to this linker."""
    linker = Linker()
    for code in objects:
        if code[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", code, 18) != (X86_64,):
            return None
        sections = list(sections_of(code))
        if any(s.is_loaded and (s.flags & WRITE or s.type == NOBITS) for s in sections):
            return None
        linker.add(code, sections)
    return linker.image()


def sections_of(code: bytes) -> Iterator[Section]:
    start, = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    for number in range(count):
        yield Section(*SECTION.unpack_from(code, start + number * size))


class Linker:
    """A linker of objects."""

    def __init__(self) -> None:
        self.memory = bytearray()
        self.stubs: dict[str, int] = {}
        self.globals: dict[str, int] = {}
        self.objects: list[Object] = []

    def add(self, code: bytes, sections: list[Section]) -> None:
        """Append an object's sections."""
        starts = {number: self.append(code[s.offset:s.offset + s.size], s.alignment)
                  for number, s in enumerate(sections) if s.is_loaded}
        symbols = [symbol for table in sections if table.type == SYMTAB for symbol in read_symbols(code, sections, table)]
        self.globals |= {s.name: starts[s.section] + s.value for s in symbols if s.is_global and s.section in starts}
        self.objects.append(Object(code, sections, starts, symbols))

    def append(self, data: bytes, alignment: int) -> int:
        """Append bytes; return their offset."""
        self.memory += bytes(-len(self.memory) % max(alignment, 16))
        self.memory += data
        return len(self.memory) - len(data)

    def image(self) -> Image | None:
        for one in self.objects:
            for section in one.sections:
                if section.type == RELA and section.info in one.starts and not self.relocate(one, section):
                    return None
        functions = tuple((s.name, one.starts[s.section] + s.value, s.nbytes) for one in self.objects for s in one.symbols
                          if s.is_function and s.section in one.starts)
        return Image(bytes(self.memory), self.globals, tuple((name, at + SLOT) for name, at in self.stubs.items()),
                     functions=functions)

    def relocate(self, one: Object, table: Section) -> bool:
        """Apply a section's relocations; return whether all are of known kinds and in range."""
        start = one.starts[table.info]
        for offset, info, addend in RELOCATION.iter_unpack(one.code[table.offset:table.offset + table.size]):
            kind, at = info & 0xFFFFFFFF, start + offset
            to = self.place(one, one.symbols[info >> 32], kind)
            if to is None or kind not in (PC32, PLT32, PC64):
                return False
            distance = to + addend - at
            if kind != PC64 and not SHORTEST <= distance <= LONGEST:
                return False
            struct.pack_into("<q" if kind == PC64 else "<i", self.memory, at, distance)
        return True

    def place(self, one: Object, symbol: Symbol, kind: int) -> int | None:
        """Return the offset in the image of a symbol, of this object or another, or of the stub that calls it."""
        if symbol.section in one.starts:
            return one.starts[symbol.section] + symbol.value
        if not symbol.section and symbol.name in self.globals:
            return self.globals[symbol.name]
        if symbol.section or not symbol.name or kind != PLT32:
            return None
        if symbol.name not in self.stubs:
            self.stubs[symbol.name] = self.append(STUB, 16)
        return self.stubs[symbol.name]


@dataclass(frozen=True, slots=True)
class Object:
    """An object whose sections are in the image, and the offset of each."""
    code: bytes
    sections: list[Section]
    starts: dict[int, int]
    symbols: list[Symbol]


def read_symbols(code: bytes, sections: list[Section], table: Section) -> Iterator[Symbol]:
    names = sections[table.link].offset
    for name, info, _, section, value, nbytes in SYMBOL.iter_unpack(code[table.offset:table.offset + table.size]):
        begin = names + name
        text = code[begin:code.index(b"\0", begin)].decode()
        yield Symbol(text, section, value, nbytes, info >> 4 in GLOBAL_OR_WEAK, info & 15 == FUNCTION)
