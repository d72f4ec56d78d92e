"""The kernels, by name: each is a function of a `Call` that returns the results, or registers that will have them.

Control flow is in `control.py`: unlike these kernels, it does not wait for all of its operands.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....lowering.graph.types import ELEMENT_TYPES, Array
from ....lowering.text.attributes import Number
from ....runtime.errors import Problem
from ....runtime.op_by_op.attributes import Attributes, FrozenOpAttrs, OpAttrs
from ....runtime.op_by_op.chain import Chain
from ....runtime.op_by_op.handle import TensorHandle
from ....runtime.op_by_op.handler import NullOpHandler, OpHandler
from ....runtime.op_by_op.metadata import TensorMetadata
from ....runtime.op_by_op.tensor_kinds import STRINGS
from ..program_text.kernel_program import CHAIN, SCALARS, Function
from ..program_text.kernel_table import ARRAY_TYPES, ATTRIBUTE_TYPES, DENSE_TYPES
from .attribute_conversion import aggregate, attributes_lines, plain, set_attribute
from .handlers import CpuOpHandler, ProgramLoggingOpHandler
from .registers import Register
from .tensor_printing import integer_of, number_text, shape_text, tensor_text

if TYPE_CHECKING:
    from .execution import ProgramCall

Implementation: TypeAlias = Callable[["ProgramCall"], Any]
KERNELS: dict[str, Implementation] = {}


def kernel(*names: str) -> Callable[[Implementation], Implementation]:
    """Register a function under these names."""
    def enter(function: Implementation) -> Implementation:
        KERNELS.update(dict.fromkeys(names, function))
        return function
    return enter


def family(name: str, types: Sequence[str]) -> list[str]:
    return [f"{name}.{type}" for type in types]


# Numbers and chains

@kernel("tfrt.new.chain")
def new_chain(call: ProgramCall) -> None:
    return None


@kernel(*family("tfrt.constant", SCALARS))
def constant(call: ProgramCall) -> int | float | bool:
    return plain(call.attribute("value"))


def type_of(call: ProgramCall) -> str:
    """Return the type at the end of a kernel's name."""
    return call.kernel.name.rpartition(".")[2]


@kernel(*family("tfrt.print", SCALARS))
def print_number(call: ProgramCall) -> None:
    type = type_of(call)
    word = {"i": "int", "u": "uint", "f": "f"}[type[0]] + type.lstrip("uif")
    call.execution.write(f"{word} = {number_text(call.values[0], ELEMENT_TYPES[type])}")


@kernel(*family("tfrt.add", SCALARS[1:]))
def add(call: ProgramCall) -> int | float:
    """Return the sum, wrapped around as its type does."""
    return total(call.values[0], call.values[1], type_of(call))


def total(a: Any, b: Any, type: str) -> int | float:
    dtype = ELEMENT_TYPES[type].dtype
    with np.errstate(all="ignore"):
        found: int | float = (np.array(a, dtype) + np.array(b, dtype)).item()
    return found


@kernel(*family("tfrt.equal", SCALARS))
def equal(call: ProgramCall) -> bool:
    return bool(call.values[0] == call.values[1])


@kernel(*family("tfrt.lessequal", SCALARS[1:]))
def less_or_equal(call: ProgramCall) -> bool:
    return bool(call.values[0] <= call.values[1])


# Op handlers

@kernel("corert.create_null_op_handler")
def create_null(call: ProgramCall) -> OpHandler:
    return NullOpHandler()


@kernel("corert.create_cpu_op_handler")
def create_cpu(call: ProgramCall) -> OpHandler:
    return CpuOpHandler(call.execution.runtime, call.values[0])


@kernel("corert.create_logging_op_handler")
def create_logging(call: ProgramCall) -> OpHandler:
    waits = call.kernel.attributes.get("sync_log_results", False)
    return ProgramLoggingOpHandler(call.values[0], call.execution, bool(plain(waits)))


@kernel("corert.register_op_handler")
def register(call: ProgramCall) -> None:
    call.execution.handlers[call.attribute("name")] = call.values[0]


@kernel("corert.get_op_handler")
def get(call: ProgramCall) -> OpHandler:
    return call.execution.handler(call.attribute("name"))


