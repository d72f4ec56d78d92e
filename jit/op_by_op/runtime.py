"""`tosaic.CoreRuntime`: the op-by-op runtime with all of its parts: the native compiler, the references, the operations that
depend on data or have effects, and the recording of regions.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...runtime.op_by_op.core import CoreRuntime as Core
from ...runtime.op_by_op.core import Decode
from ...runtime.op_by_op.handle import TensorHandle
from ...runtime.op_by_op.location import Diagnostic
from ...runtime.op_by_op.metadata import TensorMetadata
from ...runtime.op_by_op.python_operations import register_all
from ...runtime.op_by_op.tensor_kinds import SCALARS
from ...runtime.public_names import public_class
from ...runtime.variables import Context, process
from ..tracing.caller import place
from ..tracing.conversion import element_type
from .capture import CapturedRegion
from .compilers import cpu, reference


@public_class
class CoreRuntime(Core):
    """A runtime of operations one by one (see `tosaic.runtime.op_by_op.core`)."""

    def __init__(self, diagnostic: Callable[[Diagnostic], None] | None = None, *, threads: int = 2, queue_size: int = 1024,
                 decode: Decode | None = None, context: Context = process, kernels: int = 1024) -> None:
        super().__init__(diagnostic, threads=threads, queue_size=queue_size, decode=decode, cpu=cpu, reference=reference,
                         place=place, context=context, kernels=kernels)
        register_all(self)

    def scalar_tensor(self, value: bool | int | float, shape: Sequence[int], dtype: Any = None) -> TensorHandle:
        """Return a tensor whose elements are all one number, of i1, i32 or f32 if no dtype is given. It prints as one value,
        and is accepted wherever a dense tensor is."""
        element = element_type(type(value) if dtype is None else dtype)
        array = SCALARS.make(tuple(shape), value, element.dtype)
        return TensorHandle(self, TensorMetadata.of(array), array)

    def capture(self) -> CapturedRegion:
        """Return a region whose operations, in this thread, are recorded and compiled as one graph: `with rt.capture() as
        region:`."""
        return CapturedRegion(self)
