"""TensorFlow Lite operators on quantized integers that the converter refuses or gets wrong, lowered to TOSA.

An operator with one 8-bit operand becomes a table of its 256 results, computed when a model is loaded. An operator with several
operands, or 16-bit ones, is computed in float32 and rounded to the nearest step, unless `two_byte_kernels` computes it as the
kernel does. Comparisons, and the greater and the less of two, are computed on integers.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..formulas.division import divided, square_root
from ..formulas.quantization import as_signed, as_unsigned
from ..formulas.softmax import log_softmax, softmax
from ..formulas.term import Term, absolute, rsqrt
from ..formulas.tosa_builder import PlacedBuilder, TosaBuilder
from ..graph.file_position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.types import F32, I1, I8, I16, I32, UI8, Array, ElementType
from .kernel_formulas import gelu, greater, less, quantized
from .records import OperatorRecord, SubgraphRecord, TensorRecord
from .schema import ELEMENTS
from .two_byte_kernels import in_fixed_point, is_two_byte_kernel, write_two_byte_kernel

Real: TypeAlias = Callable[[Array], Array]
BYTES, STORED = (I8, UI8), (I8, UI8, I16)

TABLES: dict[str, Real] = {"ABS": np.abs, "SQRT": np.sqrt, "ELU": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x)}
"""Functions of one byte."""

SCALE_BITS = 8
"""Number of fraction bits, below a step of 1, of integers that are rescaled to one scale for a comparison."""


def normalized(x: Term) -> Term:
    """Return x divided by the root of the sum of squares along the last axis."""
    total = (x * x).reduced("reduce_sum", x.value.tensor.rank - 1)
    return divided(x, square_root(total + 1e-6 * 1e-6))


FLOATS: dict[str, tuple[int, Callable[..., Term], tuple[ElementType, ...]]] = {
    "DIV": (2, divided, STORED), "LOG_SOFTMAX": (1, lambda x: log_softmax(x, x.value.tensor.rank - 1), BYTES),
    "L2_NORMALIZATION": (1, normalized, BYTES), "ABS": (1, absolute, (I16,)),
    "SQRT": (1, square_root, (I16,)), "RSQRT": (1, rsqrt, (I16,)),
    "GELU": (1, gelu, (I16,))}
"""Functions of real numbers, with their number of operands and the types of these."""

COMPARISONS: dict[str, Callable[[Term, Term], Term]] = {
    "EQUAL": Term.equals, "NOT_EQUAL": Term.differs, "GREATER": Term.__gt__, "GREATER_EQUAL": Term.__ge__,
    "LESS": Term.__lt__, "LESS_EQUAL": Term.__le__}
CHOICES = {"MAXIMUM": greater, "MINIMUM": less}


def is_quantized_kernel(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if this module lowers an operator: it is in a table, on tensors of known shapes and scales."""
    if is_two_byte_kernel(graph, operator):
        return True
    numbers = (*operator.inputs, *operator.outputs)
    if len(operator.outputs) != 1 or min(numbers) < 0:
        return False
    tensors = [graph.tensors[t] for t in numbers]
    elements = [ELEMENTS.get(t.type) for t in tensors]
    kind, first, count = operator.kind, elements[0], len(operator.inputs)
    if first not in STORED or any(None in t.shape for t in tensors):
        return False
    if kind in COMPARISONS:
        return count == 2 and elements == [first, first, I1] and (first == I16 or has_scales(tensors[:2]))
    if set(elements) != {first} or operator.options.get("activation"):
        return False
    if kind in CHOICES:
        return count == 2
    if not has_scales(tensors):
        return False
    match kind:
        case "SOFTMAX":
            return count == 1 and bool(tensors[0].shape) and first != I16 and operator.options["beta"] != 1
        case kind if kind in TABLES and first in BYTES:
            return count == 1
    operands, _, types = FLOATS.get(kind, (0, None, ()))
    return count == operands and first in types and (kind not in ("LOG_SOFTMAX", "L2_NORMALIZATION") or bool(tensors[0].shape))


