"""x86-64 instructions, as far as the stack goes (Intel 64 and IA-32 Architectures Software Developer's Manual, Volume 2). Their
length must be found, too: prefixes, opcode, ModRM with its displacement, immediate.
"""
from __future__ import annotations

from .instruction import ANYTHING, CALLS, PLAIN, Family, Instruction, Move, forgets, signed, stops
from .x86_registers import written, written_by_vectors, written_long

SP, BP = 4, 5
PREFIXES = frozenset((0x66, 0xF2, 0xF3, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65, 0xF0))
WITH_MODRM = frozenset((*(16 * row + n for row in range(4) for n in (0, 1, 2, 3, 8, 9, 10, 11)), 0x63, 0x69, 0x6B, 0x80, 0x81,
                        0x83, *range(0x84, 0x90), 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), *range(0xD8, 0xE0), 0xF6, 0xF7,
                        0xFE, 0xFF))
"""Opcodes of one byte with a ModRM byte."""
BYTES = frozenset((*(8 * row + 4 for row in range(8)), 0x6A, 0x6B, *range(0x70, 0x80), 0x80, 0x83, 0xA8, *range(0xB0, 0xB8),
                   0xC0, 0xC1, 0xC6, 0xCD, *range(0xE0, 0xE4), 0xEB))
WORDS = frozenset((*(8 * row + 5 for row in range(8)), 0x68, 0x69, 0x81, 0xA9, *range(0xB8, 0xC0), 0xC7, 0xE8, 0xE9))
"""Opcodes of one byte with an immediate of one byte; of four, or of two after the prefix 0x66."""
ALONE = frozenset((0x05, 0x06, 0x08, 0x09, 0x0B, 0x0E, *range(0x30, 0x38), 0x77, *range(0x80, 0x90), 0xA0, 0xA1, 0xA2, 0xA8,
                   0xA9, 0xAA, *range(0xC8, 0xD0)))
"""Opcodes after 0x0F without a ModRM byte."""
BYTES_BEHIND = frozenset((0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6))
"""Opcodes after 0x0F with an immediate of one byte."""


def decode(code: bytes, at: int) -> Instruction:
    end, is_short, is_repeated, wide = at, False, False, 0
    while code[end] in PREFIXES:
        is_short, is_repeated = is_short or code[end] == 0x66, is_repeated or code[end] == 0xF3
        end += 1
    if code[end] in (0xC4, 0xC5, 0x62):
        return vector(code, at, end)
    if code[end] >> 4 == 4:
        wide, end = code[end], end + 1
    opcode, end = code[end], end + 1
    if opcode == 0x0F:
        return two_bytes(code, at, end, wide, is_repeated)
    reg, rm, mod, place = 0, 0, 0, end
    if opcode in WITH_MODRM:
        mod, reg, rm = code[end] >> 6, code[end] >> 3 & 7 | (wide & 4) << 1, code[end] & 7 | (wide & 1) << 3
        end = behind_modrm(code, end)
    number_at = end
    if opcode in BYTES or (opcode == 0xF6 and reg & 6 == 0):
        end += 1
    elif opcode in WORDS or (opcode == 0xF7 and reg & 6 == 0):
        end += 8 if opcode >> 3 == 0x17 and wide & 8 else 2 if is_short and opcode not in (0xE8, 0xE9) else 4
    elif opcode in (0xC2, 0xC8):
        end += 2 if opcode == 0xC2 else 3
    elif 0xA0 <= opcode < 0xA4:
        end += 8
    number = signed(int.from_bytes(code[number_at:end], "little"), 8 * (end - number_at)) if end > number_at else 0
    found = stack_instruction(end - at, opcode, reg, rm, mod, number, wide) or flow(end - at, opcode, reg, end + number)
    if found is None and opcode == 0x8D and wide & 8:
        return Instruction(end - at, (address(code, place, reg, rm, wide),))
    return found or forgets(end - at, *written(opcode, reg, rm, mod, wide))


def behind_modrm(code: bytes, at: int) -> int:
    """Return the offset of the first byte after ModRM, SIB and displacement."""
    mod, rm, end = code[at] >> 6, code[at] & 7, at + 1
    if mod == 3:
        return end
    base = rm
    if rm == 4:
        base, end = code[end] & 7, end + 1
    return end + (1 if mod == 1 else 4 if mod == 2 or base == 5 else 0)


def vector(code: bytes, at: int, first: int) -> Instruction:
    """Return an instruction with a VEX or EVEX prefix."""
    is_short = code[first] == 0xC5
    table = 1 if is_short else code[first + 1] & (0x1F if code[first] == 0xC4 else 7)
    place = first + {0xC5: 2, 0xC4: 3, 0x62: 4}[code[first]]
    opcode, modrm, last = code[place], code[place + 1], code[first + (1 if is_short else 2)]
    if table == 1 and opcode == 0x77:
        return PLAIN[place + 1 - at]
    end = behind_modrm(code, place + 1) + (table == 3 or (table == 1 and opcode in BYTES_BEHIND))
    inverted = ~code[first + 1]
    reg = modrm >> 3 & 7 | inverted >> 4 & 8
    rm = modrm & 7 | (0 if is_short else inverted >> 2 & 8)
    return forgets(end - at, *written_by_vectors(table, opcode, last & 3, reg, rm, modrm >> 6, ~last >> 3 & 15))


