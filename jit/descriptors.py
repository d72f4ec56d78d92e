"""Descriptors of a model's tensors: names, types, shapes, and quantization, with the conversion of float arrays to stored ones
and back. A graph provides the descriptors (`stage_data`), compiled code takes them from it, and the cache keeps them.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..runtime.arguments import MLIR_NAMES, Tensor, dtype_of
from ..runtime.errors import KeyProblem, TypeProblem, printable
from ..runtime.public_names import with_named
from ..runtime.quantization import Quantization, quantization_from
from .calls import is_traced

if TYPE_CHECKING:
    from ..lowering.graph.types import Array

Shape = tuple[int | None, ...] | None
"""The extents of a tensor: an open extent is None, and so is the whole shape if the rank is not known."""


class TensorDescriptor(str):
    """A tensor of a model: `name`, `dtype` (of the NumPy array that stores it), `shape`, `strides` (in elements), `element`
    (its type in MLIR), and, if the model gives its quantization, its `scale` and `zero_point`, or several along `axis`.

    A descriptor is also a string, as earlier lists of inputs and outputs held strings: a name, or a name and a type.
    """
    name: str
    dtype: str
    shape: Shape
    element: str
    quantization: Quantization | None

    def __new__(cls, spelling: str, name: str, dtype: str, shape: Shape, element: str = "",
                quantization: Quantization | None = None) -> TensorDescriptor:
        self = super().__new__(cls, spelling)
        self.name, self.dtype, self.shape, self.quantization = name, dtype, shape, quantization
        self.element = element or MLIR_NAMES.get(dtype, dtype)
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.name, self.dtype, self.shape, self.element, self.quantization

    @classmethod
    def of(cls, tensor: Tensor) -> TensorDescriptor:
        """Return the descriptor of a tensor of compiled code; lists show it by its name."""
        return cls(tensor.name, tensor.name, tensor.dtype, tensor.shape, tensor.element, tensor.quantization)

    @property
    def strides(self) -> Shape:
        """Elements from one index to the next along each axis; None if a later extent is open."""
        return None if self.shape is None else strides_of(self.shape)

    @property
    def scales(self) -> tuple[float, ...]:
        """One scale, or one for each index along `axis`; empty if the model gives none."""
        return self.quantization.scales if self.quantization else ()

    @property
    def zero_points(self) -> tuple[int, ...]:
        return self.quantization.zero_points if self.quantization else ()

    @property
    def axis(self) -> int | None:
        """The axis along which scales differ; None if there is one scale, or none."""
        return self.quantization.axis if self.quantization else None

    @property
    def scale(self) -> float | Array | None:
        """The scale, an array of scales if they differ along an axis, None if the model gives none."""
        return None if self.quantization is None else self.scales[0] if self.axis is None else np.array(self.scales)

    @property
    def zero_point(self) -> int | Array | None:
        """The zero point, an array of zero points if scales differ along an axis, None if the model gives none."""
        return None if self.quantization is None else self.zero_points[0] if self.axis is None else np.array(self.zero_points)

    def quantize(self, values: Any) -> Array:
        """Return the stored form of real numbers: the array of a float tensor, or the nearest integers of a quantized tensor.
        For a tensor that is being traced, the result is a tensor."""
        if is_traced(values):
            from .tracing.quantized_values import quantized
            found: Any = quantized(self.quantization, self.name, values, dtype_of(self.dtype))
            return found
        if self.quantization is not None:
            return self.quantization.quantize(self.name, values, dtype_of(self.dtype))
        return self._as_stored(values)

    def dequantize(self, values: Any) -> Array:
        """Return the real numbers of a stored array; for a tensor that is being traced, the result is a tensor."""
        if is_traced(values):
            from .tracing.quantized_values import dequantized
            found: Any = dequantized(self.quantization, self.name, values, dtype_of(self.dtype))
            return found
        if self.quantization is not None:
            return self.quantization.dequantize(self.name, values, dtype_of(self.dtype))
        return self._as_stored(values)

    def _as_stored(self, values: Any) -> Array:
        """Return an array of the tensor's own type, or floats for a float tensor; raise a Problem for numbers whose meaning is
        unknown."""
        array, dtype = np.asarray(values), dtype_of(self.dtype)
        if array.dtype == dtype:
            return array
        if array.dtype.kind == "f" and is_float(dtype):
            return array.astype(dtype)
        raise TypeProblem(f"the model does not say what the numbers of {self.name}, {self.element}, stand for", kind="argument",
                          help=f"pass an array of dtype {self.dtype}, which is taken as it is")

    def as_json(self) -> dict[str, Any]:
        """Return the descriptor for `--json`: scale and zero point are numbers, or lists if they differ along an axis, or
        null."""
        shape, strides = (None if s is None else list(s) for s in (self.shape, self.strides))
        found = {"name": self.name, "dtype": self.dtype, "element": self.element, "shape": shape, "strides": strides}
        scale, zero_point = (list(v) if self.axis is not None else v[0] if v else None for v in (self.scales, self.zero_points))
        return found | {"scale": scale, "zero_point": zero_point, "axis": self.axis}


def is_float(dtype: np.dtype[Any]) -> bool:
    """True if the dtype stores real numbers directly; those of `ml_dtypes` have a kind of their own."""
    return dtype.kind == "f" or "float" in dtype.name


def strides_of(shape: Sequence[int | None]) -> tuple[int | None, ...]:
    """Return the strides of a row-major array, in elements."""
    found: list[int | None] = []
    for axis in range(len(shape)):
        behind = shape[axis + 1:]
        found.append(None if None in behind else math.prod(n for n in behind if n is not None))
    return tuple(found)


class Interface(NamedTuple):
    """The tensors of an entry: inputs and outputs, and the variables and constants that it uses."""
    name: str
    inputs: tuple[TensorDescriptor, ...]
    outputs: tuple[TensorDescriptor, ...]
    variables: tuple[TensorDescriptor, ...] = ()
    constants: tuple[TensorDescriptor, ...] = ()

    def quantized(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return stored arrays for float arrays."""
        if named:
            inputs = (with_named(printable(self.name), [t.name for t in self.inputs], inputs, named, True),)
        return self._each(self.inputs, "input", inputs, TensorDescriptor.quantize)

    def dequantized(self, outputs: Sequence[Any]) -> Any:
        """Return real numbers for stored arrays; several may come in one tuple, as a call returns them."""
        if len(outputs) == 1 and isinstance(outputs[0], tuple | list):
            found = self._each(self.outputs, "output", outputs[0], TensorDescriptor.dequantize)
            return found if isinstance(found, tuple) else (found,)
        return self._each(self.outputs, "output", outputs, TensorDescriptor.dequantize)

    def _each(self, tensors: Sequence[TensorDescriptor], kind: str, values: Sequence[Any], convert: Any) -> Any:
        """Convert one array, several (to a tuple), or a mapping by name (to a dict), which need not have all tensors."""
        listed = f"its {kind}s: {', '.join(t.name for t in tensors) or 'none'}"
        if len(values) == 1 and isinstance(values[0], Mapping):
            known = {t.name: t for t in tensors}
            for name in values[0]:
                if name not in known:
                    raise KeyProblem(printable(f"{self.name} has no {kind} named {name}"), kind="argument", help=listed)
            return {name: convert(known[name], value) for name, value in values[0].items()}
        if len(values) != len(tensors):
            raise TypeProblem(printable(f"{self.name} has {len(tensors)} {kind}{'s' * (len(tensors) != 1)}, got {len(values)}"),
                              kind="argument", help=listed)
        found = tuple(convert(t, v) for t, v in zip(tensors, values))
        return found[0] if len(found) == 1 else found

    def as_json(self) -> dict[str, list[dict[str, Any]]]:
        return {kind: [t.as_json() for t in getattr(self, kind)] for kind in self._fields[1:]}

    def fields(self) -> list[Any]:
        """Return the fields that the cache stores."""
        return [self.name, *([fields_of(t) for t in tensors] for tensors in self[1:])]


def fields_of(tensor: TensorDescriptor) -> list[Any]:
    numbers = tensor.quantization
    return [str(tensor), tensor.name, tensor.dtype, tensor.shape, tensor.element, numbers and numbers.fields()]


def interface_from(fields: Sequence[Any]) -> Interface:
    """Return the interface of fields from the cache."""
    name, *groups = fields
    return Interface(name, *(tuple(map(descriptor_from, group)) for group in groups))


def descriptor_from(fields: Iterable[Any]) -> TensorDescriptor:
    spelling, name, dtype, shape, element, told = fields
    return TensorDescriptor(spelling, name, dtype, None if shape is None else tuple(shape), element,
                            told and quantization_from(told))
