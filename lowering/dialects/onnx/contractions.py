"""Products of matrices: MatMul, Gemm, Einsum, Det, com.microsoft.FusedMatMul."""
from __future__ import annotations

import math

import numpy as np

from ....runtime.errors import Problem
from ...formulas.contractions import batched_product, swapped
from ...formulas.einsum import einsum
from ...formulas.term import Term
from ...formulas.working_types import working_type
from ...graph.graph import Value
from ...graph.types import Array
from ..emitter import Emitter
from .arithmetic import same_elements
from .operator import Operator, operator


def multiplied(e: Emitter, a: Value, b: Value) -> Value:
    """Return a product as in NumPy: a vector is a row on the left, a column on the right."""
    same_elements(a, b)
    own, (left, right) = a.tensor.element, (a.tensor.rank, b.tensor.rank)
    if not left or not right:
        raise Problem(f"it takes matrices, not {a.type} and {b.type}", kind="shape")
    working = own if own.is_float else working_type(own, True, True)
    rows = e.reshape(a, (1, a.tensor.dims[0])) if left == 1 else a
    columns = e.reshape(b, (b.tensor.dims[0], 1)) if right == 1 else b
    dims = [*np.broadcast_shapes(rows.tensor.dims[:-2], columns.tensor.dims[:-2]), *rows.tensor.dims[-2:-1] * (left > 1),
            *columns.tensor.dims[-1:] * (right > 1)]
    if not a.tensor.size or not b.tensor.size or not math.prod(dims):
        return e.broadcast_to(e.constant(np.zeros((), own.dtype), own), dims) if math.prod(dims) else e.reshape(a, dims)
    found = batched_product(e, e.cast(rows, working), e.cast(columns, working), working)
    return e.reshape(e.cast(found, own), dims)


def product(a: Array, b: Array) -> Array:
    """Return a product in 64 bits; sums of integers wrap."""
    if a.dtype.kind in "iu":
        return np.asarray(np.matmul(a, b), a.dtype)
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)), a.dtype)


@operator("MatMul")
class MatMul(Operator):
    def reference(self, a: Array, b: Array) -> Array:
        return product(a, b)

    def lower(self, e: Emitter, a: Value, b: Value) -> Value:
        return multiplied(e, a, b)


@operator("com.microsoft.FusedMatMul")
class FusedMatMul(Operator):
    """A product times `alpha` of operands that may be transposed; transBatch swaps the roles of the first axis and the axis of
    the rows."""
    alpha: float = 1.0
    transA: int = 0
    transB: int = 0
    transBatchA: int = 0
    transBatchB: int = 0

    def order(self, rank: int, swap: int, batch: int) -> list[int]:
        axes = list(range(rank))
        if batch and rank > 2:
            axes = [*axes[1:-1], axes[0], axes[-1]]
        return [*axes[:-2], axes[-1], axes[-2]] if swap and rank > 1 else axes

    def reference(self, a: Array, b: Array) -> Array:
        a = a.transpose(self.order(a.ndim, self.transA, self.transBatchA))
        b = b.transpose(self.order(b.ndim, self.transB, self.transBatchB))
        return np.asarray(self.alpha * product(a.astype(np.float64), b.astype(np.float64)), a.dtype)

    def lower(self, e: Emitter, a: Value, b: Value) -> Value:
        a = e.transpose(a, self.order(a.tensor.rank, self.transA, self.transBatchA))
        b = e.transpose(b, self.order(b.tensor.rank, self.transB, self.transBatchB))
        found = multiplied(e, a, b)
        return found if self.alpha == 1 else e.product(found, e.splat(self.alpha, found))


@operator("Gemm")
class Gemm(Operator):
    """alpha * A * B + beta * C, C broadcast; A and B may be transposed."""
    alpha: float = 1.0
    beta: float = 1.0
    transA: int = 0
    transB: int = 0
    broadcast: int = 0

    def reference(self, a: Array, b: Array, c: Array | None = None) -> Array:
        left, right = a.T if self.transA else a, b.T if self.transB else b
        wide = np.float64 if a.dtype.kind not in "iu" else a.dtype
        found = np.matmul(left.astype(wide), right.astype(wide)) * np.asarray(self.alpha, wide)
        return np.asarray(found if c is None else found + np.asarray(self.beta, wide) * c.astype(wide), a.dtype)

    def lower(self, e: Emitter, a: Value, b: Value, c: Value | None = None) -> Value:
        if a.tensor.rank != 2 or b.tensor.rank != 2:
            raise Problem(f"it takes matrices, not {a.type} and {b.type}", kind="shape")
        found = multiplied(e, swapped(e, a) if self.transA else a, swapped(e, b) if self.transB else b)
        found = self.scaled(e, found, self.alpha)
        if c is None:
            return found
        return e.sum(found, self.scaled(e, c, self.beta)) if self.beta else found

    def scaled(self, e: Emitter, x: Value, factor: float) -> Value:
        if factor == 1:
            return x
        element = x.tensor.element
        if element.is_integer and factor != int(factor):
            raise Problem(f"integers times {factor} have no place in TOSA", kind="unsupported")
        return e.product(x, e.splat(int(factor) if element.is_integer else factor, x))


