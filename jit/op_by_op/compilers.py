"""The compilers of single operations for the op-by-op runtime. Both trace an operation into a graph of its own, which checks
the operation and determines its results' metadata; one compiles the graph to native code, the other interprets it.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...lowering.graph.types import ShapeType, TensorType
from ...runtime.arena import Array
from ...runtime.errors import Problem
from ...runtime.interpreter import Interpreter
from ...runtime.op_by_op.attributes import FrozenOpAttrs
from ...runtime.op_by_op.compiled_kernels import Kernel
from ...runtime.op_by_op.compiled_kernels import Traced as TracedOperation
from ...runtime.op_by_op.metadata import TensorMetadata
from ...runtime.op_by_op.tensor_kinds import STRINGS
from ..call_signature import TensorSpec
from ..decorator import Jit
from ..stages import Traced
from ..tracing.conversion import element_type
from . import control_flow, operations, tensorflow_operations
from .compile_lock import compiling
from .cost_estimate import nanoseconds
from .empty import empty_operation, is_empty, stand_in
from .in_place import OverArguments

Make = Callable[[Traced], Kernel]


@dataclass(frozen=True, slots=True)
class OneOperation:
    """An operation as a graph."""
    traced: Traced
    metadata: tuple[TensorMetadata, ...]
    make: Make

    @property
    def nanoseconds(self) -> float:
        return nanoseconds(self.traced.function.body)

    def compile(self) -> Kernel:
        return self.make(self.traced)


@dataclass(frozen=True, slots=True)
class OperationCompiler:
    """A compiler of operations; `make` turns graphs into kernels."""
    make: Make

    def knows(self, op_name: str) -> bool:
        return operations.knows(op_name)

    def names(self) -> Iterable[str]:
        return operations.names()

    def constants(self, op_name: str, count: int) -> Sequence[int]:
        return operations.constants(op_name, count)

    def version(self, op_name: str, attributes: FrozenOpAttrs) -> Hashable:
        return operations.version(op_name, attributes.values())

    def trace(self, op_name: str, attributes: FrozenOpAttrs, inputs: Sequence[TensorMetadata],
              constants: Mapping[int, Array]) -> TracedOperation:
        for number, metadata in enumerate(inputs):
            if metadata.dtype == STRINGS:
                raise Problem(f"operand {number} of {op_name} is {metadata}, it takes tensors of numbers", kind="type")
        if is_empty(op_name, attributes, inputs):
            return without_elements(op_name, attributes, inputs, constants)
        traced = trace(op_name, attributes, inputs, constants)
        return OneOperation(traced, result_metadata(traced), self.make if is_compiled(traced) else interpreted)


@dataclass(frozen=True, slots=True)
class AnySpec(TensorSpec):
    """An argument that may have no elements."""

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, element_type(self.dtype))


def without_elements(op_name: str, attributes: FrozenOpAttrs, inputs: Sequence[TensorMetadata],
                     constants: Mapping[int, Array]) -> TracedOperation:
    """Return an operation on inputs of which some have no elements: never compiled. An operation of the specification or of
    TensorFlow is interpreted, and tried out here, so that a maximum of nothing is an error at once."""
    if not op_name.startswith(("tosa.", tensorflow_operations.PREFIX)):
        return empty_operation(op_name, plain(attributes), inputs,
                               lambda filled: result_metadata(trace(op_name, attributes, filled, constants)))
    traced = trace(op_name, attributes, inputs, constants)
    try:
        interpreted(traced).call(*[stand_in(m) for n, m in enumerate(inputs) if n not in constants])
    except Problem:
        raise
    except (ValueError, IndexError, ZeroDivisionError) as error:
        raise Problem(f"{op_name}: {error}", kind="shape", help="a tensor here has no elements") from error
    return OneOperation(traced, result_metadata(traced), interpreted)


def trace(op_name: str, attributes: FrozenOpAttrs, inputs: Sequence[TensorMetadata], constants: Mapping[int, Array]) -> Traced:
    """Return a graph of one operation. Raises a Problem if it does not take these inputs."""
    values = plain(attributes)

    def function(*tensors: Any) -> Any:
        given = iter(tensors)
        found = operations.call(op_name, [constant(op_name, n, len(inputs), constants[n]) if n in constants else next(given)
                                          for n in range(len(inputs))], values)
        return found[0] if len(found) == 1 else found

    specs = [AnySpec(m.shape, m.dtype) for n, m in enumerate(inputs) if n not in constants]
    function.__name__ = "".join(c if c.isalnum() else "_" for c in op_name)
    jit = Jit(function)
    jit.keeps_empty = True
    return control_flow.without_variables(op_name, asked(op_name, lambda: jit.trace(*specs)))


def asked(op_name: str, trace: Callable[[], Traced]) -> Traced:
    """Return a graph. Raise a Problem if the operation does not take the operands or attributes."""
    try:
        return trace()
    except Problem:
        raise
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise Problem(f"{op_name}: {error}", kind="argument", help="see the operation's operands and attributes") from error


def is_compiled(traced: Traced) -> bool:
    """True if all values of a graph are tensors with elements: lists of extents, and tensors without elements, are
    interpreted."""
    body = traced.function.body
    values = (*body.arguments, *(v for o in body.walk() for v in o.results))
    return not (any(isinstance(v.type, TensorType) and 0 in v.type.dims for v in values)
                or any(isinstance(v.type, ShapeType) for v in body.yields))


def plain(attributes: FrozenOpAttrs) -> dict[str, Any]:
    """Return attributes in the form that the functions take."""
    return {name: plain(value) if isinstance(value, FrozenOpAttrs) else value for name, value in attributes.values().items()}


def constant(op_name: str, number: int, count: int, array: Array) -> Any:
    """Return a known operand: a list of extents as such, else a constant tensor."""
    from ..tracing.trace import constant, shape
    if op_name.startswith("tosa.") and operations.is_shape(op_name, operations.operand_names(op_name, count)[number]):
        return shape([int(n) for n in array.reshape(-1)])
    return constant(np.array(array))


def result_metadata(traced: Traced) -> tuple[TensorMetadata, ...]:
    """Return dtypes and shapes of a graph's results; a list of extents is a tensor of i64."""
    types = [v.type for v in traced.function.body.yields]
    return tuple(TensorMetadata(np.int64, (t.rank,)) if isinstance(t, ShapeType) else
                 TensorMetadata(t.element.dtype, t.dims) for t in types if isinstance(t, ShapeType | TensorType))


def native(traced: Traced) -> Kernel:
    """Return machine code: called as a built-in function if the program allows it."""
    with compiling():
        compiled = traced.compile()
        call = compiled.calls.quick() or compiled.calls.ordinary
    return Kernel(call, OverArguments(compiled))


def interpreted(traced: Traced) -> Kernel:
    """Return the operators' references."""
    interpreter = Interpreter(traced.module, traced.name)
    single = len(traced.function.body.yields) == 1

    def call(*arrays: Array) -> Any:
        results = interpreter(*arrays)
        return results[0] if single else results

    return Kernel(call)


cpu = OperationCompiler(native)
"""Native kernels for this machine."""

reference = OperationCompiler(interpreted)
"""The operators' references, in NumPy."""
