"""The handlers that run operations here: registered Python functions first, then a compiler's operations. The compiler
determines the handler: native kernels on the cpu, or the operators' references.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..arena import Array
from .attributes import FrozenOpAttrs
from .compiled_kernels import Compiler, Kernels, Known, TypedOperation
from .handle import TensorHandle
from .handler import OpHandler, OpInvocation
from .metadata import TensorMetadata
from .operation import OpCall, Operation
from .stealing import steal

if TYPE_CHECKING:
    from .core import CoreRuntime

MetadataFunction = Callable[[Sequence[TensorMetadata], FrozenOpAttrs], "TensorMetadata | Sequence[TensorMetadata]"]
DispatchFunction = Callable[[OpCall], Any]


@dataclass(frozen=True, slots=True)
class PythonOperation:
    """An operation of two Python functions. `metadata_function(inputs, attributes)` returns the results' metadata or raises a
    Problem; `function(call)` returns the results (see `OpCall` and `Operation.dispatch`)."""
    name: str
    function: DispatchFunction
    metadata_function: MetadataFunction | None = None
    side_effect: bool = False
    is_long: bool = False

    def waits_for(self, arguments: Sequence[TensorHandle]) -> Sequence[TensorHandle] | None:
        return None if self.metadata_function is None else ()

    def infer(self, call: OpCall) -> tuple[TensorMetadata, ...]:
        assert self.metadata_function is not None
        found = self.metadata_function([a.await_metadata() for a in call.arguments], call.attributes)
        return (found,) if isinstance(found, TensorMetadata) else tuple(found)

    def dispatch(self, call: OpCall) -> Any:
        return self.function(call)


class CompiledOperation:
    """An operation that a compiler knows. The contents of arguments that must be known at compile time (shapes, zero points)
    are part of a kernel's key."""
    __slots__ = ("compiler", "kernels", "name")
    side_effect = is_long = False

    def __init__(self, name: str, compiler: Compiler, kernels: Kernels) -> None:
        self.name, self.compiler, self.kernels = name, compiler, kernels

    def waits_for(self, arguments: Sequence[TensorHandle]) -> Sequence[TensorHandle] | None:
        numbers = self.compiler.constants(self.name, len(arguments))
        return [arguments[n] for n in numbers] if numbers else ()

    def infer(self, call: OpCall) -> tuple[TensorMetadata, ...]:
        numbers = self.compiler.constants(self.name, len(call.arguments))
        inputs = tuple([a._metadata or a.await_metadata() for a in call.arguments])
        constants = {n: call.arguments[n].get() for n in numbers} if numbers else {}
        contents: tuple[Any, ...] = tuple([(n, a.tobytes()) for n, a in constants.items()]) if numbers else ()
        if (version := self.compiler.version(self.name, call.attributes)) is not None:
            contents = (*contents, version)
        key = self.name, call.attributes, inputs, contents
        call.entry = self.kernels.get(key, lambda: self.make(call.attributes, inputs, constants))
        metadata: tuple[TensorMetadata, ...] = call.entry.metadata
        return metadata

    def make(
        self, attributes: FrozenOpAttrs, inputs: Sequence[TensorMetadata], constants: Mapping[int, Array]
    ) -> TypedOperation:
        traced = self.compiler.trace(self.name, attributes, inputs, constants)
        return TypedOperation(traced, [None if n in constants else metadata for n, metadata in enumerate(inputs)])

    def dispatch(self, call: OpCall) -> Any:
        entry: TypedOperation = call.entry
        taken = steal(call.runtime, entry, call.arguments) if entry.fitting else None
        if taken is None:
            return entry.kernel().call(*[call.arguments[n]._array for n in entry.inputs])
        call.stolen = taken[:1]
        return taken[1]


class KernelOpHandler(OpHandler):
    """Runs registered operations and those of a compiler."""

    def __init__(self, runtime: CoreRuntime, compiler: Compiler | None, fallback: OpHandler | None = None,
                 registered: dict[str, PythonOperation] | None = None, size: int = 1024) -> None:
        super().__init__(fallback)
        self.runtime, self.compiler = runtime, compiler
        self.registered = {} if registered is None else registered
        self.kernels = Kernels(size)
        self._compiled: dict[str, CompiledOperation] = {}

    def register(self, op_name: str, operation: PythonOperation) -> None:
        """Add an operation, which replaces an earlier one of that name."""
        self.registered[op_name] = operation

    def find(self, op_name: str, count: int) -> Operation | None:
        """Return the operation of a name for `count` arguments."""
        found = self.registered.get(f"{op_name}/{count}") or self.registered.get(op_name) or self._compiled.get(op_name)
        if found is None and self.compiler is not None and self.compiler.knows(op_name):
            found = self._compiled[op_name] = CompiledOperation(op_name, self.compiler, self.kernels)
        return found

    def names(self) -> Iterable[str]:
        """Return the names of all operations that it knows."""
        return (*self.registered, *(() if self.compiler is None else self.compiler.names()))

    def execute(self, invocation: OpInvocation) -> bool:
        operation = self.find(invocation.op_name, len(invocation.arguments))
        if operation is None:
            return False
        OpCall(self.runtime, operation, invocation).start()
        return True

    def plain_kernel(self, op_name: str, attributes: FrozenOpAttrs,
                     inputs: tuple[TensorMetadata | None, ...]) -> Known | None:
        """Return the quick form of a compiled operation with one result, for arguments of these types; None if it has not been
        compiled, or depends on the contents of arguments."""
        entry = self.kernels.known((op_name, attributes, inputs, ())) if op_name in self._compiled else None
        if entry is None or len(entry.metadata) != 1:
            return None
        if entry.is_long:
            return (entry.metadata[0], None, entry)
        if not entry.is_compiled:
            return None
        return (entry.metadata[0], entry.kernel().call, entry)
