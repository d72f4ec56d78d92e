"""Elementwise operators in native code, on operands where something can go wrong, for each kind of processor."""
from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.activation import Clamp
from tosaic.lowering.dialects.tosa.binary import Add, Maximum, Minimum, Mul, Pow, Sub
from tosaic.lowering.dialects.tosa.comparison import Equal, Greater, GreaterEqual
from tosaic.lowering.dialects.tosa.conversion import Cast
from tosaic.lowering.dialects.tosa.table import Table
from tosaic.lowering.dialects.tosa.ternary import Select
from tosaic.lowering.dialects.tosa.unary import Abs, Negate
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import F32, I1, I8, I32, I48, I64, Array, ElementType
from tosaic.lowering.kernels.kernel import Kernel
from tosaic.lowering.schedule import schedule

from ..native.machines import runs_here
from ..schedule.kernels import TARGETS, Native
from . import float_bounds as bounds
from .harness import Bound, assert_close, assert_equal, infer, operands, wide
from .test_conversion import PAIRS, values
from .test_elementwise_floats import FLOATS, FUNCTIONS, bit_patterns, specials
from .test_elementwise_integers import BINARY, UNARY, cases, edges
from .test_rescale import KNOWN, TYPES, Types, boundaries, factors, name, rescale, some, zero_point

pytestmark = pytest.mark.parametrize("target", [
    pytest.param(t, marks=pytest.mark.skipif(not runs_here(t), reason="this processor lacks its instructions"), id=key)
    for key, t in TARGETS.items() if key in ("512 bits", "256 bits, no masks", "128 bits", "scalar")])
SHIFT = np.zeros(1, np.int8)


def check(target: Any, op: Op, *arrays: Array, constants: Collection[int] = (),
          elements: Mapping[int, ElementType] | None = None, bound: Bound | None = None) -> None:
    """What the compiled operator gives is what the reference gives, or as near as the specification asks."""
    out = infer(op, *arrays, constants=constants, elements=elements)
    arrays = tuple(np.ascontiguousarray(a) for a in arrays)
    data = {Buffer(f"x{i}", t.type.element.storage, a.shape, "constant" if i in constants else "argument",
                   a if i in constants else None): a
            for i, (a, t) in enumerate(zip(arrays, operands(arrays, constants, elements)))}
    tensors = [stored(t.type, b) for t, b in zip(operands(arrays, constants, elements), data)]
    axes = tuple(Axis(f"i{d}", n) for d, n in enumerate(out.dims))
    value = op.element(out, *tensors)(*map(Affine.of, axes))
    kernel = Kernel(Buffer("out", out.element.storage, out.dims, "result"), axes, value)
    function = schedule(kernel, target)
    result = Native([function], target).call(0, function, kernel, data)
    if bound is None:
        assert_equal(result, op.reference(*arrays), arrays)
    else:
        precise = [wide(a) for a in arrays]
        exact = op.reference(*precise)
        assert_close(result, exact, bound(exact, *precise), arrays)


@pytest.mark.parametrize(("op", "element"), cases(UNARY))
def test_integers_of_one_operand(op: Op, element: ElementType, target: Any) -> None:
    check(target, op, edges(element))


@pytest.mark.parametrize(("op", "element"), cases(BINARY))
def test_integers_of_two_operands(op: Op, element: ElementType, target: Any) -> None:
    """Divisors of 0, the least integer by -1 and shifts beyond the width among them."""
    few = edges(element) if element in (I1, I8) else np.unique(np.concatenate([
        edges(element)[::9], np.array([-1, 0, 1], element.dtype), edges(element)[[0, -1]]]))
    check(target, op, few[:, None], few[None, :])


@pytest.mark.parametrize("shift", [0, 1, 31, 63])
def test_products_with_a_shift(shift: int, target: Any) -> None:
    x = edges(I32)[::5]
    for constants in ((), (2,)):
        check(target, Mul(), x[:, None], x[None, :], np.array([shift], np.int8), constants=constants)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize(("op", "bound"), FUNCTIONS, ids=lambda x: getattr(x, "name", ""))