@operator("Einsum")
class Einsum(Operator):
    """Any number of operands, contracted pairwise; without `->` the result has the names that occur once, in order."""
    equation: str

    def reference(self, *arrays: Array) -> Array:
        dtype = arrays[0].dtype
        given = arrays if dtype.kind in "iu" else tuple(a.astype(np.float64) for a in arrays)
        return np.asarray(np.einsum(self.equation.replace(" ", ""), *given), dtype)

    def lower(self, e: Emitter, *values: Value) -> Value:
        same_elements(*values)
        element = values[0].tensor.element
        working = working_type(element, True, True)
        text = explicit(self.equation)
        left, _, right = text.partition("->")
        parts = left.split(",")
        if len(parts) != len(values):
            raise Problem(f"the equation {self.equation!r} does not fit {len(values)} operands", kind="attribute")
        given = [(e.cast(v, working), p) for v, p in zip(values, parts)]
        while len(given) > 2:
            (a, p), (b, q), *others = given
            needed = "".join(n for _, n in others) + right
            kept = "".join(dict.fromkeys(n for n in (p + q).replace(".", "") if n in needed))
            kept = ("..." if "..." in p + q else "") + kept
            given = [(einsum(e, (a, b), f"{p},{q}->{kept}"), kept), *others]
        found = einsum(e, [v for v, _ in given], f"{','.join(p for _, p in given)}->{right}")
        return e.cast(found, element)


def explicit(equation: str) -> str:
    """Return the equation with its result written out."""
    text = equation.replace(" ", "")
    if "->" in text:
        return text
    names = text.replace(",", "").replace(".", "")
    return f"{text}->{'...' * ('...' in text)}{''.join(sorted(n for n in set(names) if names.count(n) == 1))}"


@operator("Det")
class Det(Operator):
    """The determinant of the last two axes."""

    def reference(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64)), x.dtype)

    def lower(self, e: Emitter, x: Value) -> Value:
        if x.tensor.rank < 2 or x.tensor.dims[-1] != x.tensor.dims[-2]:
            raise Problem(f"it takes square matrices, not {x.type}", kind="shape")
        *outer, n, _ = x.tensor.dims
        if n > MOST_ROWS:
            raise Problem(f"the determinant of {n} rows is not written out", kind="unsupported",
                          help=f"at most {MOST_ROWS} rows")
        wide = e.cast(x, working_type(x.tensor.element, False, True))
        rows = e.reshape(wide, (math.prod(outer), n, n))
        entries = [[Term(e, e.slice(rows, (0, i, j), (math.prod(outer), 1, 1))) for j in range(n)] for i in range(n)]
        found = expanded(entries, tuple(range(n)), {}) if n else None
        if found is None:
            return e.broadcast_to(e.constant(np.ones((), x.tensor.element.dtype)), outer)
        return e.cast(e.reshape(found.value, outer), x.tensor.element)


MOST_ROWS = 6
"""Maximum number of rows of a matrix whose determinant is expanded: there are 2**n minors."""


def expanded(entries: list[list[Term]], columns: tuple[int, ...], known: dict[tuple[int, ...], Term]) -> Term:
    """Return the minor of the last rows and these columns, expanded along the first of these rows; each minor is computed
    once."""
    if columns not in known:
        row = entries[len(entries) - len(columns)]
        if len(columns) == 1:
            return row[columns[0]]
        terms = [row[c] * expanded(entries, tuple(k for k in columns if k != c), known) for c in columns]
        found = terms[0]
        for number, term in enumerate(terms[1:], 1):
            found = found - term if number % 2 else found + term
        known[columns] = found
    return known[columns]
