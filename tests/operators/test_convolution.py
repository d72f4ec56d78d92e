"""CONV2D, CONV3D, DEPTHWISE_CONV2D, TRANSPOSE_CONV2D."""
from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.convolution import Conv2D, Conv3D, DepthwiseConv2D, TransposeConv2D
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Cast, Expr, Load, Reduce
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.elements.traverse import computed, loads
from tosaic.lowering.graph.operator import Op
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I4, I8, I16, I32, I48, Array, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .dot_product import dot_product_bound
from .harness import Given, check, unknown

Types = tuple[ElementType, ElementType, ElementType, ElementType]
INTEGERS: list[Types] = [(I8, I8, I32, I32), (I8, I4, I32, I32), (I16, I8, I48, I48)]
FLOATS: list[Types] = [(F32, F32, F32, F32), (F16, F16, F16, F16), (F16, F16, F16, F32), (BF16, BF16, BF16, F32),
                       (F8E4M3, F8E4M3, F16, F16), (F8E5M2, F8E5M2, F16, F16), (F8E5M2, F8E5M2, F32, F32)]


def name_of(types: Types) -> str:
    return "-".join(t.name for t in types)


def data(random: np.random.Generator, shape: tuple[int, ...], element: ElementType, bits: int | None = None) -> Array:
    if element.is_float:
        return random.normal(size=shape).astype(element.dtype)
    high = element.maximum if bits is None else (1 << bits) - 1
    return random.integers(max(element.minimum, -high - 1), high + 1, shape).astype(element.dtype)


def operands(random: np.random.Generator, types: Types, x: tuple[int, ...], weight: tuple[int, ...], bias: int
             ) -> list[Array]:
    """Input, weight, bias, and zero points that are not 0 where that is allowed."""
    zero_points = [data(random, (1,), t) if t == I8 else np.zeros(1, t.dtype) for t in types[:2]]
    return [data(random, x, types[0]), data(random, weight, types[1]), data(random, (bias,), types[2], 20),
            *zero_points]


def agree(op: Op, types: Types, arrays: list[Array], terms: int, constants: tuple[int, ...] = (3, 4)) -> None:
    bound = dot_product_bound(op, terms, types[2], types[3], True) if types[0].is_float else None
    check(op, *arrays, constants=constants, elements=dict(enumerate((*types[:3], *types[:2]))), bound=bound)


def extents(places: tuple[int, ...], kernel: tuple[int, ...], pad: tuple[int, ...], stride: tuple[int, ...],
            dilation: tuple[int, ...]) -> tuple[int, ...]:
    """Extents of the input that give `places` outputs along each axis."""
    return tuple((o - 1) * s + (k - 1) * d + 1 - before - after for o, k, s, d, before, after in
                 zip(places, kernel, stride, dilation, pad[::2], pad[1::2]))


WINDOWS = [  # places, kernel, pad, stride, dilation
    ((4, 5), (1, 1), (0, 0, 0, 0), (1, 1), (1, 1)),
    ((4, 5), (3, 3), (1, 1, 1, 1), (1, 1), (1, 1)),
    ((3, 4), (3, 2), (0, 1, 1, 0), (2, 2), (1, 1)),
    ((5, 3), (2, 3), (2, 1, 0, 3), (1, 3), (2, 1)),
    ((3, 3), (3, 3), (2, 2, 2, 2), (3, 1), (2, 2)),
    ((2, 6), (4, 1), (5, 0, 0, 2), (2, 2), (1, 3)),
    ((1, 1), (3, 5), (0, 0, 0, 0), (1, 1), (1, 1)),
    ((4, 4), (2, 2), (3, 3, 3, 3), (2, 2), (1, 1)),  # the first and the last windows hold padding only
]


@pytest.mark.parametrize("types", INTEGERS + FLOATS, ids=name_of)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("channels", "filters"), [(1, 1), (3, 4)])
def test_conv2d_is_its_reference(window: Any, types: Types, channels: int, filters: int) -> None:
    places, kernel, pad, stride, dilation = window
    random = np.random.default_rng(0)
    op = Conv2D(pad, stride, dilation, types[3])
    arrays = operands(random, types, (2, *extents(places, kernel, pad, stride, dilation), channels),
                      (filters, *kernel, channels), 1 if filters == 4 and kernel == (2, 2) else filters)
    agree(op, types, arrays, math.prod(kernel) * channels)


