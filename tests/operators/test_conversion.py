"""CAST and TABLE."""
from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosa.conversion import TARGETS, Cast
from tosaic.lowering.dialects.tosa.table import Table
from tosaic.lowering.graph.types import (
    BF16,
    ELEMENT_TYPES,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I48,
    I64,
    UI8,
    UI16,
    UI32,
    UI64,
    Array,
    ElementType,
    TensorType,
)
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .harness import check, unknown, wide

PAIRS = [(source, target) for source, targets in TARGETS.items() for target in targets
         if "block_scaled" not in (source.kind, target.kind)]
FLOATS, SIGNED, UNSIGNED = (F32, F16, BF16, F64), (I8, I16, I32, I64), (UI8, UI16, UI32, UI64)
INTEGERS = (*SIGNED, *UNSIGNED)
FRACTIONS = {F64: 53, F32: 24, F16: 11, BF16: 8}


def values(element: ElementType) -> Array:
    """Every number of a small type; of a large one the edges and a random choice."""
    random = np.random.default_rng(10)
    if element == I1:
        return np.array([False, True])
    if element.bits <= 16:
        return np.arange(1 << element.bits, dtype=f"u{element.itemsize}").view(element.dtype)
    if element == F64:
        return doubles(random)
    if element == F32:
        bits = random.integers(0, 1 << 32, 20_000, np.uint32).view(np.float32)
        halves = np.arange(-300.5, 300.5, 0.5, np.float32)
        limits = np.array([s * (2.0**b + d) for b in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1)
                           for d in (-1, -0.5, 0, 0.5)])
        near = np.concatenate([np.nextafter(limits.astype(np.float32), np.float32(t)) for t in (-math.inf, math.inf)])
        return np.concatenate([bits, halves, limits.astype(np.float32), near, np.array([math.nan, math.inf, -math.inf],
                                                                                     np.float32)])
    powers = np.array([s * (1 << b) + d for b in range(element.bits - 1) for s in (1, -1) for d in range(-3, 4)
                       if element.minimum <= s * (1 << b) + d <= element.maximum], element.dtype)
    whole = random.integers(element.minimum, element.maximum, 10_000, element.dtype, endpoint=True)
    return np.concatenate([powers, whole, whole >> random.integers(0, element.bits, len(whole), element.dtype),
                           np.array([element.minimum, element.maximum], element.dtype)])


def doubles(random: np.random.Generator) -> Array:
    """Any bits; the numbers of float32, those between two of them, and between two half floats, and what lies beside these;
    where integers end."""
    with np.errstate(all="ignore"):
        return beside_narrow_floats(random, values(F32).astype(np.float64))


def beside_narrow_floats(random: np.random.Generator, singles: Array) -> Array:
    small = random.integers(0, 1 << 16, 3_000).astype(np.uint16)
    halves = [small.view(dtype).astype(np.float64) for dtype in (F16.dtype, BF16.dtype)]
    halves += [(np.nextafter(h.astype(dtype), dtype.type(np.inf)).astype(np.float64) + h) / 2
               for h, dtype in zip(halves, (F16.dtype, BF16.dtype))]
    middles = (np.nextafter(singles.astype(np.float32), np.float32(np.inf)).astype(np.float64) + singles) / 2
    near = np.concatenate([*halves, middles, [s * (2.0**b + d) for b in (31, 53, 62, 63, 64) for s in (1, -1)
                                              for d in (-0.5, 0, 0.5)]])
    around = [np.nextafter(near, t) for t in (-math.inf, math.inf)]
    return np.concatenate([random.integers(0, 1 << 64, 10_000, np.uint64).view(np.float64), singles, near, *around])


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_casts_equal_the_reference(source: ElementType, target: ElementType) -> None:
    check(Cast(target), values(source))
    check(Cast(target), values(source)[:1].reshape(()))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("source", "target"), [(s, t) for s, t in PAIRS if s in FLOATS and t in INTEGERS], ids=str)
