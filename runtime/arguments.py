"""The inputs and outputs of a compiled function: tensors with a name, a type and a shape, and the checks of every array before
native code sees its address. A wrong argument ends in a `Problem` that names it and says what to pass instead.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from .arena import Array, address, empty, without_store_conflicts
from .argument_copies import from_list, in_native_order, readable
from .errors import KeyProblem, TypeProblem, ValueProblem, printable
from .foreign_arrays import Unreadable, borrowed, is_flat, is_untyped
from .quantization import Quantization
from .records import dataclass

MLIR_NAMES = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "ui8",
              "uint16": "ui16", "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16",
              "float32": "f32", "float64": "f64", "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
              "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e8m0fnu": "f8E8M0FNU",
              "float6_e2m3fn": "f6E2M3FN", "float6_e3m2fn": "f6E3M2FN", "float4_e2m1fn": "f4E2M1FN"}
"""MLIR's spelling of the element type that each NumPy dtype stores."""

C_CONTIGUOUS_AND_ALIGNED = 0x0001 | 0x0100
"""NumPy's flag bits (`ndarray.flags.num`)."""

GUESSED = (bool, int, float, complex, str, list, tuple, dict, set, type(None))
"""Python types whose values NumPy would turn into arrays of a dtype that nobody chose."""

LARGE = 1 << 16
"""Bytes from which a result is placed at a multiple of 64; below, NumPy's own alignment costs nothing and is faster to
allocate."""

VERY_LARGE = 1 << 20
"""Bytes from which a result is placed so that no store delays a load of an input."""


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of that name, including those of `ml_dtypes`."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # noqa: F401  registers its dtypes with NumPy
        return np.dtype(name)


