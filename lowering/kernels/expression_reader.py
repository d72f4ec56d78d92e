"""The reader of the expressions and indices of one kernel, as `print_kernel` writes them. A value with several uses has a line
of its own (`%0 := ...`), so that shared values are shared again, and the loops made from them are the same.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...runtime.errors import printable
from ..elements.affine import Affine, Axis, Computed, Range, Term, Wrapped
from ..elements.expression import (
    COMPARISONS,
    PRIMITIVES,
    Apply,
    Buffer,
    Cast,
    Const,
    Expr,
    Guard,
    IndexValue,
    Load,
    Reduce,
)
from .text import INFIX
from .text_tokens import KernelTokens

OPERATORS = {sign: primitive for primitive, sign in INFIX.items()}
MOST_DEPTH = 400
"""Maximum depth of nested expressions in one line."""


class ExpressionReader:
    """A reader of one kernel, with the names of axes, constants and shared values. `alike` holds unique parts."""

    def __init__(self, reader: KernelTokens, buffers: Mapping[str, Buffer]) -> None:
        self.reader, self.buffers, self.depth = reader, buffers, 0
        self.axes: dict[str, Axis] = {}
        self.constants: dict[str, Buffer] = {}
        self.shared: dict[str, Expr] = {}
        self.alike: dict[Any, Any] = {}

    def new_axis(self) -> Axis:
        r = self.reader
        name = r.take()
        if not re.fullmatch(r"[A-Za-z_][\w.]*", name, re.ASCII) or name in self.axes:
            raise r.problem(f"expected the name of a new axis, found {printable(name)}")
        r.expect("<")
        extent = r.whole()
        if extent < 0:
            raise r.problem("an extent is below 0")
        self.axes[name] = axis = Axis(name, extent)
        return axis

    def bind(self, name: str, extent: int) -> Axis:
        """Return the axis of a reduction; two reductions may share an axis."""
        known = self.axes.setdefault(name, Axis(name, extent))
        if known.extent != extent:
            raise self.reader.problem(f"{name} has {known.extent} values already")
        return known

    def bound_axis(self) -> Axis:
        name = self.reader.take()
        self.reader.expect("<")
        return self.bind(name, self.reader.whole())

    def share(self) -> None:
        name = self.reader.take()
        self.reader.expect(":=")
        self.shared[name] = self.expression()

    def one(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the same object for parts that are written alike."""
        if key not in self.alike:
            self.alike[key] = make()
        return self.alike[key]

    # ---- values ------------------------------------------------------------------------------------------------------
    def expression(self) -> Expr:
        r = self.reader
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise r.problem(f"expressions are nested more than {MOST_DEPTH} deep")
        found = self.term()
        self.depth -= 1
        return found

    def term(self) -> Expr:
        r = self.reader
        token = r.take()
        if token == "(":
            return self.parenthesised()
        if token.startswith("%"):
            if token not in self.shared:
                raise r.problem(f"{token} is not there yet")
            return self.shared[token]
        if token in ("cast", "bits") and r.next == "<":
            dtype = self.own_dtype()
            return Cast(self.argument(), dtype, token == "bits")
        if token == "index" and r.next in ("<", "("):
            dtype = self.own_dtype() if r.next == "<" else "int32"
            r.expect("(")
            index = self.index()
            r.expect(")")
            return IndexValue(index, dtype)
        if token in PRIMITIVES and r.next == "over":
            return self.reduction(token)
        if token in PRIMITIVES and r.next in ("(", "<"):
            return self.primitive(token)
        if r.next == "[":
            return self.load(token)
        return self.constant(token)

    def own_dtype(self) -> str:
        self.reader.expect("<")
        dtype = self.reader.dtype()
        self.reader.expect(">")
        return dtype

    def argument(self) -> Expr:
        self.reader.expect("(")
        found = self.expression()
        self.reader.expect(")")
        return found

    def parenthesised(self) -> Expr:
        """Read (a + b), or (inside if conditions else outside)."""
        r, left = self.reader, self.expression()
        if r.accept("if"):
            where = self.conditions()
            r.expect("else")
            found: Expr = Guard(where, left, self.expression())
        else:
            sign = r.take()
            if sign not in OPERATORS:
                raise r.problem(f"expected an operator or if, found {printable(sign)}")
            right = self.expression()
            found = Apply(OPERATORS[sign], (left, right), self.result(OPERATORS[sign], (left, right)))
        r.expect(")")
        return found

    def primitive(self, name: str) -> Expr:
        dtype = self.own_dtype() if self.reader.next == "<" else None
        self.reader.expect("(")
        args = self.reader.listed(self.expression, ")")
        if not args:
            raise self.reader.problem(f"{name} of nothing")
        return Apply(name, args, dtype or self.result(name, args))

    def result(self, primitive: str, args: tuple[Expr, ...]) -> str:
        return "bool" if primitive in COMPARISONS else args[-1].dtype

    def reduction(self, primitive: str) -> Expr:
        r = self.reader
        r.expect("over", "[")
        axes = r.listed(self.bound_axis, "]")
        where = self.conditions() if r.accept("if") else ()
        r.expect("of")
        return Reduce(primitive, axes, self.expression(), where)

    def load(self, label: str) -> Expr:
        r = self.reader
        buffer = self.constants.get(label) or self.buffers.get(label)
        if buffer is None:
            raise r.problem(f"there is no buffer {printable(label)}")
        r.expect("[")
        index = r.listed(self.index, "]")
        if len(index) not in (1, len(buffer.shape)):
            raise r.problem(f"{len(index)} indices of {buffer}")
        return Load(buffer, index)

    def constant(self, token: str) -> Expr:
        r = self.reader
        if token in ("True", "False"):
            r.expect(":")
            return Const(token == "True", r.dtype())
        value = r.number(token)
        dtype = r.dtype() if r.accept(":") else "int32" if isinstance(value, int) else "float32"
        return Const(value, dtype)

    # ---- indices -----------------------------------------------------------------------------------------------------
    def conditions(self) -> tuple[Range, ...]:
        found = [self.condition()]
        while self.reader.accept("and"):
            found.append(self.condition())
        return tuple(found)

    def condition(self) -> Range:
        low = self.reader.whole()
        self.reader.expect("<=")
        index = self.index()
        self.reader.expect("<")
        return Range(index, low, self.reader.whole())

    def index(self) -> Affine:
        """Read a sum of terms with factors, and a number."""
        r, terms, const, sign = self.reader, list[tuple[Term, int]](), 0, 1
        while True:
            factor, is_number = sign, False
            if re.fullmatch(r"-?\d+", r.next) or r.next == "-":
                factor, is_number = sign * r.whole(), True
            if is_number and not r.accept("*"):
                const += factor
            else:
                terms.append((self.index_term(), factor))
            if r.next not in ("+", "-"):
                return Affine(tuple(terms), const)
            sign = 1 if r.take() == "+" else -1

    def index_term(self) -> Term:
        r = self.reader
        if r.accept("("):
            source = self.index()
            r.expect(")", "mod")
            return Wrapped(source, r.whole())
        if r.accept("clamp", "<"):
            extent = r.whole()
            r.expect(">")
            value = self.argument()
            return self.one(("computed", id(value), extent), lambda: Computed(value, extent))
        name = r.take()
        if name not in self.axes:
            raise r.problem(f"there is no axis {printable(name)}")
        return self.axes[name]
