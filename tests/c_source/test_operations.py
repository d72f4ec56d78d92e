"""Each operation of the loop IR as C against the interpreter: every dtype, scalars and vectors, under sanitizers."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import ITEM_SIZES
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.ir import Function, Literal, Operand, Type

from ..native.harness import differences, in_one_step, interpreted
from ..native.test_emit_conversions import BITS, HALVES, NUMBERS, cast, floats, numbers, patterns, same
from ..native.test_emit_operations import FLOATS, INTEGERS, LITERALS, OPERATIONS, REDUCTIONS, elementwise, family, values
from .functions import STRICT, InC, needs_gcc

pytestmark = needs_gcc
Array = np.ndarray[Any, Any]
SANITIZED = ("gcc", *STRICT, "-O1", "-fsanitize=undefined", "-fsanitize=float-cast-overflow", "-fno-sanitize-recover=all")
COUNT = 480


def check(functions: list[Function], inputs: dict[Function, dict[int, Array]], folder: Path,
          wide: Sequence[Function] = ()) -> None:
    """All functions, as C against interpreted, or against `wide` ones interpreted; inputs by function and place."""
    code = InC(functions, folder, *SANITIZED)
    faults = []
    for f, w in zip(functions, wide or functions):
        data = {b: inputs[f][int(b.name[1:])] for b in f.params if b.role == "argument"}
        expected = interpreted(f, data) if w is f else in_one_step(f, w, data)
        faults += [f"{f.name}: {fault}" for fault in differences(code.run(f, data), expected)]
    assert not faults, "\n".join(faults[:40])


DTYPES = (*FLOATS, *INTEGERS, "bool", "float16")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operations_agree_with_the_interpreter(dtype: str, tmp_path: Path) -> None:
    """Scalars, and vectors of 4 and 16 lanes by turns of the types."""
    functions, inputs, wide = [], {}, []
    for lanes in (1, 4 if DTYPES.index(dtype) % 2 else 16):
        for op, operands in OPERATIONS[family(dtype)].items():
            f = elementwise(op, dtype, operands, lanes, COUNT)
            data = {i: values(dtype, COUNT, i) for i in range(operands)}
            if op in ("shl", "ashr", "lshr"):
                data[1] = (data[1].astype(np.int64) % (8 * ITEM_SIZES[dtype])).astype(dtype)
            functions.append(f)
            wide.append(elementwise(op, dtype, operands, COUNT, COUNT))
            inputs[f] = data
    check(functions, inputs, tmp_path, wide)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32", "uint8", "int64", "bool"])
def test_reductions_agree_with_the_interpreter(dtype: str, tmp_path: Path) -> None:
    functions, inputs = [], {}
    for lanes in (2, 3, 4, 8, 12):
        for op in REDUCTIONS[family(dtype)]:
            b, axis = Builder(f"reduce_{op}_{dtype}_{lanes}"), Axis("i", 20)
            x, out = Buffer("x0", dtype, (20 * lanes,), "argument"), Buffer("out", dtype, (20,), "result")
            b.loop(axis, lambda: b.store(out, Affine.of(axis), b.op(
                f"reduce_{op}", b.load(x, Affine.of(axis) * lanes, lanes), type=Type(dtype))))
            functions.append(b.finish())
            inputs[functions[-1]] = {0: values(dtype, 20 * lanes, 0)}
    check(functions, inputs, tmp_path)


def of_vectors(op: str, types: tuple[Type, ...], result: Type, steps: int = 8) -> Function:
    """out = op(x0, x1, ...) of vectors, `steps` times."""
    b, axis = Builder(op), Axis("i", steps)
    ins = [Buffer(f"x{i}", t.dtype, (steps * t.lanes,), "argument") for i, t in enumerate(types)]
    out = Buffer("out", result.dtype, (steps * result.lanes,), "result")

    def body() -> None:
        args: list[Operand] = [b.load(x, Affine.of(axis) * t.lanes, t.lanes) for x, t in zip(ins, types)]
        b.store(out, Affine.of(axis) * result.lanes, b.op(op, *args, type=result))

    b.loop(axis, body)
    return b.finish()


def test_operations_of_several_types_agree_with_the_interpreter(tmp_path: Path) -> None:
    i32, i64 = Type("int32"), Type("int64")
    quarter = Type("int8", 64)
    functions = [of_vectors("multiply_high", (i32, i32, i64), i32, 64),
                 of_vectors("multiply_high_nudged", (i32, i32, i64), i32, 64),
                 of_vectors("multiply_high", (Type("int32", 4),) * 2 + (Type("int64", 4),), Type("int32", 4), 32),
                 of_vectors("dot4", (Type("int32", 4), Type("uint8", 16), Type("int8", 16)), Type("int32", 4)),
                 of_vectors("dot4", (i32, Type("uint8", 4), Type("int8", 4)), i32),
                 of_vectors("dot4", (i32, i32, i32), i32), of_vectors("dot4_signed", (i32, i32, i32), i32),
                 of_vectors("dot4_signed", (Type("int32", 4), Type("int8", 16), Type("int8", 16)), Type("int32", 4)),
                 of_vectors("dot2", (Type("int32", 4), Type("int16", 8), Type("int16", 8)), Type("int32", 4)),
                 of_vectors("dot2", (i32, Type("int16", 2), Type("int16", 2)), i32),
                 of_vectors("pairs", (Type("uint8", 4), i32), Type("int32", 2)),
                 of_vectors("pairs", (Type("int8", 4), i32), Type("int32", 2)),
                 of_vectors("dot_pairs", (i32, Type("int32", 2), Type("int32", 2)), i32),
                 of_vectors("dot_pairs", (i32, i32, i32), i32),
                 of_vectors("dot8", (Type("int32", 4), Type("int8", 16), Type("int8", 16)), Type("int32", 4)),
                 of_vectors("dot", (i32, Type("int8", 16), Type("int8", 16)), i32),
                 of_vectors("dot", (i32, Type("int8"), Type("int8")), i32),
                 of_vectors("pack", (Type("int32", 8),) * 2, Type("int16", 16)),
                 of_vectors("pack", (Type("int16", 16),) * 2, Type("int8", 32)),
                 of_vectors("lookup", (Type("int8", 16), *[quarter] * 4), Type("int8", 16)),
                 of_vectors("lookup", (Type("int8"), *[quarter] * 4), Type("int8")),
                 of_vectors("bits", (Type("int8", 16),), Type("float32", 4)), of_vectors("bits", (Type("int8", 4),), i32),
                 of_vectors("bits", (Type("float32", 4),), Type("uint32", 4)), of_vectors("bits", (Type("float64"),), i64)]
    inputs = {f: {i: values(b.dtype, b.size, i) >> {"int64": 2}.get(b.dtype, 23 * (i == 3)) if b.dtype in ("int64", "int32")
                  else values(b.dtype, b.size, i)
                  for i, b in enumerate(b for b in f.params if b.role == "argument")} for f in functions}
    check(functions, inputs, tmp_path)


@pytest.mark.parametrize("lanes", [1, 4])
def test_rounded_products_and_shifts_agree_with_the_interpreter(lanes: int, tmp_path: Path) -> None:
    t = Type("int32", lanes)
    product, shift = (of_vectors(f"rounded_{what}", (t, t), t, COUNT // lanes) for what in ("product", "shift"))
    x = values("int32", COUNT, 0)
    positive, amounts = values("int32", COUNT, 1) & 0x7FFF_FFFF, np.resize(np.arange(-31, 1), COUNT).astype(np.int32)
    check([product, shift], {product: {0: x, 1: positive}, shift: {0: x, 1: amounts}}, tmp_path)


def test_bits_of_half_floats_and_bytes_stay(tmp_path: Path) -> None:
    types = [("float16", "bfloat16", "int16"), ("float8_e4m3fn", "float8_e5m2", "uint8")]
    pairs = [pair for group in types for pair in itertools.permutations(group, 2)]
    functions = [of_vectors("bits", (Type(a),), Type(b), 256 * ITEM_SIZES[a]) for a, b in pairs]
    inputs = {f: {0: np.random.default_rng(0).integers(0, 256, 256 * ITEM_SIZES[a] ** 2, np.uint8).view(a)}
              for f, (a, _) in zip(functions, pairs)}
    code = InC(functions, tmp_path, *SANITIZED)
    for f in functions:
        found = code.run(f, {f.params[0]: inputs[f][0]})
        assert found[f.params[1]].tobytes() == inputs[f][0].tobytes()


def test_scaling_by_powers_of_two_rounds_once(tmp_path: Path) -> None:
    f = of_vectors("scaleb", (Type("float32"),) * 2, Type("float32"), 505 * 8)
    x = np.resize(values("float32", COUNT, 0), 505 * 8)
    n = np.repeat(np.arange(-252, 253), 8).astype(np.float32)
    check([f], {f: {0: x, 1: n}}, tmp_path)


def test_literals_of_every_dtype_keep_their_value(tmp_path: Path) -> None:
    b = Builder("literals")
    for dtype, literals in LITERALS.items():
        out = Buffer(dtype, dtype, (5 * len(literals),), "result")
        for i, x in enumerate(literals):
            b.store(out, Affine.of(5 * i), Literal(x, Type(dtype)))
            b.store(out, Affine.of(5 * i + 1), Literal(x, Type(dtype, 4)))
    f = b.finish()
    check([f], {f: {}}, tmp_path)


@pytest.mark.parametrize("is_once", [False, True])
def test_products_and_sums_are_rounded_once_only_where_they_should_be(is_once: bool, tmp_path: Path) -> None:
    """With instructions that would do it at hand, and a compiler that is free to use them (-std=gnu99)."""
    functions = [elementwise("fma", dtype, 3, lanes, COUNT) for dtype in FLOATS for lanes in (1, 8)]
    command = ("gcc", "-std=gnu99", "-O2", "-mavx2", "-mfma", "-ffp-contract=fast")
    code = InC(functions, tmp_path, *command, has_fma=is_once)
    for f in functions:
        dtype = f.params[0].dtype
        x, y = values(dtype, COUNT, 0), values(dtype, COUNT, 1)
        with np.errstate(all="ignore"):
            z = np.where(np.arange(COUNT) % 2 == 0, -(x * y), values(dtype, COUNT, 2))
            data = dict(zip(f.params, (x, y, z)))
            out = code.run(f, data)
            if is_once:
                assert not differences(out, interpreted(f, data))
            else:
                assert np.array_equal(out[f.params[-1]], x * y + z, equal_nan=True)


def test_casts_agree_with_numpy(tmp_path: Path) -> None:
    """Every pattern of the small floats, and floats near all of them."""
    cases: list[tuple[Function, Array, Array]] = []
    dense = floats()
    with np.errstate(all="ignore"):
        for dtype in HALVES:
            every = patterns(dtype)
            cases.append((cast(dtype, "float32", len(every), 1), every, every.astype(np.float32)))
            cases.append((cast("float32", dtype, len(dense), 1), dense, dense.astype(dtype)))
    code = InC([f for f, _, _ in cases], tmp_path, *SANITIZED)
    for f, x, expected in cases:
        assert same(code.run(f, {f.params[0]: x})[f.params[1]], expected, x), f.name


@pytest.mark.parametrize("lanes", [1, 4])
def test_numbers_become_any_other_type(lanes: int, tmp_path: Path) -> None:
    """Vectors of every third pair of types, each type from and to others."""
    functions, inputs = [], {}
    step = 3 if lanes > 1 else 1
    for place, source in enumerate(NUMBERS):
        for result in (*NUMBERS, *HALVES)[place % step::step]:
            x = numbers(source, result)
            if result in BITS:  # which zero a NaN becomes is free
                x = x[x == x]
            if result == "float8_e8m0fnu":  # ml_dtypes goes by way of float32, where the smallest float64 is 0
                x = x[np.abs(x) != 5e-324]
            x = np.concatenate([x, np.ones(-len(x) % lanes, x.dtype)])
            functions.append(cast(source, result, len(x), lanes))
            inputs[functions[-1]] = x
    code = InC(functions, tmp_path, *SANITIZED)
    faults = []
    for f in functions:
        x, result = inputs[f], f.params[1].dtype
        data, wide = {f.params[0]: x}, cast(f.params[0].dtype, result, len(x), len(x))
        faults += [f"{f.name}: {d}" for d in differences(code.run(f, data), in_one_step(f, wide, data))]
    assert not faults, "\n".join(faults[:40])


def test_a_float_that_fits_no_integer_gives_some_integer(tmp_path: Path) -> None:
    """The sanitizer would end the process where C does not define a conversion."""
    functions = [cast(source, result, 22, 1) for source in FLOATS for result in INTEGERS]
    code = InC(functions, tmp_path, *SANITIZED)
    for f in functions:
        code.run(f, {f.params[0]: values(f.params[0].dtype, 484, 0)[:22]})
