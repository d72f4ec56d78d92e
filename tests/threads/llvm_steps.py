"""Threads that run the LLVM text of the pool, one access to shared memory at a time: an interpreter of the few instructions
that the text has. A thread stops in front of each access with a request, and goes on with the answer. Its state has no
register that is not read any more, so that equal futures are equal states.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

MASKS = {"i1": 1, "i8": 0xFF, "i32": (1 << 32) - 1, "i64": (1 << 64) - 1, "ptr": (1 << 64) - 1}
REGISTER = re.compile(r"%[A-Za-z0-9_.]+")
ORDERS = "monotonic", "acquire", "release", "acq_rel", "seq_cst"


class Request(NamedTuple):
    """An access or a call: `order` is empty where it is not atomic."""
    kind: str
    order: str = ""
    operands: tuple[int, ...] = ()
    operation: str = ""


class Frame(NamedTuple):
    """A function that runs: the instruction that waits for its result, and the registers that are read after it."""
    function: str
    block: str
    index: int
    registers: tuple[tuple[str, int], ...]


class Stopped(NamedTuple):
    """A thread in front of a request; the last frame is the innermost."""
    request: Request
    frames: tuple[Frame, ...] = ()

    def runs(self, function: str) -> bool:
        return any(frame.function == function for frame in self.frames)


class Instruction(NamedTuple):
    result: str
    text: str
    reads: frozenset[str]


class Block(NamedTuple):
    phis: Mapping[str, Mapping[str, str]]
    instructions: list[Instruction]


class Parsed(NamedTuple):
    params: list[str]
    blocks: Mapping[str, Block]
    live: Mapping[tuple[str, int], frozenset[str]]


class Program:
    """A module's text as threads run it. `symbols` are the addresses of its functions."""

    def __init__(self, text: str) -> None:
        self.functions = {name: parsed(params, body) for name, params, body in
                          re.findall(r"^define [^@]*@([\w.]+)\(([^)]*)\)[^{]*\{\n(.*?)^\}", text, re.M | re.S)}
        self.symbols = {name: 0x1000_0000 + 16 * i for i, name in enumerate(self.functions)}
        self.answers: dict[tuple[Stopped, int, int | None], Stopped] = {}

    def call(self, name: str, *arguments: int) -> Stopped:
        """A thread that calls a function, in front of its first request."""
        return self.run([], name, "entry", "", 0, dict(zip(self.functions[name].params, arguments, strict=True)))

    def answer(self, thread: Stopped, value: int = 0, is_written: int | None = None) -> Stopped:
        """The thread in front of its next request; an exchange is answered by two values."""
        key = thread, value, is_written
        if (found := self.answers.get(key)) is None:
            found = self.answers[key] = self.resume(thread.frames, value, is_written)
        return found

    def resume(self, frames: tuple[Frame, ...], value: int, is_written: int | None = None) -> Stopped:
        *outer, (name, label, index, registers) = frames
        known = dict(registers)
        result = self.functions[name].blocks[label].instructions[index].result
        known[result] = value
        if is_written is not None:
            known[result + ".1"] = is_written
        return self.run(outer, name, label, "", index + 1, known)

    def run(self, outer: list[Frame], name: str, label: str, before: str, index: int, known: dict[str, int]) -> Stopped:
        """Run what needs no shared memory."""
        function = self.functions[name]
        while True:
            block = function.blocks[label]
            if before:
                known.update({phi: self.value(choices[before], known) for phi, choices in block.phis.items()})
                before = ""
            instruction = block.instructions[index]
            head, _, rest = instruction.text.partition(" ")
            if head == "br":
                before, label, index = label, self.branch(rest, known), 0
                continue
            if head == "ret":
                value = 0 if rest == "void" else self.value(rest.split()[1], known)
                if not outer:
                    return Stopped(Request("return", operands=(value,)))
                return self.resume(tuple(outer), value)
            found = self.request(head, rest, known)
            if found is None:
                known[instruction.result] = self.computed(head, rest, known)
                index += 1
                continue
            live = function.live[label, index]
            frame = Frame(name, label, index, tuple(sorted((r, v) for r, v in known.items() if r.removesuffix(".1") in live)))
            if found.kind == "call":
                callee = next(n for n, at in self.symbols.items() if at == found.operands[0])
                return self.run([*outer, frame], callee, "entry", "", 0,
                                dict(zip(self.functions[callee].params, found.operands[1:], strict=True)))
            return Stopped(found, (*outer, frame))

    def value(self, text: str, known: Mapping[str, int]) -> int:
        if text[0] == "%":
            return known[text]
        if text[0] == "@":
            return self.symbols[text[1:]]
        return {"null": 0, "true": 1, "false": 0}.get(text) if text.isalpha() else int(text)  # type: ignore[return-value]

    def branch(self, text: str, known: Mapping[str, int]) -> str:
        labels = re.findall(r"label %([\w.]+)", text)
        return labels[0] if len(labels) == 1 or self.value(text.split(",")[0].split()[1], known) else labels[1]

    def typed(self, text: str, known: Mapping[str, int]) -> list[int]:
        """The values of operands that have their types before them."""
        found = []
        for operand in filter(None, text.split(", ")):
            words = operand.split()
            if len(words) > 1 and words[0] in MASKS:
                found.append(self.value(words[-1], known) & MASKS[words[0]])
        return found

    def request(self, head: str, rest: str, known: Mapping[str, int]) -> Request | None:
        """What the thread wants of shared memory or of the system; None of an instruction that computes."""
        orders = [word for word in rest.replace(",", " ").split() if word in ORDERS]
        order = orders[0] if orders else ""
        plain = re.sub(rf" (?:{'|'.join(ORDERS)})\b|, align \d+|atomic ", "", rest)
        match head:
            case "load":
                return Request("load", order, tuple(self.typed(plain.split(", ", 1)[1], known)), plain.split(",")[0])
            case "store":
                value, address = self.typed(plain, known)
                return Request("store", order, (address, value))
            case "atomicrmw":
                operation, operands = plain.split(" ", 1)
                kind = re.findall(r", (i\d+) ", operands)[0]
                return Request("update", order, (*self.typed(operands, known), MASKS[kind]), operation)
            case "cmpxchg":
                return Request("exchange", order, tuple(self.typed(plain, known)), orders[1])
            case "call":
                called, arguments = re.findall(r"([@%][\w.]+)\((.*)\)$", rest)[0]
                values = tuple(self.typed(arguments, known))
                if called[0] == "%":
                    return Request("task", operands=(known[called], *values))
                if called[1:] in self.functions:
                    return Request("call", operands=(self.symbols[called[1:]], *values))
                return None if called.startswith("@llvm.") and "mxcsr" not in called else Request(called[1:], operands=values)
        return None

    def computed(self, head: str, rest: str, known: Mapping[str, int]) -> int:
        """The value of an instruction without side effects."""
        if head == "alloca":
            return 0
        if head == "getelementptr":
            return sum(self.typed(rest.partition(", ")[2], known)) & MASKS["ptr"]
        if head == "extractvalue":
            register, number = rest.rsplit(" ", 2)[1:]
            return known[register.rstrip(",") + (".1" if number == "1" else "")]
        if head in ("zext", "trunc"):
            kind, operand, _, to = rest.split()
            return self.value(operand, known) & MASKS[kind] & MASKS[to]
        if head == "call":
            return intrinsic(rest, self.typed(rest[rest.index("(") + 1:-1], known))
        predicate = ""
        if head == "icmp":
            predicate, rest = rest.split(" ", 1)
        kind, operands = rest.split(" ", 1)
        x, y = (self.value(operand, known) & MASKS[kind] for operand in operands.split(", "))
        return compared(predicate, x, y, kind) if predicate else calculated(head, x, y) & MASKS[kind]


