"""A64 instructions, as far as the stack goes (Arm Architecture Reference Manual for A-profile): four bytes each."""
from __future__ import annotations

from .instruction import CALLS, PLAIN, Family, Instruction, Move, forgets, signed, stops

SP = 31


def decode(code: bytes, at: int) -> Instruction:
    word = int.from_bytes(code[at:at + 4], "little")
    to, source = word & 31, word >> 5 & 31
    if word & 0xBF800000 == 0x91000000:  # add, sub
        number = (word >> 10 & 0xFFF) << (12 if word >> 22 & 1 else 0)
        return Instruction(4, (Move(to, source, -number if word >> 30 & 1 else number),))
    if source == SP and (found := written_back(word)):
        return found
    if word & 0xFF80001F == 0x9200001F:  # and sp, xn, #-2^n
        return Instruction(4, (Move(SP, source, multiple=1 << 63 - (word >> 10 & 63)),))
    if word & 0xDF800000 == 0xD2800000:  # movz, movk
        number = (word >> 5 & 0xFFFF) << 16 * (word >> 21 & 3)
        return Instruction(4, (Move(to, to if word >> 29 & 1 else None, number),))
    if word & 0xBFE0FC1F == 0x8B20601F:  # add, sub sp, xn, xm
        return Instruction(4, (Move(SP, source, other=word >> 16 & 31, factor=-1 if word >> 30 & 1 else 1),))
    if word & 0xBFE0001F == 0x8B20001F or word & 0xFFE0F81F == 0x0420501F:
        return forgets(4, SP)  # by a shifted register, or by vectors of a length that the run knows
    if written := registers_written(word):
        return forgets(4, *written)
    return flow(word, at)


def written_back(word: int) -> Instruction | None:
    """Loads and stores that move the stack pointer."""
    if word >> 27 & 7 == 5 and word >> 23 & 7 in (1, 3):  # pairs
        kind, is_vector = word >> 30, word >> 26 & 1
        scale = 4 << kind if is_vector else (8 if kind & 2 else 4)
        return Instruction(4, (Move(SP, SP, signed(word >> 15, 7) * scale),))
    if word >> 27 & 7 == 7 and word >> 24 & 3 == 0 and not word >> 21 & 1 and word >> 10 & 1:
        return Instruction(4, (Move(SP, SP, signed(word >> 12, 9)),))
    if word & 0xBF800000 in (0x0C800000, 0x0D800000):  # structures of vectors, behind which the pointer goes on
        return forgets(4, SP)
    return None


def registers_written(word: int) -> tuple[int, ...]:
    """The registers for integers that an instruction writes which does not concern the stack: arithmetic, loads, moves out of
    registers for floats. Number 31 is a register of zeros there."""
    to, base = word & 31, word >> 5 & 31
    found: tuple[int, ...] = ()
    is_arithmetic = word >> 25 & 7 == 5 or word >> 26 & 7 == 4 or word >> 25 & 15 == 2  # the last is SVE
    if is_arithmetic or word & 0x5F20FC00 == 0x1E200000 or word & 0xBFE0EC00 == 0x0E002C00:
        found = (to,)
    elif word >> 27 & 1 and not word >> 25 & 1:
        found = (*loaded(word), base) if moves_base(word) else loaded(word)
    return tuple(r for r in found if r != SP)


def loaded(word: int) -> tuple[int, ...]:
    """The registers that a load writes."""
    to, second = word & 31, word >> 10 & 31
    match word >> 27 & 7:
        case _ if word >> 26 & 1:
            return ()
        case 5:
            return (to, second) if word >> 22 & 1 else ()
        case 1:  # exclusive ones, which write how they ended, too
            return (to, second, word >> 16 & 31)
    return (to,) if word >> 22 & 3 or (word >> 24 & 3 == 0 and word >> 21 & 1) else ()


def moves_base(word: int) -> bool:
    """True if a load or a store may move the register with its address."""
    match word >> 27 & 7:
        case 5:
            return bool(word >> 23 & 1)
        case 7:
            return word >> 24 & 3 == 0 and bool(word >> 10 & 1)
    return word >> 24 & 0x3F in (0x0C, 0x0D)


def flow(word: int, at: int) -> Instruction:
    """Branches, returns, calls."""
    if word >> 26 == 0b000101:  # b
        return stops(4, target=at + 4 * signed(word, 26))
    if word >> 26 == 0b100101:  # bl
        return CALLS[4]
    if word >> 24 == 0x54 or word & 0x7E000000 == 0x34000000:  # b.condition, cbz, cbnz
        return Instruction(4, target=at + 4 * signed(word >> 5, 19))
    if word & 0x7E000000 == 0x36000000:  # tbz, tbnz
        return Instruction(4, target=at + 4 * signed(word >> 5, 14))
    match word & 0xFFFFFC1F:
        case 0xD65F0000:
            return stops(4, "return")
        case 0xD61F0000:
            return stops(4, "jump to a register")
        case 0xD63F0000:
            return Instruction(4, kind="call of a register")
    return stops(4) if word >> 16 == 0 or word & 0xFFE0001F == 0xD4200000 else PLAIN[4]


AARCH64 = Family(SP, decode, 16, frozenset((*range(19, 30), SP)))
