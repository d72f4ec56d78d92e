"""`tosaic.CoreRuntime`: the op-by-op runtime with everything it can use: the native compiler, the references, the operations
that depend on data or have effects, and the recording of regions.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...runtime.opbyop.core import CoreRuntime as Core
from ...runtime.opbyop.core import Decode
from ...runtime.opbyop.handle import TensorHandle
from ...runtime.opbyop.location import Diagnostic
from ...runtime.opbyop.metadata import TensorMetadata
from ...runtime.opbyop.python_operations import register_all
from ...runtime.opbyop.tensor_kinds import SCALARS
from ...runtime.variables import Context, process
from ..conversion import element_type
from ..trace import place
from .capture import Region
from .compilers import cpu, reference


class CoreRuntime(Core):
    """Runs operations one by one (see `tosaic.runtime.opbyop.core`)."""

    def __init__(self, diagnostic: Callable[[Diagnostic], None] | None = None, *, threads: int = 2, queue_size: int = 1024,
                 decode: Decode | None = None, context: Context = process, kernels: int = 1024) -> None:
        super().__init__(diagnostic, threads=threads, queue_size=queue_size, decode=decode, cpu=cpu, reference=reference,
                         place=place, context=context, kernels=kernels)
        register_all(self)

    def scalar_tensor(self, value: bool | int | float, shape: Sequence[int], dtype: Any = None) -> TensorHandle:
        """A tensor whose elements are all one number, of i1, i32 or f32 where no dtype is given: what prints as one value, and
        is taken wherever a dense tensor is."""
        element = element_type(type(value) if dtype is None else dtype)
        array = SCALARS.make(tuple(shape), value, element.dtype)
        return TensorHandle(self, TensorMetadata.of(array), array)

    def capture(self) -> Region:
        """A region whose operations, in this thread, are recorded and compiled as one graph: `with rt.capture() as region:`."""
        return Region(self)
