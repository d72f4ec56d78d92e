"""One TensorFlow operation as TOSA operators in a block that is being built: the op-by-op runtime lowers `tf.Add` and the
others in this way. Operands that a legalization needs at compile time are constants.

Operations that are not functions of tensors alone are not supported: control flow and calls (their functions would have to be
in a module), handles of variables, messages, lists of tensors and complex numbers.
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
"""Prefixes of the names of operations on lists of tensors, and on variables."""
COUNTS = {"tf.Split": "num_split", "tf.SplitV": "num_split", "tf.Unpack": "num"}
"""The attribute that holds the number of results, for operations that have one."""
RESULT_TYPES = ("DstT", "type", "out_type", "output_type", "Tout", "index_type", "out_idx", "dtype")
"""TensorFlow attributes for the element type of a result, which MLIR has in the result's type."""
MOST_RESULTS = 8
"""Number of results declared for operations without such an attribute: operations with fewer results ignore the rest."""


def is_function(name: str) -> bool:
    """True if an operation is a function of tensors of numbers that can be lowered to TOSA."""
    return name in LEGALIZATIONS and name not in WITHOUT_RESULTS and not name.startswith(WITH_HANDLES)


def emit(name: str, properties: Mapping[str, Attribute], operands: Sequence[Value], builder: BlockBuilder,
         position: Position | None = None) -> list[Value]:
    """Return the results of the operation after appending its TOSA to a block. Raise a Problem if the operation does not take
    such operands."""
    operation = declared(name, properties, len(operands))
    translation = Translation(Module(()), Bindings())
    translation.emitter.blocks[:] = [builder]
    translation.emitter.position = position
    try:
        return results(translation.translated(operation, list(operands), {}))
    except Problem as problem:
        raise problem.of(name) from None


def declared(name: str, properties: Mapping[str, Attribute], count: int) -> Operation:
    """Return the operation, of `count` operands, with results of the element types in its attributes."""
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
    """Return the results that are tensors, without TensorFlow's own results after them."""
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
