"""The integer registers that an x86-64 instruction without an effect on the stack writes: `x86` finds its length and its
fields, and asks here which registers are no longer known. Vector registers are not counted; the number of a byte register may
name the second byte of another register.
"""
from __future__ import annotations

from collections.abc import Iterator

A, C, D, B, SI, DI = 0, 1, 2, 3, 6, 7
ARITHMETIC = frozenset(8 * row + n for row in range(7) for n in range(6))
"""add, or, adc, sbb, and, sub, xor; cmp, the eighth row, writes nothing."""
TO_FIRST = frozenset((0x80, 0x81, 0x83, 0x86, 0x87, 0x88, 0x89, 0x8F, 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), 0xFE))
"""Opcodes of one byte that write the register in the field rm of ModRM."""
TO_SECOND = frozenset((0x63, 0x69, 0x6B, 0x86, 0x87, 0x8A, 0x8B, 0x8D))
"""Opcodes of one byte that write the register in the field reg."""
OF_BYTES = frozenset((0x80, 0x86, 0x88, 0x8A, 0xC0, 0xC6, 0xD0, 0xD2, 0xF6, 0xFE))
STRINGS = frozenset((0xA4, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF))
LONG_TO_SECOND = frozenset((0x02, 0x03, 0x2C, 0x2D, *range(0x40, 0x51), 0xAF, 0xB6, 0xB7, 0xB8, *range(0xBC, 0xC2), 0xC5, 0xD7))
"""Opcodes after 0x0F that write the register in the field reg."""
LONG_TO_FIRST = frozenset((*range(0x90, 0xA0), 0xA4, 0xA5, 0xAB, 0xAC, 0xAD, 0xB0, 0xB1, 0xB3, 0xBA, 0xBB, 0xC0, 0xC1))
VECTOR_TO_SECOND = frozenset(((1, 0x2C), (1, 0x2D), (1, 0x50), (1, 0x78), (1, 0x79), (1, 0x93), (1, 0xC5), (1, 0xD7), (3, 0xF0),
                              (5, 0x2C), (5, 0x2D), (5, 0x78), (5, 0x79), (2, 0xF2), (2, 0xF5), (2, 0xF6), (2, 0xF7)))
"""(table, opcode) after VEX and EVEX; table 2 has the arithmetic of BMI, which may write the register in vvvv, too."""


def written(opcode: int, reg: int, rm: int, mod: int, wide: int) -> tuple[int, ...]:
    """Return the registers that an opcode of one byte writes."""
    if opcode in ARITHMETIC:
        return by_direction(opcode, reg, rm, mod, wide)
    if opcode >> 4 == 0xB or 0x91 <= opcode < 0x98 or (opcode == 0x90 and wide & 1):
        number = opcode & 7 | (wide & 1) << 3
        return (A, number) if opcode < 0xB0 else (register(number, 0xB0 <= opcode < 0xB8, wide),)
    return tuple(special(opcode, reg) if opcode not in TO_FIRST | TO_SECOND | {0xF6, 0xF7, 0xFF} else
                 fields(opcode, reg, rm, mod, wide))


def by_direction(opcode: int, reg: int, rm: int, mod: int, wide: int) -> tuple[int, ...]:
    """Arithmetic writes rm, reg or the accumulator."""
    match opcode & 7:
        case 0 | 1:
            return (register(rm, opcode & 1 == 0, wide),) if mod == 3 else ()
        case 2 | 3:
            return (register(reg, opcode & 1 == 0, wide),)
    return (A,)


def fields(opcode: int, reg: int, rm: int, mod: int, wide: int) -> Iterator[int]:
    """Yield the registers named in ModRM."""
    is_byte, kind = opcode in OF_BYTES, reg & 7
    if opcode in (0xF6, 0xF7) and kind >= 4:  # products and quotients
        yield from (A, D)
    is_written = opcode in TO_FIRST or (opcode in (0xF6, 0xF7) and kind in (2, 3)) or (opcode == 0xFF and kind < 2)
    if mod == 3 and is_written and not (opcode in (0x80, 0x81, 0x83) and kind == 7):
        yield register(rm, is_byte, wide)
    if opcode in TO_SECOND:
        yield register(reg, is_byte, wide)


def special(opcode: int, reg: int) -> Iterator[int]:
    """Yield the registers that the opcode alone implies."""
    if opcode in STRINGS:
        yield from (A, C, SI, DI)
    elif opcode in (0x98, 0x99, 0xA0, 0xA1):
        yield from (A, D)
    elif 0xE0 <= opcode < 0xE4:
        yield C


def register(number: int, is_byte: bool, wide: int) -> int:
    """Return a register by its number in an instruction: without a REX prefix bytes 4 to 7 are the second bytes of registers 0
    to 3."""
    return number - 4 if is_byte and not wide and 4 <= number < 8 else number


def written_long(opcode: int, reg: int, rm: int, mod: int, wide: int, is_repeated: bool) -> tuple[int, ...]:
    """Return the registers that an opcode after 0x0F writes; `is_repeated` says whether it has the prefix 0xF3."""
    found = [reg] if opcode in LONG_TO_SECOND else []
    if mod == 3 and (opcode in LONG_TO_FIRST or (opcode == 0x7E and not is_repeated)):
        found.append(register(rm, opcode in (*range(0x90, 0xA0), 0xB0, 0xC0), wide))
    if opcode in (0xC0, 0xC1):
        found.append(register(reg, opcode == 0xC0, wide))
    if 0xC8 <= opcode < 0xD0:
        found.append(opcode & 7 | (wide & 1) << 3)
    return (*found, *((A, B, C, D) if opcode in (0x01, 0x31, 0x33, 0xA2, 0xB0, 0xB1, 0xC7) else ()))


def written_by_vectors(table: int, opcode: int, prefix: int, reg: int, rm: int, mod: int, third: int) -> tuple[int, ...]:
    """Return the registers written after a VEX or EVEX prefix; `third` is its field vvvv, `prefix` 2 is 0xF3."""
    if (table, opcode) in VECTOR_TO_SECOND:
        return (reg, third) if table == 2 else (reg,)
    if (table, opcode) == (2, 0xF3):
        return (third,)
    is_first = (table in (1, 5) and opcode == 0x7E and prefix != 2) or (table == 3 and opcode >> 2 == 5)
    return (rm,) if is_first and mod == 3 else ()
