"""Thumb instructions of Cortex-M, as far as the stack goes (Arm Architecture Reference Manuals of Armv6-M, Armv7-M, Armv8-M).
Most have two bytes; those that begin with 0b11101, 0b11110 or 0b11111 have four. What moves out of registers for floats and
vectors is no address on the stack: that those instructions write is not looked at."""
from __future__ import annotations

from .instruction import ANYTHING, PLAIN, Family, Instruction, Move, forgets, signed, stops

SP, LR, PC = 13, 14, 15


def decode(code: bytes, at: int) -> Instruction:
    half = int.from_bytes(code[at:at + 2], "little")
    if half >> 11 < 0b11101:
        return short(code, half, at)
    return long(half, int.from_bytes(code[at + 2:at + 4], "little"), at)


def down(nbytes: int) -> tuple[Move, ...]:
    """The stack grows by so many bytes, or shrinks below 0."""
    return Move(SP, SP, -nbytes),


def short(code: bytes, half: int, at: int) -> Instruction:
    """An instruction of two bytes."""
    match half >> 8:
        case 0xB4 | 0xB5:  # push
            return Instruction(2, down(4 * (half & 0x1FF).bit_count()))
        case 0xBC | 0xBD:  # pop
            moves = (*down(-4 * (half & 0x1FF).bit_count()), *unknown(half & 0xFF))
            return stops(2, "return", moves=moves) if half & 0x100 else Instruction(2, moves)
        case 0xB0:  # add or sub sp
            return Instruction(2, down((half & 0x7F) * 4 * (1 if half & 0x80 else -1)))
        case 0x44 | 0x46:  # add or mov with high registers
            return high_registers(half)
        case 0x47:  # bx, blx
            register = half >> 3 & 15
            if half & 0x80:
                return Instruction(2, kind="call of a register")
            return stops(2, "return" if register == LR else "jump to a register")
        case 0xBF if half & 15:  # it
            return Instruction(2, guards=4 - (half & -half & 15).bit_length() + 1)
        case 0xB1 | 0xB3 | 0xB9 | 0xBB:  # cbz, cbnz
            return Instruction(2, target=at + 4 + (half >> 3 & 0x1F) * 2 + (half >> 9 & 1) * 64)
        case 0xDE:  # udf
            return stops(2)
        case op if 0xD0 <= op < 0xDE:
            return Instruction(2, target=at + 4 + 2 * signed(half, 8))
        case op if op >> 3 == 0b11100:
            return stops(2, target=at + 4 + 2 * signed(half, 11))
        case op if op >> 4 == 0b0011:  # adds or subs rd, #n
            return Instruction(2, (Move(op & 7, op & 7, -(half & 0xFF) if op & 8 else half & 0xFF),))
        case op if op >> 3 == 0b10101:  # add rd, sp, #n
            return Instruction(2, (Move(op & 7, SP, (half & 0xFF) * 4),))
        case op if op >> 3 == 0b01001:  # ldr rd, [pc, #n]
            place = (at + 4 & ~3) + (half & 0xFF) * 4
            return Instruction(2, (Move(op & 7, None, signed(int.from_bytes(code[place:place + 4], "little"), 32)),))
        case op if op >> 3 == 0b00100:  # movs rd, #n
            return Instruction(2, (Move(op & 7, None, half & 0xFF),))
        case op if op >> 3 in (0b10011, 0b10100):  # ldr rd, [sp, #n]; adr
            return forgets(2, op & 7)
        case op if (op < 0x44 and op >> 3 != 0b00101) or op in (0xB2, 0xBA) or 0x56 <= op < 0x60:
            return forgets(2, half & 7)  # shifts, arithmetic, loads by registers
        case op if op >> 3 in (0b01101, 0b01111, 0b10001):  # loads
            return forgets(2, half & 7)
        case op if op >> 4 == 0b1100:  # ldm, stm
            return Instruction(2, unknown(1 << (op & 7) | (half & 0xFF if op & 8 else 0)))
    return PLAIN[2]


