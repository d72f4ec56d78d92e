"""Constants: every spelling of elements, and arrays -> text -> the same arrays."""
from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import ml_dtypes  # registers the dtypes of bf16 and fp8
import numpy as np
import pytest
from hypothesis import given, settings
from tosaic.lowering.graph.types import ELEMENT_TYPES, I1, Array, BlockScaled, ElementType, TensorType
from tosaic.lowering.text.attributes import Dense
from tosaic.lowering.text.element_printer import format_dense
from tosaic.lowering.text.elements import decode
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .effort import calls_made

assert ml_dtypes.bfloat16
PLAIN = [t for t in ELEMENT_TYPES.values() if not isinstance(t, BlockScaled)]
"""The types whose constants say no scales; `test_block_scaled.py` has the others."""


def constant(elements: str, type: str, after: str = "") -> Array:
    """The array of `elements : type`, read as the operand of an unknown operator and as tosa.const."""
    module = read_module(f'module attributes {{x.y = {elements} : {type}}} {{ func.func @f() {{ '
                         f'%0 = "tosa.const"() <{{values = {elements} : {type}}}> : () -> {type} return }} }}\n{after}')
    value = module.functions[0].body.operations[0].results[0].constant
    attribute = module.attributes["x.y"]
    assert isinstance(attribute, Dense)
    assert value is not None
    assert value.dtype == attribute.array.dtype == attribute.type.element.dtype
    assert value.shape == attribute.array.shape == attribute.type.dims
    assert value.tobytes() == attribute.array.tobytes()
    assert not value.flags.writeable
    assert not attribute.array.flags.writeable
    return value


