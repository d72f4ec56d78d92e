"""Attribute values: text -> Python -> text, aliases, locations."""
from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from tosaic.lowering.dialects.tf.types import tensorflow_tensor, tensorflow_type
from tosaic.lowering.graph.types import (
    ELEMENT_TYPES,
    F16,
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    ElementType,
    OpaqueType,
    ShapeType,
    TensorType,
)
from tosaic.lowering.text.attribute_printer import format_attribute, format_dictionary, quoted
from tosaic.lowering.text.attributes import Attribute, Dense, FunctionType, Number, Numbers, Strings, Symbol, Text, Unit
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

from .equality import same


def attributes(text: str, around: str = "") -> Any:
    return read_module(f"module attributes {text} {{}} {around}").attributes


def value(text: str, around: str = "") -> Attribute:
    result: Attribute = attributes(f"{{x.y = {text}}}", around)["x.y"]
    return result


@pytest.mark.parametrize(("text", "expected"), [
    ("1 : i32", Number(1, I32)),
    ("-7", Number(-7, I64)),
    ("0x10 : i8", Number(16, I8)),
    ("255 : i8", Number(-1, I8)),
    ("-1 : index", Number(-1, ELEMENT_TYPES["index"])),
    ("200 : ui8", Number(200, ELEMENT_TYPES["ui8"])),
    ("1.5", Number(1.5, F64)),
    ("3.40282347E+38 : f32", Number(float(np.finfo(np.float32).max), F32)),
    ("1. : f16", Number(1.0, F16)),
    ("0x7F800000 : f32", Number(math.inf, F32)),
    ("0x3FF0000000000000 : f64", Number(1.0, F64)),
    ("0xFC00 : f16", Number(-math.inf, F16)),
    ("true", True), ("false", False), ("unit", Unit.UNIT),
    ('"text"', "text"), ('""', ""),
    (r'"a\0Cb\C3\A4\22\n\t\\\""', 'a\x0cbä"\n\t\\"'),
    ('"grün"', "grün"),
    (r'"\FF"', "\udcff"),
    ("array<i64: 1, -1>", Numbers((1, -1), I64)),
    ("array<i32>", Numbers((), I32)),
    ("array<i1: true, false>", Numbers((True, False), I1)),
    ("array<f32: 1.5, -0.25>", Numbers((1.5, -0.25), F32)),
    ("[]", ()),
    ("[1 : i32, [true], \"a\"]", (Number(1, I32), (True,), "a")),
    ("{}", {}),
    ("{a = 1 : i8, b, \"c d\" = {e = f32}}", {"a": Number(1, I8), "b": Unit.UNIT, "c d": {"e": F32}}),
    ("@f", Symbol(("f",))), ('@a::@"b c"', Symbol(("a", "b c"))), ("@main.1-x", Symbol(("main.1-x",))),
    ("f32", F32), ("tensor<2xf32>", TensorType((2,), F32)), ("!tosa.shape<3>", ShapeType(3)),
    ("!tf_type.string", tensorflow_type("string")), ("none", OpaqueType("none")),
    ("(tensor<2xf32>, i32) -> ()", FunctionType((TensorType((2,), F32), OpaqueType("i32")), ())),
    ("IGNORE", Text("IGNORE")),
    ("#tosa.nan_mode<IGNORE>", Text("#tosa.nan_mode<IGNORE>")),
    ("#tosa.block_size<BLOCK_SIZE_32> : i32", Text("#tosa.block_size<BLOCK_SIZE_32> : i32")),
    ('#tf_type.shape<?x3, ">">', Text('#tf_type.shape<?x3, ">">')),
    ("affine_map<(d0, d1)[s0] -> (d0 + s0, d1)>", Text("affine_map<(d0, d1)[s0] -> (d0 + s0, d1)>")),
    ("affine_set<(d0) : (d0 - 1 >= 0, d0 == 2)>", Text("affine_set<(d0) : (d0 - 1 >= 0, d0 == 2)>")),
    ('dense<["a", "b > c"]> : tensor<2x!tf_type.string>',
     Strings((b"a", b"b > c"), tensorflow_tensor((2,), tensorflow_type("string")))),
    ('"x" : !tf_type.string', Text('"x" : !tf_type.string')),
    ('loc("a.py":1:2)', Text('loc("a.py":1:2)'))])
def test_an_attribute_is_read_and_prints_as_text_that_reads_back(text: str, expected: Attribute) -> None:
    found = value(text)
    same(found, expected, text)
    same(value(format_attribute(found)), expected, text)


@pytest.mark.parametrize("key", ["values", "else", "loc", "type", "true", "dense", "i32", "tf._x-1", "1a", '"a b"',
                                 "tfl.description", "return", "array"])
def test_any_word_may_name_an_attribute(key: str) -> None:
    assert attributes(f"{{{key} = 1 : i32}}") == {key.strip('"'): Number(1, I32)}
    assert attributes(f"{{{key}}}") == {key.strip('"'): Unit.UNIT}