def test_floats_round_to_the_nearest_even_integer_and_saturate(source: ElementType, target: ElementType) -> None:
    x = values(source)
    found = check(Cast(target), x)
    for value, result in zip(wide(x).tolist(), found.tolist()):
        if math.isnan(value):
            assert result == 0
        elif math.isinf(value):
            assert result == (target.maximum if value > 0 else target.minimum)
        else:
            assert result == min(max(round(Fraction(value)), target.minimum), target.maximum)


@pytest.mark.parametrize(("source", "target"), [(s, t) for s, t in PAIRS if s in INTEGERS and t in FLOATS], ids=str)
def test_integers_become_the_nearest_float(source: ElementType, target: ElementType) -> None:
    for value, result in zip(values(source).tolist(), wide(check(Cast(target), values(source))).tolist()):
        found = nearest(value, FRACTIONS[target])
        assert result == (found if abs(found) <= 65504 or target != F16 else math.copysign(math.inf, value))


def nearest(value: int, fraction: int) -> int:
    """The nearest integer with `fraction` significant bits, ties to even."""
    drop = max(abs(value).bit_length() - fraction, 0)
    return round(Fraction(value, 1 << drop)) << drop


def test_integers_next_to_a_tie_of_bf16_round_to_its_side() -> None:
    ties = np.array([(257 + 2 * i) << s for s in range(8, 23) for i in range(0, 127, 9)], np.int64)
    for beside in (-1, 1, -127, 127):
        x = np.concatenate([ties + beside, -(ties + beside)]).astype(np.int32)
        assert wide(check(Cast(BF16), x)).tolist() == [nearest(value, 8) for value in x.tolist()]


def test_too_large_for_a_byte_is_nan_or_infinite() -> None:
    x = np.array([448.0, 464.0, 465.0, -500.0, 1e9, math.inf], np.float32)
    found = wide(check(Cast(F8E4M3), x))
    assert found[:2].tolist() == [448.0, 448.0] and np.isnan(found[2:]).all()
    x = np.array([57344.0, 61439.0, 61440.0, -1e9], np.float32)
    assert wide(check(Cast(F8E5M2), x)).tolist() == [57344.0, 57344.0, math.inf, -math.inf]


def test_anything_but_zero_is_true() -> None:
    x = np.array([0.0, -0.0, 2.0**-149, -1.0, math.nan, math.inf], np.float32)
    assert check(Cast(I1), x).tolist() == [False, False, True, True, True, True]
    assert check(Cast(I1), np.array([0, 256, -1], np.int16)).tolist() == [False, True, True]


def wrapped(value: int, target: ElementType) -> int:
    """The number of a type that has the low bits of a value."""
    return (value - target.minimum) % (1 << target.bits) + target.minimum


@pytest.mark.parametrize(("source", "target"), [(s, t) for s, t in PAIRS if s in INTEGERS and t in INTEGERS], ids=str)
def test_integers_keep_their_low_bits(source: ElementType, target: ElementType) -> None:
    x = values(source)
    assert check(Cast(target), x).tolist() == [wrapped(value, target) for value in x.tolist()]


def test_integers_wrap() -> None:
    assert check(Cast(I8), np.array([128, -129, 255, 65536], np.int32)).tolist() == [-128, 127, -1, 0]


@pytest.mark.parametrize(("source", "target"), [(s, t) for s, t in PAIRS if s in SIGNED and t != I1], ids=str)
def test_integers_may_be_taken_without_sign(source: ElementType, target: ElementType) -> None:
    x = values(source)
    found = wide(check(Cast(target, input_unsigned=True), x)).tolist()
    for value, result in zip(x.tolist(), found):
        bits = value % (1 << source.bits)
        if target.is_float:
            near = nearest(bits, FRACTIONS[target])
            assert result == (near if near <= 65504 or target != F16 else math.inf)
        else:
            assert result == wrapped(bits, target)