# Operations

@kernel("corert.executeop")
def execute(call: ProgramCall) -> tuple[TensorHandle, ...]:
    handler, *arguments = call.take()
    return run_operation(call, handler, arguments, None)[0]


@kernel("corert.executeop.seq")
def execute_in_order(call: ProgramCall) -> tuple[Any, ...]:
    """Run an operation whose input chain is ready; its output chain is ready when the effect is done."""
    handler, _, *arguments = call.take()
    results, chain = run_operation(call, handler, arguments, Chain.ready())
    return (chain, *results)


def run_operation(call: ProgramCall, handler: OpHandler, arguments: list[TensorHandle | None],
                  chain: Chain | None) -> tuple[tuple[TensorHandle, ...], Chain | None]:
    """Run an operation, which takes ownership of the handles; handles that the program uses again are in their registers,
    too."""
    execution, kernel = call.execution, call.kernel
    count = sum(type != CHAIN for type in kernel.result_types)
    results: list[TensorHandle | None] = [None] * count
    effect = execution.runtime.execute(call.attribute("op_name"), handler, kernel.position, arguments,
                                       execution.attributes(kernel), results, chain)
    return tuple(r for r in results if r is not None), effect


@dataclass(frozen=True, slots=True)
class CompositeOp:
    """An operation that is a function of the program."""
    function: Function


@kernel("corert.make_composite_op")
def make_composite(call: ProgramCall) -> CompositeOp:
    return CompositeOp(call.execution.callee(call.attribute("fn")))


@kernel("corert.execute_crt_op")
def execute_composite(call: ProgramCall) -> tuple[Register, ...]:
    """Call the function on handles, or on a chain and handles; the function then returns a chain first, too."""
    operation, *arguments = map(Register, call.take())
    function: Function = operation.value.function
    takes_chain = function.argument_types[:1] == (CHAIN,)
    if takes_chain:
        arguments.insert(0, Register())
    found = len(function.result_types) - (function.result_types[:1] == (CHAIN,))
    if len(arguments) != len(function.argument_types) or found != len(call.kernel.results):
        raise Problem(f"@{function.name} takes {len(function.argument_types) - takes_chain} tensor handles and gives {found}, "
                      f"not {len(arguments) - takes_chain} and {len(call.kernel.results)}", kind="kernel")
    results = call.execution.call(function, arguments)
    return tuple(results[len(results) - found:])


# Tensor handles

def ready(call: ProgramCall, array: Array) -> TensorHandle:
    return TensorHandle(call.execution.runtime, TensorMetadata.of(array), array)


@kernel("corert.const_dense_tensor")
def const_dense(call: ProgramCall) -> TensorHandle:
    return ready(call, np.asarray(call.attribute("value").array, order="C"))


def extents(call: ProgramCall) -> tuple[int, ...]:
    return tuple(int(n.value) for n in call.attribute("shape"))


def filled(shape: tuple[int, ...], values: Sequence[Any], dtype: Any) -> Array:
    """Return an array of the values; a single value fills all of it."""
    if len(values) not in (1, math.prod(shape)):
        raise Problem(f"{len(values)} values for {shape_text(shape)}", kind="shape", help="one value fills the whole shape")
    array = np.empty(shape, dtype)
    array.reshape(-1)[:] = np.array(values, dtype)
    return array


@kernel("corert.const_string_tensor")
def const_string(call: ProgramCall) -> TensorHandle:
    values = [v.encode("utf-8", "surrogateescape") for v in call.attribute("value")]
    return ready(call, filled(extents(call), values, STRINGS))


@kernel(*family("corert.create_dense_tensor", DENSE_TYPES))
def create_dense(call: ProgramCall) -> TensorHandle:
    values = [plain(v) for v in call.attribute("value")]
    return ready(call, filled(extents(call), values, ELEMENT_TYPES[type_of(call)].dtype))


@kernel("corert.print_tensorhandle")
def print_handle(call: ProgramCall) -> Register:
    handle, _ = call.values
    execution = call.execution
    return call.after([handle], lambda: execution.write(tensor_text(handle.get(), execution.scalars)))