@pytest.mark.parametrize("types", INTEGERS + FLOATS, ids=name_of)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("channels", "multiplier"), [(1, 1), (1, 3), (4, 1), (3, 2)])
def test_depthwise_conv2d_is_its_reference(window: Any, types: Types, channels: int, multiplier: int) -> None:
    places, kernel, pad, stride, dilation = window
    random = np.random.default_rng(1)
    op = DepthwiseConv2D(pad, stride, dilation, types[3])
    arrays = operands(random, types, (2, *extents(places, kernel, pad, stride, dilation), channels),
                      (*kernel, channels, multiplier), channels * multiplier)
    agree(op, types, arrays, math.prod(kernel))


@pytest.mark.parametrize("types", INTEGERS + FLOATS, ids=name_of)
@pytest.mark.parametrize("window", [
    ((2, 3, 2), (1, 1, 1), (0, 0, 0, 0, 0, 0), (1, 1, 1), (1, 1, 1)),
    ((2, 2, 3), (2, 3, 2), (1, 0, 1, 1, 0, 2), (1, 2, 1), (2, 1, 1)),
    ((3, 2, 2), (3, 1, 2), (0, 2, 1, 0, 0, 0), (2, 1, 3), (1, 2, 2)),
], ids=str)
def test_conv3d_is_its_reference(window: Any, types: Types) -> None:
    places, kernel, pad, stride, dilation = window
    random = np.random.default_rng(2)
    op = Conv3D(pad, stride, dilation, types[3])
    arrays = operands(random, types, (2, *extents(places, kernel, pad, stride, dilation), 3), (4, *kernel, 3), 4)
    agree(op, types, arrays, math.prod(kernel) * 3)


@pytest.mark.parametrize("types", INTEGERS + FLOATS, ids=name_of)
@pytest.mark.parametrize(("kernel", "out_pad", "stride"), [
    ((1, 1), (0, 0, 0, 0), (1, 1)),
    ((3, 3), (0, 0, 0, 0), (1, 1)),
    ((2, 2), (0, 0, 0, 0), (2, 2)),
    ((3, 3), (-1, -1, -1, -1), (2, 2)),
    ((3, 2), (1, 2, 3, 0), (2, 3)),
    ((4, 5), (-3, 1, 7, -4), (3, 2)),
    ((2, 1), (-1, -1, 0, 0), (1, 4)),
    ((5, 3), (5, -4, -2, 9), (4, 5)),
], ids=str)
def test_transpose_conv2d_is_its_reference(kernel: tuple[int, int], out_pad: Any, stride: Any, types: Types) -> None:
    random = np.random.default_rng(3)
    arrays = operands(random, types, (2, 4, 3, 3), (2, *kernel, 3), 2)
    agree(TransposeConv2D(out_pad, stride, types[3]), types, arrays, math.prod(kernel) * 3)


@pytest.mark.parametrize("op", [Conv2D((1, 0, 1, 0), (1, 1), (1, 1), I32), TransposeConv2D((0, 0, 0, 0), (2, 1), I32),
                                DepthwiseConv2D((1, 0, 1, 0), (1, 1), (1, 1), I32)], ids=lambda op: op.name)
def test_zero_points_may_come_from_data(op: Op) -> None:
    random = np.random.default_rng(4)
    weight = (2, 2, 2, 3) if op.name == "tosa.depthwise_conv2d" else (3, 2, 2, 2)
    bias = 6 if op.name == "tosa.depthwise_conv2d" else 3
    agree(op, INTEGERS[0], operands(random, INTEGERS[0], (1, 4, 4, 2), weight, bias), 8, constants=())


def test_an_integer_sum_wraps() -> None:
    x, weight = np.full((1, 1, 1, 4), -128, np.int8), np.full((1, 1, 1, 4), -128, np.int8)
    zero = np.zeros(1, np.int8)
    bias = np.array([np.iinfo(np.int32).max], np.int32)
    out = check(Conv2D((0,) * 4, (1, 1), (1, 1), I32), x, weight, bias, zero, zero, constants=(3, 4))
    assert out.item() == np.iinfo(np.int32).min + 4 * 128 * 128 - 1


def test_padding_does_not_meet_infinite_weights() -> None:
    x, zero = np.ones((1, 1, 1, 1), np.float32), np.zeros(1, np.float32)
    weight = np.array([np.inf, 2, np.inf], np.float32).reshape(1, 1, 3, 1)
    out = check(Conv2D((0, 0, 1, 1), (1, 1), (1, 1), F32), x, weight, zero, zero, zero, constants=(3, 4))
    assert out.item() == 2.0


