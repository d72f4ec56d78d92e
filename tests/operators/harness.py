"""What every operator's test does: hold the type rule, the reference and the expression of an element together.

`check(op, *arrays)` infers the result's type, computes the reference, evaluates the element's expression over the whole
result with the interpreter of expressions, and asserts that type, shape and values agree.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Cast, Expr, is_float
from tosaic.lowering.elements.interpret import Evaluator
from tosaic.lowering.elements.tensor import Tensor, stored
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import INDEX, Array, ElementType, ShapeType, TensorType, tensor_type

Bound = Callable[..., Array]
"""bound(expected, *inputs), all in float64: how far each element may be from what is expected."""
EVERY = frozenset(range(64))
"""All operands are constants."""


@dataclass(frozen=True, slots=True)
class Given:
    """An operand as `infer` sees it."""
    type: Any
    constant: Array | None = None


def given(array: Array, element: ElementType | None = None, *, constant: bool = False) -> Given:
    """An array as an operand; with the element type INDEX it is a shape."""
    type = ShapeType(len(array)) if element == INDEX else tensor_type(array, element)
    return Given(type, array if constant else None)


def unknown(*shape: int | None, element: ElementType) -> Given:
    """An operand without data; extents may be None."""
    return Given(TensorType(shape, element))


def infer(op: Op, *arrays: Array, constants: Collection[int] = (), elements: Mapping[int, ElementType] | None = None
          ) -> TensorType:
    """The type of the result for operands like these arrays."""
    found = op.result_types(operands(arrays, constants, elements))
    assert len(found) == 1 and isinstance(found[0], TensorType)
    return found[0]


def operands(arrays: tuple[Array, ...], constants: Collection[int], elements: Mapping[int, ElementType] | None
             ) -> list[Given]:
    return [given(a, (elements or {}).get(i), constant=i in constants) for i, a in enumerate(arrays)]


def evaluated(op: Op, out: TensorType, *arrays: Array, constants: Collection[int] = (),
              elements: Mapping[int, ElementType] | None = None) -> Array:
    """The element's expression, evaluated for every element of the result."""
    tensors: list[Tensor] = []
    data: dict[Buffer, Array] = {}
    for i, (array, operand) in enumerate(zip(arrays, operands(arrays, constants, elements))):
        type = TensorType((operand.type.rank,), INDEX) if isinstance(operand.type, ShapeType) else operand.type
        storage = type.element.storage
        buffer = Buffer(f"x{i}", storage, array.shape, "constant" if i in constants else "argument",
                        array if i in constants else None)
        data[buffer] = array
        tensors.append(stored(type, buffer))
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(out.dims))
    value = op.element(out, *tensors)(*map(Affine.of, axes))
    assert value.dtype == out.element.storage, f"the element is {value.dtype}, the result {out.element.storage}"
    grid = {a: np.arange(a.extent).reshape([-1 if b is a else 1 for b in axes]) for a in axes}
    with np.errstate(all="ignore"):
        result = Strict(grid, data, len(axes)).value(value)
    return np.broadcast_to(result, out.dims)


class Strict(Evaluator):
    """The interpreter, which also asserts what native code must never do: shift by the width or more, divide by 0 or
    the least integer by -1, convert to an integer what does not fit."""

    def compute(self, e: Expr) -> Array:
        match e:
            case Apply("shl" | "ashr" | "lshr", (_, amount)):
                amounts = self.value(amount)
                assert np.all((amounts >= 0) & (amounts < 8 * amounts.dtype.itemsize)), "a shift out of range"
            case Apply("div", (dividend, divisor), dtype) if not is_float(dtype):
                a, b = self.value(dividend), self.value(divisor)
                assert np.all((b != 0) & ((b != -1) | (a != np.iinfo(a.dtype).min))), "a division that traps"
            case Cast(arg, dtype, False) if is_float(arg.dtype) and not is_float(dtype):
                x = wide(np.asarray(self.value(arg)))
                limit = 2.0 ** (np.iinfo(dtype).bits - 1)
                assert dtype.startswith("int") and np.all((x >= -limit) & (x < limit)), "a conversion out of range"
        return super().compute(e)


def check(op: Op, *arrays: Array, constants: Collection[int] = (), elements: Mapping[int, ElementType] | None = None,
          bound: Bound | None = None) -> Array:
    """Assert that infer, reference and element agree; returns the evaluated result.

    `constants` are the positions of operands whose data is known when compiling, `elements` the types of those that
    NumPy's dtype does not tell (i4, i48; INDEX: a shape). Integers must be equal, and floats too, up to the sign of a
    zero, unless `bound` is given: then the reference is computed in float64 and elements may be as far from it as TOSA's
    conformance check allows.
    """
    out = infer(op, *arrays, constants=constants, elements=elements)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = op.reference(*arrays)
    assert isinstance(expected, np.ndarray), type(expected)
    assert expected.dtype == out.element.dtype, f"the reference is {expected.dtype}, the result {out.element}"
    assert expected.shape == out.dims, f"the reference is {expected.shape}, the result {out.dims}"
    result = evaluated(op, out, *arrays, constants=constants, elements=elements)
    assert result.dtype == out.element.dtype and result.shape == out.dims
    if bound is None:
        assert_equal(result, expected, arrays)
    else:
        precise = [wide(a) for a in arrays]
        exact = op.reference(*precise)
        assert_close(result, exact, bound(exact, *precise), arrays)
        assert_close(expected, exact, bound(exact, *precise), arrays)
    return result


def is_float_array(x: Array) -> bool:
    return x.dtype.kind not in "biu"


def wide(x: Array) -> Array:
    """Floats in float64, anything else as it is."""
    with np.errstate(all="ignore"):
        return x.astype(np.float64) if is_float_array(x) else x


def assert_equal(result: Array, expected: Array, arrays: tuple[Array, ...] = ()) -> None:
    """Equal values; any NaN is a NaN, and a zero is a zero."""
    if is_float_array(expected):
        a, b = wide(result), wide(expected)
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    else:
        wrong = result != expected
    report(wrong, result, expected, arrays)


def assert_close(result: Array, exact: Array, error: Array, arrays: tuple[Array, ...] = ()) -> None:
    """TOSA's conformance check of a float against its value in float64, but subnormals may not be flushed."""
    most = float(_finfo(result).max)
    with np.errstate(all="ignore"):
        low, high = exact - error, exact + error
        low = np.where(low > most, np.inf, np.where(low < -most, -np.inf, low))
        high = np.where(high > most, np.inf, np.where(high < -most, -np.inf, high))
        value = wide(result)
        inside = (low <= value) & (value <= high) | ~np.isfinite(error) & ~np.isnan(value)
    report(~np.where(np.isnan(exact), np.isnan(value), inside | (value == exact)), result, exact, arrays)


def _finfo(x: Array) -> np.finfo:
    import ml_dtypes
    return ml_dtypes.finfo(x.dtype)


def report(wrong: Array, result: Array, expected: Array, arrays: tuple[Array, ...]) -> None:
    if not np.any(wrong):
        return
    lines = [f"{np.count_nonzero(wrong)} of {wrong.size} elements are wrong"]
    for place in np.argwhere(wrong)[:8]:
        index = tuple(int(i) for i in place)
        inputs = [a[tuple(0 if n == 1 else i for i, n in zip(index, a.shape))] for a in arrays if a.ndim == len(index)]
        lines.append(f"  {index}: {result[index]!r}, not {expected[index]!r}, of {inputs}")
    raise AssertionError("\n".join(lines))
