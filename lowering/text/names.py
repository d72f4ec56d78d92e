"""Names of values in MLIR text: `%0`, `%4#1`, `%0:2 = ...`, and their resolution in nested regions."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Label, Problem, Source
from ..graph.graph import Value
from ..graph.types import Array, Type
from .syntax import place

if TYPE_CHECKING:
    from lark import Token

NAME = re.compile(r"%([\w$.-]+?)(?:\s*:\s*([0-9]+))?\s*(?=[,=])")
USE = re.compile(r"(%[\w$.]++(?:-[\w$.]++)*+)(?:#([0-9]+))?")
MOST_RESULTS = 100_000
UNUSED = "unused"
"""Name of a result that the text does not name."""


class Scopes:
    """The names that are visible: those of the innermost region first, then of the regions around it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: list[dict[str, tuple[Value, ...]]] = [{}]

    def define(self, name: str, values: tuple[Value, ...], token: Token) -> None:
        """Give a name to the results of an operation, or to an argument; a region may shadow the names around it."""
        known = self.names[-1].get(name)
        if known:
            raise Problem(f"%{name} is defined twice", place(self.source, token), kind="symbol",
                          labels=(Label(known[0].position, "it is defined here"),))
        self.names[-1][name] = values

    def argument(self, token: Token, type: Type) -> Value:
        value = Value(token[1:], type, place(self.source, token))
        self.define(value.name, (value,), token)
        return value

    def operands(self, tokens: Token | Sequence[Token] | None) -> tuple[Value, ...]:
        """The values of `%a, %b#1`."""
        return tuple(self.find(match, token) for match, token in uses(tokens))

    def find(self, match: re.Match[str], token: Token) -> Value:
        name = match.group(1)
        for names in reversed(self.names):
            values = names.get(name[1:])
            if values is not None:
                break
        else:
            raise self.unknown(match, token)
        number = match.group(2) or "0"
        if len(number) > 6 or int(number) >= len(values):
            raise Problem(f"{name} has no result number {number}",
                          place(self.source, token, match.start(), len(match.group())), kind="symbol")
        return values[int(number)]

    def unknown(self, match: re.Match[str], token: Token) -> Problem:
        name, text = match.group(1), self.source.text or ""
        position = place(self.source, token, match.start(), len(match.group()))
        definition = re.compile(re.escape(name) + r"(?![\w$.#-])(?:\s*:\s*[0-9]+)?(?:\s*,\s*%[\w$.:-]++){0,16}\s*=(?!=)")
        later = definition.search(text, token.start_pos or 0)
        if later is None:
            return Problem(f"unknown value {name}", position, kind="symbol")
        label = Label(self.source.position(later.start(), len(name)), "a later operation of this name")
        return Problem(f"{name} is used before it is defined", position, kind="symbol", labels=(label,))

    def results(self, token: Token | None, types: tuple[Type, ...], operation: Token,
                constant: Array | None = None) -> tuple[Value, ...]:
        """The results of an operation, by the names before its `=`."""
        if token is None:
            return tuple(Value(UNUSED, t, place(self.source, operation), constant) for t in types)
        values: list[Value] = []
        for name, count, start in self.groups(token, len(types)):
            position = place(self.source, token, start, len(name) + 1)
            group = tuple(Value(name if count == 1 else f"{name}#{i}", types[len(values) + i], position, constant)
                          for i in range(count))
            self.define(name, group, token)
            values += group
        return tuple(values)

    def rename(self, token: Token | None, values: tuple[Value, ...]) -> None:
        """Give the names before an `=` to existing values."""
        if token is not None:
            for name, count, _ in self.groups(token, len(values)):
                self.define(name, values[:count], token)
                values = values[count:]

    def groups(self, token: Token, expected: int) -> list[tuple[str, int, int]]:
        """Name, number of values, and offset of each name before an `=`; together they are `expected` values."""
        groups = [(m.group(1), m.group(2) or "1", m.start()) for m in NAME.finditer(token)]
        total = sum(int(count) if len(count) < 7 else MOST_RESULTS for _, count, _ in groups)
        if total != expected:
            width = len(token[:-1].rstrip())
            raise Problem(f"{total} results are named, but the operation has {expected}",
                          place(self.source, token, 0, width), kind="type")
        return [(name, int(count), start) for name, count, start in groups]


def uses(tokens: Token | Sequence[Token] | None) -> Iterator[tuple[re.Match[str], Token]]:
    """Each use in an operand list, with the token that it is in."""
    if tokens is None:
        return
    for token in (tokens,) if isinstance(tokens, str) else tokens:
        for match in USE.finditer(token):
            yield match, token
