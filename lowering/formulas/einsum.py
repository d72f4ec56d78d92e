"""Einsum: the equation read, then one product of matrices with batch, or a product with broadcasting where nothing is summed.

Each operand's axes have names; those that `...` stands for are named by their place from the last. Of axes of one name in one
operand there is the diagonal. A name that one operand alone has, and the result has not, is summed first. What is left is in
both operands and the result (batch), in both operands (summed by the product), or in one and the result (rows or columns).
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..graph.graph import Value
from ..graph.types import I32
from .contractions import batched_product, broadcast_batch
from .layout import every
from .tosa_builder import TosaBuilder, is_narrow

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """The names of the axes of each operand and of the result."""
    operands: tuple[Names, ...]
    result: Names


@dataclass(frozen=True, slots=True)
class NamedAxes:
    """A tensor and the names of its axes."""
    value: Value
    names: Names

    def extent(self, name: str) -> int:
        return self.value.tensor.dims[self.names.index(name)]


def einsum(e: TosaBuilder, values: Sequence[Value], text: str) -> Value:
    """The result of an equation of one or two operands, of the type that their sums have."""
    equation = read(text, [v.tensor.rank for v in values])
    operands = [NamedAxes(v, names) for v, names in zip(values, equation.operands)]
    check_extents(operands)
    apart = [without_diagonals(e, x) for x in operands]
    kept = [summed(e, x, {n for other in apart if other is not x for n in other.names} | {*equation.result}) for x in apart]
    found = kept[0] if len(kept) == 1 else contracted(e, kept[0], kept[1], equation.result)
    return ordered(e, found, equation.result)


# ---- the equation ------------------------------------------------------------------------------------------------
def read(text: str, ranks: Sequence[int]) -> Equation:
    """The equation for operands of these ranks; the Problem says what is wrong with it."""
    left, arrow, right = text.replace(" ", "").partition("->")
    parts = left.split(",")
    if not arrow or len(parts) != len(ranks) or len(parts) > 2:
        raise Problem(f"the equation {text!r} does not fit {len(ranks)} operands", kind="attribute",
                      help="one or two operands, then -> and the result")
    operands = tuple(named(part, rank, text) for part, rank in zip(parts, ranks))
    hidden = max((sum(n.startswith(".") for n in names) for names in operands), default=0)
    if hidden and "..." not in right:
        raise Problem(f"the axes that ... stands for are not in the result of {text!r}", kind="unsupported",
                      help="name them, or write ... on the right, too")
    explicit = len(right.replace("...", ""))
    result = named(right, explicit + hidden, text) if "..." in right else named(right, explicit, text)
    if twice := next((n for n in result if result.count(n) > 1), None):
        raise Problem(f"axis {twice} stands twice in the result of {text!r}", kind="unsupported",
                      help="it may stand twice in an operand, of which there is the diagonal then")
    if strange := [n for n in result if not any(n in names for names in operands)]:
        raise Problem(f"axis {strange[0]} of the result of {text!r} is in no operand", kind="attribute")
    return Equation(operands, result)


def named(part: str, rank: int, text: str) -> Names:
    """The names of the axes of a tensor of that rank: letters, and .0 (the last), .1 and so on for `...`."""
    before, dots, after = part.partition("...")
    hidden = rank - len(before) - len(after)
    if not all(c.isalpha() for c in before + after) or hidden < 0 or (hidden and not dots):
        raise Problem(f"{part!r} in the equation {text!r} does not name the axes of a tensor of rank {rank}", kind="shape")
    return (*before, *(f".{i}" for i in reversed(range(hidden))), *after)


def check_extents(operands: Sequence[NamedAxes]) -> None:
    """An axis has one extent, in both operands; those of `...` broadcast."""
    extents: dict[str, int] = {}
    for x in operands:
        for name, extent in zip(x.names, x.value.tensor.dims):
            known = extents.setdefault(name, extent)
            if known != extent and not (name.startswith(".") and 1 in (known, extent)):
                raise Problem(f"axis {name} has the extents {known} and {extent}", kind="shape")


# ---- diagonals ---------------------------------------------------------------------------------------------------
def without_diagonals(e: TosaBuilder, x: NamedAxes) -> NamedAxes:
    """x with one axis for each name: of two of one name, every (extent + 1)-th of their elements."""
    value, names = x.value, x.names
    while twice := next((n for n in names if names.count(n) > 1), None):
        first = names.index(twice)
        second = names.index(twice, first + 1)
        rest = [axis for axis in range(len(names)) if axis not in (first, second)]
        *outer, count, _ = (moved := e.transpose(value, [*rest, first, second])).tensor.dims
        flat = e.reshape(moved, (math.prod(outer), count * count))
        value = e.reshape(every(e, flat, 1, 0, count, count + 1) if flat.tensor.size else flat, (*outer, count))
        names = (*(names[axis] for axis in rest), twice)
    return NamedAxes(value, names)


# ---- the product -------------------------------------------------------------------------------------------------
def summed(e: TosaBuilder, x: NamedAxes, needed: set[str]) -> NamedAxes:
    """x without the axes that nothing else needs."""
    value, keep = x.value, tuple(n for n in x.names if n in needed)
    if keep == x.names:
        return x
    if is_narrow(value.tensor.element):
        value = e.cast(value, I32)
    for axis, name in enumerate(x.names):
        value = value if name in needed else e("reduce_sum", value, axis=axis)
    return NamedAxes(e.reshape(value, [x.extent(n) for n in keep]), keep)


def contracted(e: TosaBuilder, a: NamedAxes, b: NamedAxes, result: Names) -> NamedAxes:
    """The product of two operands, summed over the names that the result has not."""
    if next((n in b.names for n in result if (n in a.names) != (n in b.names)), False):
        a, b = b, a  # the rows are what comes first in the result
    batch = tuple(n for n in result if n in a.names and n in b.names)
    inner = tuple(n for n in b.names if n in a.names and n not in result)
    rows, columns = free(result, a, b), free(result, b, a)
    left, right = matrices(e, a, batch, rows, inner), matrices(e, b, batch, inner, columns)
    names = (*batch, *rows, *columns)
    wide = left.tensor.element if not is_narrow(left.tensor.element) else I32
    found = batched_product(e, left, right, wide) if inner else e.product(left, right)
    extents = {n: x.extent(n) for x in (a, b) for n in x.names}
    dims = (*broadcast_batch(left, right), *(extents[n] for n in rows), *(extents[n] for n in columns))
    return NamedAxes(e.reshape(found, dims), names)


def free(result: Names, x: NamedAxes, other: NamedAxes) -> Names:
    """The names that one operand alone gives the result."""
    return tuple(n for n in result if n in x.names and n not in other.names)


def matrices(e: TosaBuilder, x: NamedAxes, batch: Names, rows: Names, columns: Names) -> Value:
    """x as [batch..., rows, columns]."""
    moved = ordered(e, x, (*batch, *rows, *columns))
    counts = (math.prod(x.extent(n) for n in names) for names in (rows, columns))
    return e.reshape(moved, (*(x.extent(n) for n in batch), *counts))


def ordered(e: TosaBuilder, x: NamedAxes, names: Names) -> Value:
    """x with its axes in this order."""
    return e.transpose(x.value, [x.names.index(n) for n in names])