def test_conv2d_follows_the_specification_word_by_word() -> None:
    random = np.random.default_rng(5)
    op = Conv2D((1, 2, 0, 1), (2, 1), (1, 2), I32)
    x, weight, bias, zx, zw = operands(random, INTEGERS[0], (2, 6, 6, 3), (4, 3, 2, 3), 4)
    out = check(op, x, weight, bias, zx, zw, constants=(3, 4))
    for n, oy, ox, oc in np.ndindex(*out.shape):
        total = 0
        for ky, kx, ic in np.ndindex(3, 2, 3):
            y, column = oy * 2 - 1 + ky, ox * 1 - 0 + kx * 2
            if 0 <= y < 6 and 0 <= column < 6:
                total += (int(x[n, y, column, ic]) - int(zx[0])) * (int(weight[oc, ky, kx, ic]) - int(zw[0]))
        assert out[n, oy, ox, oc] == total + int(bias[oc])


def test_depthwise_conv2d_follows_the_specification_word_by_word() -> None:
    random = np.random.default_rng(6)
    op = DepthwiseConv2D((0, 1, 2, 0), (1, 2), (2, 1), I32)
    x, weight, bias, zx, zw = operands(random, INTEGERS[0], (1, 6, 5, 3), (3, 3, 3, 2), 6)
    out = check(op, x, weight, bias, zx, zw, constants=(3, 4))
    for n, oy, ox, c, m in np.ndindex(*out.shape[:3], 3, 2):
        total = 0
        for ky, kx in np.ndindex(3, 3):
            y, column = oy + ky * 2, ox * 2 - 2 + kx
            if 0 <= y < 6 and 0 <= column < 5:
                total += (int(x[n, y, column, c]) - int(zx[0])) * (int(weight[ky, kx, c, m]) - int(zw[0]))
        assert out[n, oy, ox, c * 2 + m] == total + int(bias[c * 2 + m])