@pytest.mark.parametrize(("elements", "type", "expected"), [
    ("dense<5>", "tensor<2x2xi8>", [[5, 5], [5, 5]]),
    ("dense<-5>", "tensor<i32>", -5),
    ("dense<[1, -2, 3]>", "tensor<3xi16>", [1, -2, 3]),
    ("dense<[[1, 2], [3, 4]]>", "tensor<2x2xi64>", [[1, 2], [3, 4]]),
    ("dense<[ [1] ,\n [2] ]>", "tensor<2x1xi32>", [[1], [2]]),
    ("dense<[[1], // one\n [2]]>", "tensor<2x1xi32>", [[1], [2]]),
    ("dense<[[[7]]]>", "tensor<1x1x1xi32>", [[[7]]]),
    ("dense<>", "tensor<0xindex>", []),
    ("dense<>", "tensor<2x0xi8>", [[], []]),
    ("dense<[]>", "tensor<0xi32>", []),
    ("dense<[255, 128, -128, 127]>", "tensor<4xi8>", [-1, -128, -128, 127]),
    ("dense<[255, 0]>", "tensor<2xui8>", [255, 0]),
    ("dense<[-128, 127]>", "tensor<2xsi8>", [-128, 127]),
    ("dense<[7, -7, 15]>", "tensor<3xi4>", [7, -7, -1]),
    ("dense<[140737488355327, -140737488355328]>", "tensor<2xi48>", [2 ** 47 - 1, -2 ** 47]),
    ("dense<[9223372036854775807, -9223372036854775808, 18446744073709551615]>", "tensor<3xi64>",
     [2 ** 63 - 1, -2 ** 63, -1]),
    ("dense<18446744073709551615>", "tensor<1xui64>", [2 ** 64 - 1]),
    ("dense<[-1, 9223372036854775807]>", "tensor<2xindex>", [-1, 2 ** 63 - 1]),
    ("dense<[0x10, -0x2]>", "tensor<2xi8>", [16, -2]),
    ("dense<[true, false]>", "tensor<2xi1>", [True, False]),
    ("dense<true>", "tensor<2xi1>", [True, True]),
    ("dense<[1, 0]>", "tensor<2xi1>", [True, False]),
    ("dense<1.5>", "tensor<2xf32>", [1.5, 1.5]),
    ("dense<[1.000000e+00, -2.5E-1, 3.]>", "tensor<3xf32>", [1, -0.25, 3]),
    ("dense<[0x7F800000, 1.0, 0xFF800000]>", "tensor<3xf32>", [math.inf, 1, -math.inf]),
    ("dense<0x7C00>", "tensor<1xf16>", [math.inf]),
    ("dense<[1.0e+10, -1.0e+10]>", "tensor<2xf16>", [math.inf, -math.inf]),
    ("dense<1.0e+400>", "tensor<1xf64>", [math.inf]),
    ("dense<[1.0, 0.5]>", "tensor<2xbf16>", [1, 0.5]),
    ("dense<[448.0, -0.5]>", "tensor<2xf8E4M3FN>", [448, -0.5]),
    ("dense<[57344.0, 1.0]>", "tensor<2xf8E5M2>", [57344, 1]),
    ("dense<[3.0, 0.5]>", "tensor<2xf4E2M1FN>", [3, 0.5]),
    ("dense<[7.5, 28.0]>", "tensor<2xf6E3M2FN>", [8, 28]),
    ('dense<"0x0102FF">', "tensor<3xi8>", [1, 2, -1]),
    ('dense< "0x0102FF" >', "tensor<3xi8>", [1, 2, -1]),
    ('dense<"0x0102FF"\n>', "tensor<3xi8>", [1, 2, -1]),
    ('dense<"0x0102FF">', "tensor<3xui8>", [1, 2, 255]),
    ('dense<"0x0100FEFF">', "tensor<2xi16>", [1, -2]),
    ('dense<"0xFE">', "tensor<2x1xi8>", [[-2], [-2]]),
    ('dense<"0x0001">', "tensor<2xi1>", [False, True]),
    ('dense<"0xFF">', "tensor<3xi1>", [True, True, True]),
    ('dense<"0x010F">', "tensor<2xi4>", [1, -1]),
    ('dense<"0xFFFFFFFFFFFF010000000080">', "tensor<2xi48>", [-1, 1 - 2 ** 47]),
    ('dense<"0x0000C03F">', "tensor<1xf32>", [1.5]),
    ('dense<"0x803F">', "tensor<2xbf16>", [1, 1]),
    ('dense<"0x3800">', "tensor<2xf8E4M3FN>", [1, 0]),
    ("sparse<[[0, 0], [1, 2]], [1, 5]>", "tensor<2x3xi32>", [[1, 0, 0], [0, 0, 5]]),
    ("sparse<[[1, 0]], [1.5]>", "tensor<2x1xf32>", [[0], [1.5]]),
    ("sparse<[2, 0], [7, 8]>", "tensor<3xi8>", [8, 0, 7]),
    ("sparse<[[0], [2]], 4>", "tensor<3xi8>", [4, 0, 4]),
    ("sparse<0, 9>", "tensor<2x2xi8>", [[9, 0], [0, 0]]),
])
def test_elements_are_read(elements: str, type: str, expected: Any) -> None:
    assert constant(elements, type).tolist() == expected


@pytest.mark.parametrize("size", [*range(1, 40), 144, 255, 256, 257, 1000])
def test_booleans_are_read_as_every_version_of_mlir_writes_them(size: int) -> None:
    """A byte each, eight to a byte, and what it writes where all are alike; as a list they are read by all."""
    source = np.random.default_rng(size)
    for density in (0.5, 0.1, 0.9, 0.0, 1.0):
        mask = source.random(size) < density
        packed = np.packbits(mask, bitorder="little")
        if size > 8 and mask.all():
            packed[-1] = 0xFF  # MLIR leaves the bits behind the last element open
        forms = [packed.tobytes()] if size > 8 or mask.all() == mask.any() or packed[0] not in (0, 0xFF) else []
        forms += [mask.astype(np.uint8).tobytes()] * (size > 1)
        forms += [b"\xFF"] if mask.all() else [b"\x00"] if not mask.any() else []
        forms += [b"\x01"] if mask.all() and not 1 < size < 9 else []
        for raw in forms:
            assert constant(f'dense<"0x{raw.hex().upper()}">', f"tensor<{size}xi1>").tolist() == mask.tolist()
        text = format_dense(mask, TensorType((size,), I1))
        assert '"' not in text
        assert constant(text, f"tensor<{size}xi1>").tolist() == mask.tolist()


