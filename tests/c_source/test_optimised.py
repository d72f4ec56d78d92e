"""C source gives the right numbers with optimising compilers, too: sums of integers that vectorisers take apart, beside
NumPy's, and whole int8 networks beside the code of this process.

gcc 12 computes half of a sum of int32, of int16 with SSE2 already, where it is written with four accumulators of a type with a
sign.
"""
from __future__ import annotations

import functools
import shutil
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import Lowered
from tosaic.lowering.target.presets import host

from ..aot.callers import values
from ..covering import covering
from .functions import needs_gcc
from .library import Library, lowered_for_c, scalar_host

pytestmark = needs_gcc
CORPUS = Path(__file__).parents[1] / "data" / "corpus"
GCC, CLANG = (pytest.param(name, id=name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"there is no {name}"))
              for name in ("gcc", "clang"))
FLAGS = {"O2": ("-O2",), "O3": ("-O3",), "native": ("-O3", "-march=native")}
SIZES = (1000, 1003, 64, 17)


def command(compiler: str, flags: str) -> tuple[str, ...]:
    return (compiler, "-std=c99", "-w", *FLAGS[flags])


def totals(element: str, size: int) -> str:
    """Each number and the sum of its row, in i32: a row is read twice, and summed with several accumulators."""
    narrow, wide, one = f"tensor<2x{size}x{element}>", f"tensor<2x{size}xi32>", "tensor<2x1xi32>"
    cast = "" if element == "i32" else f"%w = tosa.cast %x : ({narrow}) -> {wide}\n"
    name = "%x" if element == "i32" else "%w"
    return (f"func.func @main(%x: {narrow}) -> {wide} {{\n{cast}"
            f"%0 = tosa.reduce_sum {name} {{axis = 1 : i32}} : ({wide}) -> {one}\n"
            f"%1 = tosa.add {name}, %0 : ({wide}, {one}) -> {wide}\nreturn %1 : {wide}\n}}")


def product(rows: int, inner: int, columns: int) -> str:
    """[1, rows, inner] times [1, inner, columns] of bytes, in i32."""
    a, b, c = f"tensor<1x{rows}x{inner}xi8>", f"tensor<1x{inner}x{columns}xi8>", f"tensor<1x{rows}x{columns}xi32>"
    return f"""func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %z = "tosa.const"() {{values = dense<3> : tensor<1xi8>}} : () -> tensor<1xi8>
      %0 = tosa.matmul %a, %b, %z, %z : ({a}, {b}, tensor<1xi8>, tensor<1xi8>) -> {c}
      return %0 : {c}
    }}"""


@functools.cache
def sums(element: str, size: int) -> list[Lowered]:
    return lowered_for_c(tosaic.load(totals(element, size)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("element", "compiler", "flags"), [
    *covering(1, ["i8", "i16", "i32"], [GCC], FLAGS), *covering(3, ["i8", "i16", "i32"], [CLANG], FLAGS)])
def test_sums_of_integers_are_numpys(element: str, compiler: str, flags: str, tmp_path: Path) -> None:
    """Sums wrap: numbers of 32 bits fill them."""
    random = np.random.default_rng(12)
    for size in SIZES:
        library = Library(sums(element, size), tmp_path, command(compiler, flags))
        bounds = np.iinfo(f"int{element[1:]}")
        x = random.integers(bounds.min, bounds.max, (2, size), f"int{element[1:]}", endpoint=True)
        wide = x.astype(np.int64)
        np.testing.assert_array_equal(library(x)[0], (wide + wide.sum(1, keepdims=True)).astype(np.int32))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("compiler", "flags"), covering(1, [GCC, CLANG], FLAGS))
def test_products_of_bytes_are_numpys(compiler: str, flags: str, tmp_path: Path) -> None:
    random = np.random.default_rng(13)
    for rows, inner, columns in ((1, 256, 16), (8, 33, 12), (5, 64, 1)):
        library = Library(lowered_for_c(tosaic.load(product(rows, inner, columns))), tmp_path, command(compiler, flags))
        a, b = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((1, rows, inner), (1, inner, columns)))
        wide = [x.astype(np.int64) - 3 for x in (a, b)]
        np.testing.assert_array_equal(library(a, b)[0], wide[0] @ wide[1])


@functools.cache
def network(name: str) -> tuple[list[Lowered], tosaic.Compiled]:
    """As C source, and as code of this process."""
    model = tosaic.load(CORPUS / name)
    return lowered_for_c(model), model.main.compile(tosaic.CompileOptions(scalar_host(), threads=1))


@pytest.mark.sampled(4)
@pytest.mark.skipif(host().architecture != "x86", reason="runs x86 code")
@pytest.mark.parametrize(("name", "compiler", "flags"), covering(
    2, sorted(p.name for p in CORPUS.glob("*int8*.mlir")), [GCC, CLANG], ["O3", "native"]))
def test_an_int8_network_gives_the_bytes_of_code_in_this_process(name: str, compiler: str, flags: str, tmp_path: Path) -> None:
    (lowered, compiled), random = network(name), np.random.default_rng(14)
    library = Library(lowered, tmp_path, command(compiler, flags))
    for _ in range(3):
        arrays = [values(random, b.shape, b.dtype) for b in library.interface.entries[0].program.inputs]
        for ours, theirs in zip(library(*arrays), compiled.executable(*arrays), strict=True):
            np.testing.assert_array_equal(ours, theirs)
