"""Functions in place of instructions that a processor lacks: each gives what NumPy gives, bit for bit, compiled for this
machine as if it lacked them all."""
from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from tosaic.lowering.graph.types import Array
from tosaic.lowering.machine_code.codegen import Engine
from tosaic.lowering.machine_code.llvm_writer import module
from tosaic.lowering.native.llvm.emit import attributes
from tosaic.lowering.native.llvm.helper_functions import SCALARS, WIDTHS, HelpedWriter, lacking, writer_for
from tosaic.lowering.target.presets import host, target

WHOLE = ("i8", "i16", "i32", "i64")
EVERYTHING = frozenset([*(f"{op} i64" for op in ("mul", "shl", "lshr", "ashr")),
                        *(f"{op} {scalar}" for op in ("udiv", "sdiv", "ctlz") for scalar in WHOLE),
                        *(f"{op} {scalar}" for op in ("fcmp", "sqrt") for scalar in ("float", "double"))])
DTYPES = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "float": "float32", "double": "float64"}
COUNT = 4000


def computed(instruction: str, result: str, scalar: str, *operands: Array) -> Array:
    """What an instruction over %a and %b gives for each pair, by its helper."""
    declared: dict[str, str] = {}
    w = HelpedWriter(declared, missing=EVERYTHING)
    w.lines.append("entry:")
    for name, pointer in zip("ab", ("%p", "%q")):
        w.do(f"%{name} = load {scalar}, ptr {pointer}")
    value = w.put(instruction)
    assert "call" in w.lines[-1] and "@tosaic." in w.lines[-1]
    stored = w.put(f"zext i1 {value} to i8") if result == "i1" else value
    w.do(f"store {'i8' if result == 'i1' else result} {stored}, ptr %r")
    w.give()
    text = module(host().triple, declared.values(), ["define i32 @one(ptr %p, ptr %q, ptr %r) {", *w.lines[:-1], " ret i32 0",
                                                     "}"], [attributes(host())])
    engine = Engine(text, host())
    one = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(engine.address("one"))
    out = np.zeros(len(operands[0]), "int8" if result == "i1" else DTYPES[result])
    a, b = operands[0], operands[-1]
    for i in range(len(out)):
        one(a.ctypes.data + i * a.itemsize, b.ctypes.data + i * b.itemsize, out.ctypes.data + i * out.itemsize)
    engine.close()
    return out


def integers(scalar: str, seed: int = 1) -> Array:
    """Of all sizes, with the extremes."""
    random, bits = np.random.default_rng(seed), WIDTHS[scalar]
    values = random.integers(-1 << 63, (1 << 63) - 1, COUNT, np.int64) >> random.integers(64 - bits, 64, COUNT)
    values[:8] = [0, 1, -1, 2, (1 << bits - 1) - 1, -1 << bits - 1, 7, -7]
    random.shuffle(values)
    return values.astype(DTYPES[scalar])


def floats(scalar: str, seed: int = 1) -> Array:
    """All bit patterns: subnormal numbers, infinities and NaN are among them."""
    random, dtype = np.random.default_rng(seed), np.dtype(DTYPES[scalar])
    values = random.integers(-1 << 63, (1 << 63) - 1, COUNT, np.int64).astype(f"int{8 * dtype.itemsize}").view(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, 2, 4, 2.25, np.finfo(dtype).tiny, np.finfo(dtype).max,
                        np.finfo(dtype).smallest_subnormal, 1 + np.finfo(dtype).eps, 1 - np.finfo(dtype).epsneg, 3], dtype)
    values[:1000] = random.choice(special, 1000)
    values[1000:2000] = random.random(1000).astype(dtype)
    return np.ascontiguousarray(values)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "mul": lambda x, y: x * y, "shl": lambda x, y: x << y, "ashr": lambda x, y: x >> y,
    "lshr": lambda x, y: (x.view(f"u{x.itemsize}") >> y.view(f"u{y.itemsize}")).view(x.dtype)}


@pytest.mark.parametrize("op", BINARY)
def test_64_bit_arithmetic(op: str) -> None:
    x, y = integers("i64"), integers("i64", 2)
    if op != "mul":
        y = y & 63
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(computed(f"{op} i64 %a, %b", "i64", "i64", x, y), BINARY[op](x, y))


