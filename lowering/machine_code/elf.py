"""An ELF object as data: sections, symbols, relocations. `codegen` reads the symbols that an object needs and defines, `stack`
its calls, the report its size. 32 and 64 bits, little-endian or big.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property

from ...runtime.records import dataclass

MAGIC = b"\x7fELF"
SYMBOLS, RELOCATIONS_WITH_ADDENDS, NO_BITS, RELOCATIONS = 2, 4, 8, 9
"""SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL."""
WRITE, ALLOCATE, EXECUTE = 1, 2, 4
"""Flags of a section."""
LOCAL, GLOBAL, WEAK = 0, 1, 2
"""Bindings of a symbol."""
NO_TYPE, OBJECT, FUNCTION, SECTION = 0, 1, 2, 3
"""Types of a symbol."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section; `kind` is its type, `info` what its type makes of it."""
    name: str
    kind: int
    flags: int
    offset: int
    nbytes: int
    link: int
    info: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol; `section` is the number of its section, 0 for one that is defined elsewhere."""
    name: str
    section: int
    value: int
    nbytes: int
    kind: int
    binding: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """Bytes of a section that the address of a symbol goes into; objects for 32-bit Arm keep addends there, too (0 here)."""
    offset: int
    symbol: Symbol
    kind: int
    addend: int


class ElfObject:
    """The tables of an object file."""

    def __init__(self, code: bytes) -> None:
        assert is_elf(code), "not an ELF object"
        self.code, self.is_wide, self.order = code, code[4] == 2, "<" if code[5] == 1 else ">"

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        start, = self._unpack("Q" if self.is_wide else "I", 0x28 if self.is_wide else 0x20)
        size, count, names = self._unpack("HHH", 0x3A if self.is_wide else 0x2E)
        header = struct.Struct(self.order + ("IIQQQQIIQQ" if self.is_wide else "IIIIIIIIII"))
        rows = [header.unpack_from(self.code, start + i * size) for i in range(count)]
        return tuple(Section(self._text(rows[names][4] + name), kind, flags, offset, nbytes, link, info)
                     for name, kind, flags, _, offset, nbytes, link, info, _, _ in rows)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """All symbols, by their numbers."""
        tables = [s for s in self.sections if s.kind == SYMBOLS]
        return tuple(self._symbols(tables[0])) if tables else ()

    def _symbols(self, table: Section) -> Iterator[Symbol]:
        names = self.sections[table.link].offset
        entry = struct.Struct(self.order + ("IBBHQQ" if self.is_wide else "IIIBBH"))
        for fields in entry.iter_unpack(self.bytes_of(table)):
            if self.is_wide:
                name, info, _, section, value, nbytes = fields
            else:
                name, value, nbytes, info, _, section = fields
            yield Symbol(self._text(names + name), section, value, nbytes, info & 15, info >> 4)

    @cached_property
    def relocations(self) -> dict[int, tuple[Relocation, ...]]:
        """The relocations of each section that has some, by its number."""
        return {s.info: tuple(self._relocations(s)) for s in self.sections if s.kind in (RELOCATIONS, RELOCATIONS_WITH_ADDENDS)}

    def _relocations(self, table: Section) -> Iterator[Relocation]:
        has_addend = table.kind == RELOCATIONS_WITH_ADDENDS
        word, signed, shift = ("Q", "q", 32) if self.is_wide else ("I", "i", 8)
        entry = struct.Struct(self.order + 2 * word + signed * has_addend)
        for offset, info, *addend in entry.iter_unpack(self.bytes_of(table)):
            yield Relocation(offset, self.symbols[info >> shift], info & ((1 << shift) - 1), addend[0] if addend else 0)

    def bytes_of(self, section: Section) -> bytes:
        return b"" if section.kind == NO_BITS else self.code[section.offset:section.offset + section.nbytes]

    def _unpack(self, form: str, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self.order + form, self.code, at)

    def _text(self, at: int) -> str:
        return self.code[at:self.code.index(b"\0", at)].decode()


def is_elf(code: bytes) -> bool:
    return code[:4] == MAGIC


def undefined_symbols(code: bytes) -> tuple[str, ...]:
    """Names that an ELF object needs from elsewhere, sorted."""
    return tuple(sorted({s.name for s in ElfObject(code).symbols if s.section == 0 and s.name}))


def exported_symbols(code: bytes) -> tuple[str, ...]:
    """Names that an ELF object defines for others, in its own order."""
    return tuple(s.name for s in ElfObject(code).symbols if s.section and s.binding in (GLOBAL, WEAK))
