"""Attributes in a kernel program: `1 : i32`, `"text"`, `[1, 2]`, `dense<[0, 1]> : tensor<2xi32>`, `@f`, `#corert.shape<1x?x3>`.

The values are those of all MLIR texts here (`text/attributes.py`), read by its rules for numbers, types and constants.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ....lowering.graph.types import F64, I64, ElementType, TensorType
from ....lowering.text.attributes import Attribute, Dense, Dictionary, Number, Symbol, Text, Unit
from ....lowering.text.elements import decode
from ....lowering.text.scalars import integer, real
from ....lowering.text.syntax import SyntaxFault
from ....lowering.text.types import TypeReader, angles
from ....runtime.errors import Problem
from .scanner import NAME, NUMBER, Scanner

if TYPE_CHECKING:
    from ....lowering.text.types import AnyType

KEY = re.compile(r"[A-Za-z_][\w$.-]*+")
HASH = re.compile(r"#[A-Za-z_][\w$]*+(?:\.[\w$]++)*+")
SHAPE = re.compile(r"#corert\.shape<\s*(?:\*|(?:(?:\?|[0-9]{1,18})(?:x(?:\?|[0-9]{1,18}))*)?)\s*>")
DENSE = "dense<"
MAXIMUM_DEPTH = 64


class AttributeReader:
    """A reader of the attributes of one text."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.types = TypeReader(scanner.source, {})

    def dictionary(self, depth: int = 0) -> Dictionary:
        """Read `{name = value, unit}`, from the bracket on."""
        scanner, found = self.scanner, Dictionary()
        scanner.expect("{")
        while not scanner.accept("}"):
            start = scanner.at
            name = scanner.string() if scanner.sees('"') else self.key()
            if name in found:
                raise Problem(f"the attribute {name} is given twice", scanner.place(start, len(name)), kind="syntax")
            found[name] = self.value(depth + 1) if scanner.accept("=") else Unit.UNIT
            if not scanner.sees("}"):
                scanner.expect(",")
        return found

    def optional_dictionary(self) -> Dictionary:
        return self.dictionary() if self.scanner.sees("{") else {}

    def key(self) -> str:
        match = self.scanner.match(KEY)
        if match is None:
            raise self.scanner.expected("an attribute's name or '}'")
        return match.group()

    def value(self, depth: int = 0) -> Attribute:
        """Read one attribute."""
        scanner = self.scanner
        if depth > MAXIMUM_DEPTH:
            raise Problem(f"attributes are nested more than {MAXIMUM_DEPTH} deep", scanner.here(), kind="nesting")
        if scanner.sees("["):
            return self.list(depth)
        if scanner.sees("{"):
            return self.dictionary(depth)
        if scanner.sees("@"):
            return Symbol((scanner.symbol(),))
        if scanner.sees(DENSE):
            return self.dense()
        if scanner.sees("#"):
            return self.shape()
        if scanner.sees('"'):
            return scanner.string()
        return self.word() if NAME.match(scanner.text, scanner.at) else self.number()

    def list(self, depth: int) -> Attribute:
        scanner, items = self.scanner, []
        scanner.expect("[")
        while not scanner.accept("]"):
            items.append(self.value(depth + 1))
            if not scanner.sees("]"):
                scanner.expect(",")
        return tuple(items)

    def word(self) -> Attribute:
        """Read true, false, unit, or a type."""
        for word, value in (("true", True), ("false", False), ("unit", Unit.UNIT)):
            if self.scanner.accept(word):
                return value
        return self.type()

    def type(self) -> AnyType:
        """Read a type of attributes: f32, tensor<2xi32>."""
        scanner, start = self.scanner, self.scanner.at
        try:
            found, scanner.at = self.types.scan(scanner.text, start)
        except SyntaxFault as fault:
            fault.offset -= start
            raise scanner.fault(fault, start) from None
        scanner.skip()
        return found

    def number(self, type: ElementType | None = None) -> Number:
        """Read a number: of `type`, or else of the type that follows; i64 or f64 without one."""
        match = self.scanner.match(NUMBER)
        if match is None:
            raise self.scanner.expected("a number" if type else "an attribute's value")
        text = match.group()
        if type is None:
            type = self.element() if self.scanner.accept(":") else F64 if "." in text else I64
        try:
            return Number(real(text, type) if type.is_float else integer(text, type), type)
        except SyntaxFault as fault:
            raise self.scanner.fault(fault, match.start()) from None

    def element(self) -> ElementType:
        position = self.scanner.here()
        found = self.type()
        if not isinstance(found, ElementType):
            raise Problem(f"a number cannot be of type {found}", position, kind="type")
        return found

    def dense(self) -> Attribute:
        scanner, start = self.scanner, self.scanner.at
        try:
            scanner.at = angles(scanner.text, start + len(DENSE) - 1)
            text = scanner.text[start:scanner.at]
            scanner.skip()
            scanner.expect(":")
            position, type = scanner.here(), self.type()
            if not isinstance(type, TensorType):
                raise Problem(f"a constant cannot be of type {type}", position, kind="type",
                              help="strings are written with corert.const_string_tensor")
            return Dense(decode(text, type), type)
        except SyntaxFault as fault:
            if fault.message.startswith("'<'"):
                fault.offset -= start
            raise scanner.fault(fault, start) from None

    def shape(self) -> Attribute:
        """Read `#corert.shape<1x?x3>`; keep it as its text without spaces."""
        match = self.scanner.match(SHAPE)
        if match is None:
            name = HASH.match(self.scanner.text, self.scanner.at)
            if name is not None and name.group() != "#corert.shape":
                raise Problem(f"the attribute {name.group()} is not known", self.scanner.here(len(name.group())),
                              kind="unsupported", help="of dialect attributes there is #corert.shape<...>")
            raise self.scanner.expected("a shape, as in #corert.shape<1x?x3>")
        return Text(re.sub(r"\s+", "", match.group()))

