"""`tosaic.ops` on complex tensors. Each function has the arguments of the real function of the same name, and any of its
operands may be complex; where NumPy works part by part, so does this module.

Errors are those of float32, relative to the magnitude of the result: up to 4 units in the last place; for a power (and exp2) as
many as |y log x| besides. Limits are those of C99 and NumPy, except for signs of zeros in quotients.
"""
from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from ...lowering.formulas import complex_angles as angles
from ...lowering.formulas import complex_numbers as numbers
from ...lowering.formulas.complex_numbers import Complex
from ...lowering.formulas.term import Term
from ...lowering.graph.types import F32, F64, I1
from .arithmetic import LARGEST_EXPONENT
from .arithmetic import add as real_add
from .arithmetic import astype as real_astype
from .arithmetic import divide as real_divide
from .arithmetic import multiply as real_multiply
from .arithmetic import subtract as real_subtract
from .arithmetic import where as real_where
from .complex_tensor import ComplexTensor, common_part_type, complex_tensor, formed, is_complex, part_type
from .conversion import axis_of, converted, element_type, tensor
from .creation import full_like as real_full_like
from .creation import zeros_like as real_zeros_like
from .functions import arctan2
from .layout import concatenate, moveaxis, reshape
from .reduction import sum as real_sum
from .tensor import Tensor
from .trace import problem

Function = Callable[..., Any]

PART_BY_PART = frozenset((
    "around", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_to", "column_stack",
    "concat", "concatenate", "copy", "cumsum", "cumulative_sum", "delete", "diag", "diagflat", "diagonal", "diff", "dsplit",
    "dstack", "ediff1d", "empty_like", "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "matrix_transpose",
    "mean", "meshgrid", "moveaxis", "negative", "permute_dims", "positive", "ravel", "repeat", "reshape", "resize", "rint",
    "roll", "rollaxis", "rot90", "round", "sliding_window_view", "split", "squeeze", "stack", "sum", "swapaxes", "take",
    "take_along_axis", "tile", "trace", "transpose", "tril", "triu", "unstack", "vsplit", "vstack", "zeros_like"))