def has_scales(tensors: Sequence[TensorRecord]) -> bool:
    return all(t.scale is not None for t in tensors)


def write_quantized_kernel(block: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value],
                           position: FilePosition) -> Value:
    """Return the result of an operator of the tables."""
    e = PlacedBuilder(block, position)
    records = [graph.tensors[t] for t in operator.inputs]
    result, kind = graph.tensors[operator.outputs[0]], operator.kind
    element = operands[0].tensor.element
    if is_two_byte_kernel(graph, operator):
        return write_two_byte_kernel(e, graph, operator, operands)
    if kind in COMPARISONS:
        return compared(e, COMPARISONS[kind], operands, records)
    if kind in CHOICES:
        return chosen(e, CHOICES[kind], operands)
    if kind in TABLES and element in BYTES:
        return by_table(e, TABLES[kind], operands[0], records[0], result)
    given = [real(Term(e, v), record) for v, record in zip(e.same_rank(*operands), records)]
    if kind == "SOFTMAX":
        found = softmax(given[0] * float(operator.options["beta"]), given[0].value.tensor.rank - 1)
    else:
        found = FLOATS[kind][1](*given)
    assert result.scale is not None, "is_quantized_kernel has seen it"
    return quantized(found, result.scale, result.zero_point, element).value


def real(x: Term, record: TensorRecord) -> Term:
    """Return the numbers that quantized integers represent, in float32."""
    assert record.scale is not None, "is_quantized_kernel has seen it"
    wide = x.cast(I32)
    return ((wide - record.zero_point) if record.zero_point else wide).cast(F32) * float(record.scale)


# ---- tables ----------------------------------------------------------------------------------------------------------
def by_table(e: TosaBuilder, function: Real, x: Value, operand: TensorRecord, result: TensorRecord) -> Value:
    """Return a function of one byte, whose results are the nearest steps, halves away from zero."""
    assert operand.scale is not None and result.scale is not None, "is_quantized_kernel has seen it"
    element = x.tensor.element
    steps = np.arange(element.minimum, element.maximum + 1, dtype=np.float64)
    with np.errstate(all="ignore"):
        reals = function((steps - operand.zero_point) * float(operand.scale)) / float(result.scale)
    away = np.copysign(np.floor(np.abs(np.nan_to_num(reals)) + 0.5), reals) + result.zero_point
    stored = np.clip(away, element.minimum, element.maximum).astype(np.int64)
    if element == UI8:
        return as_unsigned(e, e("table", as_signed(e, x), e.constant((stored - 128).astype(np.int8))))
    return e("table", x, e.constant(stored.astype(np.int8)))


# ---- comparisons -----------------------------------------------------------------------------------------------------
def compared(e: TosaBuilder, comparison: Callable[[Term, Term], Term], operands: Sequence[Value],
             records: Sequence[TensorRecord]) -> Value:
    """Compare 16-bit integers directly; rescale bytes to one scale first, in fixed point, as the kernel does."""
    given = [Term(e, e.cast(v, I32)) for v in e.same_rank(*operands)]
    if operands[0].tensor.element != I16:
        given = [scaled(x, record) for x, record in zip(given, records)]
    return comparison(*given).value


def scaled(x: Term, record: TensorRecord) -> Term:
    """Return (x - zero point) * scale in units of 2 ** -SCALE_BITS."""
    assert record.scale is not None, "is_quantized_kernel has seen it"
    return in_fixed_point((x - record.zero_point) * (1 << SCALE_BITS), float(record.scale))


def chosen(e: TosaBuilder, choice: Callable[[Term, Term], Term], operands: Sequence[Value]) -> Value:
    """Return the greater or the less of integers of one scale."""
    element = operands[0].tensor.element
    return choice(*(Term(e, e.cast(v, I32)) for v in e.same_rank(*operands))).cast(element).value
