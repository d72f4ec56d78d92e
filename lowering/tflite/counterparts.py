"""TensorFlow Lite operators that are TensorFlow operators with other names for their options, and that the converter leaves
unchanged or gets wrong: TensorFlow's legalizations lower them.

Arm's converter has no form for operators that find positions, count and add up elements (TOPK_V2, CUMSUM, SCATTER_ND, ...), is
128 off for unsigned bytes, and supports integers and bools only where TOSA's operator of that name takes them.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...runtime.records import dataclass
from ..graph.file_position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.types import F16, F32, I1, I8, I16, I32, I64, UI8, ElementType
from .records import OperatorRecord, SubgraphRecord, TensorRecord
from .schema import ELEMENTS

if TYPE_CHECKING:
    from ..text.attributes import Attribute

Tensors: TypeAlias = Sequence[TensorRecord]
Condition: TypeAlias = Callable[[Tensors, Tensors], bool]
"""A predicate on operands and results: true if the operator is lowered in this way."""

NARROW, INTEGERS, FLOATS = (I8, UI8, I16), (I8, UI8, I16, I32, I64), (F16, F32)


def element(tensor: TensorRecord) -> ElementType | None:
    return ELEMENTS.get(tensor.type)


def always(operands: Tensors, results: Tensors) -> bool:
    return True


def of_elements(*types: ElementType) -> Condition:
    """Return the condition that operands and results all have one of these types."""
    return lambda operands, results: all(element(t) in types for t in (*operands, *results))


def makes_narrow(operands: Tensors, results: Tensors) -> bool:
    return element(results[0]) in NARROW


def holds_unsigned_bytes(operands: Tensors, results: Tensors) -> bool:
    return UI8 in map(element, results)


def chooses_rows(operands: Tensors, results: Tensors) -> bool:
    return len(operands[0].shape) == 1 < len(results[0].shape)


def repeats_batches(operands: Tensors, results: Tensors) -> bool:
    """True if products of floats have batches that differ."""
    left, right = operands
    return element(left) in FLOATS and element(right) == element(left) and left.shape[:-2] != right.shape[:-2]


@dataclass(frozen=True, slots=True)
class Counterpart:
    """An operation of TensorFlow, the condition for using it, the order of its operands among the operator's, and its names for
    the operator's options."""
    name: str
    when: Condition = always
    order: tuple[int, ...] | None = None
    options: Mapping[str, str] | None = None
    """Names of the options, by the operator's names."""
    open: bool = False
    """True if the shapes of results may be dynamic: they follow from constants, or the operation reports why it cannot be
    compiled."""