"""NumPy functions that apply the same operation to both parts."""
OF_PRODUCTS = frozenset(("convolve", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot"))
"""Sums of products of two operands."""


# ---- part by part ------------------------------------------------------------------------------------------------
def part_by_part(function: Function) -> Function:
    """Apply the function to the real parts and to the imaginary parts."""
    def both(*arguments: Any, **options: Any) -> Any:
        options = {name: None if name == "dtype" and is_complex(value) else value for name, value in options.items()}
        element = common_part_type([*spread(arguments), *spread(options.values())])
        real, imag = (function(*(part_of(a, which, element) for a in arguments),
                               **{n: part_of(v, which, element) for n, v in options.items()}) for which in ("real", "imag"))
        if isinstance(real, list | tuple):
            return type(real)(map(ComplexTensor, real, imag))
        return ComplexTensor(real, imag)
    return both


def itself(function: Function) -> Function:
    """Return the function itself: it works on a tensor of pairs unchanged."""
    return function


def append(function: Function) -> Function:
    """Convert both operands to complex, in their common type."""
    def appended(arr: Any, values: Any, axis: int | None = None) -> ComplexTensor:
        element = common_part_type([arr, values])
        x, y = complex_tensor(arr, element), complex_tensor(values, element)
        return ComplexTensor(function(x.real, y.real, axis), function(x.imag, y.imag, axis))
    return appended


def spread(values: Iterable[Any]) -> list[Any]:
    """Flatten the values: each value, and the values in lists."""
    return [part for value in values for part in (value if isinstance(value, list | tuple) else [value])]


def part_of(value: Any, which: str, element: Any) -> Any:
    """Return one part of an argument that is a tensor, or a list with tensors. Return any other argument, such as an axis or a
    shape, unchanged."""
    if isinstance(value, list | tuple) and any(isinstance(v, Tensor | ComplexTensor | np.ndarray) for v in value):
        return [part_of(v, which, element) for v in value]
    if isinstance(value, Tensor) and not value.element.is_float:
        return value
    is_number = isinstance(value, Tensor | ComplexTensor | builtins.complex) or (
        isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fc")
    return getattr(complex_tensor(value, element), which) if is_number else value


def of_products(function: Function) -> Function:
    """Make the complex form of a function that is linear in each of its first two operands."""
    def bilinear(a: Any, b: Any, *rest: Any, **options: Any) -> ComplexTensor:
        element = common_part_type([a, b])
        x, y = complex_tensor(a, element), complex_tensor(b, element)

        def of(p: Tensor, q: Tensor) -> Tensor:
            found: Tensor = function(p, q, *rest, **options)
            return found
        if not is_complex(a):
            return ComplexTensor(of(x.real, y.real), of(x.real, y.imag))
        if not is_complex(b):
            return ComplexTensor(of(x.real, y.real), of(x.imag, y.real))
        return ComplexTensor(real_subtract(of(x.real, y.real), of(x.imag, y.imag)),
                             real_add(of(x.real, y.imag), of(x.imag, y.real)))
    return bilinear


# ---- arithmetic --------------------------------------------------------------------------------------------------
def elementwise(name: str, formula: Callable[..., Complex | Term]) -> Function:
    """Make an elementwise function from a formula."""
    def function(*values: Any) -> Any:
        return formed(formula, *values, operator=name)
    return function


def add(a: Any, b: Any) -> Any:
    return formed(lambda x, y: Complex(x.real + y.real, x.imag + y.imag), a, b, operator="add")


def subtract(a: Any, b: Any) -> Any:
    return formed(lambda x, y: Complex(x.real - y.real, x.imag - y.imag), a, b, operator="subtract")


def power(a: Any, b: Any) -> Any:
    """Return a to the b. Expand a whole exponent into products."""
    if isinstance(b, int | float) and not isinstance(b, bool) and float(b).is_integer() and abs(b) <= LARGEST_EXPONENT:
        return formed(lambda x: numbers.whole_power(x, int(b)), a, operator="power")
    return formed(numbers.power, a, b, operator="power")


def scaled_logarithm(base: float) -> Callable[[Complex], Complex]:
    return lambda x: numbers.logarithm(x).times(1 / math.log(base))


def is_zero(x: Complex) -> Term:
    return x.real.equals(0) & x.imag.equals(0)


def is_not_finite(x: Term) -> Term:
    return (x - x).differs(0.0)


def is_infinite(x: Term) -> Term:
    return x.equals(math.inf) | x.equals(-math.inf)


# ---- parts and types ---------------------------------------------------------------------------------------------
def real(x: Any) -> Tensor:
    """The real part; a real tensor itself."""
    return complex_tensor(x).real if is_complex(x) else tensor(x)


def imag(x: Any) -> Tensor:
    """The imaginary part; zeros for a real tensor."""
    return complex_tensor(x).imag if is_complex(x) else real_zeros_like(x)


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle from the positive real axis, in radians, or in degrees; 0 or pi for a real tensor."""
    x = tensor(z) if not is_complex(z) else None
    found = formed(numbers.angle, z, operator="angle") if x is None else arctan2(0.0, x)
    return real_multiply(found, 180 / math.pi) if deg else found


def complex(real: Any, imag: Any = 0.0) -> ComplexTensor:
    """The complex tensor of two parts, which broadcast: complex64, or complex128 if a part is f64."""
    element = F64 if F64 in [v.element for v in (real, imag) if isinstance(v, Tensor)] else F32
    return formed(lambda x, y: Complex(x.real, y.real), *(
        converted(v, element) if isinstance(v, Tensor) else v for v in (real, imag)), operator="complex")


def isreal(x: Any) -> Tensor:
    """True if the imaginary part is 0."""
    return formed(lambda z: z.imag.equals(0), x, operator="isreal")


def iscomplex(x: Any) -> Tensor:
    """True if the imaginary part is not 0."""
    return formed(lambda z: z.imag.differs(0), x, operator="iscomplex")


def astype(x: Any, dtype: Any) -> Any:
    """Convert between complex types, from real types, and to bool."""
    if is_complex(dtype):
        return complex_tensor(x if isinstance(x, ComplexTensor) or is_complex(x) else tensor(x), part_type(dtype))
    if element_type(dtype) == I1:
        return logical(x)
    raise problem(f"astype of {complex_tensor(x).type} to {element_type(dtype)} would lose the imaginary part",
                  help="tosaic.ops.real(x) is the real part, tosaic.ops.abs(x) the magnitude")


def magnitudes(x: Any) -> Any:
    """|x| of a complex value; any other value unchanged."""
    return formed(numbers.magnitude, x, operator="abs") if is_complex(x) else x


def logical(x: Any) -> Tensor:
    """True if x is not 0; x may be complex, real or bool."""
    if not is_complex(x):
        return real_astype(x, I1)
    return formed(lambda z: ~is_zero(z), x, operator="astype")


def of_two_truths(function: Function) -> Function:
    return lambda a, b: function(logical(a), logical(b))


def of_truth(function: Function) -> Function:
    """Make the complex form of a function that tests which numbers are not 0."""
    return lambda x, *rest, **options: function(logical(x), *rest, **options)


def where(condition: Any, a: Any, b: Any) -> ComplexTensor:
    element = common_part_type([a, b])
    x, y = complex_tensor(a, element), complex_tensor(b, element)
    test = logical(condition) if is_complex(condition) else condition
    return ComplexTensor(real_where(test, x.real, y.real), real_where(test, x.imag, y.imag))


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> ComplexTensor:
    like = complex_tensor(x, None if dtype is None else part_type(dtype))
    return ComplexTensor(*(real_full_like(part, number) for part, number in zip((like.real, like.imag), parts_of(fill_value))))


def ones_like(x: Any, dtype: Any = None) -> ComplexTensor:
    return full_like(x, 1, dtype)


def parts_of(number: Any) -> tuple[float, float]:
    """Return the real and imaginary parts of a known number."""
    known = np.asarray(number)
    return float(known.real), float(known.imag)


def asarray(x: Any, dtype: Any = None, copy: bool | None = None) -> ComplexTensor:
    return complex_tensor(x if is_complex(x) else tensor(x), None if dtype is None else part_type(dtype))


def of_shape(function: Function) -> Function:
    """Make the complex form of `zeros` and `ones`."""
    def made(shape: Any, dtype: Any) -> ComplexTensor:
        found = function(shape, part_type(dtype))
        return ComplexTensor(found, real_zeros_like(found))
    return made


def full(function: Function) -> Function:
    def made(shape: Any, fill_value: Any, dtype: Any = None) -> ComplexTensor:
        element = F32 if dtype is None else part_type(dtype)
        return ComplexTensor(*(function(shape, part, element) for part in parts_of(fill_value)))
    return made


def pad(function: Function) -> Function:
    def padded(x: Any, width: Any, value: Any = 0, **options: Any) -> ComplexTensor:
        z = complex_tensor(x)
        return ComplexTensor(*(function(part, width, border, **options) for part, border in zip(
            (z.real, z.imag), parts_of(value))))
    return padded


# ---- reductions --------------------------------------------------------------------------------------------------
def prod(x: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> ComplexTensor:
    """Multiply by halves: the first half with the second, until one element is left."""
    z = complex_tensor(x, None if dtype is None else part_type(dtype))
    given = range(z.ndim) if axis is None else axis if isinstance(axis, tuple | list) else [axis]
    axes = sorted({axis_of(a, z.ndim) for a in given})
    kept = [a for a in range(z.ndim) if a not in axes]
    shape = tuple(1 if a in axes else n for a, n in enumerate(z.shape)) if keepdims else tuple(z.shape[a] for a in kept)
    rows = [reshape(moveaxis(part, axes, range(len(axes))) if axes else part, (-1, *(z.shape[a] for a in kept)))
            for part in (z.real, z.imag)]
    found = ComplexTensor(*rows)
    while (count := found.shape[0]) > 1:
        half = count // 2
        product = formed(numbers.product, found[:half], found[half:2 * half], operator="prod")
        found = part_by_part(concatenate)([product, found[2 * half:]]) if count % 2 else product
    return ComplexTensor(reshape(found.real, shape), reshape(found.imag, shape))


def var(x: Any, axis: Any = None, keepdims: bool = False, *, ddof: float | None = None, correction: float = 0) -> Tensor:
    """The mean of the squares of distances from the mean, a real tensor."""
    z = complex_tensor(x)
    size = math.prod(z.shape) // max(1, math.prod(real_sum(z.real, axis).shape))
    middle = ComplexTensor(*(real_divide(real_sum(part, axis, True), float(size)) for part in (z.real, z.imag)))
    squares = formed(lambda a, b: (a.real - b.real) * (a.real - b.real) + (a.imag - b.imag) * (a.imag - b.imag), z, middle,
                     operator="var")
    return real_divide(real_sum(squares, axis, keepdims), float(size - (correction if ddof is None else ddof)))


def std(x: Any, axis: Any = None, keepdims: bool = False, *, ddof: float | None = None, correction: float = 0) -> Tensor:
    from .functions import sqrt
    return sqrt(var(x, axis, keepdims, ddof=ddof, correction=correction))


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Sum the products with the conjugate of the first operand."""
    from . import ops
    return ops.sum(ops.multiply(ops.conjugate(x1), x2), axis)


def vdot(a: Any, b: Any) -> Any:
    from . import ops
    return vecdot(ops.ravel(a), ops.ravel(b))


def vecmat(a: Any, b: Any) -> Any:
    from . import ops
    return ops.matmul(ops.conjugate(a), b) if len(a.shape) == 1 else ops.squeeze(ops.matmul(ops.expand_dims(
        ops.conjugate(a), -2), b), -2)


def einsum(function: Function) -> Function:
    """Make einsum of one or two complex operands."""
    def contracted(subscripts: str, *operands: Any, **options: Any) -> Any:
        if len(operands) == 1:
            z = complex_tensor(operands[0])
            return ComplexTensor(function(subscripts, z.real), function(subscripts, z.imag))
        if len(operands) > 2:
            raise problem(f"einsum of {len(operands)} operands of which one is complex", "unsupported",
                          help="take two at a time")
        return of_products(lambda p, q: function(subscripts, p, q))(*operands)
    return contracted


FORMULAS: Mapping[str, Callable[..., Complex | Term]] = {
    "multiply": numbers.product, "divide": numbers.quotient, "reciprocal": numbers.reciprocal,
    "square": lambda x: numbers.product(x, x), "absolute": numbers.magnitude, "sign": numbers.unit,
    "conjugate": Complex.conjugate, "exp": numbers.exponential, "expm1": numbers.expm1,
    "exp2": lambda x: numbers.exponential(x.times(math.log(2))), "log": numbers.logarithm, "log1p": numbers.log1p,
    "log2": scaled_logarithm(2), "log10": scaled_logarithm(10), "sqrt": numbers.root,
    "sin": angles.sin_, "cos": angles.cos_, "tan": angles.tan, "sinh": angles.sinh, "cosh": angles.cosh, "tanh": angles.tanh,
    "arcsin": angles.arc_sine, "arccos": angles.arc_cosine, "arctan": angles.arc_tangent, "arcsinh": angles.area_sine,
    "arccosh": angles.area_cosine, "arctanh": angles.area_tangent,
    "equal": lambda x, y: x.real.equals(y.real) & x.imag.equals(y.imag),
    "not_equal": lambda x, y: x.real.differs(y.real) | x.imag.differs(y.imag),
    "isnan": lambda x: x.real.differs(x.real) | x.imag.differs(x.imag),
    "isinf": lambda x: is_infinite(x.real) | is_infinite(x.imag),
    "isfinite": lambda x: ~(is_not_finite(x.real) | is_not_finite(x.imag))}
FUNCTIONS: Mapping[str, Function] = {
    "add": add, "subtract": subtract, "power": power, "float_power": power, "astype": astype, "where": where,
    "asarray": asarray, "full_like": full_like, "ones_like": ones_like, "prod": prod, "var": var, "std": std, "vecdot": vecdot,
    "vdot": vdot, "vecmat": vecmat}
MADE_OF: Mapping[str, Callable[[Function], Function]] = {
    "zeros": of_shape, "ones": of_shape, "empty": of_shape, "full": full, "pad": pad, "append": append, "einsum": einsum,
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), of_two_truths),
    **dict.fromkeys(("logical_not", "any", "all", "count_nonzero"), of_truth),
    **dict.fromkeys(("iscomplexobj", "isrealobj", "ndim", "shape", "size"), itself),
    **dict.fromkeys(PART_BY_PART, part_by_part), **dict.fromkeys(OF_PRODUCTS, of_products)}
"""Adapters that make the complex function from the real one, by function name."""
ALIASES = {"abs": "absolute", "conj": "conjugate", "true_divide": "divide", "pow": "power", "acos": "arccos",
           "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh"}


def complex_function(name: str, function: Function) -> Function | None:
    """Return the function of that name for complex operands; None if it has no complex form."""
    name = ALIASES.get(name, name)
    if name in FORMULAS:
        return elementwise(name, FORMULAS[name])
    return FUNCTIONS[name] if name in FUNCTIONS else MADE_OF[name](function) if name in MADE_OF else None


def of_both_kinds(name: str, function: Function) -> Function:
    """Extend a function of real tensors to complex ones."""
    of_complex = complex_function(name, function)

    @wraps(function)
    def either(*arguments: Any, **options: Any) -> Any:
        if not (any(map(is_complex, arguments)) or (options and any(map(is_complex, options.values())))):
            return function(*arguments, **options)
        if of_complex is None:
            raise problem(f"{name} does not take complex numbers", help="tosaic.ops.real, imag, abs and angle give real ones")
        return of_complex(*arguments, **options)
    return either


__all__ = ["angle", "complex", "imag", "iscomplex", "isreal", "real"]
