"""Running a kernel over the buffer of an argument without other references (`buffer_reuse` defines when that is allowed)."""
from __future__ import annotations

from typing import TYPE_CHECKING

from ..arena import Array
from .buffer_reuse import alone
from .compiled_kernels import TypedOperation
from .handle import TensorHandle

if TYPE_CHECKING:
    from .core import CoreRuntime


def steal(runtime: CoreRuntime, entry: TypedOperation, arguments: list[TensorHandle]) -> tuple[int, Array] | None:
    """Run the kernel with its only result in the buffer of the first argument that fits and is free; return the argument's
    number, and the array. Return None if there is no such argument."""
    in_place = entry.kernel().in_place
    if in_place is None:
        return None
    inputs = entry.inputs
    for number in entry.fitting:
        if alone(arguments, number) and (place := inputs.index(number)) in in_place.arguments():
            arrays = [a for n in inputs if (a := arguments[n]._array) is not None]
            in_place.run(place, arrays)
            runtime.buffers_reused += 1
            return number, arrays[place]
    runtime.buffers_refused += 1
    return None