def test_aliases_of_attributes_may_stand_before_or_after() -> None:
    map = "affine_map<(d0) -> (d0)>"
    assert value("[#map, #map]", f"#map = {map}\n") == (Text(map), Text(map))
    assert value("{k = #a}", "#b = 3 : i32\n#a = [#b]\n") == {"k": (Number(3, I32),)}


def test_an_alias_may_stand_for_many_attributes_but_not_for_too_many() -> None:
    small = "\n".join(f"#a{i} = [#a{i + 1}, #a{i + 1}]" for i in range(10)) + "\n#a10 = 1 : i8"
    assert value("#a0", small)
    large = "\n".join(f"#a{i} = [#a{i + 1}, #a{i + 1}]" for i in range(25)) + "\n#a25 = 1 : i8"
    with pytest.raises(Problem, match="stands for more than"):
        value("#a0", large)


# Locations

def location(place: str, around: str = "") -> str | None:
    module = read_module(f"func.func @f(%a: tensor<2xf32> loc(unknown)) {{ tosa.abs %a : (tensor<2xf32>) -> "
                         f"tensor<2xf32> {place}\n return {place} }} {place} {around}")
    return module.functions[0].body.operations[0].location


@pytest.mark.parametrize("place", [
    "loc(unknown)", 'loc("f.py":1:2)', 'loc("name"("f.py":1:2))', 'loc(callsite("a" at "b"("f)":1:2)))',
    'loc(fused<"x">["a", callsite("b" at "c")])', 'loc("f.py":1:2 to 3:4)'])
def test_a_location_is_kept_as_text(place: str) -> None:
    assert location(place) == place


def test_aliases_of_locations_are_replaced_by_what_they_stand_for() -> None:
    around = ('#loc = loc(unknown)\n#loc1 = loc("f.py":1:2)\n#loc2 = loc(callsite(#loc1 at #loc))\n'
              '#loc3 = loc("a"(#loc1))')
    assert location("loc(#loc1)", around) == 'loc("f.py":1:2)'
    assert location("loc(#loc2)", around) == 'loc(callsite("f.py":1:2 at unknown))'
    assert location('loc(fused[#loc3, "#loc1"])', around) == 'loc(fused["a"("f.py":1:2), "#loc1"])'
    assert location("loc(#nothing)", around) == "loc(unknown)"


def test_a_location_that_grows_without_end_is_unknown() -> None:
    around = "\n".join(f"#loc{i} = loc(fused[#loc{i + 1}, #loc{i + 1}])" for i in range(40)) + "\n#loc40 = loc(\"a\")"
    assert location("loc(#loc0)", around) == "loc(unknown)"
    assert location("loc(#l)", "#l = loc(fused[#l, #l])") == "loc(unknown)"
    assert location("loc(#l)", f'#l = loc("{"x" * 10_000}")') == "loc(unknown)"


# Python -> text -> Python

def rounded(x: float, element: ElementType) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x).astype(element.dtype))


def numbers() -> st.SearchStrategy[Attribute]:
    def of(element: ElementType) -> st.SearchStrategy[Attribute]:
        if element.is_float:
            return st.floats(width=64).map(lambda x: Number(rounded(x, element), element))
        if element.kind == "bool":
            return st.booleans()
        return st.integers(element.minimum if element.kind == "signed" else 0, element.maximum).map(
            lambda n: Number(n, element))
    return st.sampled_from([ELEMENT_TYPES[n] for n in ("i1", "i4", "i8", "i32", "i48", "i64", "ui8", "ui64", "si16",
                                                       "f16", "bf16", "f32", "f64")]).flatmap(of)


LEAVES = st.one_of(
    numbers(), st.booleans(), st.just(Unit.UNIT), st.text(st.characters(exclude_categories=["Cs"])),
    st.binary().map(lambda b: b.decode("utf-8", "surrogateescape")),
    st.lists(st.integers(-2 ** 31, 2 ** 31 - 1)).map(lambda v: Numbers(tuple(v), I64)),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=2).map(
        lambda v: Symbol(tuple(v))),
    st.sampled_from([F32, TensorType((2, None), F32), ShapeType(2), FunctionType((), (TensorType((), F32),)),
                     Dense(np.array([1, 2], np.int8), TensorType((2,), I8))]))
VALUES = st.recursive(LEAVES, lambda inner: st.one_of(
    st.lists(inner, max_size=4).map(tuple),
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)), max_leaves=12)


@settings(max_examples=400, deadline=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), VALUES, max_size=4))
def test_attributes_print_as_ascii_that_reads_back(given: dict[str, Attribute]) -> None:
    text = format_dictionary(given)
    assert text.isascii()
    assert text.isprintable()
    same(attributes(text), given, text)


def test_a_printed_string_cannot_drive_a_terminal() -> None:
    assert quoted("a\x1b[31m\u202e\n\0") == r'"a\1B[31m\E2\80\AE\0A\00"'