def test_functions_of_floats(op: Op, bound: Any, element: ElementType, target: Any) -> None:
    check(target, op, np.concatenate([specials(element), bit_patterns(element, 5_000)]), bound=bound(element))


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_arithmetic_of_floats(element: ElementType, target: Any) -> None:
    x, zero = specials(element), np.zeros(1, element.dtype)
    for op in (Add(), Sub(), Maximum(), Minimum(), Maximum("IGNORE"), Minimum("IGNORE"), Equal(), Greater(),
               GreaterEqual()):
        check(target, op, x[:, None], x[None, :])
    for op in (Abs(), Clamp(-1.5, 6.0), Clamp(-1.5, 6.0, "IGNORE")):
        check(target, op, x)
    check(target, Mul(), x[:, None], x[None, :], SHIFT, constants=(2,))
    check(target, Negate(), x, zero, zero)
    check(target, Select(), np.arange(len(x)) % 3 == 0, x, x[::-1])


@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_powers(element: ElementType, target: Any) -> None:
    random = np.random.default_rng(20)
    x, y = random.uniform(0.01, 30, 2_000).astype(element.dtype), random.uniform(-20, 20, 2_000).astype(element.dtype)
    check(target, Pow(), x, y, bound=bounds.power(element))
    whole = np.arange(-3, 4, dtype=np.float64)
    check(target, Pow(), -x[:50, None], whole[None, :].astype(element.dtype),
          bound=lambda exact, a, b: np.abs(bounds.power(element)(np.abs(exact), np.abs(a), b)))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("source", "to"), PAIRS, ids=str)
def test_casts(source: ElementType, to: ElementType, target: Any) -> None:
    x = values(source)
    check(target, Cast(to), x if len(x) < 5_000 else np.concatenate([x[:2_000], x[-700:]]))
    if source in FLOATS and source != F32:
        check(target, Cast(to), x[::7])


def test_tables(target: Any) -> None:
    random = np.random.default_rng(21)
    for constants in ((), (1,)):
        for dtype, entries in ((np.int8, 256), (np.int16, 513)):
            info = np.iinfo(dtype)
            x = np.arange(info.min, info.max + 1, dtype=dtype)[::1 if entries == 256 else 7]
            check(target, Table(), x, random.integers(info.min, info.max, entries, dtype), constants=constants)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("types", TYPES, ids=name)
def test_rescales(types: Types, target: Any) -> None:
    random = np.random.default_rng(22)
    scale32, mode = types[0] != I48, "SINGLE_ROUND" if types[0] == I48 else "DOUBLE_ROUND"
    for constants, per_channel in itertools.product((KNOWN, set()), (False, True)):
        points = zero_point(types[0], types[1], 1), zero_point(types[2], types[3], 2)
        check(target, rescale(types, scale32, mode, per_channel), some(random, types[0], 20, 19),
              *factors(random, scale32, 19 if per_channel else 1), *points, constants=constants,
              elements={0: types[0], 3: types[0], 4: types[2]})


@pytest.mark.parametrize("shift", [2, 12, 31, 32, 38, 45, 62])
def test_rescales_of_accumulators_where_the_rounding_changes(shift: int, target: Any) -> None:
    multiplier = 1518500249
    x = np.array(boundaries(np.random.default_rng(shift), multiplier, shift, True), np.int32)
    check(target, rescale((I32, False, I8, False), mode="DOUBLE_ROUND"), x, np.array([multiplier], np.int32),
          np.array([shift], np.int8), np.zeros(1, np.int32), np.array([9], np.int8), constants=KNOWN)


def test_wide_integers(target: Any) -> None:
    x = edges(I64)[::5]
    check(target, Mul(), x[:, None], x[None, :], SHIFT)
    check(target, Negate(), x, np.zeros(1, np.int64), np.zeros(1, np.int64))
