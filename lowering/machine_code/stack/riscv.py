"""RISC-V instructions, as far as the stack goes (The RISC-V Instruction Set Manual, Volume I): four bytes, or two with the
extension C. Each says in one place which register it writes, so one that writes the stack pointer in another way than these is
seen."""
from __future__ import annotations

import functools

from .instruction import CALLS, PLAIN, Family, Instruction, Move, forgets, signed, stops

RA, SP = 1, 2
SHIFTED_ADDS = {0x10 << 3 | 2: 2, 0x10 << 3 | 4: 4, 0x10 << 3 | 6: 8}
"""sh1add, sh2add, sh3add of Zba: function -> the factor."""


def decode(code: bytes, at: int, has_int64: bool = False) -> Instruction:
    word = int.from_bytes(code[at:at + 2], "little")
    if word & 3 != 3:
        return short(word, at, has_int64)
    return long(int.from_bytes(code[at:at + 4], "little"), at)


def bits(word: int, *fields: tuple[int, int, int]) -> int:
    """A number with scattered bits: each field is (lowest bit in the word, width, lowest bit in the number)."""
    return sum((word >> at & (1 << count) - 1) << to for at, count, to in fields)


def long(word: int, at: int) -> Instruction:
    """An instruction of four bytes."""
    to, source, function = word >> 7 & 31, word >> 15 & 31, word >> 12 & 7
    match word & 0x7F:
        case 0x13 | 0x1B if function == 0:  # addi, addiw
            return Instruction(4, (Move(to, source or None, signed(word >> 20, 12)),))
        case 0x13 if to == SP and function == 7 and signed(word >> 20, 12) < 0:  # andi sp, rs, -2^n
            return Instruction(4, (Move(to, source, multiple=-signed(word >> 20, 12)),))
        case 0x33:
            return added(word, to, source)
        case 0x37:  # lui
            return Instruction(4, (Move(to, None, signed(word & 0xFFFFF000, 32)),))
        case 0x63:
            offset = bits(word, (8, 4, 1), (25, 6, 5), (7, 1, 11), (31, 1, 12))
            return Instruction(4, target=at + signed(offset, 13))
        case 0x6F:  # jal
            offset = bits(word, (21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20))
            return CALLS[4] if to else stops(4, target=at + signed(offset, 21))
        case 0x67:  # jalr
            return register_jump(4, to, source)
        case 0x03 | 0x13 | 0x17 | 0x1B | 0x2F | 0x3B | 0x73:
            return forgets(4, to)
        case 0x53 if word >> 28 in (0xA, 0xC, 0xE) and to != SP:  # comparisons of floats, integers of floats
            return forgets(4, to)
        case 0x57 if function == 7 or (function in (1, 2) and word >> 26 == 0x10):  # a vector's length; one of its elements
            return forgets(4, to)
    return PLAIN[4]


def added(word: int, to: int, source: int) -> Instruction:
    """Arithmetic of registers."""
    other, function = word >> 20 & 31, word >> 25 << 3 | word >> 12 & 7
    if function == 0:
        return Instruction(4, (Move(to, source, other=other),))
    if function == 0x20 << 3:
        return Instruction(4, (Move(to, source, other=other, factor=-1),))
    if function in SHIFTED_ADDS:
        return Instruction(4, (Move(to, other, other=source, factor=SHIFTED_ADDS[function]),))
    return forgets(4, to)


def register_jump(nbytes: int, to: int, register: int) -> Instruction:
    """A call where it keeps where it came from. With no relocation it is one of a function that is given; those with are known,
    and count as calls, too: LLVM calls by auipc and jalr."""
    if to:
        return PLAIN[nbytes] if register == RA else Instruction(nbytes, kind="call of a register")
    return stops(nbytes, "return" if register == RA else "jump to a register")


def short(word: int, at: int, has_int64: bool) -> Instruction:
    """An instruction of two bytes; some depend on the register width."""
    to, number = word >> 7 & 31, signed(bits(word, (2, 5, 0), (12, 1, 5)), 6)
    match word & 3, word >> 13:
        case 0, 0 if word:  # c.addi4spn
            return Instruction(2, (Move(8 + (word >> 2 & 7), SP, bits(word, (6, 1, 2), (5, 1, 3), (11, 2, 4), (7, 4, 6))),))
        case 1, 0:  # c.addi
            return Instruction(2, (Move(to, to, number),))
        case 1, 2:  # c.li
            return Instruction(2, (Move(to, None, number),))
        case 1, 3 if to == SP:  # c.addi16sp
            offset = bits(word, (6, 1, 4), (2, 1, 5), (5, 1, 6), (3, 2, 7), (12, 1, 9))
            return Instruction(2, (Move(SP, SP, signed(offset, 10)),))
        case 1, 3:  # c.lui
            return Instruction(2, (Move(to, None, number << 12),))
        case 1, 5:  # c.j
            offset = bits(word, (3, 3, 1), (11, 1, 4), (2, 1, 5), (7, 1, 6), (6, 1, 7), (9, 2, 8), (8, 1, 10), (12, 1, 11))
            return stops(2, target=at + signed(offset, 12))
        case 1, 6 | 7:  # c.beqz, c.bnez
            return Instruction(2, target=at + signed(bits(word, (3, 2, 1), (10, 2, 3), (2, 1, 5), (5, 2, 6), (12, 1, 8)), 9))
        case 2, 4:
            return register_short(word, to, word >> 2 & 31)
        case 1, 4:  # arithmetic of eight registers
            return forgets(2, 8 + (to & 7))
        case 1, 1 if not has_int64:  # c.jal
            return Instruction(2, kind="call")
        case (0 | 2, 3) if not has_int64:  # loads of floats
            return PLAIN[2]
        case 0, 2 | 3 | 4:  # loads
            return forgets(2, 8 + (word >> 2 & 7))
        case (2, 0 | 2 | 3) | (1, 1):  # c.slli, loads from the stack, c.addiw
            return forgets(2, to)
    return PLAIN[2] if word else stops(2)


def register_short(word: int, to: int, source: int) -> Instruction:
    """c.jr, c.mv, c.ebreak, c.jalr, c.add."""
    is_second = word >> 12 & 1
    if source:
        return Instruction(2, (Move(to, to, other=source) if is_second else Move(to, source),))
    return register_jump(2, RA if is_second else 0, to) if to else stops(2)


SAVED = frozenset((SP, 3, 4, 8, 9, *range(18, 28)))
RISCV32 = Family(SP, decode, 16, SAVED)
RISCV64 = Family(SP, functools.partial(decode, has_int64=True), 16, SAVED)