def test_transpose_conv2d_follows_the_specification_word_by_word() -> None:
    random = np.random.default_rng(7)
    op = TransposeConv2D((-1, 2, 1, -2), (2, 3), I32)
    x, weight, bias, zx, zw = operands(random, INTEGERS[0], (1, 3, 4, 2), (3, 4, 3, 2), 1)
    out = check(op, x, weight, bias, zx, zw, constants=(3, 4))
    assert out.shape == (1, 2 * 2 - 1 + 2 + 4, 3 * 3 + 1 - 2 + 3, 3)
    for n, oy, ox, oc in np.ndindex(*out.shape):
        total = 0
        for ky, kx, ic in np.ndindex(4, 3, 2):
            y, column = oy + 1 - ky, ox - 1 - kx
            if 0 <= y < 3 * 2 and 0 <= column < 4 * 3 and y % 2 == 0 and column % 3 == 0:
                total += ((int(x[n, y // 2, column // 3, ic]) - int(zx[0]))
                          * (int(weight[oc, ky, kx, ic]) - int(zw[0])))
        assert out[n, oy, ox, oc] == total + int(bias[0])


# ---- what is refused ---------------------------------------------------------------------------------------------
def typed(shape: tuple[int | None, ...], element: ElementType) -> Given:
    return unknown(*shape, element=element)


def zero(element: ElementType, value: int = 0) -> Given:
    return Given(TensorType((1,), element), np.array([value], element.dtype))


GOOD_ATTRIBUTES: dict[str, Any] = {"pad": (0, 0, 0, 0), "stride": (1, 1), "dilation": (1, 1), "acc_type": I32}
GOOD_OPERANDS = [typed((1, 4, 4, 3), I8), typed((2, 3, 3, 3), I8), typed((2,), I32), zero(I8), zero(I8)]
BAD: list[tuple[str, dict[str, Any], dict[int, Given], str]] = [
    ("negative pad", {"pad": (0, -1, 0, 0)}, {}, "pad must not be below 0"),
    ("too few pads", {"pad": (0, 0)}, {}, "pad has 2 numbers, 4 are needed"),
    ("stride 0", {"stride": (0, 1)}, {}, "stride must not be below 1"),
    ("dilation 0", {"dilation": (1, 0)}, {}, "dilation must not be below 1"),
    ("stride that does not end", {"stride": (2, 1)}, {}, "the stride 2 does not divide 1"),
    ("kernel that is too large", {"dilation": (2, 2)}, {}, "the window is larger than its input"),
    ("accumulator", {"acc_type": I48}, {}, "the accumulator of i8 and i8 may not be i48"),
    ("rank of input", {}, {0: typed((4, 4, 3), I8)}, "the input must have rank 4"),
    ("rank of weight", {}, {1: typed((2, 3, 3), I8)}, "the weight must have rank 4"),
    ("rank of bias", {}, {2: typed((1, 2), I32)}, "the bias must have rank 1"),
    ("length of bias", {}, {2: typed((3,), I32)}, "the bias has 3 numbers, for 2 output channels"),
    ("type of input", {}, {0: typed((1, 4, 4, 3), I32)}, "the input may not be i32"),
    ("type of weight", {}, {1: typed((2, 3, 3, 3), I16)}, "the weight, beside i8, may not be i16"),
    ("type of bias", {}, {2: typed((2,), I48)}, "the bias, beside i8 and i8, may not be i48"),
    ("type of zero point", {}, {3: zero(I16)}, "the zero point of the input must be i8"),
    ("two zero points", {}, {3: typed((2,), I8)}, "the zero point of the input must have one element"),
    ("channels", {}, {1: typed((2, 3, 3, 4), I8)}, "the input has 3 channels, the weight 4"),
    ("zero point of i4", {}, {1: typed((2, 3, 3, 3), I4), 4: zero(I4, 1)}, "the zero point of the weight must be 0"),
    ("zero point of i16", {"acc_type": I48}, {0: typed((1, 4, 4, 3), I16), 2: typed((2,), I48), 3: zero(I16, 1)},
     "the zero point of the input must be 0 for i16"),
    ("unknown rank", {}, {0: Given(TensorType(None, I8))}, "the rank of the input must be known"),
]


@pytest.mark.parametrize(("attributes", "replaced", "message"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_conv2d_refuses(attributes: dict[str, Any], replaced: dict[int, Given], message: str) -> None:
    operands = [replaced.get(i, o) for i, o in enumerate(GOOD_OPERANDS)]
    assert Conv2D(**GOOD_ATTRIBUTES).result_types(GOOD_OPERANDS) == (TensorType((1, 2, 2, 2), I32),)
    with pytest.raises(Problem, match=message):
        Conv2D(**GOOD_ATTRIBUTES | attributes).result_types(operands)


def test_a_convolution_takes_five_operands() -> None:
    with pytest.raises(Problem, match=r"tosa.conv2d does not take 3 operands"):
        Conv2D(**GOOD_ATTRIBUTES).result_types(GOOD_OPERANDS[:3])


def test_depthwise_conv2d_needs_a_bias_of_all_its_channels() -> None:
    operands = [GOOD_OPERANDS[0], typed((3, 3, 3, 2), I8), typed((2,), I32), zero(I8), zero(I8)]
    with pytest.raises(Problem, match="the bias has 2 numbers, for 6 output channels"):
        DepthwiseConv2D(**GOOD_ATTRIBUTES).result_types(operands)
    with pytest.raises(Problem, match="the input has 3 channels, the weight 4"):
        DepthwiseConv2D(**GOOD_ATTRIBUTES).result_types([operands[0], typed((3, 3, 4, 2), I8), *operands[2:]])


def test_conv3d_needs_six_pads_and_rank_5() -> None:
    with pytest.raises(Problem, match="pad has 4 numbers, 6 are needed"):
        Conv3D((0,) * 4, (1,) * 3, (1,) * 3, I32).result_types(GOOD_OPERANDS)
    with pytest.raises(Problem, match="the input must have rank 5"):
        Conv3D((0,) * 6, (1,) * 3, (1,) * 3, I32).result_types(GOOD_OPERANDS)


@pytest.mark.parametrize(("out_pad", "stride", "message"), [
    ((-3, 0, 0, 0), (1, 1), "cuts off the whole kernel of 3"),
    ((0, 0, 0, -3), (1, 1), "cuts off the whole kernel of 3"),
    ((0, 0, 0, 0), (1, 0), "stride must not be below 1"),
    ((0, 0), (1, 1), "out_pad has 2 numbers, 4 are needed"),
])
def test_transpose_conv2d_refuses(out_pad: Any, stride: Any, message: str) -> None:
    with pytest.raises(Problem, match=message):
        TransposeConv2D(out_pad, stride, I32).result_types(GOOD_OPERANDS)


def test_transpose_conv2d_needs_something_left_of_its_output() -> None:
    operands = [typed((1, 1, 1, 3), I8), *GOOD_OPERANDS[1:]]
    with pytest.raises(Problem, match="leaves nothing of the output"):
        TransposeConv2D((-2, -2, 0, 0), (1, 1), I32).result_types(operands)


@pytest.mark.parametrize("op", [Conv2D(**GOOD_ATTRIBUTES), TransposeConv2D((0,) * 4, (1, 1), I32)],
                         ids=lambda op: op.name)
def test_unknown_extents_give_unknown_extents(op: Op) -> None:
    operands = [typed((None, None, 4, None), I8), *GOOD_OPERANDS[1:]]
    found, = op.result_types(operands)
    assert isinstance(found, TensorType) and found.shape is not None
    assert found.shape[:2] == (None, None) and found.shape[3] == 2


def test_every_combination_of_types_has_its_result() -> None:
    for types in INTEGERS + FLOATS:
        operands = [typed((1, 4, 4, 3), types[0]), typed((2, 3, 3, 3), types[1]), typed((1,), types[2]), zero(types[0]),
                    zero(types[1])]
        found = Conv2D(**GOOD_ATTRIBUTES | {"acc_type": types[3]}).result_types(operands)
        assert found == (TensorType((1, 2, 2, 2), types[2]),)
    small, elements = (F16, BF16, F8E5M2), (I8, I16, I4, I32, I48, F16, BF16, F32, F8E5M2)
    allowed = {*INTEGERS, *FLOATS, *((x, w, F32, F32) for x in (*small, F32) for w in (*small, F32)),
               *((x, w, F16, a) for x in small for w in small for a in (F16, BF16, F32)
                 if a != F16 or BF16 not in (x, w)),
               *((x, w, BF16, a) for x in small[1:] for w in small[1:] for a in (BF16, F32))}
    for x, w, b, a in itertools.product(elements, repeat=4):
        operands = [typed((1, 4, 4, 3), x), typed((2, 3, 3, 3), w), typed((1,), b), zero(x), zero(w)]
        if (x, w, b, a) in allowed:
            assert Conv2D(**GOOD_ATTRIBUTES | {"acc_type": a}).result_types(operands) == (TensorType((1, 2, 2, 2), b),)
        else:
            with pytest.raises(Problem):
                Conv2D(**GOOD_ATTRIBUTES | {"acc_type": a}).result_types(operands)


# ---- form --------------------------------------------------------------------------------------------------------
def expression(op: Op, *types: TensorType) -> Expr:
    """The element of the result, for zero points that are known to be 0."""
    zeros = [stored(TensorType((1,), t.element), Buffer("zero", t.element.storage, (1,), "constant",
                                                        np.zeros(1, t.element.dtype))) for t in types[:2]]
    tensors = [stored(t, Buffer("x", t.element.storage, t.dims)) for t in types] + zeros
    out, = op.result_types([Given(t.type, t.constant) for t in tensors])
    assert isinstance(out, TensorType)
    return op.element(out, *tensors)(*(Affine.of(Axis("i", n)) for n in out.dims))


@pytest.mark.parametrize("op", [Conv2D((1, 1, 1, 1), (1, 1), (1, 1), I32), TransposeConv2D((0,) * 4, (1, 1), I32),
                                TransposeConv2D((0,) * 4, (2, 2), I32)], ids=str)
def test_a_convolution_is_a_guarded_sum_of_products_and_a_bias(op: Op) -> None:
    found = expression(op, TensorType((1, 5, 5, 4), I8), TensorType((6, 3, 3, 4), I8), TensorType((6,), I32))
    assert isinstance(found, Apply) and found.primitive == "add"
    total = found.args[0]
    assert isinstance(total, Reduce) and total.primitive == "add" and len(total.axes) == 3 and len(total.where) >= 2
    assert isinstance(total.body, Apply) and total.body.primitive == "mul"
    assert all(isinstance(factor, Cast) and isinstance(factor.arg, Load) for factor in total.body.args)


def test_only_a_stride_makes_a_transposed_convolution_compute_its_indices() -> None:
    types = TensorType((1, 5, 5, 4), I8), TensorType((6, 3, 3, 4), I8), TensorType((6,), I32)
    strided = [computed(load.index) for load in loads(expression(TransposeConv2D((0,) * 4, (1, 2), I32), *types))]
    plain = [computed(load.index) for load in loads(expression(TransposeConv2D((-1,) * 4, (1, 1), I32), *types))]
    assert any(strided) and not any(plain)
