"""Complex tensors of a traced function. TOSA has none, so they are pairs of real tensors. NumPy's operators, methods and
indexing are those of `Tensor`; they find their functions in `tosaic.ops`, which know both kinds (`complex_functions`).

At the border of a function a complex array is one array of floats with an additional axis, the pairs of real and imaginary
parts. This is also its layout in memory, so nothing is copied.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...lowering.formulas.complex_numbers import Complex
from ...lowering.formulas.term import Term
from ...lowering.graph.types import F32, F64, ElementType
from ...runtime.arguments import tensor_text
from ...runtime.errors import printable
from .conversion import broadcast, converted, tensor
from .creation import zeros_like
from .layout import broadcast_to, stack
from .tensor import Tensor
from .trace import problem, recorded_all

DTYPES: dict[ElementType, np.dtype[Any]] = {F32: np.dtype(np.complex64), F64: np.dtype(np.complex128)}
PARTS = {dtype.name: element for element, dtype in DTYPES.items()}
"""Element type of the parts of each complex dtype, by dtype name."""


class ComplexTensor:
    """A tensor of complex numbers in a function that is being traced: `real` and `imag` are tensors of its shape."""
    __slots__ = ("imag", "real")
    __hash__ = object.__hash__

    def __init__(self, real: Tensor, imag: Tensor) -> None:
        self.real, self.imag = real, imag

    @property
    def element(self) -> ElementType:
        """Element type of the parts."""
        return self.real.element

    @property
    def dtype(self) -> np.dtype[Any]:
        return DTYPES[self.element]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.real.shape

    @property
    def ndim(self) -> int:
        return self.real.ndim

    @property
    def size(self) -> int:
        return self.real.size

    @property
    def type(self) -> str:
        """Type as messages show it."""
        return tensor_text(self.shape, self.dtype.name)

    @property
    def T(self) -> Any:
        from . import ops
        return ops.transpose(self)

    @property
    def mT(self) -> Any:
        from . import ops
        return ops.matrix_transpose(self)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return 2 * self.real.nbytes

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return 2 * self.real.itemsize

    def __repr__(self) -> str:
        return printable(f"ComplexTensor({self.type})")

    def __getitem__(self, key: Any) -> ComplexTensor:
        return ComplexTensor(self.real[key], self.imag[key])

    def _static(self) -> str:
        """Return the advice for a place where Python needs the value, as for the real part."""
        return self.real._static()

    def pairs(self) -> Tensor:
        """Return both parts as one real tensor, along a new last axis."""
        return stack([self.real, self.imag], -1)


def adopt_operators() -> None:
    """Adopt the operators and methods of `Tensor`: each is a call of a function in `tosaic.ops`."""
    own = vars(ComplexTensor)
    for name, member in vars(Tensor).items():
        if callable(member) and name not in own:
            setattr(ComplexTensor, name, member)


adopt_operators()


# ---- complex values ----------------------------------------------------------------------------------------------
def is_complex(value: Any) -> bool:
    """True if a value is complex, has a complex part, or is the name of a complex type."""
    match value:
        case Tensor() | bool() | int() | float() | None:
            return False
        case ComplexTensor() | complex():
            return True
        case np.ndarray() | np.generic():
            return value.dtype.kind == "c"
        case list() | tuple():
            return any(map(is_complex, value))
        case np.dtype():
            return value.kind == "c"
        case str():
            return value == "complex" or value in PARTS
        case _:
            return value is complex or (isinstance(value, type) and issubclass(value, np.complexfloating))


def part_type(dtype: Any) -> ElementType:
    """Return the element type of the parts of a named complex type; `complex` is complex64, as float is f32."""
    name = dtype if isinstance(dtype, str) else "complex" if dtype is complex else np.dtype(dtype).name
    return F32 if name == "complex" else PARTS[name]


def common_part_type(values: Sequence[Any]) -> ElementType:
    """Return f64 if a tensor has it, else f32."""
    elements = [v.element for v in values if isinstance(v, Tensor | ComplexTensor)]
    return F64 if F64 in elements else F32


def complex_tensor(value: Any, element: ElementType | None = None, rank: int = 0) -> ComplexTensor:
    """Return a tensor, an array or a number as a complex tensor of at least `rank` dimensions with parts of type `element`."""
    element = element or common_part_type([value])
    if isinstance(value, ComplexTensor):
        return ComplexTensor(*(converted(tensor(part, rank=rank), element) for part in (value.real, value.imag)))
    if isinstance(value, Tensor):
        real = converted(tensor(value, rank=rank), element)
        return ComplexTensor(real, zeros_like(real))
    array = joined_list(value, element) if isinstance(value, list | tuple) else np.asarray(value)
    if isinstance(array, ComplexTensor):
        return complex_tensor(array, element, rank)
    real, imag = (tensor(np.ascontiguousarray(part, element.dtype).reshape(part.shape), element, rank)
                  for part in (array.real, array.imag))
    return ComplexTensor(real, imag)


def joined_list(values: Sequence[Any], element: ElementType) -> Any:
    if any(isinstance(v, Tensor | ComplexTensor) for v in values):
        raise problem("a list of tensors is no tensor", "argument", help="tosaic.ops.stack joins them")
    return np.asarray(values)


def leaf_tensor(value: Any, element: ElementType | None = None) -> Tensor:
    """Return a leaf of a nest as one tensor: pairs for a complex leaf."""
    return complex_tensor(value).pairs() if is_complex(value) else tensor(value, element)


# ---- formulas ----------------------------------------------------------------------------------------------------
def operands(*values: Any, operator: str) -> list[ComplexTensor]:
    """Return the operands of one elementwise function with one rank, parts of one type, and shapes that broadcast."""
    element = common_part_type(values)
    found = [complex_tensor(v, element) for v in values]
    rank = len(broadcast(*(z.shape for z in found), operator=operator))
    return [complex_tensor(z, element, rank) for z in found]


def formed(formula: Callable[..., Complex | Term], *values: Any, operator: str) -> Any:
    """Record a formula of complex numbers. Return a complex tensor, or a real one if the formula returns a term. Parts
    broadcast to one shape."""
    given = operands(*values, operator=operator)

    def of_parts(*parts: Term) -> tuple[Term, ...]:
        found = formula(*(Complex(*pair) for pair in zip(parts[::2], parts[1::2])))
        return (found,) if isinstance(found, Term) else tuple(found)

    found = recorded_all(of_parts, *(part for z in given for part in (z.real, z.imag)))
    if len(found) == 1:
        return found[0]
    shape = broadcast(*(z.shape for z in given), operator=operator)
    return ComplexTensor(*(broadcast_to(part, shape) for part in found))