@kernel("corert.tensorhandle_to_shape")
def handle_to_shape(call: ProgramCall) -> Register:
    """Return the shape as soon as the metadata is known."""
    handle, found = call.values[0], Register.pending()

    def known(_: object) -> None:
        if handle.metadata is not None:
            found.set(handle.metadata.shape)
        else:
            found.fail(handle.error)

    handle.then_metadata(known)
    return found


@kernel("corert.tensorhandle_to_ht", "corert.ht_to_tensorhandle")
def handle_to_tensor(call: ProgramCall) -> Any:
    """Convert between a handle and a tensor, which is a handle that is ready."""
    handle = call.values[0]
    return handle if call.kernel.name.endswith("to_tensorhandle") else call.after([handle], lambda: handle)


@kernel("corert.tensorhandle_to_int32")
def handle_to_int32(call: ProgramCall) -> Register:
    handle = call.values[0]
    return call.after([handle], lambda: integer_of(handle.get()))


@kernel("ts.build_shape")
def build_shape(call: ProgramCall) -> tuple[tuple[int, ...]]:
    return (tuple(int(n.value) for n in call.attribute("value")),)


@kernel("ts.print_shape")
def print_shape(call: ProgramCall) -> None:
    call.execution.write(shape_text(call.values[0]))


# Attributes

@kernel("corert.create_op_attrs")
def create_attributes(call: ProgramCall) -> OpAttrs:
    return OpAttrs()


@kernel(*family("corert.op_attrs_set", ATTRIBUTE_TYPES), *family("corert.op_attrs_set_array", ARRAY_TYPES))
def set_one(call: ProgramCall) -> None:
    """Set an attribute; each name only once."""
    attributes, key, value = call.values[0], call.attribute("key"), call.attribute("value")
    if not put(attributes, key, value, call.kernel.name.rpartition(".")[0].endswith("_array"), type_of(call)):
        raise Problem(f"the attribute '{key}' has been set before", kind="attribute", help="the first value stays")


def put(attributes: OpAttrs, key: str, value: Any, is_array: bool, type: str) -> bool:
    if type == "shape":
        from ..program_text.shape_attributes import shape_of
        return attributes.set_array(key, [shape_of(v) for v in value], "shape") if is_array else attributes.set(
            key, shape_of(value), "shape")
    if type == "aggregate":
        return attributes.set(key, aggregate({str(n): item for n, item in enumerate(value)}), "aggregate")
    if is_array:
        runtime_type = {"str": "string"}.get(type, type)
        items = [plain(v) if isinstance(v, bool | Number) else getattr(v, "dtype", v) for v in value]
        return attributes.set_array(key, items, runtime_type)
    return attributes.set(key, plain(value), "bool") if type == "bool" else set_attribute(attributes, key, value)


@kernel("tfrt_test.corert.op_attrs_print", "tfrt_test.corert.op_attrs_ref_print")
def print_attributes(call: ProgramCall) -> None:
    attributes: Attributes = call.values[0]
    for line in attributes_lines(attributes):
        call.execution.write(line)


@kernel("tfrt_test.corert.op_attrs_freeze")
def freeze(call: ProgramCall) -> tuple[FrozenOpAttrs, None]:
    return call.values[0].freeze(), None


# Tests of the runtime

@kernel("tfrt_test.error_tensorhandle")
def error_handle(call: ProgramCall) -> TensorHandle:
    problem = call.execution.originate(Problem("invalid tensorhandle", kind="kernel"), call.kernel)
    return TensorHandle.of_error(problem)


@kernel("tfrt_test.error_chain")
def error_chain(call: ProgramCall) -> None:
    raise Problem("error chain", kind="kernel")


@kernel("tfrt_test.fail")
def fail(call: ProgramCall) -> None:
    raise Problem("something bad happened", kind="kernel")


@kernel("tfrt_test.cancel")
def cancel(call: ProgramCall) -> tuple[int, None]:
    call.execution.cancel()
    return 0, None


@kernel("tfrt_test.print_hello")
def print_hello(call: ProgramCall) -> None:
    call.execution.write("hello host executor!")


@kernel("tfrt_test.async_add.i32")
def add_later(call: ProgramCall) -> Register:
    a, b = call.values
    return call.later(lambda: total(a, b, "i32"))

