"""Elements as bytes: every element type goes there and back with all its bits."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.flatbuffer.element_encoding import decode, decode_scaled, encode, encode_scaled, encoded_size
from tosaic.lowering.flatbuffer.schema import ELEMENTS
from tosaic.lowering.graph.types import F4E2M1, F6E2M3, F16, F32, I1, I4, I8, I48, MXINT8, ElementType, block_scaled
from tosaic.runtime.errors import Problem

KINDS = [e for e in ELEMENTS if e is not None]


@pytest.mark.parametrize("element", KINDS, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (5, 7), (2, 3, 4)], ids=str)
def test_all_bit_patterns_of_each_type_survive(element: ElementType, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    size = encoded_size(element, count)
    random = np.random.default_rng(5)
    for _ in range(8):
        data = random.integers(0, 2 if element == I1 else 256, size, np.uint8)
        spare = size * 8 - count * element.bits
        if element != I1 and spare:
            data[-1] &= 0xFF >> spare  # bits that no element has
        array = decode(data, element, shape)
        assert (array.shape, array.dtype, array.flags.writeable) == (shape, element.dtype, False)
        assert encode(array, element).tobytes() == data.tobytes()


def decoded(data: list[int], element: ElementType, count: int) -> list[float]:
    return [float(x) for x in decode(np.array(data, np.uint8), element, (count,)).astype(np.float64)]


def test_the_first_of_two_small_numbers_is_in_the_low_bits() -> None:
    assert decoded([0x21, 0x0D], I4, 3) == [1, 2, -3]
    assert decoded([0x7F], I4, 2) == [-1, 7]
    assert decoded([0x42, 0x0F], F4E2M1, 3) == [1, 2, -6]


def test_four_numbers_of_six_bits_take_three_bytes() -> None:
    codes = [0b001000, 0b010000, 0b011111, 0b100001]
    whole = sum(code << 6 * i for i, code in enumerate(codes))
    assert decoded(list(whole.to_bytes(3, "little")), F6E2M3, 4) == [1, 2, 7.5, -0.125]


def test_numbers_of_48_bits_have_a_sign() -> None:
    assert decoded([0xFE, *[0xFF] * 5, 1, 0, 0, 0, 0, 0x40], I48, 2) == [-2, (1 << 46) + 1]


def test_any_bool_but_zero_is_true() -> None:
    assert decode(np.array([0, 1, 2, 255], np.uint8), I1, (4,)).tolist() == [False, True, True, True]


def test_payloads_of_nan_and_the_sign_of_zero_survive() -> None:
    bits = np.array([0x7FC00001, 0xFF800001, 0x80000000], "<u4")
    assert encode(decode(bits.view(np.uint8), F32, (3,)), F32).tobytes() == bits.tobytes()


def test_constants_are_views_where_memory_holds_the_same_bytes() -> None:
    data = np.frombuffer(bytes(range(16)), np.uint8)
    for element in (I8, F16, F32, MXINT8):
        assert np.shares_memory(decode(data, element, (128 // element.bits,)), data)


def test_data_that_are_not_aligned_are_copied() -> None:
    data = np.frombuffer(bytes(9), np.uint8)[1:]
    assert decode(data, F32, (2,)).flags.aligned


def test_data_may_be_filled_up_with_zeros_to_eight_bytes() -> None:
    assert decoded([1, 2, 0, 0, 0, 0, 0, 0], I8, 2) == [1, 2]
    for wrong in ([1], [1, 2, 3], [1, 2, 0, 0, 0, 0, 0, 1], [1, 2, *[0] * 7]):
        with pytest.raises(Problem, match="2 elements of i8 take 2"):
            decode(np.array(wrong, np.uint8), I8, (2,))


@pytest.mark.parametrize("value", [e for e in KINDS if e.bits <= 8 and (e.is_float)], ids=str)
def test_block_scaled_constants_survive(value: ElementType) -> None:
    element, random = block_scaled(value), np.random.default_rng(6)
    data = random.integers(0, 256, encoded_size(value, 6 * 64), np.uint8)
    scales = random.integers(0, 256, 6 * 2, np.uint8)
    array = decode_scaled(data, scales, element, (2, 3, 64))
    assert (array.shape, array.dtype) == ((2, 3, 64), element.dtype)
    assert array["scale"].view(np.uint8)[1, 2, 40] == scales[-1]
    again = encode_scaled(array, element)
    assert (again[0].tobytes(), again[1].tobytes()) == (data.tobytes(), scales.tobytes())


def test_blocks_have_to_fill_the_last_axis() -> None:
    with pytest.raises(Problem, match="32 elements share a scale"):
        decode_scaled(np.zeros(33, np.uint8), np.zeros(1, np.uint8), block_scaled(MXINT8), (33,))