def test_booleans_of_another_size_are_refused() -> None:
    for size, count in ((9, 3), (9, 8), (144, 17), (144, 19), (20, 2), (1, 2)):
        with pytest.raises(Problem, match="eight elements each"):
            constant(f'dense<"0x{"01" * count}">', f"tensor<{size}xi1>")


@pytest.mark.parametrize(("elements", "type", "expected"), [
    ('dense<["0x00", "0x7F"]>', "tensor<2x!tosa.mxint8>", [0, 127]),
    ('dense<[["0xFF"], ["0x80"]]>', "tensor<2x1x!tosa.mxint8>", [[-1], [-128]]),
    ('dense<["0x00", "0x7E"]>', "tensor<2xf8E4M3FN>", [0, 448]),
    ('dense<["0x38", "0xB8"]>', "tensor<2xf8E4M3FN>", [1, -1]),
    ('dense<["0x3C", "0x01"]>', "tensor<2xf8E5M2>", [1, 2.0 ** -16]),
    ('dense<["0x7F", "0x80"]>', "tensor<2xf8E8M0FNU>", [1, 2]),
    ('dense<["0x07", "0x09"]>', "tensor<2xf4E2M1FN>", [6, -0.5]),
    ('dense<["0x1F", "0x08"]>', "tensor<2xf6E2M3FN>", [7.5, 1]),
])
def test_elements_of_block_scaled_tensors_are_read_as_strings_of_their_bits(elements: str, type: str, expected: Any) -> None:
    assert constant(elements, type).tolist() == expected


def test_strings_of_bits_are_for_those_types_only() -> None:
    for elements, type in (('dense<["0x00"]>', "tensor<1xi8>"), ('dense<["0x100"]>', "tensor<1xf8E4M3FN>"),
                           ('dense<["7"]>', "tensor<1x!tosa.mxint8>"), ('dense<["0x00"]>', "tensor<2x!tosa.mxint8>")):
        with pytest.raises(Problem):
            constant(elements, type)


def test_bits_of_a_float_keep_the_payload_of_a_nan() -> None:
    for text in ("dense<[0x7FC00001, 0xFFA00000]>", 'dense<"0x0100C07F0000A0FF">'):
        assert constant(text, "tensor<2xf32>").view(np.uint32).tolist() == [0x7FC00001, 0xFFA00000]
    assert constant("dense<0x7E01>", "tensor<1xf16>").view(np.uint16).tolist() == [0x7E01]


def test_minus_zero_keeps_its_sign() -> None:
    assert constant("dense<[-0.0, 0.0]>", "tensor<2xf32>").view(np.uint32).tolist() == [0x80000000, 0]


@pytest.mark.parametrize(("blob", "type", "expected"), [
    ("0x04000000000080BF0000803F", "tensor<2xf32>", [-1, 1]),
    ("0x0100000000FF", "tensor<1x2xi8>", [[0, -1]]),
    ("0x010000000100", "tensor<2xi1>", [True, False]),
    ("0x08000000FFFFFFFFFFFFFFFF", "tensor<1xi48>", [-1]),
    ("0x08000000FFFFFFFFFFFF", "tensor<1xi48>", [-1])])
def test_a_resource_holds_data_behind_its_alignment(blob: str, type: str, expected: Any) -> None:
    for key in ("weights", '"a b"', "torch_tensor_3_torch.float32"):
        after = ('{-# dialect_resources: { builtin: { other: "0x0100000000", ' + f'{key}: "{blob}" }} }},'
                 ' external_resources: { tool: { limit: 3, flag: true, text: "x" } } #-}')
        assert constant(f"dense_resource<{key}>", type, after).tolist() == expected


