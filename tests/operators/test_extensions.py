"""What tosaic takes beyond the specification, in whole graphs: f64, wrapping products and bounds of i32 and i64, numbers
without sign. Each operator's rows stand in the table of combinations."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, 0.1,
                    0.3, 1e-200, 1e200, 2.0**53 + 2, -2.5, 3.0])


def text(operations: str, *types: str, result: str) -> str:
    arguments = ", ".join(f"%{name}: {type}" for name, type in zip("xyz", types))
    return f"func.func @main({arguments}) -> {result} {{\n{operations}\n  return %r : {result}\n}}\n"


def run(source: str, *arrays: Array) -> Array:
    """The native result of the graph as it is printed; the reference's must agree, operator by operator."""
    again = tosaic.load(print_module(read_module(source)))
    report = again.entry("main").check([list(arrays)])
    assert report.agrees, str(report)
    return np.asarray(again(*arrays))


PAIRS = tuple(np.ascontiguousarray(a.reshape(-1)) for a in np.meshgrid(SPECIAL, SPECIAL))


def same_bits(found: Array, right: Array) -> bool:
    """But for what a NaN holds, and which zero a maximum takes."""
    equal = found.view(np.int64) == right.view(np.int64)
    return bool((equal | np.isnan(found) & np.isnan(right)).all())


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_arithmetic_of_f64_is_numpy_s_bit_for_bit(name: str) -> None:
    t = f"tensor<{len(PAIRS[0])}xf64>"
    shift = '  %s = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>\n' if name == "mul" else ""
    extra, type = (", %s", ", tensor<1xi8>") if shift else ("", "")
    source = text(f"{shift}  %r = tosa.{name} %x, %y{extra} : ({t}, {t}{type}) -> {t}", t, t, result=t)
    with np.errstate(all="ignore"):
        right = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[name](*PAIRS)
    assert same_bits(run(source, *PAIRS), right)


def test_a_reciprocal_of_an_inverse_root_of_f64_is_a_root() -> None:
    x = np.concatenate([np.abs(SPECIAL), np.arange(1, 2000.0) ** 2, np.random.default_rng(1).uniform(0, 1e9, 1000), [-0.0]])
    t = f"tensor<{len(x)}xf64>"
    source = text(f"  %s = tosa.rsqrt %x : ({t}) -> {t}\n  %r = tosa.reciprocal %s : ({t}) -> {t}", t, result=t)
    assert same_bits(np.asarray(tosaic.load(source)(x)), np.sqrt(x))


def wrapped(values: Sequence[Any], dtype: str) -> list[int]:
    bits = 8 * np.dtype(dtype).itemsize
    return [(v + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1) for v in values]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_products_of_integers_wrap(dtype: str) -> None:
    info, random = np.iinfo(dtype), np.random.default_rng(2)
    x, y = (random.integers(info.min, info.max, s, dtype, endpoint=True) for s in ((2, 5, 9), (2, 9, 4)))
    e = f"i{info.bits}"
    zero = f'  %z = "tosa.const"() <{{values = dense<0> : tensor<1x{e}>}}> : () -> tensor<1x{e}>\n'
    a, b, c, one = f"tensor<2x5x9x{e}>", f"tensor<2x9x4x{e}>", f"tensor<2x5x4x{e}>", f"tensor<1x{e}>"
    found = run(text(f"{zero}  %r = tosa.matmul %x, %y, %z, %z : ({a}, {b}, {one}, {one}) -> {c}", a, b, result=c), x, y)
    exact = x.astype(object) @ y.astype(object)
    assert found.reshape(-1).tolist() == wrapped(exact.reshape(-1), dtype)
    r = f"tensor<2x1x9x{e}>"
    found = run(text(f"  %r = tosa.reduce_product %x {{axis = 1 : i32}} : ({a}) -> {r}", a, result=r), x)
    assert found.reshape(-1).tolist() == wrapped(x.astype(object).prod(axis=1).reshape(-1), dtype)
    low, high = -(1 << info.bits - 3) - 1, (1 << info.bits - 3) + 1
    found = run(text(f"  %r = tosa.clamp %x {{min_val = {low} : {e}, max_val = {high} : {e}}} : ({a}) -> {a}", a, result=a), x)
    assert found.tolist() == x.clip(low, high).tolist()


def test_numbers_without_sign_are_cast_and_chosen() -> None:
    x, y = np.array([0, 1, 127, 128, 255], np.uint8), np.array([-3.0, 254.5, 255.5, 1e9, np.nan], np.float32)
    u, f, b = "tensor<5xui8>", "tensor<5xf32>", "tensor<5xi1>"
    source = text(f"""  %real = tosa.cast %x : ({u}) -> {f}
  %less = tosa.greater %real, %y : ({f}, {f}) -> {b}
  %bytes = tosa.cast %y : ({f}) -> {u}
  %r = tosa.select %less, %x, %bytes : ({b}, {u}, {u}) -> {u}""", u, f, result=u)
    assert run(source, x, y).tolist() == [0, 254, 255, 255, 0]
    with pytest.raises(Problem, match=r"tosa\.cast of tensor<5xui8> cannot be written to a \.tosa file"):
        write_module(read_module(source))


def test_a_file_has_no_f64() -> None:
    source = text("  %r = tosa.exp %x : (tensor<2xf64>) -> tensor<2xf64>", "tensor<2xf64>", result="tensor<2xf64>")
    with pytest.raises(Problem, match=r"a \.tosa file has no elements of f64"):
        write_module(read_module(source))
