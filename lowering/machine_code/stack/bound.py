"""The maximum stack of calls of an object's functions: the frames of functions that call each other, added up along the deepest
path, plus a stated allowance for functions of the C or the compiler's library. The object must have each function in a section
of its own (`own_sections`), and no recursion.
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
"""Families by the name of a target's architecture, and whether it has 64-bit registers."""

ALLOWED: Mapping[bool, int] = {False: 96, True: 192}
"""Bytes of stack allowed for each function of the C or the compiler's library; True where pointers have 8 bytes."""
KNOWN = re.compile(r"mem(cpy|set|move)|__aeabi_\w+|__\w+(sf|df|si|di)\d?")
"""Names of the functions with that allowance: they copy, or implement arithmetic that the processor lacks."""
CALLS_OF_RISCV = (18, 19)
"""R_RISCV_CALL, R_RISCV_CALL_PLT."""
OWN = "tosaic_"
"""Prefix of the names that objects of tosaic share: variables, and no functions."""


@dataclass(frozen=True, slots=True)
class StackBound:
    """The maximum bytes of stack of a call. `allowance` of them are for the functions `outside` the object that the deepest
    path may call; `calls_given` is true if functions that the caller passes are called, too, whose stack is not known here."""
    nbytes: int
    allowance: int = 0
    outside: tuple[str, ...] = ()
    calls_given: bool = False

    def under(self, frame: Frame) -> StackBound:
        """Return the bound of a caller with that frame."""
        return StackBound(self.nbytes + frame.nbytes, self.allowance, self.outside, self.calls_given or frame.calls_given)

    def beside(self, other: StackBound) -> StackBound:
        """Return the bound of two calls, one after the other."""
        deeper = max(self, other, key=lambda b: (b.nbytes, b.allowance))
        return StackBound(deeper.nbytes, deeper.allowance, tuple(sorted({*self.outside, *other.outside})),
                          self.calls_given or other.calls_given)


class StackUse:
    """The stack of the functions of one object. Its methods raise UnknownStack if there is no bound."""

    def __init__(self, code: bytes, target: Target) -> None:
        family = FAMILIES.get((target.architecture, target.has_int64))
        if family is None or "zcmp" in target.enabled:
            raise UnknownStack(f"nothing is known of the instructions of {target.architecture}")
        self.object, self.family, self.allowed = ElfObject(code), family, ALLOWED[target.has_int64]
        self._bounds: dict[int, StackBound | None] = {}

    def bound(self, name: str) -> StackBound:
        """Return the bound of calls of a function, by its symbol."""
        return self._bound(self.functions[name])

    def frame(self, name: str) -> Frame:
        """Return the frame of a function alone."""
        return frame_of(self.family, self._code(self.functions[name]))

    def whole(self) -> StackBound:
        """Return the bound of calls of any function of the object."""
        found = StackBound(0)
        for section in set(self.functions.values()):
            found = found.beside(self._bound(section))
        return found

    @cached_property
    def functions(self) -> Mapping[str, int]:
        """Number of each function's section, which the function begins (bit 0 of the address marks Thumb)."""
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
        """Yield the functions that a function calls, or whose address it knows."""
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
        """Return a function as `frames` takes it."""
        table = self.object.sections[section]
        marks = sorted((s.value, s.name[:2]) for s in self.object.symbols if s.section == section and s.name[:1] == "$")
        if any(mark == "$a" for _, mark in marks):
            raise UnknownStack(f"{table.name} has instructions of A32")
        ends = [at for at, _ in marks[1:]] + [table.nbytes]
        data = [(at, end) for (at, mark), end in zip(marks, ends) if mark == "$d" and at < end]
        relocations = self.object.relocations.get(section, ())
        jumps = {r.offset: self._inside(r, section) for r in relocations}
        if self.family in (RISCV32, RISCV64):  # these relocate two instructions, and the second one jumps
            jumps |= {r.offset + 4: None for r in relocations if r.kind in CALLS_OF_RISCV}
        return Code(table.name.removeprefix(".text."), self.object.bytes_of(table), data, jumps)

    def _inside(self, relocation: Relocation, section: int) -> int | None:
        """Return the offset in its own function of a jump's target; None if it leaves the function."""
        symbol = relocation.symbol
        if symbol.section != section or symbol.kind in (FUNCTION, SECTION):
            return None
        return symbol.value + relocation.addend
