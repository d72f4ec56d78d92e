"""TABLE: a function of small integers as a table of its values. TOSA 1.0, section 2.5."""
from __future__ import annotations

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine
from ...elements.expression import Expr, cast
from ...elements.tensor import Element, Tensor, gathered
from ...graph.operator import Op, Operand
from ...graph.types import I8, I16, I32, Array, ElementType, TensorType
from .elementwise import names, tensor
from .operands import ranked

ENTRIES: dict[ElementType, tuple[ElementType, int]] = {I8: (I8, 256), I16: (I32, 513)}
"""The type of the operand: the type of the result, and the number of entries of the table."""


class Table(Op, name="tosa.table"):
    """i8: entry x + 128. i16: the line between two of 513 entries, 128 steps apart, with 7 fractional bits more."""

    def infer(self, x: Operand, table: Operand) -> TensorType:
        found = tensor(x)
        require(found.element in ENTRIES, f"{self.name} does not take {found.element}",
                help=f"it takes {names(ENTRIES)}")
        element, entries = ENTRIES[found.element]
        require(tensor(table).element == found.element,
                f"a table for {found.element} holds {found.element}, not {tensor(table).element}")
        (length,) = ranked(table, 1, "the table")
        require(length in (entries, None), f"a table for {found.element} has {entries} entries, not {length}",
                kind="shape")
        return TensorType(found.shape, element)

    def reference(self, x: Array, table: Array) -> Array:
        if x.dtype == np.int8:
            return np.asarray(table[x.astype(np.int64) + 128])
        entry, fraction = np.divmod(x.astype(np.int64) + 32768, 128)
        base, following = table[entry].astype(np.int64), table[entry + 1].astype(np.int64)
        return np.asarray((base * 128 + (following - base) * fraction).astype(np.int32))

    def element(self, out: TensorType, x: Tensor, table: Tensor) -> Element:
        def of_i8(*index: Affine) -> Expr:
            return table[(gathered(cast(x[index], "int32") + 128, 256),)]

        def of_i16(*index: Affine) -> Expr:
            value = cast(x[index], "int32")
            place = gathered((value + 32768) >> 7, 512)
            base, following = (cast(table[(i,)], "int32") for i in (place, place + 1))
            return (base << 7) + (following - base) * (value & 127)

        return of_i8 if x.type.element == I8 else of_i16