def tensor_text(shape: Sequence[int], element: str) -> str:
    """Return the MLIR spelling: tensor<1x3x40xi8>."""
    return "tensor<" + "".join(f"{n}x" for n in shape) + f"{element}>"


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output tensor. `dtype` names the NumPy dtype that stores it, `element` is its MLIR type if the dtype does not
    determine it (i4 is stored in int8), `quantization` is that of its integers, if the model gives one."""
    name: str
    dtype: str
    shape: tuple[int, ...]
    element: str = ""
    quantization: Quantization | None = None
    numpy_dtype: np.dtype[Any] = field(init=False, repr=False, compare=False)
    nbytes: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "numpy_dtype", dtype_of(self.dtype))
        object.__setattr__(self, "nbytes", math.prod(self.shape) * self.numpy_dtype.itemsize)
        object.__setattr__(self, "element", self.element or MLIR_NAMES.get(self.dtype, self.dtype))

    @property
    def type(self) -> str:
        return tensor_text(self.shape, self.element)

    def __str__(self) -> str:
        return printable(f"{self.name}: {self.type}")

    def new(self, inputs: Iterable[int] = ()) -> Array:
        """Return an array for a result of a run that reads from the addresses `inputs`; its contents are undefined."""
        if self.nbytes >= VERY_LARGE:
            return without_store_conflicts(self.shape, self.numpy_dtype, inputs)
        return np.empty(self.shape, self.numpy_dtype) if self.nbytes < LARGE else empty(self.shape, self.numpy_dtype)

    def fits(self, value: Any) -> bool:
        """True if native code can read `value` as it is: the quick test that nearly every argument passes."""
        return (type(value) is np.ndarray and value.dtype == self.numpy_dtype and value.shape == self.shape
                and value.flags.num & C_CONTIGUOUS_AND_ALIGNED == C_CONTIGUOUS_AND_ALIGNED)


def as_array(what: str, value: Any, tensor: Tensor, may_copy: bool = True) -> Array:
    """Return `value` as an array of the tensor's type and shape, over the same memory; raise a Problem that starts with `what`
    if it is none.

    Arrays are accepted, and objects that provide one (DLPack, `__array_interface__`, `__array__`, the buffer protocol). Numbers
    and lists are not: their dtype would be a guess. Bytes may represent elements of any type. (If it `may_copy`, an object's
    own `__array__` may, and an array in another byte order is copied.)
    """
    if isinstance(value, GUESSED) and not isinstance(value, np.generic):
        raise TypeProblem(f"{what} must be an array of {tensor.type}, got {_short(value)}", kind="argument",
                          help=f"pass numpy.asarray(..., dtype={tensor.dtype!r}), of shape {tensor.shape}")
    if isinstance(value, np.ndarray) and hasattr(value, "filled"):
        raise TypeProblem(f"{what} is a masked array", kind="argument", help="say what stands for the masked elements: "
                          "array.filled(value)")
    try:
        array = borrowed(value, may_copy)
    except Unreadable as error:
        raise TypeProblem(f"{what} must be an array of {tensor.type}, got {_short(value)}, which NumPy cannot take: "
                          f"{error}", kind="argument", help=error.help) from error
    array = typed(value, in_native_order(array) if may_copy else array, tensor)
    check_type(what, array, tensor)
    return array


def typed(value: Any, array: Array, tensor: Tensor) -> Array:
    """Return the elements of an object that does not carry its type or its shape (bytes, and `array.array`) with those of the
    tensor, and complex numbers as pairs of floats. If the sizes do not match, return the array unchanged."""
    if array.dtype.kind == "c" and tensor.shape == (*array.shape, 2) and array.real.dtype == tensor.numpy_dtype:
        return array[..., None].view(tensor.numpy_dtype)
    if is_untyped(value) and array.nbytes == tensor.nbytes:
        return np.frombuffer(array, tensor.numpy_dtype).reshape(tensor.shape)
    if is_flat(value) and array.dtype == tensor.numpy_dtype and array.size == math.prod(tensor.shape):
        return array.reshape(tensor.shape)
    return array


def in_bytes(value: Any, tensor: Tensor) -> Any:
    """Return an array of `ml_dtypes` with integers of 4 or 2 bits as the bytes that such tensors store, and bytes for floats of
    8, 6 or 4 bits, which NumPy lacks, as other systems pass them. Return any other value unchanged."""
    dtype = getattr(value, "dtype", None)
    if not isinstance(value, np.ndarray) or dtype is None or dtype == tensor.numpy_dtype:
        return value
    if dtype.name == "uint8" and tensor.dtype.startswith(("float8", "float6", "float4")):
        return value.view(tensor.numpy_dtype)
    return value.astype(tensor.dtype) if STORED.get(dtype.name) == tensor.dtype else value


STORED = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}
"""Storage dtypes of integers of fewer than 8 bits."""


def check_type(what: str, array: Array, tensor: Tensor) -> None:
    """Raise a Problem unless the array has the tensor's dtype, in the machine's byte order, and its shape."""
    dtype, wanted = array.dtype, tensor.numpy_dtype
    if dtype == wanted and array.shape == tensor.shape:
        return
    if dtype != wanted and dtype.newbyteorder("=") == wanted:
        raise TypeProblem(f"{what} is in the byte order of another machine (dtype {dtype.str!r})", kind="argument",
                          help="convert it: array.astype(array.dtype.newbyteorder('='))")
    got = tensor_text(array.shape, MLIR_NAMES.get(dtype.name, dtype.name))
    if dtype != wanted:
        raise TypeProblem(f"{what} must be {tensor.type}, got {got}", kind="argument",
                          help=f"pass an array of dtype {tensor.dtype}")
    raise ValueProblem(f"{what} must be {tensor.type}, got {got}", kind="argument",
                       help=_shape_help(array.shape, tensor.shape))


def _shape_help(got: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if math.prod(got) == math.prod(wanted):
        return f"the number of elements is right: array.reshape{wanted}, if their order is"
    return f"pass an array of shape {wanted}"


def check_layout(what: str, array: Array) -> None:
    """Raise a Problem unless the array is C-contiguous, and starts at a multiple of its element's size."""
    if not array.flags.c_contiguous:
        raise ValueProblem(f"{what} is not C-contiguous: its strides are {array.strides} bytes for shape {array.shape}",
                           kind="argument", help="pass numpy.ascontiguousarray(array)")
    if not array.flags.aligned or address(array) % array.dtype.itemsize:
        raise ValueProblem(f"{what} starts at an address that is not a multiple of {array.dtype.itemsize} bytes",
                           kind="argument", help="pass array.copy()")


def _short(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 40 else text[:37] + '...'}" if value is not None else "None"


