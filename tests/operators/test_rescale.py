"""RESCALE: exact for every shift and rounding, in each of the ways that compute it."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.rescale import Rescale
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Expr, is_float
from tosaic.lowering.elements.interpret import evaluate
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.elements.traverse import nodes
from tosaic.lowering.graph.types import F32, I1, I8, I16, I32, I48, I64, UI8, UI16, UI32, Array, ElementType, TensorType
from tosaic.runtime.errors import Problem

from .harness import Given, check, given, unknown

MODES = ["SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND"]
KNOWN = {1, 2, 3, 4}
Types = tuple[ElementType, bool, ElementType, bool]
TYPES: list[Types] = [
    *((s, False, t, False) for s in (I8, I16, I32, I48) for t in (I8, I16, I32)),
    *((s, True, t, False) for s in (I8, I16, UI8, UI16) for t in (I8, I16)),
    *((s, False, t, True) for s in (I8, I16) for t in (I8, I16, UI8, UI16))]


def rescale(types: Types, scale32: bool = True, mode: str = "SINGLE_ROUND", per_channel: bool = False) -> Rescale:
    return Rescale(scale32, mode, per_channel, types[1], types[3], types[2])


def zero_point(element: ElementType, unsigned: bool, choice: int) -> Array:
    """One of the zero points that the type may have."""
    allowed = [0, -128, 127, 5, -73] if element.bits == 8 else [0, 32768] if element.bits == 16 and unsigned else [0]
    return np.array([allowed[choice % len(allowed)]]).astype(element.dtype)


def some(random: np.random.Generator, element: ElementType, *shape: int) -> Array:
    """Values of every magnitude, ends of the range among them."""
    bits = element.bits
    x = random.integers(0, 1 << bits, shape, dtype=np.uint64).astype(np.int64) - (1 << bits - 1)
    x >>= random.integers(0, bits, shape)
    return np.where(random.random(shape) < 0.02, random.choice([-1 << bits - 1, (1 << bits - 1) - 1, 0], shape), x
                    ).astype(element.dtype)


def factors(random: np.random.Generator, scale32: bool, count: int) -> tuple[Array, Array]:
    bits = 31 if scale32 else 15
    multiplier = random.integers(1 << bits - 1, 1 << bits, count).astype(np.int32 if scale32 else np.int16)
    return multiplier, random.integers(bits - 6, bits + 14, count).astype(np.int8)


def name(types: Types) -> str:
    return f"{'u' * types[1]}{types[0]}-{'u' * types[3]}{types[2]}"


@pytest.mark.parametrize("constants", [KNOWN, set()], ids=["known", "loaded"])
@pytest.mark.parametrize("per_channel", [False, True], ids=["one", "per-channel"])
@pytest.mark.parametrize("types", TYPES, ids=name)
def test_every_combination_equals_the_reference(types: Types, per_channel: bool, constants: set[int]) -> None:
    random = np.random.default_rng(13)
    scales = [False] if types[0] == I48 else [True, False]
    for scale32, mode, choice in itertools.product(scales, MODES, range(5)):
        if scale32 or mode != "DOUBLE_ROUND":
            x = some(random, types[0], 50, 7)
            points = zero_point(types[0], types[1], choice), zero_point(types[2], types[3], choice + 1)
            check(rescale(types, scale32, mode, per_channel), x, *factors(random, scale32, 7 if per_channel else 1),
                  *points, constants=constants, elements={0: types[0], 3: types[0], 4: types[2]})


def exactly(x: int, multiplier: int, shift: int, is_double: bool) -> int:
    """The specification's scaling function, in whole numbers."""
    rounding = 1 << shift - 1
    if is_double and shift > 31:
        rounding += 1 << 30 if x >= 0 else -1 << 30
    return x * multiplier + rounding >> shift


