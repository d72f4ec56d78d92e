"""Operations on tensors without elements, which TOSA does not have: NumPy computes them, and nothing is compiled.

The types of the results are those of the operation on tensors with one element in place of none; the shapes, and the errors of
shapes, are NumPy's. A result has no elements either, or is the value for no operands: a sum is 0, a product 1, a maximum an
error. The operators of the specification keep their own type rules and references.
"""
from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...runtime.arena import Array
from ...runtime.errors import Problem
from ...runtime.op_by_op.attributes import FrozenOpAttrs
from ...runtime.op_by_op.compiled_kernels import Kernel
from ...runtime.op_by_op.metadata import TensorMetadata
from . import operations

Function = Callable[..., Any]
TraceTypes = Callable[[Sequence[TensorMetadata]], Sequence[TensorMetadata]]
"""Returns the metadata of the results for inputs with elements; raises a Problem."""


def reduction(function: Function) -> Function:
    def reduce(x: Array, axis: Any = None, keepdims: bool = False) -> Any:
        return function(x, axis=tuple(axis) if isinstance(axis, list | tuple) else axis, keepdims=keepdims)
    return reduce


def mean(x: Array, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the mean; like the variance, it is NaN without elements."""
    total = np.asarray(np.sum(x, axis=axis, keepdims=keepdims))
    return total / np.float32(x.size // max(1, total.size))


def logsumexp(x: Array, axis: int = -1, keepdims: bool = False) -> Any:
    return np.log(np.exp(x).sum(axis, keepdims=keepdims))


def index(x: Array, key: str) -> Any:
    return x[operations.python_key(ast.literal_eval(key))]


def split(x: Array, sections: Any, axis: int = 0) -> Any:
    return np.split(x, sections if isinstance(sections, int) else list(sections), axis)


def pad(x: Array, width: Any, value: Any = 0) -> Any:
    return np.pad(x, width, constant_values=value)


def same(x: Array, *_: Any, **__: Any) -> Any:
    return x


FUNCTIONS: dict[str, Function] = {
    "broadcast_arrays": np.broadcast_arrays, "broadcast_to": np.broadcast_to, "concatenate": np.concatenate,
    "expand_dims": np.expand_dims, "flip": np.flip, "moveaxis": np.moveaxis, "pad": pad, "ravel": np.ravel,
    "reshape": lambda x, *shape: x.reshape(*shape), "split": split, "squeeze": np.squeeze, "stack": np.stack,
    "swapaxes": np.swapaxes, "take": np.take, "tile": np.tile, "transpose": np.transpose, "getitem": index,
    "all": reduction(np.all), "any": reduction(np.any), "argmax": np.argmax, "argmin": np.argmin, "dot": np.dot,
    "logsumexp": logsumexp, "matmul": np.matmul, "outer": np.outer, "softmax": same, "var": reduction(mean),
    "mean": reduction(mean), "prod": reduction(np.prod), "sum": reduction(np.sum),
    "max": reduction(np.max), "min": reduction(np.min), "amax": reduction(np.max), "amin": reduction(np.min)}
"""Functions on arrays by operation; the other operations are elementwise."""

OF_FIRST = frozenset({"broadcast_to", "getitem", "reshape", "split", "take", "pad", "squeeze", "tile"})
"""Operations whose results have the first operand's type, and whose attributes may not fit a tensor with elements."""


def elementwise(*operands: Any, **_: Any) -> Any:
    """Return an array of the operands' common shape, which has no elements, as one operand has none."""
    return np.empty(np.broadcast_shapes(*[np.shape(o) for o in operands if isinstance(o, np.ndarray)]))


@dataclass(frozen=True, slots=True)
class EmptyOperation:
    """An operation whose operands or results have no elements. `compute` returns arrays of the right types."""
    metadata: tuple[TensorMetadata, ...]
    compute: Callable[..., tuple[Array, ...]]
    nanoseconds: float = 0

    def compile(self) -> Kernel:
        """Return a kernel; it returns constants if no result has elements."""
        if all(0 in m.shape for m in self.metadata):
            return Kernel(lambda *_: one_or_all([np.empty(m.shape, m.dtype) for m in self.metadata]))
        return Kernel(lambda *arrays: one_or_all(self.compute(*arrays)))


def one_or_all(arrays: Sequence[Array]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def is_empty(op_name: str, attributes: FrozenOpAttrs, inputs: Sequence[TensorMetadata]) -> bool:
    """True if an operand, or the part of it that an index selects, has no elements."""
    if any(0 in m.shape for m in inputs):
        return True
    if op_name != "getitem":
        return False
    try:
        return 0 in index(stand_in(inputs[0]), attributes.get("key", "string")).shape
    except (IndexError, Problem):
        return False


def stand_in(metadata: TensorMetadata) -> Array:
    """Return an array of that type, whatever its size, that takes no memory."""
    return np.broadcast_to(np.zeros((), metadata.dtype), metadata.shape)


def empty_operation(op_name: str, values: Mapping[str, Any], inputs: Sequence[TensorMetadata],
                    types: TraceTypes) -> EmptyOperation:
    """Return a function of `tosaic.ops` on these inputs. Raises a Problem if it does not take them."""
    if op_name in OF_FIRST:
        dtypes = None
    else:
        filled = [TensorMetadata(m.dtype, tuple(n or 1 for n in m.shape)) for m in inputs]
        dtypes = [m.dtype for m in types(filled)]
    compute = partial(computed, op_name, dict(values), dtypes)
    found = compute(*map(stand_in, inputs))
    return EmptyOperation(tuple(map(TensorMetadata.of, found)), compute)


def computed(op_name: str, values: dict[str, Any], dtypes: Sequence[np.dtype[Any]] | None,
             *arrays: Array) -> tuple[Array, ...]:
    """Compute the results on arrays."""
    positional, named = operations.arguments(operations.function(op_name), list(arrays), dict(values))
    bound = inspect.signature(operations.function(op_name)).bind(*positional, **named)
    try:
        with np.errstate(all="ignore"):
            found = FUNCTIONS.get(op_name, elementwise)(*bound.args, **bound.kwargs)
    except (ValueError, IndexError) as error:
        raise Problem(f"{op_name}: {error}", kind="shape", help="a tensor here has no elements") from error
    results = found if isinstance(found, list | tuple) else (found,)
    types = [arrays[0].dtype] * len(results) if dtypes is None else dtypes
    return tuple(np.array(r, dtype, order="C") for r, dtype in zip(results, types, strict=True))