KEEP = {"keep_dims": "keep_dims"}
COUNTERPARTS: dict[str, Counterpart] = {
    "TOPK_V2": Counterpart("tf.TopKV2"),
    "CUMSUM": Counterpart("tf.Cumsum", options={"exclusive": "exclusive", "reverse": "reverse"}),
    "SCATTER_ND": Counterpart("tf.ScatterNd"),
    "ONE_HOT": Counterpart("tf.OneHot", makes_narrow, options={"axis": "axis"}),
    "REVERSE_SEQUENCE": Counterpart("tf.ReverseSequence", options={"seq_dim": "seq_dim", "batch_dim": "batch_dim"}),
    "FILL": Counterpart("tf.Fill"),
    "MATRIX_DIAG": Counterpart("tf.MatrixDiag"),
    "MATRIX_SET_DIAG": Counterpart("tf.MatrixSetDiag"),
    **{f"UNSORTED_SEGMENT_{name.upper()}": Counterpart(f"tf.UnsortedSegment{name}") for name in ("Sum", "Prod", "Max", "Min")},
    "SEGMENT_SUM": Counterpart("tf.SegmentSum", lambda operands, results: operands[1].data is not None, open=True),
    "EMBEDDING_LOOKUP": Counterpart("tf.Gather", order=(1, 0)),
    "LOCAL_RESPONSE_NORMALIZATION": Counterpart("tf.LRN", of_elements(F32), options={
        "radius": "depth_radius", "bias": "bias", "alpha": "alpha", "beta": "beta"}),
    "BATCH_MATMUL": Counterpart("tf.BatchMatMulV2", repeats_batches, options={"adj_x": "adj_x", "adj_y": "adj_y"}),
    "SELECT": Counterpart("tf.Select", chooses_rows),
    "EQUAL": Counterpart("tf.Equal", of_elements(I1)),
    "NOT_EQUAL": Counterpart("tf.NotEqual", of_elements(I1)),
    "RIGHT_SHIFT": Counterpart("tf.RightShift"),
    "BITWISE_XOR": Counterpart("tf.BitwiseXor", holds_unsigned_bytes),
    "POW": Counterpart("tf.Pow", of_elements(*INTEGERS)),
    "FLOOR_MOD": Counterpart("tf.FloorMod", of_elements(I8, I16, I64)),
    "FLOOR_DIV": Counterpart("tf.FloorDiv", of_elements(*INTEGERS)),
    "MEAN": Counterpart("tf.Mean", of_elements(I32, I64), options=KEEP),
    "ARG_MIN": Counterpart("tf.ArgMin", lambda operands, results: element(operands[0]) in NARROW),
    "UNPACK": Counterpart("tf.Unpack", holds_unsigned_bytes, options={"axis": "axis"}),
    "SPLIT": Counterpart("tf.Split", holds_unsigned_bytes),
    "SPLIT_V": Counterpart("tf.SplitV", holds_unsigned_bytes),
    "PADV2": Counterpart("tf.PadV2", holds_unsigned_bytes),
    "WHERE": Counterpart("tf.Where", open=True),
    "UNIQUE": Counterpart("tf.Unique", open=True)}
"""TensorFlow operations by the kinds of operators."""

COUNTED = {"tf.Unpack": "num", "tf.Split": "num_split", "tf.SplitV": "num_split"}
"""Attributes that hold the number of results."""


def has_counterpart(graph: SubgraphRecord, operator: OperatorRecord) -> bool:
    """True if an operator is lowered as a TensorFlow operation: it is in the table and has known shapes."""
    found = COUNTERPARTS.get(operator.kind)
    if found is None or min((*operator.inputs, *operator.outputs), default=-1) < 0 or not operator.outputs:
        return False
    operands, results = ([graph.tensors[t] for t in numbers] for numbers in (operator.inputs, operator.outputs))
    if not found.open and any(None in t.shape for t in (*operands, *results)):
        return False
    if any(element(t) is None for t in (*operands, *results)) or len(operands) < len(found.order or ()):
        return False
    return found.when(operands, results)


def write_counterpart(block: BlockBuilder, graph: SubgraphRecord, operator: OperatorRecord, operands: Sequence[Value],
                      position: FilePosition) -> list[Value]:
    """Return the results of an operator of the table."""
    from ..rewrite.tensorflow.one_operation import emit
    found = COUNTERPARTS[operator.kind]
    chosen = operands if found.order is None else [operands[i] for i in found.order]
    results = emit(found.name, properties_of(found, graph, operator), chosen, block, position)
    return results[:len(operator.outputs)]


def properties_of(found: Counterpart, graph: SubgraphRecord, operator: OperatorRecord) -> dict[str, Attribute]:
    """Return the options as attributes, and the element type of an index, which MLIR has in the result's type."""
    from ..text.attributes import Number
    properties: dict[str, Attribute] = {}
    for own, theirs in (found.options or {}).items():
        value = operator.options[own]
        is_flag = theirs in ("exclusive", "reverse", "adj_x", "adj_y", "keep_dims")
        properties[theirs] = bool(value) if is_flag else Number(value, F32 if isinstance(value, float) else I64)  # type: ignore[arg-type]
    if found.name in COUNTED:
        properties[COUNTED[found.name]] = Number(len(operator.outputs), I64)
    if operator.kind == "ARG_MIN":
        properties["output_type"] = ELEMENTS[graph.tensors[operator.outputs[0]].type]
    return properties
