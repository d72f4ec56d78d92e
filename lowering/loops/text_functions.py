"""Reads functions of the loop IR from text."""
from __future__ import annotations

import re

from ..elements.expression import Buffer
from .ir import (
    INDEX,
    Address,
    Block,
    For,
    Function,
    GatherFrom,
    If,
    Let,
    Literal,
    LoadFrom,
    LoadTile,
    MultiplyFloatTiles,
    MultiplyTiles,
    Operand,
    Prefetch,
    ShapeTiles,
    Shuffle,
    Stmt,
    StoreTile,
    StoreTo,
    Type,
    Var,
    ZeroTile,
)
from .signatures import FAMILIES
from .text_tokens import LoopTokens

DEPTH = 100
"""Maximum nesting depth of blocks."""


class FunctionReader(LoopTokens):
    """A reader of functions over known buffers. `values` are those of the function being read."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text, source)
        self.buffers: dict[str, Buffer] = {}
        self.values: dict[str, Var] = {}
        self.depth = 0

    def label(self) -> Buffer:
        token = self.take()
        if token not in self.buffers:
            raise self.problem(f"expected a buffer, found {token}")
        return self.buffers[token]

    def labels(self) -> tuple[Buffer, ...]:
        """Read buffers in parentheses."""
        self.expect("(")
        found: list[Buffer] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            found.append(self.label())
        return tuple(found)

    def function(self) -> Function:
        self.values, self.depth = {}, 0
        name, params = self.string(), self.labels()
        scratch = self.labels() if self.accept("scratch") else ()
        rows = None
        if self.accept("rows", "("):
            low = self.row()
            self.expect(",")
            rows = low, self.row()
            self.expect(")")
        phases = tuple(self.numbers()) if self.accept("phases") else ()
        return Function(name, params, scratch, self.block(), rows, phases)

    def fresh(self) -> str:
        """Read the number of a value that is defined here."""
        token = self.take()
        if not re.fullmatch(r"%\d{1,9}", token, re.ASCII) or token in self.values:
            raise self.problem(f"expected a new value, found {token}")
        return token

    def row(self) -> Var:
        token = self.fresh()
        var = self.values[token] = Var(int(token[1:]), INDEX, 0)
        return var

    def type(self) -> Type:
        token = self.take()
        dtype, _, lanes = token.rpartition("x")
        if token in FAMILIES:
            return Type(token)
        if dtype not in FAMILIES or not re.fullmatch(r"[1-9]\d{0,5}", lanes, re.ASCII):
            raise self.problem(f"there is no type {token}")
        return Type(dtype, int(lanes))

    def operand(self) -> Operand:
        token = self.take()
        if token.startswith("%"):
            if token not in self.values:
                raise self.problem(f"{token} is not defined")
            return self.values[token]
        if re.fullmatch(r"-?\d{1,20}", token, re.ASCII):
            value: float | int = int(token)
        elif re.fullmatch(r"-?(inf|nan|\d+(\.\d*)?(e[+-]?\d+)?)", token, re.ASCII):
            value = float(token)
        else:
            raise self.problem(f"expected a value, found {token}")
        return Literal(value, self.type() if self.accept(":") else INDEX)

    def operands(self) -> list[Operand]:
        found = [self.operand()]
        while self.accept(","):
            found.append(self.operand())
        return found

    def block(self) -> Block:
        """Read statements in braces."""
        self.expect("{")
        found: Block = []
        while not self.accept("}"):
            found.append(self.statement())
        return found

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.problem(f"more than {DEPTH} blocks stand inside each other")

    def statement(self) -> Stmt:
        match self.next:
            case "store":
                return self.store()
            case "prefetch":
                self.expect("prefetch")
                return Prefetch(self.address(), self.accept("near"), self.accept("writes"))
            case "for":
                return self.loop()
            case "if":
                return self.when()
        if self.next.endswith(("_tile", "_tiles")):
            return self.of_tiles(self.take())
        return self.definition()

    def definition(self) -> Stmt:
        """Read a statement with a result, which is defined from the end of the statement on."""
        token = self.fresh()
        self.expect(":")
        result = Var(int(token[1:]), self.type(), self.depth)
        self.expect("=")
        stmt = self.computed(result, self.take())
        self.values[token] = result
        return stmt

    def computed(self, result: Var, op: str) -> Stmt:
        match op:
            case "load":
                address = self.address()
                active, mask = self.lanes(result.type)
                return LoadFrom(result, address, active, mask)
            case "gather":
                buffer = self.label()
                self.expect("[")
                indices = self.operand()
                self.expect("]")
                active, mask = self.lanes(result.type)
                return GatherFrom(result, buffer, indices, active, mask)
            case "shuffle":
                args = self.operands()
                if len(args) != 2:
                    raise self.problem("a shuffle has two operands")
                return Shuffle(result, (args[0], args[1]), tuple(self.numbers()))
        return Let(result, op, tuple(self.operands()))

    def address(self) -> Address:
        buffer = self.label()
        self.expect("[")
        base, offset = self.operand(), 0
        if self.next in ("+", "-"):
            offset = self.number() if self.take() == "+" else -self.number()
        elif isinstance(base, Literal):
            base, offset = Literal(0, INDEX), int(base.value)
        self.expect("]")
        return Address(buffer, base, offset)

    def lanes(self, type: Type) -> tuple[int, Operand | None]:
        """Read the number of active lanes, by default all, and the mask, if any."""
        active = self.number() if self.accept("active") else type.lanes
        return active, self.operand() if self.accept("mask") else None

    def store(self) -> StoreTo:
        self.expect("store")
        address = self.address()
        self.expect("=")
        value = self.operand()
        active, mask = self.lanes(value.type)
        if mask is not None:
            raise self.problem("a store has no mask")
        return StoreTo(address, value, active, self.accept("streaming"))

    def of_tiles(self, what: str) -> Stmt:
        """Read a statement of a matrix unit."""
        match what:
            case "shape_tiles":
                numbers = self.numbers()
                if len(numbers) % 2:
                    raise self.problem("each tile has rows and bytes of a row")
                return ShapeTiles(tuple(zip(numbers[::2], numbers[1::2])))
            case "zero_tile":
                return ZeroTile(self.number())
            case "load_tile":
                tile = self.number()
                self.expect("=")
                address = self.address()
                return LoadTile(tile, address, self.stride())
            case "store_tile":
                address = self.address()
                self.expect("=")
                return StoreTile(self.number(), address, self.stride())
            case "multiply_tiles":
                return MultiplyTiles(*self.three_tiles(), self.signed())
            case "multiply_float_tiles":
                return MultiplyFloatTiles(*self.three_tiles())
        raise self.problem(f"there is no statement {what}")

    def stride(self) -> int:
        self.expect("stride")
        return self.number()

    def three_tiles(self) -> tuple[int, int, int]:
        """Read the accumulator tile and the two tiles to be multiplied."""
        total = self.number()
        self.expect("=")
        x = self.number()
        self.expect(",")
        return total, x, self.number()

    def signed(self) -> bool:
        signed = self.accept("signed")
        if not signed:
            self.expect("unsigned")
        return signed

    def loop(self) -> For:
        self.expect("for")
        token = self.fresh()
        self.expect("in")
        low = self.operand()
        self.expect("to")
        high = self.operand()
        self.deeper()
        params, inits = self.carried() if self.accept("with") else ([], [])
        index = self.values[token] = Var(int(token[1:]), INDEX, self.depth)
        self.expect("{")
        body: Block = []
        while self.next not in ("}", "yield"):
            body.append(self.statement())
        yields = self.operands() if self.accept("yield") else []
        self.expect("}")
        self.depth -= 1
        results = self.results(params) if self.accept("gives") else ()
        return For(index, low, high, tuple(params), tuple(inits), results, body, tuple(yields))

    def carried(self) -> tuple[list[Var], list[Operand]]:
        """Read the values that a loop carries, and their initial values from outside of the loop."""
        found: list[tuple[str, Var]] = []
        inits: list[Operand] = []
        while not found or self.accept(","):
            token = self.fresh()
            self.expect(":")
            found.append((token, Var(int(token[1:]), self.type(), self.depth)))
            self.expect("=")
            inits.append(self.operand())
        self.values.update(found)
        return [var for _, var in found], inits

    def results(self, params: list[Var]) -> tuple[Var, ...]:
        found = []
        for i, param in enumerate(params):
            if i:
                self.expect(",")
            token = self.fresh()
            found.append(Var(int(token[1:]), param.type, self.depth))
            self.values[token] = found[-1]
        return tuple(found)

    def when(self) -> If:
        self.expect("if")
        condition = self.operand()
        likely = True if self.accept("likely") else False if self.accept("unlikely") else None
        self.deeper()
        body = self.block()
        self.depth -= 1
        return If(condition, body, likely)
