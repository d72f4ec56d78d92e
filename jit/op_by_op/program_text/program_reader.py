"""The reader of a kernel program's text: the newer spelling, the design document's, and MLIR's generic form. The custom form of
each kernel (`forms.py`) is passed in; `scanner.py` and `attribute_reader.py` read the pieces.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from ....lowering.text.attributes import Attribute, Dictionary
from ....runtime.errors import Label, Position, Problem, Source
from ....runtime.records import dataclass
from .attribute_reader import AttributeReader
from .kernel_program import CHAIN, DIALECT_TYPES, SCALARS, Body, Function, Kernel, Program, Value
from .kernel_table import RETURN
from .scanner import COUNT, NAME, SYMBOL, TYPE, USE, Scanner

MAXIMUM_DEPTH = 32
MOST_RESULTS = 10_000
BLOCK = re.compile(r"\^[\w$.-]++")
LOCATION = re.compile(r"loc(?=\s*+\()")
PIECE = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|[()]')


@dataclass(slots=True)
class Parts:
    """A kernel without its results, as read by a form."""
    operands: tuple[Value, ...] = ()
    attributes: Dictionary = field(default_factory=dict)
    result_types: tuple[str, ...] = ()
    regions: tuple[Body, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultName:
    """A name before an `=`, and the number of values that it names."""
    name: str
    count: int
    position: Position


class ProgramReader:
    """A reader of one text."""

    def __init__(self, source: Source, read_form: Callable[[ProgramReader, str, int, Position], Parts]) -> None:
        self.scanner, self.read_form = Scanner(source), read_form
        self.attributes = AttributeReader(self.scanner)
        self.scope: dict[str, tuple[Value, ...]] = {}
        self.before: list[Kernel] = []
        """Kernels to insert before the kernel that is being read."""
        self.depth = 0

    # Functions

    def program(self) -> Program:
        scanner, functions = self.scanner, []
        inside = scanner.accept("builtin.module") or scanner.accept("module")
        if inside:
            scanner.match(SYMBOL)
            if scanner.accept("attributes"):
                self.attributes.dictionary()
            scanner.expect("{")
        while not (scanner.at_end or (inside and scanner.sees("}"))):
            functions.append(self.function())
        if inside:
            scanner.expect("}")
            if not scanner.at_end:
                raise scanner.expected("the end of the text")
        return Program(tuple(functions), self.by_name(functions))

    def by_name(self, functions: Sequence[Function]) -> Mapping[str, Function]:
        found: dict[str, Function] = {}
        for function in functions:
            if (other := found.setdefault(function.name, function)) is not function:
                raise Problem(f"the function @{function.name} is defined twice", function.position, kind="symbol",
                              labels=(Label(other.position, "it is defined here"),))
        return found

    def function(self) -> Function:
        """`func.func @name(%a: type) -> (types) attributes {...} {...}`"""
        scanner = self.scanner
        if not (scanner.accept("func.func") or scanner.accept("func")):
            raise scanner.expected("a function, as in func.func @main()")
        _ = scanner.accept("private") or scanner.accept("public")
        position, name = scanner.here(), scanner.symbol()
        arguments = self.arguments()
        results = self.result_types() if scanner.accept("->") else ()
        attributes = self.attributes.dictionary() if scanner.accept("attributes") else {}
        return Function(name, self.body(arguments), results, attributes, position)

    def arguments(self) -> list[tuple[str, str, Position]]:
        """Read `(%a: type, ...)`: names, types and positions."""
        scanner, found = self.scanner, []
        scanner.expect("(")
        while not scanner.accept(")"):
            position, name = scanner.here(), scanner.take(USE).group(1)
            scanner.expect(":")
            found.append((name, self.type(), position))
            if not scanner.sees(")"):
                scanner.expect(",")
        return found

    # Types

    def type(self) -> str:
        """Read the type of a value, which must be a known one."""
        match = self.scanner.take(TYPE)
        if match.group() not in DIALECT_TYPES and match.group() not in SCALARS:
            raise Problem(f"there is no type {match.group()} of values in a kernel program",
                          self.scanner.place(match.start(), len(match.group())), kind="type",
                          help=f"one of {', '.join(sorted(DIALECT_TYPES))}, or of a number, such as i32")
        return match.group()

    def types(self, end: str = "") -> tuple[str, ...]:
        """Read `type, type`; none if `end` follows."""
        if end and self.scanner.sees(end):
            return ()
        found = [self.type()]
        while self.scanner.accept(","):
            found.append(self.type())
        return tuple(found)

    def result_types(self) -> tuple[str, ...]:
        """`type`, or `(types)`"""
        if not self.scanner.accept("("):
            return (self.type(),)
        found = self.types(")")
        self.scanner.expect(")")
        return found

    def signature(self, operands: Sequence[Value]) -> tuple[str, ...]:
        """Read `(types) -> types`; return the result types. Raise a Problem unless the operands have the declared types."""
        scanner = self.scanner
        position = scanner.here()
        scanner.expect("(")
        declared = self.types(")")
        scanner.expect(")")
        self.agree(operands, declared, position)
        scanner.expect("->")
        return self.result_types()

    def agree(self, operands: Sequence[Value], declared: tuple[str, ...], position: Position) -> None:
        """Raise a Problem unless the operands are of these types."""
        if len(operands) != len(declared):
            raise Problem(f"{len(operands)} operand{'s' * (len(operands) != 1)}, but {len(declared)} "
                          f"type{'s' * (len(declared) != 1)} here", position, kind="type")
        for value, type in zip(operands, declared):
            if value.type != type:
                raise Problem(f"%{value.name} is a {value.type}, but its type here is {type}", position, kind="type",
                              labels=(Label(value.position, "it comes from here"),))

    # Values

    def use(self) -> Value:
        """`%a` or `%a#1`"""
        match = self.scanner.take(USE)
        if match.group()[1:] in self.scope:
            return self.scope[match.group()[1:]][0]
        name, number = match.group(1), int(match.group(2) or 0)
        position = self.scanner.place(match.start(), len(match.group()))
        if name not in self.scope:
            raise self.unknown(match, position)
        if number >= len(self.scope[name]):
            raise Problem(f"%{name} has no result number {number}", position, kind="symbol")
        return self.scope[name][number]

    def unknown(self, match: re.Match[str], position: Position) -> Problem:
        help = "a region sees only what is passed to it" if self.depth > 1 else None
        return Problem(f"unknown value {match.group()}", position, kind="symbol", help=help)

    def uses(self, end: str = "") -> tuple[Value, ...]:
        """Read `%a, %b`; none if `end` follows."""
        if end and self.scanner.sees(end):
            return ()
        found = [self.use()]
        while self.scanner.accept(","):
            found.append(self.use())
        return tuple(found)

    def passed(self) -> tuple[Value, ...]:
        """`(%a, %b)`"""
        self.scanner.expect("(")
        found = self.uses(")")
        self.scanner.expect(")")
        return found

    def define(self, name: str, values: tuple[Value, ...], position: Position) -> None:
        known = self.scope.get(name)
        if known:
            raise Problem(f"%{name} is defined twice", position, kind="symbol",
                          labels=(Label(known[0].position, "it is defined here"),))
        self.scope[name] = values

    # Bodies

    def body(self, arguments: Sequence[tuple[str, str, Position]], *, labelled: bool = False) -> Body:
        """Read `{ kernels tfrt.return }`, which sees only its arguments; with `labelled` it may name them."""
        scanner, outside, before = self.scanner, self.scope, self.before
        self.scope, self.before, self.depth = {}, [], self.depth + 1
        position = scanner.here()
        if self.depth > MAXIMUM_DEPTH:
            raise Problem(f"regions are nested more than {MAXIMUM_DEPTH} deep", position, kind="nesting")
        scanner.expect("{")
        if labelled and scanner.match(BLOCK):
            arguments = self.arguments() if scanner.sees("(") else ()
            scanner.expect(":")
        values = tuple(Value(name, type, where) for name, type, where in arguments)
        for value in values:
            self.define(value.name or "", (value,), value.position)
        kernels: list[Kernel] = []
        while not self.at_return():
            kernel = self.kernel()
            kernels += [*self.before, kernel]
            self.before.clear()
        end = scanner.here(len(RETURN))
        returned = self.returned()
        scanner.expect("}")
        self.scope, self.before, self.depth = outside, before, self.depth - 1
        return Body(values, tuple(kernels), returned, position, end)

    def at_return(self) -> bool:
        if self.scanner.sees("}"):
            raise Problem(f"expected {RETURN} before the end of the body", self.scanner.here(), kind="syntax")
        match = NAME.match(self.scanner.text, self.scanner.at)
        return (match is not None and match.group() == RETURN) or self.scanner.sees(f'"{RETURN}"')

    def returned(self) -> tuple[Value, ...]:
        """`tfrt.return %a, %b : types`"""
        scanner = self.scanner
        if scanner.accept(f'"{RETURN}"'):
            values = self.passed()
            scanner.expect(":")
            self.signature(values)
            self.location()
            return values
        scanner.expect(RETURN)
        values = self.uses() if scanner.sees("%") else ()
        if scanner.accept(":"):
            position = scanner.here()
            self.agree(values, self.types(), position)
        self.location()
        return values

    # Kernels

    def kernel(self) -> Kernel:
        """Read one kernel, in any form."""
        scanner = self.scanner
        named = self.named() if scanner.sees("%") else ()
        position = scanner.here()
        if scanner.sees('"'):
            name = scanner.string()
            position = self.wide(position, len(name) + 2)
            parts = self.generic()
        else:
            match = scanner.match(NAME)
            if match is None:
                raise scanner.expected("a kernel")
            name = match.group()
            position = self.wide(position, len(name))
            parts = self.read_form(self, name, sum(n.count for n in named), position)
        self.location()
        return Kernel(name, parts.operands, self.results(named, parts.result_types, name, position), parts.attributes,
                      parts.regions, position)

    def wide(self, position: Position, width: int) -> Position:
        return Position(position.source, position.line, position.column, width)

    def named(self) -> tuple[ResultName, ...]:
        """`%a, %b:2 =`"""
        scanner, found = self.scanner, []
        while True:
            position, name = scanner.here(), scanner.take(USE).group(1)
            count = int(scanner.take(COUNT).group()) if scanner.accept(":") else 1
            if not 1 <= count <= MOST_RESULTS:
                raise Problem(f"%{name} cannot stand for {count} values", position, kind="syntax")
            found.append(ResultName(name, count, position))
            if not scanner.accept(","):
                break
        scanner.expect("=")
        return tuple(found)

    def results(self, named: Sequence[ResultName], types: tuple[str, ...], kernel: str,
                position: Position) -> tuple[Value, ...]:
        if not named:
            return tuple(Value(None, type, position) for type in types)
        total = sum(n.count for n in named)
        values: list[Value] = []
        if total != len(types):
            raise Problem(f"{total} result{'s are' if total != 1 else ' is'} named, but {kernel} has {len(types)}",
                          named[0].position, kind="type")
        for one in named:
            group = tuple(Value(one.name if one.count == 1 else f"{one.name}#{i}", types[len(values) + i], one.position)
                          for i in range(one.count))
            self.define(one.name, group, one.position)
            values += group
        return tuple(values)

    def generic(self) -> Parts:
        """Read `(operands) <{properties}> ({regions}) {attributes} : (types) -> types`, after the name."""
        scanner, operands, regions = self.scanner, self.passed(), []
        attributes: dict[str, Attribute] = {}
        if scanner.accept("<"):
            attributes = self.attributes.dictionary()
            scanner.expect(">")
        if scanner.accept("("):
            while True:
                regions.append(self.body((), labelled=True))
                if not scanner.accept(","):
                    break
            scanner.expect(")")
        attributes |= self.attributes.optional_dictionary()
        scanner.expect(":")
        return Parts(operands, attributes, self.signature(operands), tuple(regions))

    def location(self) -> None:
        """Skip `loc(...)`."""
        scanner = self.scanner
        if not scanner.match(LOCATION):
            return
        depth, start = 0, scanner.at
        for match in PIECE.finditer(scanner.text, start):
            depth += {"(": 1, ")": -1}.get(match.group(), 0)
            if not depth:
                scanner.at = match.end()
                scanner.skip()
                return
        raise Problem("the location is not closed", scanner.place(start), kind="syntax")

    def new_chain(self, position: Position) -> Value:
        """Return a chain that is ready from the start, made before the kernel that is being read."""
        chain = Value(None, CHAIN, position)
        self.before.append(Kernel("tfrt.new.chain", (), (chain,), {}, (), position))
        return chain
