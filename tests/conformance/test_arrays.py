"""Conversion between the files of the conformance suite and tosaic's arrays: nothing of Arm's is needed."""
from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tosaic.lowering.graph import types
from tosaic.lowering.graph.types import ElementType, block_scaled

from .arrays import packed, read_input, unpacked, written


def test_codes_of_four_bits_lie_two_in_a_byte_the_first_in_the_low_half() -> None:
    codes = np.array([[1, 2, 15, 8]], np.uint8)
    assert packed(codes, 4).tolist() == [[0x21, 0x8F]]
    assert unpacked(packed(codes, 4), 4).tolist() == codes.tolist()


def test_codes_of_six_bits_lie_four_in_three_bytes() -> None:
    codes = np.array([[0b000001, 0b100000, 0b111111, 0b000011]], np.uint8)
    word = 0b000001 | 0b100000 << 6 | 0b111111 << 12 | 0b000011 << 18
    assert packed(codes, 6).tolist() == [list(word.to_bytes(3, "little"))]
    assert unpacked(packed(codes, 6), 6).tolist() == codes.tolist()


ELEMENTS = (types.BF16, types.F8E4M3, types.F8E5M2, types.F4E2M1, types.F6E2M3, types.F6E3M2, types.F32, types.I8, types.I16)


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_a_result_that_is_written_reads_back_as_an_input(element: ElementType, tmp_path: Path) -> None:
    bits = np.random.default_rng(1).integers(0, 1 << min(element.bits, 7), (2, 3, 32), np.int64)
    array = (bits.astype(f"u{element.itemsize}").view(element.dtype) if element.is_float else bits.astype(element.dtype))
    files = written("x.npy", array, element)
    np.save(tmp_path / "x.npy", files["x.npy"])
    found = read_input(tmp_path / "x.npy", element)
    assert list(files) == ["x.npy"] and found.dtype == array.dtype and found.tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [types.F8E4M3, types.F8E5M2, types.F4E2M1, types.F6E2M3, types.MXINT8], ids=str)
def test_a_block_scaled_result_has_a_second_file_of_factors(value: ElementType, tmp_path: Path) -> None:
    element = block_scaled(value)
    array = np.zeros((2, 64), element.dtype)
    codes = np.random.default_rng(2).integers(0, 1 << value.bits, array.shape).astype(np.uint8)
    factors = np.array([[1, 2], [3, 4]], np.uint8).repeat(32, axis=-1)
    array["value"], array["scale"] = codes.view(value.dtype), factors.view(ml_dtypes.float8_e8m0fnu)
    files = written("x.npy", array, element)
    assert files["x_scale.npy"].dtype == ml_dtypes.float8_e8m0fnu
    assert files["x_scale.npy"].view(np.uint8).tolist() == [[1, 2], [3, 4]]
    for name, data in files.items():
        np.save(tmp_path / name, data)
    assert read_input(tmp_path / "x.npy", element).tobytes() == array.tobytes()


def test_types_that_numpy_saves_as_the_verifier_wants_have_its_headers(tmp_path: Path) -> None:
    headers = {types.BF16: b"'<V2'", types.F8E4M3: b"'<V1'", types.F8E5M2: b"'|u1'", types.F4E2M1: b"'|u1'", types.I8: b"'|i1'"}
    for element, header in headers.items():
        np.save(tmp_path / "x.npy", written("x.npy", np.zeros((1, 32), element.dtype), element)["x.npy"])
        assert header in (tmp_path / "x.npy").read_bytes()[:100], str(element)
