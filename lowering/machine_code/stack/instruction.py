"""The effect of an instruction on the stack: how it moves the stack pointer, or a register from which that is restored, and its
successors. Each processor family has a decoder that makes these of machine code (`thumb`, `riscv`, `aarch64`, `x86`). Decoders
know all instructions that LLVM uses to move a stack pointer; of others they know the length and the integer registers written,
whose known values are dropped.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal

from ....runtime.records import dataclass

Kind = Literal["plain", "return", "call", "call or jump", "call of a register", "jump to a register", "jump by a table"]


class UnknownStack(Exception):
    """The reason why the stack cannot be bounded: a frame of a size that only the run knows, an unknown function."""


ANYTHING = -1
"""Number of a register whose value is never known."""


@dataclass(frozen=True, slots=True)
class Move:
    """A register becomes `source + factor * other + number`, rounded down to a multiple; without a source it is the number. If
    an operand is not known, the register is not known either."""
    to: int
    source: int | None = None
    number: int = 0
    other: int | None = None
    factor: int = 1
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of `nbytes`. It may jump to `target`; `falls_through` says whether the next one may follow. The next
    `guards` instructions run under a condition (IT of Thumb). A "call or jump" is a jump to `target` unless a relocation sends
    it elsewhere (Armv6-M has no other jump so far)."""
    nbytes: int
    moves: tuple[Move, ...] = ()
    target: int | None = None
    falls_through: bool = True
    kind: Kind = "plain"
    guards: int = 0


PLAIN = {n: Instruction(n) for n in range(1, 16)}
"""Instructions without an effect on the stack, by their length."""
CALLS = {n: Instruction(n, kind="call") for n in range(4, 8)}
"""Calls of known functions, by their length."""


@dataclass(frozen=True, slots=True)
class Family:
    """A family of processors: the number of its stack pointer; its decoder, which takes the bytes of a section and an offset
    there; the alignment of the stack at calls; the callee-saved registers; the bytes of a return address that a call pushes;
    and the bytes below the stack pointer that a leaf function may use (the red zone of the System V ABI)."""
    stack_pointer: int
    decode: Callable[[bytes, int], Instruction]
    alignment: int
    saved: frozenset[int]
    return_address: int = 0
    red_zone: int = 0


def stops(nbytes: int, kind: Kind = "plain", target: int | None = None, moves: tuple[Move, ...] = ()) -> Instruction:
    """Return an instruction that no other follows."""
    return Instruction(nbytes, moves, target, False, kind)


@functools.lru_cache(maxsize=4096)
def forgets(nbytes: int, *registers: int) -> Instruction:
    """Return an instruction that writes unknown values to registers."""
    return Instruction(nbytes, tuple(Move(register, ANYTHING) for register in registers))


def signed(value: int, bits: int) -> int:
    """Return a field of `bits` bits as a signed number."""
    return (value & (1 << bits) - 1) - ((value >> bits - 1 & 1) << bits)
