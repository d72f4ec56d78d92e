"""One operation of TensorFlow's as operators of TOSA in a block that is being built: how the op-by-op runtime has `tf.Add` and
the others. Operands that a legalization needs to know when compiling are constants.

What is no function of tensors alone has no place here: control flow and calls (their functions would have to be in a module),
handles of variables, messages, lists of tensors and complex numbers.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....runtime.errors import Position, Problem
from ...dialects.data import Datum, Text, described
from ...dialects.tf.legalizations import LEGALIZATIONS
from ...dialects.tf.legalizations.constant_operands import constant_operands
from ...dialects.tf.operator import TensorFlowOp
from ...graph.foreign import find, spelling
from ...graph.graph import BlockBuilder, Module, Operation, Value
from ...graph.types import ElementType, OpaqueType, TensorType
from ...text.attributes import Attribute, Dense
from .translate import Bindings, Translation

__all__ = ["constant_operands", "emit", "is_function"]

WITHOUT_RESULTS = frozenset({"tf.Assert", "tf.NoOp", "tf.ControlTrigger"})
WITH_HANDLES = ("tf.TensorList", "tf.TensorArray", "tf.EmptyTensorList", "tf.Resource")
"""How the names of operations on lists of tensors, and on variables, begin."""
COUNTS = {"tf.Split": "num_split", "tf.SplitV": "num_split", "tf.Unpack": "num"}
"""Operations that have as many results as an attribute says."""
RESULT_TYPES = ("DstT", "type", "out_type", "output_type", "Tout", "index_type", "out_idx", "dtype")
"""Attributes of TensorFlow that say the element type of a result, which MLIR has in the result's type."""
MOST_RESULTS = 8
"""Of all operations whose number of results no attribute says: those with fewer do not look further."""


def is_function(name: str) -> bool:
    """True if an operation is a function of tensors of numbers that has a place in TOSA."""
    return name in LEGALIZATIONS and name not in WITHOUT_RESULTS and not name.startswith(WITH_HANDLES)


def emit(name: str, properties: Mapping[str, Attribute], operands: Sequence[Value], builder: BlockBuilder,
         position: Position | None = None) -> list[Value]:
    """The results of the operation, its TOSA appended to a block. Raises a Problem where it does not take such operands."""
    operation = declared(name, properties, len(operands))
    translation = Translation(Module(()), Bindings())
    translation.emitter.blocks[:] = [builder]
    translation.emitter.position = position
    try:
        return results(translation.translated(operation, list(operands), {}))
    except Problem as problem:
        raise problem.of(name) from None


def declared(name: str, properties: Mapping[str, Attribute], count: int) -> Operation:
    """The operation with results of the element types that its attributes say, of `count` operands."""
    op = TensorFlowOp(spelling=name, properties=dict(properties))
    plain = Operation(op, (), ())
    value = find(plain, "value")
    wanted = value.type.element if isinstance(value, Dense) else next(
        (v for n in RESULT_TYPES if isinstance(v := find(plain, n), ElementType)), None)
    type = OpaqueType("not known") if wanted is None else TensorType(None, wanted)
    outputs = tuple(Value(f"r{n}", type) for n in range(result_count(plain, count)))
    return Operation(op, (), outputs)


def result_count(operation: Operation, count: int) -> int:
    attribute = COUNTS.get(spelling(operation))
    if attribute is None:
        return max(MOST_RESULTS, count)
    value = getattr(find(operation, attribute), "value", None)
    if not isinstance(value, int) or not 0 < value < 1 << 16:
        raise Problem(f"{spelling(operation)} needs the attribute {attribute}, how many results it has", kind="attribute")
    return value


def results(found: Sequence[Datum]) -> list[Value]:
    """The results that are tensors; TensorFlow's own, behind them, are left out."""
    tensors = list(found)
    while tensors and isinstance(tensors[-1], Text):
        tensors.pop()
    for datum in tensors:
        if not isinstance(datum, Value):
            raise Problem(f"its result is {described(datum)}, which is no tensor of numbers", kind="unsupported",
                          help="use it inside of a compiled graph")
    if not tensors:
        raise Problem("it has no result that is a tensor", kind="unsupported")
    return [v for v in tensors if isinstance(v, Value)]