def unknown(registers: int) -> tuple[Move, ...]:
    """Nothing is known of these registers, a bit for each; the stack pointer is not among them."""
    return tuple(Move(r, ANYTHING) for r in (*range(SP), LR) if registers >> r & 1)


def high_registers(half: int) -> Instruction:
    to, source = half & 7 | half >> 4 & 8, half >> 3 & 15
    if to == PC:
        return stops(2, "return" if (source, half >> 8) == (LR, 0x46) else "jump to a register")
    if half >> 8 == 0x46:
        return Instruction(2, (Move(to, source),))
    return Instruction(2, (Move(to, to, other=source),))


def long(first: int, second: int, at: int) -> Instruction:
    """An instruction of four bytes."""
    if first >> 11 == 0b11110:
        return branch(first, second, at) if second & 0x8000 else immediate(first, second)
    if first >> 9 == 0b1110100:
        return several(first, second)
    if first >> 9 == 0b1110101:
        return of_registers(first, second)
    if first == 0xF84D and second & 0xF00 == 0xD00:  # str rt, [sp, #-n]!
        return Instruction(4, down(second & 0xFF))
    if first == 0xF85D and second & 0xF00 == 0xB00:  # ldr rt, [sp], #n
        return popped(-(second & 0xFF), second >> 12 == PC)
    if first & 0xFFBF in (0xED2D, 0xECBD) and second >> 9 & 7 == 0b101:  # vpush, vpop
        return Instruction(4, down((second & 0xFF) * 4 * (1 if first & 0x100 else -1)))
    if first & 0xEE0F == 0xEC0D and first & 0x20:  # another access that writes sp back
        return forgets(4, SP)
    if first & 0xFE8F == 0xF80D and second & 0x900 == 0x900:
        return forgets(4, SP)
    if first & 0xFFF0 in (0xF850, 0xF8D0) and second >> 12 == PC:
        return stops(4, "jump to a register")
    if first >> 9 == 0b1111100:  # loads and stores of one register
        moved = 1 << (first & 15) if not first & 0x80 and second & 0x900 == 0x900 else 0
        return Instruction(4, unknown(moved | (1 << (second >> 12) if first & 0x10 else 0)))
    if first >> 8 in (0xFA, 0xFB):  # arithmetic of registers, and long products, whose lower half is in another field
        return Instruction(4, unknown(1 << (second >> 8 & 15) | (1 << (second >> 12) if first >> 7 == 0b111110111 else 0)))
    return PLAIN[4]


def of_registers(first: int, second: int) -> Instruction:
    """Arithmetic of registers, as far as it concerns the stack pointer: only a frame of any size needs it."""
    to, source, other = second >> 8 & 15, first & 15, second & 15
    if first & 0xFFEF == 0xEA4F and not second & 0x70F0:  # mov
        return Instruction(4, (Move(to, other),))
    if SP in (source, other):
        return forgets(4, to) if to != PC else PLAIN[4]
    return Instruction(4, unknown(1 << to | (1 << (first & 14) if first >> 4 == 0xEA5 else 0)))  # shifts of 64 bits have two


def popped(nbytes: int, is_return: bool) -> Instruction:
    return stops(4, "return", moves=down(nbytes)) if is_return else Instruction(4, down(nbytes))