def intrinsic(text: str, values: list[int]) -> int:
    if "fshr" in text:
        high, low, count = values
        return ((high << 64 | low) >> (count & 63)) & MASKS["i64"]
    if "cttz" in text:
        return (values[0] & -values[0]).bit_length() - 1
    assert "pause" in text or "memset" in text, text
    return 0


def compared(predicate: str, x: int, y: int, kind: str) -> int:
    if predicate[0] == "s":
        sign = (MASKS[kind] >> 1) + 1
        x, y = (x ^ sign) - sign, (y ^ sign) - sign
    return int({"eq": x == y, "ne": x != y, "lt": x < y, "gt": x > y, "le": x <= y, "ge": x >= y}[
        predicate if predicate in ("eq", "ne") else predicate[1:]])


def calculated(operation: str, x: int, y: int) -> int:
    match operation:
        case "add":
            return x + y
        case "sub":
            return x - y
        case "mul":
            return x * y
        case "udiv":
            return x // y
        case "and":
            return x & y
        case "or":
            return x | y
        case "xor":
            return x ^ y
        case "shl":
            return x << y
        case "lshr":
            return x >> y
    raise AssertionError(operation)


# ---- text ------------------------------------------------------------------------------------------------------------
def parsed(params: str, body: str) -> Parsed:
    blocks: dict[str, Block] = {}
    for line in body.splitlines():
        if not line.startswith(" "):
            current = blocks[line.rstrip(":")] = Block({}, [])
            continue
        result, text = line[1:].split(" = ", 1) if " = " in line else ("", line[1:])
        if text.startswith("phi "):
            current.phis[result] = {at: value for value, at in re.findall(r"\[(\S+), %([\w.]+)\]", text)}  # type: ignore[index]
        else:
            text = text.split(", !prof")[0]
            names = REGISTER.findall(re.sub(r"label %[\w.]+", "", text))
            current.instructions.append(Instruction(result, text, frozenset(names)))
    return Parsed(re.findall(r"%[\w.]+", params), blocks, liveness(blocks))


def liveness(blocks: Mapping[str, Block]) -> dict[tuple[str, int], frozenset[str]]:
    """By instruction: the registers that are read after it, but its own result."""
    live: dict[tuple[str, int], frozenset[str]] = {}
    first: dict[str, frozenset[str]] = dict.fromkeys(blocks, frozenset())
    while True:
        before = dict(first)
        for label, block in blocks.items():
            now: frozenset[str] = frozenset()
            for following in re.findall(r"label %([\w.]+)", block.instructions[-1].text):
                phis = blocks[following].phis
                now |= (first[following] - phis.keys()) | {c[label] for c in phis.values() if c[label][0] == "%"}
            for index in range(len(block.instructions) - 1, -1, -1):
                instruction = block.instructions[index]
                live[label, index] = now - {instruction.result}
                now = live[label, index] | instruction.reads
            first[label] = now
        if first == before:
            return live
