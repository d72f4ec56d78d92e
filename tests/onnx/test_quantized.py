"""Operators of quantized tensors, held against ONNX Runtime on both engines: byte for byte where it defines the bytes."""
from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import tosaic
from tosaic.lowering.dialects.onnx.interpret import interpret

from .models import agree, one_node, runtime_results

Array = np.ndarray
U8, I8, F = np.uint8, np.int8, np.float32


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def bytes_of(r: np.random.Generator, dtype: Any, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return np.asarray(r.integers(info.min, info.max + 1, shape)).astype(dtype)


def weights_of(r: np.random.Generator, pair: Any, *shape: int) -> Array:
    """Of seven bits where they are i8 beside u8: without VNNI the runtime's sums of two such products saturate at 16 bits."""
    found = bytes_of(r, pair[1], *shape)
    return np.asarray(found >> 1) if pair == (U8, I8) else found


def scalar(value: Any, dtype: Any = F) -> Array:
    return np.asarray(value, dtype)


def exact(op: str, inputs: Any, attributes: Any = None, opset: int = 17, domain: str = "", outputs: int = 1,
          wanted: Any = None) -> None:
    """Both engines give the runtime's results to the last bit, with all inputs at run time and with all but the data known."""
    for constants in ((), range(1, len(inputs))):
        model = one_node(op, inputs, attributes or {}, opset, domain, outputs, constants)
        given = [a for i, a in enumerate(inputs) if a is not None and i not in constants]
        agree(model, given, wanted, rtol=0, atol=0)


# ---- QuantizeLinear, DequantizeLinear ------------------------------------------------------------------------------------
@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [U8, I8, np.int16, np.uint16])
@pytest.mark.parametrize("granularity", ["tensor", "axis", "blocks"])
def test_quantize_and_dequantize(dtype: Any, granularity: str) -> None:
    r = random(1)
    shape = {"tensor": (), "axis": (6,), "blocks": (3, 3, 5)}[granularity]
    attributes = {"tensor": {}, "axis": {"axis": 1}, "blocks": {"axis": 1, "block_size": 2}}[granularity]
    x = (r.standard_normal((3, 6, 5)) * 3).astype(F)
    scale, zero = np.asarray(r.uniform(0.01, 0.1, shape), F), bytes_of(r, dtype, *shape)
    exact("QuantizeLinear", [x, scale, zero], attributes, 21)
    exact("DequantizeLinear", [bytes_of(r, dtype, 3, 6, 5), scale, zero], attributes, 21)


def test_ties_go_to_the_even_number() -> None:
    x = (np.arange(-600, 600) / 4).astype(F)
    for zero in (scalar(0, I8), scalar(-3, I8), scalar(7, U8)):
        exact("QuantizeLinear", [x, scalar(0.5), zero], opset=13)


@pytest.mark.parametrize("version", [10, 13, 19, 21, 23])
def test_every_version_quantizes(version: int) -> None:
    r = random(version)
    exact("QuantizeLinear", [(r.standard_normal((2, 9)) * 2).astype(F), scalar(0.013), scalar(120, U8)], opset=version)
    exact("DequantizeLinear", [bytes_of(r, U8, 2, 9), scalar(0.013), scalar(120, U8)], opset=version)


def test_sums_of_32_bits_become_floats() -> None:
    exact("DequantizeLinear", [random(0).integers(-2**31, 2**31, (4, 5)).astype(np.int32), scalar(0.003)], opset=13)


@pytest.mark.parametrize("x", [np.linspace(-3, 5, 40), np.linspace(1, 5, 40), np.linspace(-5, -1, 40), np.zeros(7)])
def test_a_scale_from_the_range_of_the_numbers(x: Array) -> None:
    exact("DynamicQuantizeLinear", [x.astype(F).reshape(1, -1)], opset=13, outputs=3)