def several(first: int, second: int) -> Instruction:
    """Loads and stores of several registers, and table branches."""
    match first:
        case 0xE92D:  # push
            return Instruction(4, down(4 * second.bit_count()))
        case 0xE8BD:  # pop
            return popped(-4 * second.bit_count(), bool(second >> PC))
        case 0xE96D:  # strd rt, rt2, [sp, #-n]!
            return Instruction(4, down((second & 0xFF) * 4))
        case 0xE8FD:  # ldrd rt, rt2, [sp], #n
            return Instruction(4, down(-(second & 0xFF) * 4))
        case _ if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:  # tbb, tbh
            return stops(4, "jump by a table")
        case _ if first & 15 == SP and first & 0x20:
            return forgets(4, SP)
    moved = 1 << (first & 15) if first & 0x20 else 0
    if not first & 0x40:  # ldm, stm
        return Instruction(4, unknown(moved | (second if first & 0x10 else 0)))
    is_written = first & 0x10 or not first & 0x120  # loads, and exclusive stores, which write how they ended
    both = 1 << (second >> 12) | 1 << (second >> 8 & 15) | 1 << (second & 15)
    return Instruction(4, unknown(moved | (both if is_written else 0)))


def immediate(first: int, second: int) -> Instruction:
    """Arithmetic with a number, as far as it concerns the stack pointer or a register from which that is restored."""
    to, source = second >> 8 & 15, first & 15
    number = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | second & 0xFF
    match first & 0xFBF0:
        case 0xF100 | 0xF110:
            return Instruction(4, (Move(to, source, expanded(number)),))
        case 0xF1A0 | 0xF1B0 if to != PC:
            return Instruction(4, (Move(to, source, -expanded(number)),))
        case 0xF200:
            return Instruction(4, (Move(to, source, number),))
        case 0xF2A0:
            return Instruction(4, (Move(to, source, -number),))
        case 0xF040 if source == PC:  # mov
            return Instruction(4, (Move(to, None, expanded(number)),))
        case 0xF240 | 0xF2C0:  # movw, movt
            half = source << 12 | number
            return Instruction(4, (Move(to, to, half << 16) if first & 0x80 else Move(to, None, half),))
        case 0xF360 if source == PC and not (second >> 10 & 0x1C | second >> 6 & 3):  # bfc rd, #0, #n
            return Instruction(4, (Move(to, to, multiple=2 << (second & 0x1F)),))
        case 0xF020 if expanded(number) & (expanded(number) + 1) == 0:  # bic rd, rn, #2^n - 1
            return Instruction(4, (Move(to, source, multiple=expanded(number) + 1),))
    return forgets(4, to) if to != PC else PLAIN[4]


def expanded(number: int) -> int:
    """A number of twelve bits as the manuals' ThumbExpandImm has it."""
    byte = number & 0xFF
    if number >> 10 == 0:
        return byte * (1, 0x00010001, 0x01000100, 0x01010101)[number >> 8]
    turn, value = number >> 7, 0x80 | number & 0x7F
    return (value >> turn | value << 32 - turn) & 0xFFFFFFFF


def branch(first: int, second: int, at: int) -> Instruction:
    """Branches, calls, and other instructions whose second half begins with a 1."""
    sign, low = first >> 10 & 1, second & 0x7FF
    if second & 0x1000:  # b.w, bl
        first_bit, second_bit = (~(second >> n ^ sign) & 1 for n in (13, 11))
        offset = sign << 24 | first_bit << 23 | second_bit << 22 | (first & 0x3FF) << 12 | low << 1
        target = at + 4 + signed(offset, 25)
        return Instruction(4, target=target, kind="call or jump") if second & 0x4000 else stops(4, target=target)
    if second & 0x5000 == 0 and first >> 7 & 7 != 7:  # b<condition>.w
        offset = sign << 20 | (second >> 11 & 1) << 19 | (second >> 13 & 1) << 18 | (first & 0x3F) << 12 | low << 1
        return Instruction(4, target=at + 4 + signed(offset, 21))
    if first >> 7 == 0b111100000 and second & 0xF001 == 0xC001:  # the end of a loop of Armv8.1-M, and its beginning
        offset = (second >> 1 & 0x3FF) << 2 | (second >> 11 & 1) << 1
        return Instruction(4, target=at + 4 + (-offset if first & 15 == PC else offset))
    return PLAIN[4]


THUMB = Family(SP, decode, 8, frozenset((*range(4, 12), SP)))