@pytest.mark.parametrize("scalar", ["i8", "i16", "i32", "i64"])
def test_leading_zeros(scalar: str) -> None:
    x, bits = integers(scalar), WIDTHS[scalar]
    right = [bits - int(v % (1 << bits)).bit_length() for v in map(int, x)]
    assert computed(f"call {scalar} @llvm.ctlz.{scalar}({scalar} %a, i1 false)", scalar, scalar, x).tolist() == right


@pytest.mark.parametrize("scalar", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("op", ["udiv", "sdiv"])
def test_division(op: str, scalar: str) -> None:
    x, y = integers(scalar), integers(scalar, 2)
    y[y == 0] = 5
    y[y == -1] = 3
    bits = WIDTHS[scalar]
    found = computed(f"{op} {scalar} %a, %b", scalar, scalar, x, y).tolist()
    for a, b, quotient in zip(map(int, x), map(int, y), found):
        if op == "udiv":
            assert quotient % (1 << bits) == (a % (1 << bits)) // (b % (1 << bits))
        else:
            assert quotient == abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "olt": np.less, "ole": np.less_equal, "oeq": np.equal, "ogt": np.greater, "une": np.not_equal,
    "one": lambda x, y: (x < y) | (x > y), "uno": lambda x, y: np.isnan(x) | np.isnan(y)}


@pytest.mark.parametrize("scalar", ["float", "double"])
@pytest.mark.parametrize("predicate", COMPARISONS)
def test_comparisons_of_floats(predicate: str, scalar: str) -> None:
    x, y = floats(scalar), floats(scalar, 2)
    y[2500:3000] = x[2500:3000]
    found = computed(f"fcmp {predicate} {scalar} %a, %b", "i1", scalar, x, y).astype(bool)
    np.testing.assert_array_equal(found, COMPARISONS[predicate](x, y))


@pytest.mark.parametrize(("scalar", "kind"), [("float", "f32"), ("double", "f64")])
def test_square_roots_are_rounded_as_the_hardware_rounds(scalar: str, kind: str) -> None:
    x = floats(scalar)
    found = computed(f"call {scalar} @llvm.sqrt.{kind}({scalar} %a)", scalar, scalar, x)
    with np.errstate(invalid="ignore"):
        right = np.sqrt(x)
    np.testing.assert_array_equal(found, right)
    numbers = ~np.isnan(right)
    assert numbers.sum() > COUNT / 3 and (found[numbers].tobytes() == right[numbers].tobytes())  # -0.0 stays


def test_vectors_go_lane_by_lane() -> None:
    w = HelpedWriter({}, missing=EVERYTHING)
    w.put("mul <4 x i64> %x, splat (i64 5)")
    assert sum("call i64 @tosaic.mul64" in line for line in w.lines) == 4 and "insertelement" in w.lines[-1]


def test_what_is_a_shift_anyway_stays() -> None:
    w = HelpedWriter({}, missing=EVERYTHING)
    for text in ("mul i64 %x, 8", "shl i64 %x, 3", "lshr i64 %x, 32", "add i64 %x, %y", "icmp slt i64 %x, %y"):
        w.put(text)
        assert w.lines[-1].endswith(text)


def test_a_processor_lacks_what_its_features_say() -> None:
    assert "mul i64" in lacking(target("cortex-m0plus")) and "udiv i32" in lacking(target("cortex-m0plus"))
    assert "mul i64" in lacking(target("cortex-m23")) and "udiv i32" not in lacking(target("cortex-m23"))
    assert lacking(target("cortex-m3")) == {"udiv i64", "sdiv i64", "fcmp float", "sqrt float", "fcmp double", "sqrt double"}
    assert lacking(target("cortex-m4")) == {"udiv i64", "sdiv i64", "fcmp double", "sqrt double"}
    assert lacking(target("rv32imac")) == lacking(target("cortex-m3")) and not lacking(target("rv64gc"))
    assert not lacking(host()) and type(writer_for(host(), {})) is not HelpedWriter and set(SCALARS.values()) == set(WIDTHS)
