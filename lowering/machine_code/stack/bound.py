"""The most stack that calls of an object's functions take: the frames of the functions that call each other, added up along
the deepest path, and for functions of the C library or the compiler's, an allowance that is said. The object must have each
function in a section of its own (`own_sections`), and no recursion.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from ....runtime.records import dataclass
from ...target.target import Target
from ..elf import ALLOCATE, EXECUTE, FUNCTION, SECTION, ElfObject, Relocation, Symbol
from .aarch64 import AARCH64
from .frames import Code, Frame, frame_of
from .instruction import Family, UnknownStack
from .riscv import RISCV32, RISCV64
from .thumb import THUMB
from .x86 import X86

FAMILIES: Mapping[tuple[str, bool], Family] = {
    ("arm", False): THUMB, ("riscv", False): RISCV32, ("riscv", True): RISCV64, ("aarch64", True): AARCH64, ("x86", True): X86}
"""By the name of a target's architecture, and whether it has registers of 64 bits."""

ALLOWED: Mapping[bool, int] = {False: 96, True: 192}
"""The stack that each function of the C library or the compiler's is taken to need; True where pointers have 8 bytes."""
KNOWN = re.compile(r"mem(cpy|set|move)|__aeabi_\w+|__\w+(sf|df|si|di)\d?")
"""The functions for which that holds: they copy, or stand for arithmetic that the processor lacks."""
CALLS_OF_RISCV = (18, 19)
"""R_RISCV_CALL, R_RISCV_CALL_PLT."""
OWN = "tosaic_"
"""What the names begin with that objects of tosaic share: variables, and no functions."""


@dataclass(frozen=True, slots=True)
class StackBound:
    """The most bytes of stack that a call takes. `allowance` of them are for the functions `outside` of the object, which
    the deepest path may call; `calls_given` says whether functions that the caller gives are called, too, whose stack nobody
    knows here."""
    nbytes: int
    allowance: int = 0
    outside: tuple[str, ...] = ()
    calls_given: bool = False

    def under(self, frame: Frame) -> StackBound:
        """The same below the frame of a caller."""
        return StackBound(self.nbytes + frame.nbytes, self.allowance, self.outside, self.calls_given or frame.calls_given)

    def beside(self, other: StackBound) -> StackBound:
        """Of two calls one after the other."""
        deeper = max(self, other, key=lambda b: (b.nbytes, b.allowance))
        return StackBound(deeper.nbytes, deeper.allowance, tuple(sorted({*self.outside, *other.outside})),
                          self.calls_given or other.calls_given)


class StackUse:
    """The stack of the functions of one object. Its methods raise UnknownStack where there is no bound."""

    def __init__(self, code: bytes, target: Target) -> None:
        family = FAMILIES.get((target.architecture, target.has_int64))
        if family is None or "zcmp" in target.enabled:
            raise UnknownStack(f"nothing is known of the instructions of {target.architecture}")
        self.object, self.family, self.allowed = ElfObject(code), family, ALLOWED[target.has_int64]
        self._bounds: dict[int, StackBound | None] = {}

    def bound(self, name: str) -> StackBound:
        """Of calls of a function, by its symbol."""
        return self._bound(self.functions[name])

    def frame(self, name: str) -> Frame:
        """Of a function alone."""
        return frame_of(self.family, self._code(self.functions[name]))

    def whole(self) -> StackBound:
        """Of calls of any function that the object has."""
        found = StackBound(0)
        for section in set(self.functions.values()):
            found = found.beside(self._bound(section))
        return found

    @cached_property
    def functions(self) -> Mapping[str, int]:
        """The number of each function's section, of which it is the beginning (bit 0 of the address says Thumb)."""
        found = [s for s in self.object.symbols if s.kind == FUNCTION and s.section]
        if others := [s.name for s in found if s.value & ~1]:
            raise UnknownStack(f"{others[0]} has no section of its own")
        return {s.name: s.section for s in found}

    def _bound(self, section: int) -> StackBound:
        if section in self._bounds:
            known = self._bounds[section]
            if known is None:
                raise UnknownStack(f"{self.object.sections[section].name} calls itself")
            return known
        self._bounds[section] = None
        frame, called = frame_of(self.family, self._code(section)), list(self._called(section))
        below = StackBound(0 if called or frame.calls_given else self.family.red_zone)
        for symbol in called:
            below = below.beside(self._bound(symbol.section) if symbol.section else self._allowance(symbol.name))
        found = self._bounds[section] = below.under(frame)
        return found

    def _called(self, section: int) -> Iterator[Symbol]:
        """The functions that one calls, or of which it knows the address."""
        for relocation in self.object.relocations.get(section, ()):
            symbol = relocation.symbol
            is_other = symbol.section != section or symbol.kind == FUNCTION
            if (not symbol.section and symbol.name) or (is_other and self._is_code(symbol.section)):
                yield symbol

    def _is_code(self, section: int) -> bool:
        flags = ALLOCATE | EXECUTE
        return 0 < section < len(self.object.sections) and self.object.sections[section].flags & flags == flags

    def _allowance(self, name: str) -> StackBound:
        if name.startswith(OWN):
            return StackBound(0)
        if not KNOWN.fullmatch(name):
            raise UnknownStack(f"nobody knows how much stack {name} takes")
        return StackBound(self.allowed, self.allowed, (name,))

    def _code(self, section: int) -> Code:
        """A function as `frames` takes it."""
        table = self.object.sections[section]
        marks = sorted((s.value, s.name[:2]) for s in self.object.symbols if s.section == section and s.name[:1] == "$")
        if any(mark == "$a" for _, mark in marks):
            raise UnknownStack(f"{table.name} has instructions of A32")
        ends = [at for at, _ in marks[1:]] + [table.nbytes]
        data = [(at, end) for (at, mark), end in zip(marks, ends) if mark == "$d" and at < end]
        relocations = self.object.relocations.get(section, ())
        jumps = {r.offset: self._inside(r, section) for r in relocations}
        if self.family in (RISCV32, RISCV64):  # these are of two instructions, and the second one jumps
            jumps |= {r.offset + 4: None for r in relocations if r.kind in CALLS_OF_RISCV}
        return Code(table.name.removeprefix(".text."), self.object.bytes_of(table), data, jumps)

    def _inside(self, relocation: Relocation, section: int) -> int | None:
        """Where in its own function a jump goes; None where it leaves it."""
        symbol = relocation.symbol
        if symbol.section != section or symbol.kind in (FUNCTION, SECTION):
            return None
        return symbol.value + relocation.addend
