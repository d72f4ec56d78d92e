"""Fourier transforms of TensorFlow and what stands around them, as TOSA, against their references."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem

from .operation_program import near, operators
from .three_ways import three_ways, tosa_of


def numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def typed(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def text(lines: list[str], arguments: list[Array], results: list[str]) -> str:
    """A function of %a, %b, ... that returns what the lines call %r0, %r1, ..., of open shapes."""
    given = ", ".join(f"%{chr(97 + i)}: {typed(x.shape, 'f32')}" for i, x in enumerate(arguments))
    types = ", ".join(f"tensor<*x{r}>" for r in results)
    returned = ", ".join(f"%r{i}" for i in range(len(results)))
    return f"func.func @main({given}) -> ({types}) {{\n  " + "\n  ".join(lines) + f"\n  return {returned} : {types}\n}}\n"


def agrees(source: str, *arrays: Array) -> list[str]:
    """The operators, after a check of both ways to run them."""
    module, found = three_ways(source, arrays)
    near(found.interpreted, found.expected, "interpreted")
    near(found.native, found.expected, "compiled")
    return operators(module)


def length(*numbers: int) -> str:
    kind = f"tensor<{len(numbers)}xi32>"
    return f'%n = "tf.Const"() <{{value = dense<{list(numbers)}> : {kind}}}> : () -> {kind}'


def parts(value: str) -> list[str]:
    return [f'%r0 = "tf.Real"({value}) : (tensor<*xcomplex<f32>>) -> tensor<*xf32>',
            f'%r1 = "tf.Imag"({value}) : (tensor<*xcomplex<f32>>) -> tensor<*xf32>']


def joined(shape: tuple[int, ...]) -> str:
    return f'%z = "tf.Complex"(%a, %b) : ({typed(shape, "f32")}, {typed(shape, "f32")}) -> {typed(shape, "complex<f32>")}'


@pytest.mark.parametrize(("shape", "lengths"), [
    ((2, 3, 16), (16,)), ((16,), (16,)), ((3, 16), (8,)), ((3, 10), (16,)), ((3, 12), (12,)), ((3, 9), (9,)), ((2, 1), (1,)),
    ((2, 8, 16), (8, 16)), ((2, 8, 16), (4, 32)), ((8, 6), (8, 6)), ((5, 7), (5, 7)), ((1, 2), (1, 2))])
def test_transforms_of_real_numbers_and_back(shape: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    name = "RFFT" if len(lengths) == 1 else "RFFT2D"
    kind = f"tensor<{len(lengths)}xi32>"
    forth = f'%z = "tf.{name}"(%a, %n) : ({typed(shape, "f32")}, {kind}) -> tensor<*xcomplex<f32>>'
    back = f'%r2 = "tf.I{name}"(%z, %n) : (tensor<*xcomplex<f32>>, {kind}) -> tensor<*xf32>'
    names = agrees(text([length(*lengths), forth, *parts("%z"), back], [numbers(shape)], ["f32"] * 3), numbers(shape))
    assert ("tosa.rfft2d" in names and "tosa.fft2d" in names) == all(n & (n - 1) == 0 for n in lengths)


@pytest.mark.parametrize("name", ["FFT", "IFFT", "FFT2D", "IFFT2D"])
@pytest.mark.parametrize("shape", [(2, 4, 8), (2, 6, 5), (4, 16)])
def test_transforms_of_complex_numbers(name: str, shape: tuple[int, ...]) -> None:
    arrays = [numbers(shape), numbers(shape, 1)]
    line = f'%y = "tf.{name}"(%z) : ({typed(shape, "complex<f32>")}) -> tensor<*xcomplex<f32>>'
    agrees(text([joined(shape), line, *parts("%y")], arrays, ["f32", "f32"]), *arrays)


@pytest.mark.parametrize(("shape", "lengths"), [((3, 9), (16,)), ((3, 4), (8,)), ((2, 4, 6), (4, 10)), ((2, 8, 5), (8, 8))])
def test_any_half_of_frequencies_goes_back(shape: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    arrays = [numbers(shape), numbers(shape, 1)]
    back = (f'%r0 = "tf.IRFFT{"2D" if len(lengths) == 2 else ""}"(%z, %n) : ({typed(shape, "complex<f32>")}, '
            f"tensor<{len(lengths)}xi32>) -> tensor<*xf32>")
    agrees(text([length(*lengths), joined(shape), back], arrays, ["f32"]), *arrays)


def test_absolute_values_and_conjugates() -> None:
    real, imaginary = np.float32([0, 3, -3, 0, 1e30, 1e-30, 5]), np.float32([0, 4, -4, -2, 1e30, 1e-30, 0])
    lines = [joined((7,)), '%r2 = "tf.ComplexAbs"(%z) : (tensor<7xcomplex<f32>>) -> tensor<*xf32>',
             '%c = "tf.Conj"(%z) : (tensor<7xcomplex<f32>>) -> tensor<*xcomplex<f32>>', *parts("%c")]
    source = text(lines, [real, imaginary], ["f32"] * 3)
    expected, *ways = three_ways(source, [real, imaginary])[1]
    for found in ways:
        for mine, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-6)


def constant(name: str, numbers: str, type: str) -> str:
    return f'%{name} = "tf.Const"() <{{value = dense<{numbers}> : {type}}}> : () -> {type}'


SPECTRUM = "tensor<2x3x4xcomplex<f32>>"
ANY = "tensor<*xcomplex<f32>>"


@pytest.mark.parametrize("lines", [
    [f'%y = "tf.{name}"(%z, %c) : ({SPECTRUM}, tensor<4xcomplex<f32>>) -> {ANY}'] for name in ("AddV2", "Sub", "Mul", "RealDiv")
] + [[f'%y = "tf.{name}"(%z) : ({SPECTRUM}) -> {ANY}'] for name in ("Neg", "Square", "Exp")], ids=lambda v: v[0].split('"')[1])
def test_arithmetic_of_complex_numbers(lines: list[str]) -> None:
    """A constant has numbers of its own, or one for all."""
    arrays = [numbers((2, 3, 4)), numbers((2, 3, 4), 1)]
    for given in ("[(1.0, 2.0), (-3.0,0.5), (0.0,1.0), (2.0,-1.0)]", "(0.25,-4.0)"):
        made = [joined((2, 3, 4)), constant("c", given, "tensor<4xcomplex<f32>>"), *lines, *parts("%y")]
        agrees(text(made, arrays, ["f32", "f32"]), *arrays)


@pytest.mark.parametrize(("before", "line"), [
    ([constant("s", "[6, 4]", "tensor<2xi32>")], f'%y = "tf.Reshape"(%z, %s) : ({SPECTRUM}, tensor<2xi32>) -> {ANY}'),
    ([constant("s", "[2, 0, 1]", "tensor<3xi32>")], f'%y = "tf.Transpose"(%z, %s) : ({SPECTRUM}, tensor<3xi32>) -> {ANY}'),
    ([constant("s", "1", "tensor<i32>")], f'%y = "tf.ExpandDims"(%z, %s) : ({SPECTRUM}, tensor<i32>) -> {ANY}'),
    ([constant("s", "1", "tensor<i32>")], f'%y = "tf.ConcatV2"(%z, %z, %s) : ({SPECTRUM}, {SPECTRUM}, tensor<i32>) -> {ANY}'),
    ([constant("s", "[0, 1, 0]", "tensor<3xi32>"), constant("e", "[2, 3, 2]", "tensor<3xi32>"),
      constant("t", "[1, 1, 1]", "tensor<3xi32>")],
     f'%y = "tf.StridedSlice"(%z, %s, %e, %t) : ({SPECTRUM}, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> {ANY}'),
    ([constant("s", "[[0, 0], [1, 2], [0, 1]]", "tensor<3x2xi32>")],
     f'%y = "tf.Pad"(%z, %s) : ({SPECTRUM}, tensor<3x2xi32>) -> {ANY}'),
    ([], f'%y = "tf.Pack"(%z, %z) <{{axis = 1 : i64}}> : ({SPECTRUM}, {SPECTRUM}) -> {ANY}')],
    ids=lambda v: v.split('"')[1] if isinstance(v, str) else "")
def test_complex_numbers_that_are_moved(before: list[str], line: str) -> None:
    arrays = [numbers((2, 3, 4)), numbers((2, 3, 4), 1)]
    agrees(text([joined((2, 3, 4)), *before, line, *parts("%y")], arrays, ["f32", "f32"]), *arrays)


@pytest.mark.parametrize(("line", "message"), [
    ('%r0 = "tf.Sin"(%z) : (tensor<4xcomplex<f32>>) -> tensor<*xf32>', "complex numbers have no place in TOSA"),
    ('%r0 = "tf.Real"(%a) : (tensor<4xf32>) -> tensor<*xf32>', "no complex numbers"),
    ('%r0 = "tf.RFFT2D"(%a, %n) : (tensor<4xf32>, tensor<1xi32>) -> tensor<*xf32>', "2 positive numbers are needed")])
def test_what_has_no_place(line: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        tosa_of(text([length(4), joined((4,)), line], [numbers((4,)), numbers((4,))], ["f32"]))
