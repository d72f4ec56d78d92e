"""Each operation of the loop IR, native against interpreted: every dtype, several vector lengths, this machine and the
plainest one of its kind.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import COMPARISONS, Buffer
from tosaic.lowering.graph.types import ITEM_SIZES
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function, Literal, Operand, Type
from tosaic.lowering.loops.verify import verify
from tosaic.lowering.target.presets import host, target

from .harness import Native, differences, in_one_step, interpreted, named

Array = np.ndarray[Any, Any]
FLOATS, INTEGERS = ("float32", "float64"), ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EXTREMES = ("min", "max", "minimum", "maximum", "minnum", "maxnum")
OPERATIONS = {
    "float": {**dict.fromkeys(("add", "sub", "mul", "div", "lt", "le", "eq", *EXTREMES), 2),
              **dict.fromkeys(("rint", "floor", "ceil", "sqrt", "abs"), 1)},
    "integer": {**dict.fromkeys(("add", "sub", "mul", "div", "lt", "le", "eq", "and", "or", "xor", *EXTREMES), 2),
                **dict.fromkeys(("shl", "ashr", "lshr"), 2), "abs": 1, "clz": 1},
    "bool": dict.fromkeys(("and", "or", "xor", "eq", "lt", "le", *EXTREMES), 2),
    "float16": {**dict.fromkeys(("add", "sub", "mul", "div", *EXTREMES), 2), **dict.fromkeys(("sqrt", "abs"), 1)},
}
REDUCTIONS = {"float": ("add", "mul", *EXTREMES), "integer": ("add", "mul", "and", "or", *EXTREMES),
              "bool": ("and", "or", *EXTREMES)}
TARGETS = ("host", "x86-64", "x86-64-v3", "32 bits")
native_x86 = pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")


def lane_counts(dtype: str) -> list[int]:
    return sorted({1, 4, 16, 64 // ITEM_SIZES[dtype]})


def family(dtype: str) -> str:
    return "float" if dtype in FLOATS else dtype if dtype in ("bool", "float16") else "integer"


def specials(dtype: str) -> Array:
    if dtype in (*FLOATS, "float16"):
        info = np.finfo(dtype)
        big = 2.0 ** info.nmant
        return np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, big,
                         big / 2 + 0.5, -big - 1, big - 0.5, info.max, info.min, info.tiny, -info.tiny,
                         info.smallest_subnormal], dtype)
    if dtype == "bool":
        return np.array([False, True])
    limits = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, limits.max, limits.max - 1, limits.min, limits.min + 1, limits.max // 3], dtype)


def values(dtype: str, count: int, seed: int) -> Array:
    """Specials against specials, then random ones; `count` is a multiple of the lanes."""
    rng = np.random.default_rng(seed)
    some = specials(dtype)
    pairs = np.array(list(itertools.product(some, some)), dtype)[:, seed % 2]
    if dtype in (*FLOATS, "float16"):
        most = 9 if dtype in FLOATS else 4
        with np.errstate(over="ignore"):
            rest = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, most, count)).astype(dtype)
    elif dtype == "bool":
        rest = rng.integers(0, 2, count).astype(bool)
    else:
        limits = np.iinfo(dtype)
        rest = rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
    return np.concatenate([pairs, rest])[:count]


def elementwise(op: str, dtype: str, operands: int, lanes: int, count: int) -> Function:
    b = Builder(f"{op}_{dtype}")
    ins = [Buffer(f"x{i}", dtype, (count,), "argument") for i in range(operands)]
    result = "bool" if op in COMPARISONS else dtype
    out, axis = Buffer("out", result, (count,), "result"), Axis("i", count // lanes)

    def body() -> None:
        args: list[Operand] = [b.load(x, Affine.of(axis) * lanes, lanes) for x in ins]
        b.store(out, Affine.of(axis) * lanes, b.op(op, *args, type=Type(result, lanes)))

    b.loop(axis, body)
    return b.finish()


def check(functions: list[Function], inputs: dict[str, dict[int, Array]], target_name: str,
          wide: Sequence[Function] = ()) -> None:
    """All functions, native against interpreted, or against `wide` ones interpreted; inputs by function name and place."""
    faults = []
    with Native(functions, *named(target_name)) as native:
        for f, w in zip(functions, wide or functions):
            verify(f)
            data = {b: inputs[f.name][int(b.name[1:])] for b in f.params if b.role == "argument"}
            expected = interpreted(f, data) if w is f else in_one_step(f, w, data)
            for fault in differences(native.run(f, data), expected):
                faults.append(f"{f.name}: {fault}")
    assert not faults, "\n".join(faults[:40])


DTYPES = (*FLOATS, *INTEGERS, "bool", "float16")


def by_turns(lanes: Sequence[int], dtype: str, name: str) -> Sequence[int]:
    """Every other number of lanes: with each type half of the machines have the one half, and half the other."""
    return lanes[(DTYPES.index(dtype) + TARGETS.index(name)) % 2::2]


@pytest.mark.sampled(4)
@native_x86
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_native_operations_agree_with_the_interpreter(dtype: str, name: str) -> None:
    for lanes in lane_counts(dtype):
        count = 512 // lanes * lanes
        functions, inputs, wide = [], {}, []
        for op, operands in OPERATIONS[family(dtype)].items():
            f = elementwise(op, dtype, operands, lanes, count)
            data = {i: values(dtype, count, i) for i in range(operands)}
            if op in ("shl", "ashr", "lshr"):
                data[1] = (data[1].astype(np.int64) % (8 * ITEM_SIZES[dtype])).astype(dtype)
            functions.append(f)
            wide.append(elementwise(op, dtype, operands, count, count))
            inputs[f.name] = data
        check(functions, inputs, name, wide)


@native_x86
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("op", ["multiply_high", "multiply_high_nudged"])
def test_upper_halves_of_products_agree_with_the_interpreter(op: str, name: str) -> None:
    """Of operands of 32 bits and an addend that leaves room for their product."""
    functions, inputs = [], {}
    for lanes in (1, 2, 4, 8, 16, 32):
        b, axis = Builder(f"{op}_{lanes}"), Axis("i", 512 // lanes)
        ins = [Buffer(f"x{i}", dtype, (512,), "argument") for i, dtype in enumerate(("int32", "int32", "int64"))]
        out = Buffer("out", "int32", (512,), "result")

        def body() -> None:
            args: list[Operand] = [b.load(x, Affine.of(axis) * lanes, lanes) for x in ins]
            b.store(out, Affine.of(axis) * lanes, b.op(op, *args, type=Type("int32", lanes)))

        b.loop(axis, body)
        functions.append(b.finish())
        x, y = (values("int32", 512, i) for i in range(2))
        inputs[functions[-1].name] = {0: x, 1: y, 2: values("int64", 512, 3) >> 2}
    check(functions, inputs, name)


@native_x86
@pytest.mark.parametrize("name", TARGETS)
def test_rounded_products_and_shifts_and_dot_products_agree_with_the_interpreter(name: str) -> None:
    """For one that has no such instructions."""
    functions, inputs = [], {}
    x, positive = values("int32", 512, 0), values("int32", 512, 1) & 0x7FFF_FFFF
    amounts = np.resize(np.arange(-31, 1), 512).astype(np.int32)
    for lanes, (op, other) in itertools.product((1, 4, 16), (("rounded_product", positive), ("rounded_shift", amounts))):
        f = elementwise(op, "int32", 2, lanes, 512)
        functions.append(replace(f, name=f"{op}_{lanes}"))
        inputs[functions[-1].name] = {0: x, 1: other}
    for lanes in (1, 16):
        b, axis = Builder(f"dot_{lanes}"), Axis("i", 32)
        ins = [Buffer(f"x{i}", dtype, (n,), "argument") for i, (dtype, n) in enumerate((
            ("int32", 32), ("int8", 32 * lanes), ("int8", 32 * lanes)))]
        out = Buffer("out", "int32", (32,), "result")

        def body() -> None:
            args: list[Operand] = [b.load(x, Affine.of(axis) * n, n) for x, n in zip(ins, (1, lanes, lanes))]
            b.store(out, Affine.of(axis), b.op("dot", *args, type=Type("int32")))

        b.loop(axis, body)
        functions.append(b.finish())
        inputs[functions[-1].name] = {i: values(x.dtype, x.size, i) for i, x in enumerate(ins)}
    check(functions, inputs, name)


@native_x86
@pytest.mark.parametrize("factor", [1 << 30, 1, -5, -(1 << 31), (1 << 31) - 1])
@pytest.mark.parametrize("op", ["multiply_high", "multiply_high_nudged"])
def test_upper_halves_of_products_by_numbers_agree_with_the_interpreter(op: str, factor: int) -> None:
    """Where a factor, or all but one operand, are numbers of which LLVM knows the lanes."""
    functions, inputs = [], {}
    for lanes, place in itertools.product((4, 16), (0, 1)):
        b, axis = Builder(f"{op}_{lanes}_{place}"), Axis("i", 512 // lanes)
        x, out = Buffer("x0", "int32", (512,), "argument"), Buffer("out", "int32", (512,), "result")

        def body() -> None:
            number, addend = Literal(factor, Type("int32", lanes)), Literal(1 << 30, Type("int64", lanes))
            loaded = b.load(x, Affine.of(axis) * lanes, lanes)
            pair = [number, loaded] if place == 0 else [loaded, number]
            b.store(out, Affine.of(axis) * lanes, b.op(op, *pair, addend, type=Type("int32", lanes)))

        b.loop(axis, body)
        functions.append(b.finish())
        inputs[functions[-1].name] = {0: values("int32", 512, 1)}
    check(functions, inputs, "host")


@native_x86
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_fma_rounds_once_where_the_target_has_it(dtype: str, lanes: int) -> None:
    f = elementwise("fma", dtype, 3, lanes, 480)
    x, y = values(dtype, 480, 0), values(dtype, 480, 1)
    with np.errstate(all="ignore"):
        z = np.where(np.arange(480) % 2 == 0, -(x * y), values(dtype, 480, 2))
    check([f], {f.name: {0: x, 1: y, 2: z}}, "x86-64-v3")


@native_x86
@pytest.mark.parametrize("dtype", FLOATS)
def test_fma_rounds_twice_on_a_target_without_it(dtype: str) -> None:
    f = elementwise("fma", dtype, 3, 4, 480)
    x, y, z = (values(dtype, 480, i) for i in range(3))
    with Native([f], target("x86-64")) as native, np.errstate(all="ignore"):
        out = native.run(f, dict(zip(f.params, (x, y, z))))[f.params[-1]]
        assert np.array_equal(out, x * y + z, equal_nan=True)


@pytest.mark.sampled(2)
@native_x86
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "uint8", "int64", "bool"])
def test_native_reductions_agree_with_the_interpreter(dtype: str, name: str) -> None:
    for lanes in by_turns((2, 3, 4, 8, 12, 64 // ITEM_SIZES[dtype]), dtype, name):
        functions, inputs = [], {}
        for op in REDUCTIONS[family(dtype)]:
            b, count = Builder(f"reduce_{op}_{dtype}"), 20 * lanes
            x, out = Buffer("x0", dtype, (count,), "argument"), Buffer("out", dtype, (20,), "result")
            axis = Axis("i", 20)
            b.loop(axis, lambda: b.store(out, Affine.of(axis), b.op(
                f"reduce_{op}", b.load(x, Affine.of(axis) * lanes, lanes), type=Type(dtype))))
            functions.append(b.finish())
            inputs[functions[-1].name] = {0: values(dtype, count, 0)}
        check(functions, inputs, name)


@native_x86
@pytest.mark.parametrize("name", TARGETS)
def test_select_takes_one_condition_or_one_for_each_lane(name: str) -> None:
    functions, inputs = [], {}
    for dtype, scalar in itertools.product(("float32", "int8", "bool", "float16", "bfloat16"), (False, True)):
        b = Builder(f"select_{dtype}_{scalar}")
        c, x, y = Buffer("x0", "bool", (64,), "argument"), *(Buffer(f"x{i}", dtype, (64,), "argument") for i in (1, 2))
        out, axis = Buffer("out", dtype, (64,), "result"), Axis("i", 8)

        def body() -> None:
            at = Affine.of(axis) * 8
            condition = b.load(c, at, 1 if scalar else 8)
            b.store(out, at, b.op("select", condition, b.load(x, at, 8), b.load(y, at, 8)))

        b.loop(axis, body)
        functions.append(b.finish())
        numbers = np.random.default_rng(3).integers(0, 2, (2, 64)).astype(dtype)
        inputs[functions[-1].name] = {0: np.arange(64) % 3 == 0, 1: numbers[0], 2: numbers[1]}
    check(functions, inputs, name)


@native_x86
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 8, 64])
def test_any_false_sees_each_lane(lanes: int, name: str) -> None:
    b = Builder("any_false")
    x, out, axis = Buffer("x0", "bool", (lanes * 9,), "argument"), Buffer("out", "bool", (9,), "result"), Axis("i", 9)
    b.loop(axis, lambda: b.store(out, Affine.of(axis), b.op(
        "any_false", b.load(x, Affine.of(axis) * lanes, lanes), type=Type("bool"))))
    data = np.ones((9, lanes), bool)
    for i in range(8):
        data[i, i * lanes // 8] = False
    f = b.finish()
    check([f], {f.name: {0: data.reshape(-1)}}, name)


@native_x86
@pytest.mark.parametrize("name", ["host", "x86-64", "AVX-VNNI", "x86-64-v4"])
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
def test_dot4_adds_products_of_unsigned_and_signed_bytes(lanes: int, name: str) -> None:
    check_products("dot4", 4, ("uint8", "int8"), lanes, name)


@native_x86
@pytest.mark.parametrize("name", ["host", "x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 32])
def test_dot2_adds_products_of_pairs(lanes: int, name: str) -> None:
    check_products("dot2", 2, ("int16", "int16"), lanes, name)


def check_products(op: str, terms: int, dtypes: tuple[str, str], lanes: int, name: str) -> None:
    """Sums of so many products in each lane."""
    b, n = Builder(op), 16 * lanes
    total, x, y = Buffer("x0", "int32", (n,), "argument"), *(
        Buffer(f"x{i}", dtype, (terms * n,), "argument") for i, dtype in enumerate(dtypes, 1))
    out, axis = Buffer("out", "int32", (n,), "result"), Axis("i", 16)

    def body() -> None:
        i, wide = Affine.of(axis), terms * lanes
        b.store(out, i * lanes, b.op(op, b.load(total, i * lanes, lanes), b.load(x, i * wide, wide), b.load(y, i * wide, wide),
                                     type=Type("int32", lanes)))

    b.loop(axis, body)
    f = b.finish()
    check([f], {f.name: {0: values("int32", n, 0)} | {
        i: values(dtype, terms * n, i) for i, dtype in enumerate(dtypes, 1)}}, name)


@native_x86
@pytest.mark.parametrize("name", ["host", "x86-64", "AVX-VNNI", "x86-64-v4"])
@pytest.mark.parametrize("dtype, half", [("int32", "int16"), ("int16", "int8")])
@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_packing_clips_to_half_the_size(size: int, dtype: str, half: str, name: str) -> None:
    lanes = 8 * size // int(dtype[3:])
    b, n = Builder("pack"), 16 * lanes
    x, y, out = Buffer("x0", dtype, (n,), "argument"), Buffer("x1", dtype, (n,), "argument"), Buffer(
        "out", half, (2 * n,), "result")
    axis = Axis("i", 16)

    def body() -> None:
        i = Affine.of(axis) * lanes
        b.store(out, i * 2, b.op("pack", b.load(x, i, lanes), b.load(y, i, lanes), type=Type(half, 2 * lanes)))

    b.loop(axis, body)
    f = b.finish()
    check([f], {f.name: {0: values(dtype, n, 0), 1: values(dtype, n, 1)}}, name)


@native_x86
@pytest.mark.parametrize("name", TARGETS)
def test_splat_lanes_bits_and_shuffle_move_lanes(name: str) -> None:
    b = Builder("moves")
    x, f32 = Buffer("x0", "int32", (8,), "argument"), Buffer("f", "float32", (8,), "result")
    out, scalar = Buffer("out", "int32", (40,), "result"), Buffer("s", "int32", (4,), "result")
    v, w = b.load(x, Affine.of(0), 4), b.load(x, Affine.of(4), 4)
    one, two = b.load(x, Affine.of(1)), b.load(x, Affine.of(2))
    b.store(out, Affine.of(0), b.splat(one, 8))
    b.store(out, Affine.of(8), b.op("lanes", one, type=Type("int32", 8)))
    b.store(out, Affine.of(16), b.shuffle(v, w, (7, 0, 0, 5, 3, 2)))
    b.store(out, Affine.of(24), b.shuffle(one, two, (1, 0, 1, 1)))
    b.store(out, Affine.of(32), b.op("add", v, Literal(-7, Type("int32", 4))))
    b.store(f32, Affine.of(0), b.op("bits", v, type=Type("float32", 4)))
    for i, lane in enumerate((0, 3, 4, 6)):
        b.store(scalar, Affine.of(i), b.shuffle(v, w, (lane,)))
    f = b.finish()
    check([f], {f.name: {0: np.arange(3, 83, 10, dtype=np.int32)}}, name)


LITERALS: dict[str, tuple[float, ...]] = {
    "float32": (0.1, -0.0, 0.0, float("inf"), float("nan"), 1e-42, 3.4e38), "float64": (0.1, -0.0, 5e-324),
    "int8": (-128, 127), "uint8": (255, 0), "int64": (-1 << 63, (1 << 63) - 1), "uint64": ((1 << 64) - 1,),
    "bool": (0, 1), "float16": (1.5, -65504.0, 1e9), "bfloat16": (0.1, -0.0), "float8_e4m3fn": (0.5, 448.0),
    "float8_e5m2": (-0.25, 57344.0),
}


@native_x86
@pytest.mark.parametrize("name", TARGETS)
def test_literals_of_every_dtype_keep_their_value(name: str) -> None:
    b = Builder("literals")
    for dtype, numbers in LITERALS.items():
        out = Buffer(dtype, dtype, (5 * len(numbers),), "result")
        for i, x in enumerate(numbers):
            b.store(out, Affine.of(5 * i), Literal(x, Type(dtype)))
            b.store(out, Affine.of(5 * i + 1), Literal(x, Type(dtype, 4)))
    check([b.finish()], {"literals": {}}, name)
