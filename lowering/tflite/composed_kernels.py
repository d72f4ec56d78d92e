"""TensorFlow Lite operators that are lowered to several TOSA operators because a converter has no form for them: rows written
at indices that are computed at run time, three-dimensional transposed convolutions, and non-maximum suppression.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..dialects.convolutions import transposed_convolution
from ..dialects.emitter import Emitter
from ..dialects.suppression import sides_of, suppressed
from ..formulas.indexing import gathered
from ..formulas.layout import part
from ..formulas.rounding import clamp
from ..formulas.term import Term, select
from ..formulas.updates import updated_rows
from ..graph.file_position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.types import F32, I32
from .records import OperatorRecord, SubgraphRecord
from .schema import ELEMENTS

SAME = 0
"""The padding for which a result has an element for each stride step."""


def is_composed_kernel(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if this module lowers an operator: it is in the table and has known shapes."""
    inputs = given(operator)
    numbers = (*inputs, *operator.outputs)
    if operator.kind not in WRITE or min(numbers, default=-1) < 0:
        return False
    tensors = [graph.tensors[t] for t in numbers]
    count, results = COUNTS[operator.kind]
    if len(inputs) not in count or len(operator.outputs) != results or any(None in t.shape for t in tensors):
        return False
    match operator.kind:
        case "CONV_3D_TRANSPOSE":
            options = operator.options
            dilations = {options[f"dilation_{d}"] for d in "dwh"}
            return all(ELEMENTS.get(t.type) == F32 for t in tensors[1:]) and not options["activation"] and dilations <= {0, 1}
        case "NON_MAX_SUPPRESSION_V5":
            return tensors[2].data is not None and tensors[5].data is not None and not tensors[5].data.any()
        case "NON_MAX_SUPPRESSION_V4":
            return tensors[2].data is not None
    return True


def given(operator: OperatorRecord) -> tuple[int, ...]:
    """Return the operands without an omitted last one."""
    return operator.inputs[:-1] if operator.inputs[-1:] == (-1,) else operator.inputs


def write_composed_kernel(block: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value],
                          position: FilePosition) -> list[Value]:
    """Return the results of an operator of the table."""
    e = Emitter()
    e.blocks[:] = [block]
    e.position = position
    return WRITE[operator.kind](e, graph, operator, operands)


# ---- updates of rows -------------------------------------------------------------------------------------------------
def updated_slice(e: Emitter, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value]) -> list[Value]:
    """Return x with a part replaced that begins at the indices, clamped so that the part fits."""
    x, update, start = operands
    dims, size = x.tensor.dims, update.tensor.dims
    depth = next((d for d in range(len(dims), 0, -1) if dims[d - 1] != size[d - 1]), 0)
    if not depth:
        return [update]
    first = Term(e, e.cast(e.reshape(start, (len(dims),)), I32)).value
    most = e.constant(np.array([n - k for n, k in zip(dims[:depth], size[:depth])], np.int32))
    held = e("minimum", e("maximum", part(e, first, 0, 0, depth), e.splat(0, first)), most)
    grid = np.moveaxis(np.indices(size[:depth]), 0, -1).astype(np.int32)
    indices = e.sum(e.constant(grid), e.reshape(held, (1,) * depth + (depth,)))
    return [e.reshape(updated_rows(e, x, indices, update).written(), dims)]


# ---- transposed convolutions -----------------------------------------------------------------------------------------
def transposed_in_space(e: Emitter, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value]) -> list[Value]:
    """Return a transposed 3D convolution. The axes of a filter are depth, height, width, outputs, inputs."""
    _, filter, x, *bias = operands
    strides = tuple(int(operator.options[f"stride_{d}"]) for d in "dhw")
    extents = tuple(n or 0 for n in graph.tensors[operator.outputs[0]].shape[1:4])
    kernel = filter.tensor.dims[:3]
    total = [max((n - 1) * s + k - out, 0) for n, s, k, out in zip(x.tensor.dims[1:4], strides, kernel, extents)]
    before = tuple(n // 2 if operator.options["padding"] == SAME else 0 for n in total)
    turned = e.transpose(filter, (3, 0, 1, 2, 4))
    return [transposed_convolution(e, x, turned, strides, before, extents, bias=bias[0] if bias else None)]


# ---- boxes -----------------------------------------------------------------------------------------------------------
def boxes_that_stay(e: Emitter, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value]) -> list[Value]:
    """Return the indices of the boxes that are kept, their scores if wanted, and their number; the rest is 0."""
    boxes, scores, most, overlap, least, *_ = operands
    assert most.constant is not None, "is_composed_kernel has seen it"
    count, rows = boxes.tensor.dims[0], int(most.constant.reshape(-1)[0])
    sides = sides_of(e, e.reshape(boxes, (1, count, 4)))
    found, total = suppressed(e, sides, e.reshape(scores, (1, 1, count)), min(rows, count), overlap, least)
    place = Term(e, e.cast(e.reshape(part(e, found, 1, 2, 3), (found.tensor.dims[0],)), I32))
    is_used, held = place >= 0, clamp(place, 0, math.inf)
    chosen = select(is_used, Term(e, gathered(e, scores, held.value, 0)), 0).value
    results = [held.value, chosen] if len(operator.outputs) == 3 else [held.value]
    missing = rows - found.tensor.dims[0]
    behind = [e.concat([v, e.constant(np.zeros(missing, v.tensor.element.dtype))], 0) if missing else v for v in results]
    return [*(as_declared(e, graph, t, v) for t, v in zip(operator.outputs, behind)), e.cast(total, I32)]


def as_declared(e: Emitter, graph: SubgraphRecord, tensor: int, value: Value) -> Value:
    """Return a result in the shape that the file declares, if that has as many elements: converters write [1, rows] for
    [rows]."""
    shape = tuple(n or 0 for n in graph.tensors[tensor].shape)
    return e.reshape(value, shape) if math.prod(shape) == value.tensor.size else value


Writer = Callable[[Emitter, SubgraphRecord, OperatorRecord, Sequence[Value]], list[Value]]
WRITE: dict[str, Writer] = {
    "DYNAMIC_UPDATE_SLICE": updated_slice, "CONV_3D_TRANSPOSE": transposed_in_space, "NON_MAX_SUPPRESSION_V4": boxes_that_stay,
    "NON_MAX_SUPPRESSION_V5": boxes_that_stay}
COUNTS = {"DYNAMIC_UPDATE_SLICE": ((3,), 1), "CONV_3D_TRANSPOSE": ((3, 4), 1), "NON_MAX_SUPPRESSION_V4": ((5,), 2),
          "NON_MAX_SUPPRESSION_V5": ((6,), 3)}
"""Possible numbers of operands of each operator, and its number of results."""
