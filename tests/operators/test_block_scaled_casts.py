"""CAST_TO_BLOCK_SCALED, CAST_FROM_BLOCK_SCALED and CAST with composite types: interpreter, compiled code, and a definition
that searches for the scale instead of computing it."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tosaic.lowering.graph.block_scaled_arrays import joined
from tosaic.lowering.graph.types import BF16, F8E4M3, F8E5M2, F8E8M0, F16, F32, MXINT8, ElementType, block_scaled

from .block_scaled import VALUES, Array, assert_same_bits, both, codes, one_operator, records

LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0, "f6E3M2FN": 28.0, "f6E2M3FN": 7.5, "f4E2M1FN": 6.0,
           "!tosa.mxint8": 127 / 64}
FRACTION = {"f8E4M3FN": 3, "f8E5M2": 2, "f6E3M2FN": 2, "f6E2M3FN": 3, "f4E2M1FN": 1}


def step(value: ElementType) -> float:
    """The distance between the two largest numbers of a type."""
    if value == MXINT8:
        return 1 / 64
    return float(2.0 ** (np.floor(np.log2(LARGEST[value.name])) - FRACTION[value.name]))


def least_exponent(largest: float, value: ElementType) -> int:
    """The least exponent from -127 to 127 with which `largest` is rounded to no more than the type has."""
    limit = LARGEST[value.name] + step(value) / 2
    for exponent in range(-127, 128):
        quotient = largest * 2.0 ** -exponent if exponent > -1000 else 0.0
        if quotient < limit or (quotient == limit and value == F8E4M3):
            return exponent
    return 127


def magnitudes(value: ElementType) -> Array:
    """Greatest magnitudes of blocks: all sizes, the places where the scale changes, and their neighbours."""
    limit = LARGEST[value.name] + step(value) / 2
    edges = np.array([limit * 2.0 ** e for e in range(-160, 128) if limit * 2.0 ** e < 3.4e38]).astype(np.float32)
    near = [edges, np.nextafter(edges, np.float32(np.inf)), np.nextafter(edges, np.float32(0))]
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    special = np.array([0, np.finfo(np.float32).max, np.finfo(np.float32).tiny, 1e-45], np.float32)
    found = np.concatenate([*near, powers, special])
    return found[np.isfinite(found)]


def blocks_with(largest: Array, rng: np.random.Generator) -> Array:
    """A row of 32 numbers for each greatest magnitude, which stands somewhere with either sign."""
    rows = (rng.uniform(-1, 1, (len(largest), 32)) * largest[:, None].astype(np.float64)).astype(np.float32)
    rows[np.arange(len(rows)), rng.integers(0, 32, len(rows))] = largest * rng.choice(np.float32([-1, 1]), len(rows))
    return rows


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_the_scale_is_the_least_with_which_nothing_overflows(value: ElementType) -> None:
    largest = magnitudes(value)
    x = blocks_with(largest, np.random.default_rng(0))
    module = one_operator("cast_to_block_scaled", [(F32, x.shape)], block_size="BLOCK_SIZE_32", to=value)
    _, scales = assert_same_bits(module, x)
    expected = [least_exponent(float(m), value) + 127 if m else 0 for m in largest]
    assert scales.view(np.uint8).reshape(-1).tolist() == expected


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("source", [F32, BF16], ids=str)
def test_values_are_the_nearest_to_the_numbers_over_their_scale(value: ElementType, source: ElementType) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((7, 3, 96)) * 2.0 ** rng.integers(-130, 120, (7, 3, 1))).astype(source.dtype)
    module = one_operator("cast_to_block_scaled", [(source, x.shape)], block_size="BLOCK_SIZE_32", to=value)
    data, scales = assert_same_bits(module, x)
    factors = np.repeat(scales.astype(np.float64), 32, axis=-1)
    every = codes_of(value)
    quotient = x.astype(np.float64) / factors
    distance = np.abs(numbers(data) - quotient)
    assert np.array_equal(distance, np.min(np.abs(quotient[..., None] - every), axis=-1))


def codes_of(value: ElementType) -> Array:
    found = numbers(np.arange(1 << value.bits, dtype=np.uint8).view(value.dtype))
    return found[np.isfinite(found)]


def numbers(data: Array) -> Array:
    wide = data.astype(np.float64)
    return wide / 64 if data.dtype == np.int8 else wide


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_block_with_an_infinity_or_a_nan_has_a_nan_for_its_scale(value: ElementType, bad: float) -> None:
    x = np.ones((1, 96), np.float32)
    x[0, 40] = bad
    module = one_operator("cast_to_block_scaled", [(F32, x.shape)], block_size="BLOCK_SIZE_32", to=value)
    for results in zip(*both(module, x)):
        assert np.isnan(results[1].astype(np.float32)).tolist() == [[False, True, False]]
        assert (numbers(results[0])[:, :32] == numbers(results[0])[:, 64:]).all()


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("to", [F32, BF16], ids=str)
def test_every_value_times_every_scale_is_exact(value: ElementType, to: ElementType) -> None:
    every = np.arange(1 << value.bits, dtype=np.uint8)
    data = np.broadcast_to(np.resize(every, 256), (256, 256)).copy().view(value.dtype)
    scale = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 8, axis=1).view(ml_dtypes.float8_e8m0fnu)
    module = one_operator("cast_from_block_scaled", [(value, data.shape), (F8E8M0, scale.shape)],
                          block_size="BLOCK_SIZE_32", to=to)
    with np.errstate(over="ignore"):
        expected = (numbers(data) * scale.astype(np.float64)[:, :1]).astype(to.dtype).astype(np.float64)
    for found in both(module, data, scale)[0]:
        assert np.array_equal(found.astype(np.float64), expected, equal_nan=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("source", [F32, BF16, F16, F8E4M3, F8E5M2], ids=str)
def test_a_cast_to_a_composite_type_is_values_and_scales(value: ElementType, source: ElementType) -> None:
    rng = np.random.default_rng(2)
    x = (codes(rng, source, 3, 64) if source.bits == 8 else
         (rng.standard_normal((3, 64)) * 2.0 ** rng.integers(-9, 9, (3, 1))).astype(source.dtype))
    composite = block_scaled(value)
    found, = assert_same_bits(one_operator("cast", [(source, x.shape)], to=composite), x)
    wide = x.astype(np.float32)
    parts = one_operator("cast_to_block_scaled", [(F32, x.shape)], block_size="BLOCK_SIZE_32", to=value)
    assert found.tobytes() == joined(*assert_same_bits(parts, wide), composite).tobytes()


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("to", [F32, BF16, F16, F8E4M3, F8E5M2], ids=str)
def test_a_cast_from_a_composite_type_rounds_the_products_once(value: ElementType, to: ElementType) -> None:
    composite = block_scaled(value)
    x = records(np.random.default_rng(3), composite, 4, 5, 64)
    expected = numbers(x["value"]) * x["scale"].astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = expected.astype(to.dtype).astype(np.float64)
    for found in both(one_operator("cast", [(composite, x.shape)], to=to), x)[0]:
        assert np.array_equal(found.astype(np.float64), rounded, equal_nan=True)


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_cast_to_a_composite_type_and_back_stays_within_its_precision(value: ElementType) -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((8, 128)).astype(np.float32)
    composite = block_scaled(value)
    packed, = assert_same_bits(one_operator("cast", [(F32, x.shape)], to=composite), x)
    back, = assert_same_bits(one_operator("cast", [(composite, x.shape)], to=F32), packed)
    largest = np.abs(x).reshape(8, 4, 32).max(axis=-1).repeat(32, axis=-1)
    assert (np.abs(back - x) <= largest * step(value) / LARGEST[value.name]).all()
