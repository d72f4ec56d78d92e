"""The frame of one function: the maximum bytes of stack that it takes itself, found by following the stack pointer along every
path of its machine code. At each instruction the stack pointer is a known distance from its initial value, or the function has
no bound: all paths to an instruction must agree, and at a return the distance must be 0. So a misread instruction is detected.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ....runtime.records import dataclass
from .instruction import Family, Instruction, Move, UnknownStack


class Known(NamedTuple):
    """The known value of a register: a number, relative to the initial stack pointer if it is `of_stack`."""
    of_stack: bool
    number: int


Registers = Mapping[int, Known]
"""The registers with known values."""


@dataclass(frozen=True, slots=True)
class Code:
    """A function: its bytes, the spans of them that are data, and the targets of relocated jumps: in the function, or outside
    (None)."""
    name: str
    bytes: bytes
    data: Sequence[tuple[int, int]]
    jumps: Mapping[int, int | None]


@dataclass(frozen=True, slots=True)
class Frame:
    """The bytes of stack that a function takes itself, with its return address, and whether it calls a function by an address
    that it is given."""
    nbytes: int
    calls_given: bool


def frame_of(family: Family, code: Code) -> Frame:
    """Return the frame of a function. Raises UnknownStack if it cannot be determined."""
    walk = Walk(family, code)
    walk.follow(0, {family.stack_pointer: Known(True, 0)})
    walk.follow_tables()
    return Frame(walk.deepest + family.return_address, walk.calls_given or walk.may_end_in_a_call())


class Walk:
    """The walk along the paths of a function; `found` holds the known registers before each instruction that was reached."""

    def __init__(self, family: Family, code: Code) -> None:
        self.family, self.code = family, code
        self.found: dict[int, Registers] = {}
        self.lengths: dict[int, int] = {}
        self.deepest, self.calls_given = 0, False
        self.before_tables: list[Registers] = []
        self.ends, self.has_tables = 0, False

    def follow(self, first: int, registers: Registers, may_end: bool = False) -> None:
        """Follow all paths from an instruction; padding `may_end` at an offset without code."""
        pending = [(first, registers)]
        while pending:
            at, registers = pending.pop()
            if self.is_outside(at):
                if not may_end:
                    raise UnknownStack(f"{self.code.name} goes on at {at:#x}, where no code is")
                continue
            joined = self.joined(at, registers)
            if joined is not None:
                self.found[at] = joined
                pending += self.step(at, joined)

    def joined(self, at: int, registers: Registers) -> Registers | None:
        """Return the registers known at an instruction on all paths so far; None if this path changes nothing."""
        known, pointer = self.found.get(at), self.family.stack_pointer
        if known is None or known is registers:
            return registers if known is None else None
        if known[pointer] != registers[pointer]:
            raise UnknownStack(f"paths with different stacks meet in {self.code.name} at {at:#x}")
        common = {r: value for r, value in known.items() if registers.get(r) == value}
        return common if len(common) < len(known) else None

    def is_outside(self, at: int) -> bool:
        return not 0 <= at < len(self.code.bytes) or any(first <= at < end for first, end in self.code.data)

    def step(self, at: int, registers: Registers) -> Iterator[tuple[int, Registers]]:
        """Yield the successors of an instruction, with the registers there."""
        instruction = self.decoded(at)
        if instruction.guards:
            yield from self.guarded(at + instruction.nbytes, instruction.guards, registers)
            return
        after = self.moved(instruction, registers)
        if instruction.kind.startswith("call"):
            after = {r: known for r, known in after.items() if r in self.family.saved}
        yield from self.left(at, instruction, after)
        if self.falls_through(at, instruction):
            yield at + instruction.nbytes, after

    def left(self, at: int, instruction: Instruction, after: Registers) -> Iterator[tuple[int, Registers]]:
        """Yield the targets of a jump, with the registers there."""
        match instruction.kind:
            case "call of a register":
                self.calls_given = True
            case "return":
                self.check_back(at, after)
            case "jump by a table":
                self.before_tables.append(after)
            case "jump to a register" if not self.relocated(at, instruction):
                self.before_tables.append(after)
                self.ends += after[self.family.stack_pointer] == Known(True, 0)
            case "call" | "call or jump" if self.relocated(at, instruction):
                pass
            case "call":
                raise UnknownStack(f"{self.code.name} calls itself")
            case _ if instruction.target is not None or instruction.kind == "jump to a register":
                targets = [self.code.jumps[i] for i in self.relocated(at, instruction)] or [instruction.target]
                if targets[0] is None:
                    self.check_back(at, after)
                else:
                    yield targets[0], after

    def relocated(self, at: int, instruction: Instruction) -> list[int]:
        """Return the offsets of relocations in an instruction."""
        return [i for i in range(at, at + instruction.nbytes) if i in self.code.jumps]

    def falls_through(self, at: int, instruction: Instruction) -> bool:
        if instruction.kind == "call or jump":
            return bool(self.relocated(at, instruction))
        return instruction.falls_through

    def check_back(self, at: int, registers: Registers) -> None:
        if registers[self.family.stack_pointer] != Known(True, 0):
            raise UnknownStack(f"{self.code.name} returns at {at:#x} with another stack than it was called with")

    def guarded(self, at: int, count: int, registers: Registers) -> Iterator[tuple[int, Registers]]:
        """Yield the successors of conditional instructions: these may end the function, or leave the stack as it is."""
        side, over = registers, False
        for _ in range(count):
            self.found[at] = registers
            instruction = self.decoded(at)
            side = self.moved(instruction, side)
            yield from self.left(at, instruction, side)
            over |= not self.falls_through(at, instruction)
            if over:
                side = registers
            at += instruction.nbytes
        pointer = self.family.stack_pointer
        if side[pointer] != registers[pointer]:
            raise UnknownStack(f"{self.code.name} moves the stack under a condition at {at:#x}")
        yield at, {r: value for r, value in registers.items() if side.get(r) == value}

    def moved(self, instruction: Instruction, registers: Registers) -> Registers:
        """Return the registers after an instruction."""
        for move in instruction.moves:
            value = value_of(move, registers, self.family)
            registers = {r: known for r, known in registers.items() if r != move.to}
            if value is not None:
                registers[move.to] = value
            if move.to == self.family.stack_pointer:
                if value is None or not value.of_stack:
                    raise UnknownStack(f"only a run knows how large the frame of {self.code.name} is")
                self.deepest = max(self.deepest, -value.number)
        return registers

    def decoded(self, at: int) -> Instruction:
        instruction = self.family.decode(self.code.bytes, at)
        self.lengths[at] = instruction.nbytes
        return instruction

    def follow_tables(self) -> None:
        """Follow code that was not reached. It is the target of jumps to registers, if there are any, and has their stack.
        Otherwise nothing reaches it, and it must not move the stack, so that no path is overlooked."""
        while (at := self.not_reached()) is not None:
            if self.before_tables:
                self.has_tables = True
                first, pointer = self.before_tables[0], self.family.stack_pointer
                if any(other[pointer] != first[pointer] for other in self.before_tables):
                    raise UnknownStack(f"{self.code.name} jumps to registers with different stacks")
                self.follow(at, {pointer: first[pointer]} if len(self.before_tables) > 1 else first, may_end=True)
            elif any(move.to == self.family.stack_pointer for move in self.decoded(at).moves):
                raise UnknownStack(f"{self.code.name} moves the stack at {at:#x}, where nothing goes")

    def may_end_in_a_call(self) -> bool:
        """True if a jump to a register with an empty frame may be a call of a given function. If there is exactly one jump to a
        register, and code that only it can reach, it goes to that code."""
        return self.ends > (1 if self.has_tables and len(self.before_tables) == 1 else 0)

    def not_reached(self) -> int | None:
        """Return the offset of the first instruction that was not read."""
        spans = dict(self.code.data)
        at = 0
        while at < len(self.code.bytes):
            length = self.lengths.get(at) or spans.get(at, at) - at
            if not length:
                return at
            at += length
        return None


def value_of(move: Move, registers: Registers, family: Family) -> Known | None:
    """Return the known value of the register that a move writes; None if it is not known."""
    parts = [(registers.get(r), factor) for r, factor in ((move.source, 1), (move.other, move.factor)) if r is not None]
    if any(known is None for known, _ in parts):
        return None
    stacks = [(known, factor) for known, factor in parts if known and known.of_stack]
    if len(stacks) > 1 or any(factor != 1 for _, factor in stacks):
        return None
    number = move.number + sum(known.number * factor for known, factor in parts if known)
    if stacks:
        return Known(True, rounded_down(number, move.multiple, family))
    return Known(False, number // move.multiple * move.multiple)


def rounded_down(number: int, multiple: int, family: Family) -> int:
    """Return the lowest value to which an address on the stack may be rounded down."""
    if multiple <= family.alignment:
        return number - (number - family.return_address) % multiple
    return number - (number - family.return_address) % family.alignment - (multiple - family.alignment)