def test_only_an_integer_may_be_taken_without_sign() -> None:
    assert check(Cast(I1, input_unsigned=True), np.array([0, -1], np.int8)).tolist() == [False, True]
    for element in (F32, F16, I1):
        with pytest.raises(Problem, match="has no unsigned numbers"):
            Cast(I8, input_unsigned=True).result_types([unknown(2, element=element)])


CAST = """
func.func @main(%x: tensor<3xi8>) -> (tensor<3xf32>, tensor<3xf32>) {
  %y = tosa.cast %x : (tensor<3xi8>) -> tensor<3xf32>
  %z = tosa.cast %x {input_unsigned = true} : (tensor<3xi8>) -> tensor<3xf32>
  return %y, %z : tensor<3xf32>, tensor<3xf32>
}
"""


def test_the_sign_of_a_cast_is_written_only_where_it_is_not_the_usual() -> None:
    """Tools of TOSA 1.0 know no such attribute."""
    text = print_module(read_module(CAST))
    assert text.count("input_unsigned") == 1 and "input_unsigned = true" in text
    for source in (CAST, text):
        signed, unsigned = tosaic.load(source)(np.array([-1, 2, -128], np.int8))
        assert signed.tolist() == [-1, 2, -128] and unsigned.tolist() == [255, 2, 128]


def test_pairs_that_are_no_combination_are_refused() -> None:
    for source in ELEMENT_TYPES.values():
        for target in ELEMENT_TYPES.values():
            if target not in TARGETS.get(source, ()):
                with pytest.raises(Problem):
                    Cast(target).result_types([unknown(2, element=source)])
            else:
                assert Cast(target).result_types([unknown(2, None, element=source)]) == (TensorType((2, None), target),)
    with pytest.raises(Problem, match="needs the element type of its result"):
        Cast().result_types([unknown(2, element=F32)])


@pytest.mark.parametrize("constants", [(), (1,)], ids=["table-loaded", "table-known"])
def test_a_table_of_256_entries_is_looked_up(constants: Any) -> None:
    table = np.random.default_rng(11).integers(-128, 128, 256).astype(np.int8)
    x = np.arange(-128, 128, dtype=np.int8).reshape(4, 64)
    result = check(Table(), x, table, constants=constants)
    assert (result.reshape(-1) == table).all()
    check(Table(), x[0, 0].reshape(()), table, constants=constants)


@pytest.mark.parametrize("constants", [(), (1,)], ids=["table-loaded", "table-known"])
def test_a_table_of_513_entries_is_interpolated(constants: Any) -> None:
    smooth = (np.sin(np.arange(-256, 257) / 40) * 32767).astype(np.int16)
    rough = np.random.default_rng(12).integers(-32768, 32768, 513).astype(np.int16)  # slopes beyond i16 too
    x = np.arange(-32768, 32768, dtype=np.int16)
    for table in (smooth, rough):
        result = check(Table(), x, table, constants=constants)
        assert (result[::128] == table[:-1].astype(np.int32) * 128).all()
        assert result[127] == int(table[0]) * 128 + (int(table[1]) - int(table[0])) * 127


def test_tables_of_other_types_or_lengths_are_refused() -> None:
    i8, i16 = unknown(2, element=I8), unknown(2, element=I16)
    assert Table().result_types([i8, unknown(256, element=I8)]) == (TensorType((2,), I8),)
    assert Table().result_types([i16, unknown(513, element=I16)]) == (TensorType((2,), I32),)
    for operands in ((i8, unknown(255, element=I8)), (i8, unknown(513, element=I8)), (i8, unknown(256, element=I16)),
                     (i16, unknown(256, element=I16)), (i16, unknown(513, element=I8)),
                     (i8, unknown(16, 16, element=I8)),
                     (unknown(2, element=I32), unknown(256, element=I32)), (unknown(2, element=I48), i8)):
        with pytest.raises(Problem):
            Table().result_types(operands)