@dataclass(frozen=True, slots=True)
class Signature:
    """A function's name, inputs and outputs."""
    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def __str__(self) -> str:
        return f"{printable(self.name)}({', '.join(map(str, self.inputs))}) -> ({', '.join(map(str, self.outputs))})"

    def arrays(self, arguments: Sequence[Any]) -> Sequence[Array]:
        """Return the inputs as arrays that native code can read, from values in order, or from one mapping by name."""
        if len(arguments) == 1 and is_mapping(arguments[0]):
            arguments = by_name(f"{self.name}", "input", self.inputs, arguments[0])
        if len(arguments) != len(self.inputs):
            listed = ", ".join(map(str, self.inputs)) or "none"
            raise TypeProblem(f"{self.name} takes {_count(len(self.inputs), 'input')}, got {len(arguments)}",
                              kind="argument", help=f"its inputs: {listed}")
        for tensor, value in zip(self.inputs, arguments):
            if not tensor.fits(value):
                return [self._input(t, v) for t, v in zip(self.inputs, arguments)]
        return arguments

    def _input(self, tensor: Tensor, value: Any) -> Array:
        """Return an argument as an array that native code can read: over its own memory, or a copy if it cannot be read
        there."""
        what = f"input {tensor.name} of {self.name}"
        if isinstance(value, list):
            value = from_list(what, value, tensor.numpy_dtype)
        return readable(as_array(what, in_bytes(value, tensor), tensor))

    def results(self, out: Any, inputs: Sequence[int]) -> tuple[Array, ...]:
        """Return new arrays for the outputs, or those of `out` (one array, several in order, or a mapping by name; or objects
        whose memory can be written like that of arrays), checked: type, layout, writable, and no byte shared with an input or
        with each other. `inputs` are the addresses of the inputs."""
        if out is None:
            return tuple([t.new(inputs) for t in self.outputs])
        values = self.given(out)
        if not all(t.fits(v) and v.flags.writeable for t, v in zip(self.outputs, values)):
            values = tuple(map(self._output, self.outputs, values))
        self._check_disjoint(inputs, [address(v) for v in values])
        return values

    def given(self, out: Any) -> tuple[Any, ...]:
        """Return the value in `out` for each output, unchanged."""
        if is_mapping(out):
            out = by_name(self.name, "output", self.outputs, out)
        values = tuple(out) if isinstance(out, (list, tuple)) else (out,)
        if len(values) != len(self.outputs):
            listed = ", ".join(map(str, self.outputs)) or "none"
            raise ValueProblem(f"{self.name} gives {_count(len(self.outputs), 'output')}, got {len(values)} in out",
                               kind="argument", help=f"its outputs: {listed}")
        return values

    def _output(self, tensor: Tensor, value: Any) -> Array:
        what = f"out for {tensor.name} of {self.name}"
        if isinstance(value, (*GUESSED, np.generic)):
            raise TypeProblem(f"{what} must be an array of {tensor.type} to write to, got {_short(value)}", kind="argument",
                              help=f"pass numpy.empty({tensor.shape}, {tensor.dtype!r})")
        array = as_array(what, value, tensor, may_copy=False)
        check_layout(what, array)
        if not array.flags.writeable:
            raise ValueProblem(f"{what} is read-only", kind="argument", help="pass an array that may be written, or a copy")
        return array

    def _check_disjoint(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        spans = [(start, start + t.nbytes, "input", t) for start, t in zip(inputs, self.inputs)]
        for first, tensor in zip(outputs, self.outputs):
            end = first + tensor.nbytes
            for start, stop, kind, other in spans:
                if first < stop and start < end:
                    raise ValueProblem(f"out for {tensor.name} of {self.name} shares memory with {kind} {other.name}",
                                       kind="argument", help="pass an array of its own for each output")
            spans.append((first, end, "output", tensor))


def is_mapping(value: Any) -> bool:
    """True if values are given by name. Arrays are tested first, because the test for the abstract class takes 300 ns."""
    return type(value) is not np.ndarray and isinstance(value, Mapping)


def by_name(function: str, kind: str, tensors: Sequence[Tensor], values: Mapping[Any, Any]) -> list[Any]:
    """Return the values in the tensors' order; raise a Problem for a name that is missing or not known."""
    names = [t.name for t in tensors]
    listed = f"its {kind}s: {', '.join(map(str, tensors)) or 'none'}"
    for name in values:
        if name not in names:
            raise KeyProblem(f"{function} has no {kind} named {name}", kind="argument", help=listed)
    for name in names:
        if name not in values:
            raise KeyProblem(f"{kind} {name} of {function} is missing", kind="argument", help=listed)
    return [values[name] for name in names]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" + "s" * (n != 1)