def two_bytes(code: bytes, at: int, end: int, wide: int, is_repeated: bool) -> Instruction:
    """Return an instruction whose opcode begins with 0x0F."""
    opcode, end = code[end], end + 1
    if opcode >> 4 == 8:
        return Instruction(end + 4 - at, target=end + 4 + signed(int.from_bytes(code[end:end + 4], "little"), 32))
    if opcode in ALONE:
        return stops(end - at) if opcode == 0x0B else forgets(end - at, *written_long(opcode, 0, 0, 0, wide, False))
    table = opcode
    if table in (0x38, 0x3A):
        opcode, end = code[end], end + 1
    modrm = code[end]
    reg, rm, mod = modrm >> 3 & 7 | (wide & 4) << 1, modrm & 7 | (wide & 1) << 3, modrm >> 6
    if table in (0x38, 0x3A):
        found = (reg,) if table == 0x38 and opcode >= 0xF0 else (rm,) if table == 0x3A and opcode >> 2 == 5 and mod == 3 else ()
        return forgets(behind_modrm(code, end) + (table == 0x3A) - at, *found)
    return forgets(behind_modrm(code, end) + (opcode in BYTES_BEHIND) - at,
                   *written_long(opcode, reg, rm, mod, wide, is_repeated))


def stack_instruction(nbytes: int, opcode: int, reg: int, rm: int, mod: int, number: int, wide: int) -> Instruction | None:
    """Return an instruction that moves the stack pointer, or keeps it in another register."""
    match opcode:
        case _ if opcode >> 3 == 0b01010 or opcode in (0x68, 0x6A):  # push
            return Instruction(nbytes, (Move(SP, SP, -8),))
        case _ if opcode >> 3 == 0b01011:  # pop
            register = opcode & 7 | (wide & 1) << 3
            return Instruction(nbytes, (Move(SP, SP, 8), Move(register, ANYTHING)))
        case 0xFF if reg & 7 == 6:
            return Instruction(nbytes, (Move(SP, SP, -8),))
        case 0xC9:  # leave
            return Instruction(nbytes, (Move(SP, BP, 8),))
        case 0x81 | 0x83 if mod == 3 and rm == SP and reg & 7 in (0, 4, 5):
            if reg & 7 == 4:
                return Instruction(nbytes, (Move(SP, SP, multiple=-number),))
            return Instruction(nbytes, (Move(SP, SP, number if reg & 7 == 0 else -number),))
        case 0x89 | 0x8B if mod == 3 and wide & 8:  # mov
            to, source = (rm, reg) if opcode == 0x89 else (reg, rm)
            return Instruction(nbytes, (Move(to, source),))
        case 0x8B if reg == SP and wide & 8:
            return forgets(nbytes, SP)
        case _ if opcode < 0x38 and mod == 3 and (rm if opcode & 2 == 0 else reg) == SP and opcode & 7 in (1, 3):
            return forgets(nbytes, SP)
    return None


def address(code: bytes, at: int, reg: int, rm: int, wide: int) -> Move:
    """lea of a register and a number, or of more operands, whose result nobody needs."""
    mod, place, base = code[at] >> 6, at + 1, rm
    if code[at] & 7 == 4:
        index, place = code[at + 1], at + 2
        base = index & 7 | rm & 8
        if index >> 3 & 7 != 4 or wide & 2:
            return Move(reg, ANYTHING)
    if mod == 0:
        return Move(reg, ANYTHING if code[place - 1] & 7 == 5 else base)
    nbytes = 1 if mod == 1 else 4
    return Move(reg, base, signed(int.from_bytes(code[place:place + nbytes], "little"), 8 * nbytes))


def flow(nbytes: int, opcode: int, reg: int, target: int) -> Instruction | None:
    """Return a jump, a return or a call; None for other instructions."""
    match opcode:
        case 0xE8:
            return CALLS[nbytes]
        case 0xC3 | 0xC2:
            return stops(nbytes, "return")
        case 0xE9 | 0xEB:
            return stops(nbytes, target=target)
        case _ if opcode >> 4 == 7 or 0xE0 <= opcode < 0xE4:
            return Instruction(nbytes, target=target)
        case 0xFF if reg & 7 == 4:
            return stops(nbytes, "jump to a register")
        case 0xFF if reg & 7 == 2:
            return Instruction(nbytes, kind="call of a register")
        case 0xCC:
            return stops(nbytes)
    return None


X86 = Family(SP, decode, 16, frozenset((3, SP, BP, *range(12, 16))), return_address=8, red_zone=128)
