"""Operations of MLIR's own dialects as they are stored: by their names, with their properties, like those of TensorFlow.

    arith.constant   a constant, of a tensor or a scalar
    tensor.cast      the same tensor, of a type that says more or less
    tensor.extract   one element of a tensor, as a scalar
    func.call        a call of a function of the module
    scf.if           one of two regions, which yield its results
    scf.while        the first region tests and hands values on, the second makes the next state of them
    quant.qcast, quant.dcast, quant.scast   real numbers to quantized ones, back, and storage to quantized ones or back

A scalar (`i1`, `index`) is an `OpaqueType` in the text's graph, and a tensor without axes wherever something is computed.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....runtime.errors import Problem
from ...graph.foreign import find, spelling
from ...graph.graph import Block, Operation, Value
from ...graph.operator import ForeignOp
from ...graph.quantized import is_quantized, storage_type
from ...graph.types import ELEMENT_TYPES, I1, ElementType, OpaqueType, TensorType, Type
from ...graph.verify import compatible

CONSTANT, TENSOR_CAST, EXTRACT, CALL = "arith.constant", "tensor.cast", "tensor.extract", "func.call"
IF, WHILE, SCF_YIELD, CONDITION = "scf.if", "scf.while", "scf.yield", "scf.condition"
QUANTIZE, DEQUANTIZE, STORAGE_CAST = "quant.qcast", "quant.dcast", "quant.scast"
STANDARD = frozenset({CONSTANT, TENSOR_CAST, EXTRACT, CALL, IF, WHILE, QUANTIZE, DEQUANTIZE, STORAGE_CAST})
INDEX = "index"
INDEX_ELEMENT = "i64"
"""Element type in which an index is computed."""


class StandardOp(ForeignOp):
    """An operation of one of these dialects: `spelling` is its name, `properties` are its attributes."""
    terminator = SCF_YIELD
    constant_spelling = CONSTANT

    def terminator_of(self, region: int) -> str:
        return CONDITION if self.spelling == WHILE and region == 0 else SCF_YIELD

    def verify(self, operation: Operation, parent: Operation | None) -> None:
        RULES[self.spelling](operation)


def scalar_tensor(type: Type) -> Type:
    """Return the rank-0 tensor type of a scalar type, as used in computations; other types unchanged."""
    element = scalar_element(type)
    return type if element is None else TensorType((), element)


def scalar_element(type: Type) -> ElementType | None:
    """Return the element type of a scalar; None for other types."""
    if not isinstance(type, OpaqueType):
        return None
    return ELEMENT_TYPES.get(INDEX_ELEMENT if type.text == INDEX else type.text)


def is_condition(type: Type) -> bool:
    """True if values of the type are one boolean."""
    return scalar_tensor(type) == TensorType((), I1)


# ---- rules -----------------------------------------------------------------------------------------------------------
def wrong(operation: Operation, message: str, region: Block | None = None, help: str | None = None) -> Problem:
    place = None if region is None else region.terminator_position or region.position
    return Problem(f"{spelling(operation)} {message}", place or operation.position, kind="type", help=help)


def check_counts(operation: Operation, operands: int, results: int, regions: int = 0) -> None:
    for what, found, expected in (("operands", len(operation.operands), operands), ("results", len(operation.results), results),
                                  ("regions", len(operation.regions), regions)):
        if found != expected:
            raise wrong(operation, f"has {expected} {what}, found {found}")


def check_constant(operation: Operation) -> None:
    check_counts(operation, 0, 1)
    value, type = find(operation, "value"), operation.results[0].type
    if value is None:
        raise Problem(f"{CONSTANT} has no value", operation.position, kind="attribute")
    given = getattr(value, "type", None)
    if isinstance(type, TensorType) and isinstance(given, TensorType) and given != type:
        raise wrong(operation, f"gives a {type}, but its value is a {given}")


def check_tensor_cast(operation: Operation) -> None:
    check_counts(operation, 1, 1)
    before, after = operation.operands[0].type, operation.results[0].type
    if not compatible(before, after):
        raise wrong(operation, f"cannot make a {after} of a {before}", help="it changes only what a type says of the shape")


def check_extract(operation: Operation) -> None:
    if not operation.operands:
        raise wrong(operation, "takes a tensor and an index for each axis, found no operands")
    check_counts(operation, len(operation.operands), 1)
    tensor, *indices = operation.operands
    if isinstance(tensor.type, TensorType) and tensor.type.shape is not None and len(tensor.type.shape) != len(indices):
        raise wrong(operation, f"takes an index for each axis of {tensor.type}, found {len(indices)}")
    if isinstance(tensor.type, TensorType) and scalar_element(operation.results[0].type) not in (None, tensor.type.element):
        raise wrong(operation, f"gives an element of {tensor.type}, not a {operation.results[0].type}")
    for value in indices:
        if scalar_tensor(value.type) == value.type:
            raise wrong(operation, f"takes indices, %{value.name} is a {value.type}")


def check_call(operation: Operation) -> None:
    if not hasattr(find(operation, "callee"), "path"):
        raise Problem(f"{CALL} does not say which function it calls", operation.position, kind="attribute")


def check_if(operation: Operation) -> None:
    """Check that there are two regions, which have no arguments and yield the results."""
    check_counts(operation, 1, len(operation.results), 2)
    if not is_condition(operation.operands[0].type):
        raise wrong(operation, f"takes an i1, %{operation.operands[0].name} is a {operation.operands[0].type}")
    for region in operation.regions:
        if region.arguments:
            raise wrong(operation, "has no arguments in its regions", region)
        check_types(operation, region, region.yields, operation.results, "a region yields", "results")


def check_while(operation: Operation) -> None:
    check_counts(operation, len(operation.operands), len(operation.results), 2)
    before, after = operation.regions
    check_types(operation, None, before.arguments, operation.operands, "its first region takes", "operands")
    if not before.yields or not is_condition(before.yields[0].type):
        raise wrong(operation, f"has a first region that ends in {CONDITION} of an i1", before)
    check_types(operation, before, before.yields[1:], operation.results, "its condition hands on", "results")
    check_types(operation, None, after.arguments, operation.results, "its second region takes", "results")
    check_types(operation, after, after.yields, operation.operands, "its second region yields", "operands")


def check_types(operation: Operation, region: Block | None, found: Sequence[Value], expected: Sequence[Value], what: str,
                other: str) -> None:
    given, wanted = [v.type for v in found], [v.type for v in expected]
    if len(given) != len(wanted) or not all(map(compatible, given, wanted)):
        raise wrong(operation, f"has {other} ({', '.join(map(str, wanted))}), but {what} ({', '.join(map(str, given))})",
                    region)


def check_quantize(operation: Operation) -> None:
    check_counts(operation, 1, 1)
    real, stored = (operation.operands[0].type, operation.results[0].type)
    if spelling(operation) == DEQUANTIZE:
        real, stored = stored, real
    if not is_quantized(stored) or not isinstance(real, TensorType) or not real.element.is_float:
        raise wrong(operation, f"is between real numbers and quantized ones, not {operation.operands[0].type} and "
                    f"{operation.results[0].type}")


def check_storage_cast(operation: Operation) -> None:
    check_counts(operation, 1, 1)
    before, after = operation.operands[0].type, operation.results[0].type
    if is_quantized(before) == is_quantized(after) or not compatible(storage_type(before), storage_type(after)):
        raise wrong(operation, f"is between quantized numbers and their storage, not {before} and {after}")


RULES: Mapping[str, Callable[[Operation], None]] = {
    CONSTANT: check_constant, TENSOR_CAST: check_tensor_cast, EXTRACT: check_extract, CALL: check_call, IF: check_if,
    WHILE: check_while, QUANTIZE: check_quantize, DEQUANTIZE: check_quantize, STORAGE_CAST: check_storage_cast}