# ---- products ------------------------------------------------------------------------------------------------------------
PAIRS = [(U8, U8), (U8, I8), (I8, I8)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", PAIRS)
@pytest.mark.parametrize("shapes", [((5, 7), (7, 3)), ((2, 4, 6), (6, 5)), ((2, 3, 4, 6), (2, 3, 6, 5)), ((6,), (6, 2))])
def test_products_of_bytes(types: Any, shapes: Any) -> None:
    r = random(3)
    (x, y), (left, right) = types, shapes
    a, b = bytes_of(r, x, *left), weights_of(r, types, *right)
    columns = right[-1:] if len(right) == 2 else (*right[:-2], 1, right[-1])
    exact("MatMulInteger", [a, b, bytes_of(r, x), bytes_of(r, y)], opset=13)
    exact("MatMulInteger", [a, b], opset=13)
    exact("MatMulInteger", [a, b, bytes_of(r, x), bytes_of(r, y, *columns)], opset=13)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", PAIRS)
@pytest.mark.parametrize("columns", [False, True])
def test_products_of_bytes_in_bytes(types: Any, columns: bool) -> None:
    r = random(4)
    x, y = types
    for seed in (PAIRS.index(types) % 2,) if columns else (0, 1):  # zero points of 0 and any
        a, b = bytes_of(r, x, 4, 3, 70), weights_of(r, types, 70, 33)
        shape = (33,) if columns else ()
        factors = np.asarray(r.uniform(0.001, 0.02, shape), F)
        zeros = bytes_of(r, y, *shape) if seed else np.zeros(shape, y)
        exact("QLinearMatMul", [a, scalar(0.02), bytes_of(r, x), b, factors, zeros, scalar(0.9), bytes_of(r, x)], opset=13)


@pytest.mark.parametrize("types", PAIRS)
def test_gemm_of_bytes(types: Any) -> None:
    r = random(5)
    x, y = types
    a, b, c = bytes_of(r, x, 5, 40), weights_of(r, types, 6, 40), r.integers(-3000, 3000, 6).astype(np.int32)
    known = [a, scalar(0.02), bytes_of(r, x), b, np.asarray(r.uniform(0.001, 0.02, 6), F), np.zeros(6, y), c]
    exact("QGemm", [*known, scalar(0.7), bytes_of(r, x)], {"transB": 1}, domain="com.microsoft")
    exact("QGemm", known, {"transB": 1, "alpha": 0.5}, domain="com.microsoft")


@pytest.mark.parametrize("types", PAIRS)
def test_products_of_bytes_in_floats(types: Any) -> None:
    r = random(6)
    x, y = types
    a, b, bias = bytes_of(r, x, 2, 5, 40), weights_of(r, types, 40, 7), r.standard_normal(7).astype(F)
    scales = np.asarray(r.uniform(0.001, 0.02, 7), F)
    exact("MatMulIntegerToFloat", [a, b, scalar(0.1), scales, bytes_of(r, x), bytes_of(r, y, 7)], domain="com.microsoft")
    inputs = [a, b, scalar(0.1), scalar(0.01), bytes_of(r, x), bytes_of(r, y), bias]
    close("MatMulIntegerToFloat", inputs, 1e-6)


def close(op: str, inputs: Any, tolerance: float, attributes: Any = None, domain: str = "com.microsoft",
          constants: Any = ()) -> None:
    model = one_node(op, inputs, attributes or {}, 17, domain, 1, constants)
    agree(model, [a for i, a in enumerate(inputs) if a is not None and i not in constants], rtol=tolerance, atol=tolerance)


def test_products_of_floats_that_become_bytes() -> None:
    r = random(7)
    a, b = r.standard_normal((2, 5, 40)).astype(F), weights_of(r, (U8, I8), 40, 7)
    close("DynamicQuantizeMatMul", [a, b, np.asarray(r.uniform(0.001, 0.02, 7), F), bytes_of(r, I8, 7)], 1e-5)


# ---- convolutions --------------------------------------------------------------------------------------------------------
CASES = [
    ("plain", (2, 3, 9, 8), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ("strides", (1, 4, 9, 8), (6, 4, 3, 2), {"strides": [2, 2], "dilations": [1, 2]}),
    ("groups", (1, 4, 6, 6), (6, 2, 3, 3), {"group": 2, "pads": [0, 1, 1, 0]}),
    ("depthwise", (1, 4, 6, 6), (8, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    ("line", (2, 3, 11), (4, 3, 3), {"pads": [2, 1]}),
    ("volume", (1, 2, 5, 5, 4), (3, 2, 2, 3, 2), {"pads": [1, 0, 1, 0, 1, 0]}),
    ("depthwise volume", (1, 2, 5, 5, 4), (2, 1, 2, 3, 2), {"group": 2}),
]


CONVOLUTIONS = [(types, case) for i, case in enumerate(CASES) for j, types in enumerate(PAIRS) if (i + j) % 2 == 0]
"""Half of all, among them every case and every pair of types."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("types", "case"), CONVOLUTIONS,
                         ids=[f"types{PAIRS.index(types)}-{case[0]}" for types, case in CONVOLUTIONS])
def test_convolutions_of_bytes(case: Any, types: Any) -> None:
    _, image, filters, attributes = case
    r, (x, y) = random(8), types
    pixels, weights, outputs = bytes_of(r, x, *image), weights_of(r, types, *filters), filters[0]
    if x == U8:
        exact("ConvInteger", [pixels, weights, bytes_of(r, x), bytes_of(r, y)], attributes, 13)
    bias = r.integers(-3000, 3000, outputs).astype(np.int32)
    exact("QLinearConv", [pixels, scalar(0.02), bytes_of(r, x), weights, scalar(0.01), bytes_of(r, y), scalar(0.3),
                          bytes_of(r, x), bias], attributes, 13)
    scales, zeros = np.asarray(r.uniform(0.001, 0.02, outputs), F), np.full(outputs, bytes_of(r, y))
    exact("QLinearConv", [pixels, scalar(0.02), bytes_of(r, x), weights, scales, zeros, scalar(0.3), bytes_of(r, x)],
          attributes, 13)


def test_filters_whose_zero_points_differ() -> None:
    """The runtime takes one for all; each channel alone is what it computes."""
    r = random(9)
    pixels, weights, zeros = bytes_of(r, U8, 1, 4, 6, 6), bytes_of(r, U8, 6, 2, 3, 3), bytes_of(r, U8, 6)
    attributes = {"pads": [1, 1, 0, 1], "group": 2}
    each = [runtime_results(one_node("ConvInteger", inputs, {"pads": [1, 1, 0, 1]}, 13), inputs)[0] for inputs in (
        [pixels[:, n // 3 * 2:n // 3 * 2 + 2], weights[n:n + 1], scalar(77, U8), zeros[n:n + 1]] for n in range(6))]
    exact("ConvInteger", [pixels, weights, scalar(77, U8), zeros], attributes, 13, wanted=[np.concatenate(each, 1)])


# ---- Microsoft's operators between bytes ---------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [U8, I8])
def test_products_of_elements(dtype: Any) -> None:
    r = random(10)
    a, b = bytes_of(r, dtype, 3, 400), bytes_of(r, dtype, 400)
    exact("QLinearMul", [a, scalar(0.05), bytes_of(r, dtype), b, scalar(0.03), bytes_of(r, dtype), scalar(0.09),
                         bytes_of(r, dtype)], domain="com.microsoft")


@pytest.mark.parametrize("dtype", [U8, I8])
def test_means_of_images(dtype: Any) -> None:
    r = random(11)
    for last in (0, 1):
        exact("QLinearGlobalAveragePool", [bytes_of(r, dtype, 2, 3, 7, 5), scalar(0.05), bytes_of(r, dtype), scalar(0.02),
                                           bytes_of(r, dtype)], {"channels_last": last}, domain="com.microsoft")


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("attributes", [
    {"kernel_shape": [2, 2], "strides": [2, 2]}, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
    {"kernel_shape": [2, 3], "channels_last": 1, "auto_pad": "SAME_UPPER"}], ids=["plain", "pads", "ceil", "last"])
def test_means_of_windows(dtype: Any, attributes: Any) -> None:
    r = random(15)
    parameters = [scalar(0.05), scalar(7, dtype), scalar(0.021), scalar(3, dtype)]
    for constants in ((), (1, 2, 3, 4)):
        close_bytes("QLinearAveragePool", [bytes_of(r, dtype, 2, 4, 7, 6), *parameters], 1, attributes, constants)


@pytest.mark.parametrize("dtype", [U8, I8])
def test_concatenation_of_other_scales(dtype: Any) -> None:
    r = random(12)
    parts = [n for k in range(3) for n in (bytes_of(r, dtype, 2, 3 + k), scalar(0.02 + 0.01 * (k // 2)), scalar(k // 2, dtype))]
    inputs = [scalar(0.02), scalar(0, dtype), *parts]
    close_bytes("QLinearConcat", inputs, 0, {"axis": 1}, [0, 1, 3, 4, 6, 7, 9, 10])


def close_bytes(op: str, inputs: Any, steps: int, attributes: Any = None, constants: Any = ()) -> None:
    """Both engines within so many steps of the runtime, and equal nearly everywhere."""
    model = one_node(op, inputs, attributes or {}, 17, "com.microsoft", 1, constants)
    given = [a for i, a in enumerate(inputs) if a is not None and i not in constants]
    right = runtime_results(model, given)[0]
    agree(model, given, [right], rtol=0, atol=steps)


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAdd"])
def test_functions_between_bytes_are_a_step_off_at_most(dtype: Any, op: str) -> None:
    r = random(13)
    x, parameters = bytes_of(r, dtype, 6, 200), [scalar(0.03), scalar(5, dtype), scalar(1 / 256), scalar(3, dtype)]
    attributes = {"QLinearSoftmax": {"opset": 13, "axis": -1}, "QLinearLeakyRelu": {"alpha": 0.2}}.get(op, {})
    if op == "QLinearAdd":
        parameters = [*parameters[:2], bytes_of(r, dtype, 200), scalar(0.02), scalar(9, dtype), scalar(0.04), scalar(3, dtype)]
    for constants in ((), [n for n in range(1, len(parameters) + 1) if n != 3 or op != "QLinearAdd"]):
        close_bytes(op, [x, *parameters], 1, attributes, constants)


# ---- weights of few bits -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bits,block,zeros", [(4, 16, True), (4, 32, False), (8, 32, True), (8, 16, False)])
def test_weights_of_few_bits(bits: int, block: int, zeros: bool) -> None:
    r = random(14)
    inner, outer = 72, 10
    count = -(-inner // block)
    packed = bytes_of(r, U8, outer, count, block * bits // 8)
    scales = r.uniform(0.01, 0.1, (outer * count)).astype(F)
    points = bytes_of(r, U8, outer * -(-count * bits // 8)) if zeros else None
    a = r.standard_normal((2, 3, inner)).astype(F)
    close("MatMulNBits", [a, packed, scales, points], 1e-4, {"K": inner, "N": outer, "bits": bits, "block_size": block},
          constants=(1, 2, 3))


# ---- operands that do not fit --------------------------------------------------------------------------------------------
def small(*shape: int) -> Array:
    return random(16).integers(0, 100, shape).astype(U8)


ZERO, SCALE = small(), scalar(0.05)
VALID: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "QuantizeLinear": ([np.ones((4, 6), F), np.ones(6, F), small(6)], {}),
    "DequantizeLinear": ([small(4, 6), np.ones((2, 6), F), small(2, 6)], {"axis": 0}),
    "MatMulInteger": ([small(2, 3), small(3, 4), ZERO, small(4)], {}),
    "QLinearMatMul": ([small(2, 3), SCALE, ZERO, small(3, 4), np.ones(4, F), small(4), SCALE, ZERO], {}),
    "ConvInteger": ([small(1, 2, 4, 4), small(4, 2, 3, 3), ZERO, ZERO], {}),
    "QLinearConv": ([small(1, 2, 4, 4), SCALE, ZERO, small(4, 2, 3, 3), SCALE, ZERO, SCALE, ZERO, np.ones(4, np.int32)], {}),
    "QLinearAdd": ([small(2, 3), SCALE, ZERO, small(3), SCALE, ZERO, SCALE, ZERO], {}),
    "QLinearConcat": ([SCALE, ZERO, small(2, 3), SCALE, ZERO, small(2, 4), SCALE, ZERO], {"axis": 1}),
    "QLinearAveragePool": ([small(1, 2, 3, 3), SCALE, ZERO, SCALE, ZERO], {"kernel_shape": [2, 2]}),
    "QGemm": ([small(2, 3), SCALE, ZERO, small(3, 4), SCALE, ZERO, np.ones(4, np.int32), SCALE, ZERO], {}),
    "MatMulNBits": ([np.ones((2, 40), F), small(5, 3, 8), np.ones(15, F), small(10)], {"K": 40, "N": 5, "block_size": 16}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", VALID)
def test_operands_that_do_not_fit_give_results_or_problems(op: str) -> None:
    valid, attributes = VALID[op]
    domain = "com.microsoft" if op in ("QLinearAdd", "QLinearConcat", "QLinearAveragePool", "QGemm", "MatMulNBits") else ""
    strange = [None, np.ones((2, 5), F), small(3, 2, 2, 2), np.ones((), np.float16), np.ones((2, 0), np.int32),
               small(7).astype(I8)]
    for place in range(len(valid)):
        for other in strange[place % 2::2]:
            inputs = [*valid[:place], other, *valid[place + 1:]]
            model = one_node(op, inputs, attributes, 21, domain, 1, range(1, len(inputs)))
            given = [a for a in inputs[:1] if a is not None]
            for run in (lambda m, g: tosaic.from_onnx(m)(*g), lambda m, g: interpret(tosaic.from_onnx(m).module, "main", g)):
                with suppress(tosaic.Problem):
                    run(model, given)
