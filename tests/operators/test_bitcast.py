"""BITCAST: every bit of a number stays, on every engine, alone and beside arithmetic."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
import tosaic
from tosaic.lowering.dialects.tosaic.bitcast import Bitcast
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.types import ELEMENT_TYPES, Array, ElementType
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

from .harness import evaluated, infer

NAMES = {1: ("i8", "ui8", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f6E2M3FN", "f6E3M2FN", "f4E2M1FN"),
         2: ("i16", "ui16", "f16", "bf16"), 4: ("i32", "ui32", "f32"), 8: ("i64", "ui64", "f64")}
PAIRS = [(ELEMENT_TYPES[a], ELEMENT_TYPES[b]) for names in NAMES.values() for a, b in itertools.permutations(names, 2)]
SIGNALLING = {"f16": 0x7D57, "bf16": 0xFFA1, "f32": 0x7FA00001, "f64": 0xFFF4000000000123}


def patterns(element: ElementType, count: int = 111) -> Array:
    """Random bits; the first are those of a signalling NaN, where the type has one."""
    bits = np.random.default_rng(element.itemsize).integers(0, 256, (count, element.itemsize), np.uint8)
    if element.name in SIGNALLING:
        bits[:3] = np.array(SIGNALLING[element.name], f"u{element.itemsize}").reshape(1).view(np.uint8)
    return bits.reshape(-1).view(element.dtype)


def text(a: ElementType, b: ElementType, *dims: int, body: str = "") -> str:
    x, y = (f"tensor<{'x'.join(map(str, (*dims, e)))}>" for e in (a, b))
    return (f'func.func @main(%x: {x}) -> {y} {{\n  %0 = "tosaic.bitcast"(%x) : ({x}) -> {y}\n{body}'
            f"  return %{'1' if body else '0'} : {y} }}")


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=str)
def test_bits_stay_compiled_and_interpreted(a: ElementType, b: ElementType) -> None:
    x = patterns(a).reshape(3, 37)
    module = read_module(text(a, b, 3, 37))
    for found in (tosaic.load(text(a, b, 3, 37))(x), interpret(module, module.function("main"), [x])[0],
                  evaluated(Bitcast(b), infer(Bitcast(b), x), x, elements={0: a})):
        assert found.dtype == b.dtype and found.shape == (3, 37)
        assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize(("a", "b"), [p for p in PAIRS if p[0].name in SIGNALLING or p[1].name in SIGNALLING], ids=str)
def test_one_number_keeps_its_bits_also_where_it_is_known(a: ElementType, b: ElementType) -> None:
    for x in patterns(a, 4):
        code = "0x" + x.tobytes().hex()
        known = (f'func.func @main(%i: tensor<1xi1>, %y: tensor<1x{b}>) -> tensor<1x{b}> {{\n  %x = "tosa.const"() <{{values = '
                 f'dense<"{code}"> : tensor<1x{a}>}}> : () -> tensor<1x{a}>\n  %0 = "tosaic.bitcast"(%x) : (tensor<1x{a}>) -> '
                 f'tensor<1x{b}>\n  %1 = "tosa.select"(%i, %0, %y) : (tensor<1xi1>, tensor<1x{b}>, tensor<1x{b}>) -> '
                 f"tensor<1x{b}>\n  return %1 : tensor<1x{b}> }}")
        assert tosaic.load(text(a, b))(x.reshape(())).tobytes() == x.tobytes()
        assert tosaic.load(known)(np.ones(1, bool), np.zeros(1, b.dtype)).tobytes() == x.tobytes()


def test_the_sign_of_floats_is_a_bit_of_integers() -> None:
    x = np.array([-0.0, 3.5, -np.inf, 1e-40, np.nan], np.float32)
    body = """  %m = "tosa.const"() <{values = dense<-2147483648> : tensor<1xi32>}> : () -> tensor<1xi32>
  %1 = "tosa.bitwise_xor"(%0, %m) : (tensor<5xi32>, tensor<1xi32>) -> tensor<5xi32>
"""
    found = tosaic.load(text(ELEMENT_TYPES["f32"], ELEMENT_TYPES["i32"], 5, body=body))(x)
    np.testing.assert_array_equal(found.view(np.float32), -x)


@pytest.mark.parametrize(("a", "b", "message"), [
    ("f32", "i16", "f32 has 4 bytes, i16 has 2"), ("i1", "i8", "does not take the bits of i1"),
    ("i4", "ui8", "does not take the bits of i4"), ("i48", "f64", "does not take the bits of i48")])
def test_other_types_are_refused(a: str, b: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        tosaic.load(text(ELEMENT_TYPES[a], ELEMENT_TYPES[b], 4))


def test_it_has_text_and_no_tosa_file() -> None:
    module = read_module(text(ELEMENT_TYPES["f32"], ELEMENT_TYPES["i32"], 4))
    assert '%0 = "tosaic.bitcast"(%x) : (tensor<4xf32>) -> tensor<4xi32>' in print_module(module)
    with pytest.raises(Problem, match="cannot be written") as caught:
        write_module(module)
    assert caught.value.help == "the file format has TOSA's own operators only"