def test_a_large_splat_takes_no_memory() -> None:
    array = decode("dense<1.5>", TensorType((1 << 14, 1 << 14), ELEMENT_TYPES["f32"]))
    assert array.shape == (1 << 14, 1 << 14)
    assert array.strides == (0, 0)
    assert array[-1, -1] == np.float32(1.5)


@pytest.mark.parametrize("element", [ELEMENT_TYPES[n] for n in ("f32", "f64", "f16", "bf16")], ids=str)
def test_a_list_of_numbers_gives_the_nearest_floats(element: ElementType) -> None:
    random = np.random.default_rng(7)
    values = random.standard_normal(2000) * 10.0 ** random.integers(-4, 4, 2000)
    texts = [f"{v:.9e}" for v in values]
    array = decode(f"dense<[{', '.join(texts)}]>", TensorType((2000,), element))
    expected = np.array([float(t) for t in texts]).astype(element.dtype)
    assert array.tobytes() == expected.tobytes()


def test_hexadecimal_digits_are_decoded_as_a_whole_and_lists_by_their_length() -> None:
    def of_bytes(count: int) -> int:
        blob = np.random.default_rng(0).integers(0, 256, count, np.uint8).tobytes().hex()
        return calls_made(lambda: constant(f'dense<"0x{blob}">', f"tensor<{count}xi8>"))

    def of_numbers(count: int) -> int:
        numbers = ", ".join(map(str, range(count)))
        return calls_made(lambda: constant(f"dense<[{numbers}]>", f"tensor<{count}xi32>"))

    assert of_bytes(2_000_000) <= of_bytes(1_000) + 10
    assert of_numbers(40_000) <= 4 * of_numbers(10_000) + 10


# Arrays -> text -> arrays

def bits(element: ElementType) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << element.bits) - 1)


def stored(patterns: list[int], element: ElementType, shape: tuple[int, ...]) -> Array:
    """An array of an element type from bit patterns of its width."""
    size = 8 * element.itemsize
    if element.kind == "bool":
        return np.array(patterns, bool).reshape(shape)
    if element.kind in ("signed", "index"):
        half = 1 << (element.bits - 1)
        return np.array([(p + half) % (2 * half) - half for p in patterns], f"int{size}").reshape(shape)
    return np.array(patterns, f"uint{size}").view(element.dtype).reshape(shape)


@st.composite
def constants(draw: st.DrawFn) -> tuple[Array, TensorType]:
    element = draw(st.sampled_from(sorted(PLAIN, key=str)))
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=3)))
    size = math.prod(shape)
    patterns = draw(st.one_of(st.lists(bits(element), min_size=size, max_size=size),
                              bits(element).map(lambda p: [p] * size)))
    return stored(patterns, element, shape), TensorType(shape, element)


@settings(max_examples=400, deadline=None)
@given(constants())
def test_a_constant_prints_as_text_that_reads_back_to_the_same_bits(given: tuple[Array, TensorType]) -> None:
    array, type = given
    text = format_dense(array, type)
    again = decode(text, type)
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes(), text


@pytest.mark.parametrize("element", [t for t in PLAIN if t != I1], ids=str)
def test_a_large_constant_prints_as_a_blob_that_reads_back(element: ElementType) -> None:
    random = np.random.default_rng(3)
    patterns = [int(p) for p in random.integers(0, 1 << min(element.bits, 63), 300, np.uint64)]
    array, type = stored(patterns, element, (3, 100)), TensorType((3, 100), element)
    text = format_dense(array, type)
    assert text.startswith('dense<"0x')
    assert decode(text, type).tobytes() == array.tobytes()


def test_a_constant_may_be_shortened_to_be_looked_at() -> None:
    array = np.arange(100, dtype=np.int32)
    type = TensorType((100,), ELEMENT_TYPES["i32"])
    assert format_dense(array, type, elide=10) == "dense_resource<__elided__>"
    assert format_dense(array, type, elide=100).startswith('dense<"0x00000000')
    assert format_dense(np.zeros(100, np.int32), type, elide=10) == "dense<0>"