def boundaries(random: np.random.Generator, multiplier: int, shift: int, is_double: bool) -> list[int]:
    """Values around which the result goes from one integer to the next, some beyond the range of i8; and all ends."""
    nudge = 1 << 30 if is_double and shift > 31 else 0
    found: set[int] = {0, 1, -1, 2, -2, (1 << 31) - 1, -1 << 31}
    for k in (*range(-6, 6), 126, 127, 128, -127, -128, -129, 254, 255, -255, *random.integers(-260, 260, 12).tolist()):
        at = (2 * k + 1 << shift - 1) - (nudge if k >= 0 else -nudge)
        found.update(at // max(multiplier, 1) + d for d in range(-2, 3))
    return [x for x in found if -1 << 31 <= x < 1 << 31]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_double", [False, True], ids=["single", "double"])
@pytest.mark.parametrize("shift", range(2, 63))
def test_i8_results_are_exact_where_the_rounding_changes(shift: int, is_double: bool) -> None:
    random = np.random.default_rng(shift)
    near = [(1 << 30) + 1, (1 << 31) - 1, 1, 3, 0, (1 << 24) + 1, 0x5A827999]
    for multiplier in (*near, *random.integers(1 << 30, 1 << 31, 6).tolist()):
        values = boundaries(random, multiplier, shift, is_double)
        x = np.array(values, np.int32)
        for point in (0, -128, 127, 9):
            op = rescale((I32, False, I8, False), mode="DOUBLE_ROUND" if is_double else "SINGLE_ROUND")
            result = check(op, x, np.array([multiplier], np.int32), np.array([shift], np.int8), np.zeros(1, np.int32),
                           np.array([point], np.int8), constants=KNOWN)
            for value, found in zip(values, result.tolist()):
                assert found == min(max(exactly(value, multiplier, shift, is_double) + point, -128), 127)


@pytest.mark.parametrize("types", [(I32, False, I32, False), (I32, False, I16, False), (I8, False, I32, False)],
                         ids=name)
@pytest.mark.parametrize("is_double", [False, True], ids=["single", "double"])
def test_wide_results_are_exact_for_every_shift(types: Types, is_double: bool) -> None:
    random = np.random.default_rng(14)
    for shift in range(2, 63):
        for multiplier in (1, 1 << 30, (1 << 31) - 1, *random.integers(1 << 30, 1 << 31, 3).tolist()):
            bound = 1 << min(shift - 1, 31)
            x = some(random, types[0], 40).astype(np.int64) % (2 * bound) - bound
            x = np.clip(x, types[0].minimum, types[0].maximum).astype(types[0].dtype)
            result = check(rescale(types, mode="DOUBLE_ROUND" if is_double else "SINGLE_ROUND"), x,
                           np.array([multiplier], np.int32), np.array([shift], np.int8), np.zeros(1, x.dtype),
                           np.zeros(1, types[2].dtype), constants=KNOWN)
            for value, found in zip(x.tolist(), result.tolist()):
                expected = exactly(value, multiplier, shift, is_double)
                assert found == min(max(expected, types[2].minimum), types[2].maximum)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", TYPES, ids=name)
def test_powers_of_two_are_exact_for_every_shift(types: Types) -> None:
    """Those are computed by shifts alone; values beyond the specified range are clipped as in the reference."""
    random = np.random.default_rng(15)
    scale32 = types[0] != I48
    for bit, shift in itertools.product((0, 7, 14, 30) if scale32 else (0, 7, 14), range(2, 63)):
        multiplier, choice = np.array([1 << bit], np.int32 if scale32 else np.int16), (shift + bit // 7) % 2
        check(rescale(types, scale32), some(random, types[0], 60), multiplier, np.array([shift], np.int8),
              zero_point(types[0], types[1], choice), zero_point(types[2], types[3], choice), constants=KNOWN,
              elements={0: types[0], 3: types[0], 4: types[2]})


def test_shifts_and_multipliers_that_are_not_specified_are_computed_all_the_same() -> None:
    random = np.random.default_rng(16)
    for shift, multiplier, constants in itertools.product((0, 1, 63, -1, -128, 127), (-5, 1 << 30, -1 << 31),
                                                          (KNOWN, set())):
        for types in ((I32, False, I8, False), (I32, False, I32, False)):
            check(rescale(types, mode="DOUBLE_ROUND"), some(random, I32, 100), np.array([multiplier], np.int32),
                  np.array([shift], np.int8), np.zeros(1, np.int32), np.zeros(1, types[2].dtype), constants=constants)


def element(op: Rescale, source: ElementType, multiplier: Any, shift: Any, input_zp: int = 0, output_zp: int = 0,
            axes: tuple[Axis, ...] | None = None, buffer: Buffer | None = None) -> Expr:
    """The expression of an element, factors and zero points known."""
    assert op.to is not None
    axes = axes or (Axis("i", 100), Axis("c", np.size(multiplier)))
    x = TensorType(tuple(a.extent for a in axes), source)
    buffer = buffer or Buffer("x", source.storage, x.dims, "argument")
    data = [np.atleast_1d(np.array(multiplier, np.int32)), np.atleast_1d(np.array(shift, np.int8)),
            np.array([input_zp], source.dtype), np.array([output_zp], op.to.dtype)]
    tensors = [stored(given(a).type, Buffer("c", a.dtype.name, a.shape, "constant", a)) for a in data]
    return op.element(x.with_element(op.to), stored(x, buffer), *tensors)(*map(Affine.of, axes))


def widest(e: Expr) -> int:
    return 64 if any(n.dtype == "int64" for n in nodes(e)) else 32


def test_a_power_of_two_takes_no_wide_integers() -> None:
    for source, target, shift in ((I8, I32, 10), (I8, I32, 30), (I8, I8, 30), (I32, I16, 23), (I32, I32, 31)):
        found = element(rescale((source, False, target, False), mode="DOUBLE_ROUND"), source, 1 << 30, shift)
        assert widest(found) == 32


@pytest.mark.parametrize("types", TYPES, ids=name)
def test_no_integer_is_computed_in_floats(types: Types) -> None:
    for multiplier, shift in ((1518500250, 31), (1 << 30, 31), (1518500250, 40), (3 << 28, 2)):
        scale32 = types[0] != I48
        op = rescale(types, scale32, "DOUBLE_ROUND" if scale32 else "SINGLE_ROUND")
        found = element(op, types[0], multiplier if scale32 else multiplier >> 16, shift)
        assert not any(is_float(n.dtype) for n in nodes(found))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("point", [11, -128])
def test_accumulators_take_the_upper_half_of_one_product(mode: str, point: int) -> None:
    """With the offset in the rounding; a nudge that depends on the sign only where negative results are not clipped."""
    random = np.random.default_rng(17)
    multiplier, shift = random.integers(1 << 30, 1 << 31, 64), random.integers(36, 42, 64)
    op = rescale((I32, False, I8, False), mode=mode, per_channel=True)
    axes, buffer = (Axis("i", 100), Axis("c", 64)), Buffer("x", "int32", (100, 64), "argument")
    found = element(op, I32, multiplier, shift, 0, point, axes, buffer)
    used = [n.primitive for n in nodes(found) if isinstance(n, Apply)]
    nudged = mode == "DOUBLE_ROUND" and point != -128
    assert sorted(used) == sorted(["multiply_high_nudged" if nudged else "multiply_high", "ashr", "max", "min"])
    x = random.integers(-60_000, 60_000, (100, 64)).astype(np.int32)
    exact = [[exactly(int(v), int(m), int(s), mode == "DOUBLE_ROUND") for v, m, s in zip(row, multiplier, shift)] for row in x]
    assert (evaluate(found, axes, {buffer: x}) == np.clip(np.array(exact) + point, -128, 127)).all()


GOOD = [unknown(2, 3, element=I32), unknown(1, element=I32), unknown(1, element=I8), unknown(1, element=I32),
        unknown(1, element=I8)]


def known(value: int, element: ElementType) -> Given:
    return given(np.array([value]).astype(element.dtype), element, constant=True)


def refused(op: Rescale, *operands: Given) -> str:
    with pytest.raises(Problem) as caught:
        op.result_types(operands)
    return caught.value.message


def for_types(types: Types, scale32: bool = True) -> list[Given]:
    return [unknown(2, 3, element=types[0]), unknown(1, element=I32 if scale32 else I16), unknown(1, element=I8),
            unknown(1, element=types[0]), unknown(1, element=types[2])]


@pytest.mark.parametrize("types", TYPES, ids=name)
def test_the_result_has_the_shape_of_the_input(types: Types) -> None:
    scale32 = types[0] != I48
    assert rescale(types, scale32).result_types(for_types(types, scale32)) == (TensorType((2, 3), types[2]),)
    operands = [unknown(None, None, element=types[0]), *for_types(types, scale32)[1:]]
    assert rescale(types, scale32, per_channel=True).result_types(operands) == (TensorType((None, None), types[2]),)


def test_ui8_results_may_have_zero_points_of_i8() -> None:
    operands = [*for_types((I8, False, UI8, True))[:4], unknown(1, element=I8)]
    assert rescale((I8, False, UI8, True)).result_types(operands) == (TensorType((2, 3), UI8),)


@pytest.mark.parametrize(("types", "message"), [
    ((I8, True, I8, True), "input and output cannot both be unsigned"),
    ((I8, True, I32, False), "input_unsigned cannot be true from i8 to i32: both must have 8 or 16 bits"),
    ((I16, True, I32, False), "input_unsigned cannot be true from i16 to i32: both must have 8 or 16 bits"),
    ((I32, True, I8, False), "input_unsigned cannot be true from i32 to i8: both must have 8 or 16 bits"),
    ((I32, False, I8, True), "output_unsigned cannot be true from i32 to i8: both must have 8 or 16 bits"),
    ((I8, False, I32, True), "output_unsigned cannot be true from i8 to i32: both must have 8 or 16 bits"),
    ((UI8, False, I8, False), "input_unsigned must be true, the input is ui8"),
    ((I8, False, UI8, False), "output_unsigned must be true, the output is ui8"),
    ((I1, False, I8, False), "tosa.rescale does not take i1"),
    ((F32, False, I8, False), "tosa.rescale does not take f32"),
    ((I64, False, I8, False), "tosa.rescale does not take i64"),
    ((I8, False, I48, False), "tosa.rescale does not make i48"),
    ((I8, False, UI32, True), "tosa.rescale does not make ui32")],
                         ids=lambda x: name(x) if isinstance(x, tuple) else "")
def test_types_that_do_not_go_together_are_refused(types: Types, message: str) -> None:
    assert refused(rescale(types), *for_types(types)) == message


def test_i48_cannot_be_unsigned_nor_take_a_multiplier_of_32_bits() -> None:
    for types in ((I48, True, I8, False), (I48, False, I8, True)):
        assert "cannot be true" in refused(rescale(types, False), *for_types(types, False))
    assert "no room for scale32" in refused(rescale((I48, False, I8, False)), *for_types((I48, False, I8, False)))


def test_modes_are_checked() -> None:
    assert refused(rescale((I32, False, I8, False), mode="UP"), *GOOD) == "rounding_mode 'UP' is not known"
    types = (I32, False, I8, False)
    assert refused(rescale(types, False, "DOUBLE_ROUND"), *for_types(types, False)) == "DOUBLE_ROUND needs scale32"
    scalar = [unknown(element=I32), *GOOD[1:]]
    assert "rank 0" in refused(rescale(types, per_channel=True), *scalar)
    assert "element type of its result" in refused(Rescale(True, "SINGLE_ROUND", False, False, False), *GOOD)


def test_factors_have_one_entry_or_one_per_channel() -> None:
    types = (I32, False, I8, False)
    three = [GOOD[0], unknown(3, element=I32), unknown(3, element=I8), *GOOD[3:]]
    assert rescale(types, per_channel=True).result_types(three) == (TensorType((2, 3), I8),)
    assert refused(rescale(types), *three) == "the multiplier has 3 numbers, 1 are needed"
    assert refused(rescale(types, per_channel=True), *GOOD) == "the multiplier has 1 numbers, 3 are needed"
    assert refused(rescale(types), *GOOD[:2], unknown(2, element=I8), *GOOD[3:]) \
        == "the shift has 2 numbers, 1 are needed"
    assert refused(rescale(types, False), *GOOD) == "the multiplier must be i16, it is tensor<1xi32>"
    assert refused(rescale(types), *GOOD[:2], unknown(1, element=I16), *GOOD[3:]) \
        == "the shift must be i8, it is tensor<1xi16>"
    assert "rank 1" in refused(rescale(types), GOOD[0], unknown(element=I32), *GOOD[2:])


def test_zero_points_are_those_that_the_types_may_have() -> None:
    for source, unsigned, target in ((I16, False, I8), (I32, False, I8)):
        types = (source, unsigned, target, False)
        assert refused(rescale(types), *for_types(types)[:3], known(1, source), unknown(1, element=target)) \
            == f"input_zp must be 0 for {source}, it is 1"
    for target in (I16, I32):
        types = (I8, False, target, False)
        assert refused(rescale(types), *for_types(types)[:4], known(-1, target)) \
            == f"output_zp must be 0 for {target}, it is -1"
    types = (I16, True, I8, False)
    assert refused(rescale(types), *for_types(types)[:3], known(7, I16), unknown(1, element=I8)) \
        == "input_zp must be 0 or 32768 for i16, it is 7"
    assert rescale(types).result_types([*for_types(types)[:3], known(-32768, I16), known(3, I8)])
    types = (I8, False, I16, True)
    assert refused(rescale(types), *for_types(types)[:4], known(1, I16)) \
        == "output_zp must be 0 or 32768 for i16, it is 1"
    assert refused(rescale(types), *for_types(types)[:3], unknown(1, element=I16), unknown(1, element=I16)) \
        == "input_zp must be i8, it is tensor<1xi16>"
    assert "one element" in refused(rescale(types), *for_types(types)[:3], unknown(2, element=I8),
                                    unknown(1, element=I16))
