"""Attributes: typed, set once, frozen and hashed once."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic import OpAttrs, Problem

VALUES = [("bool", True), ("string", "text"), ("i8", -128), ("i16", 32767), ("i32", -5), ("i64", 1 << 40), ("ui8", 255),
          ("ui64", 1 << 63),
          ("f32", 0.5), ("f64", 0.1), ("dtype", np.dtype(np.int8)), ("shape", (1, None, 3))]


@pytest.mark.parametrize("type, value", VALUES, ids=[t for t, _ in VALUES])
def test_a_value_comes_back_with_its_type(type, value):
    attributes = OpAttrs()
    assert attributes.set("a", value, type)
    assert attributes.get("a", type) == value == attributes.freeze().get("a", type)
    assert attributes.set_array("b", [value, value], type) and attributes.get_array("b", type) == (value, value)
    with pytest.raises(Problem, match=f"attribute 'a' is {type}, not "):
        attributes.get("a", "i32" if type != "i32" else "f32")
    with pytest.raises(Problem, match=f"attribute 'b' is array of {type}, not"):
        attributes.get("b", type)


def test_a_name_is_set_once():
    attributes = OpAttrs()
    assert attributes.set("a", 1) and not attributes.set("a", 2)
    assert attributes.get("a") == 1


def test_types_follow_from_values():
    attributes = OpAttrs({"i": 1, "f": 1.0, "b": True, "s": "x", "d": np.float32, "n": np.int8(3), "t": np.zeros(2),
                          "l": [1, 2],
                          "m": [1, 0.5], "g": {"inner": 1}, "c": len})
    assert [entry.kind for _, entry in attributes.items()] == [
        "bool", "function", "dtype", "f64", "aggregate", "i64", "array of i64", "array of f64", "i8", "string", "dense"]
    assert attributes.names() == tuple("bcdfgilmnst")
    assert attributes.get("g", "aggregate").get("inner") == 1


@pytest.mark.parametrize("type, value", [("i8", 128), ("ui8", -1), ("i32", 0.5), ("i32", True), ("bool", 1), ("string", 1),
                                         ("f32", "x"),
                                         ("dtype", "no type"), ("shape", 5), ("aggregate", 1), ("function", 1), ("nonsense",
                                         1)])
def test_a_value_of_another_type_is_refused_and_leaves_nothing(type, value):
    attributes = OpAttrs()
    with pytest.raises(Problem):
        attributes.set("a", value, type)
    assert "a" not in attributes and len(attributes) == 0


def test_a_missing_attribute_is_named():
    with pytest.raises(Problem, match="missing 'shape' attribute"):
        OpAttrs({"axis": 1}).get("shape")


def test_frozen_attributes_do_not_change():
    array, attributes = np.arange(3), OpAttrs()
    attributes.set("t", array)
    frozen = attributes.freeze()
    array[:] = 7
    attributes.set("more", 1)
    assert frozen.names() == ("t",) and frozen.get("t").tolist() == [0, 1, 2]
    assert frozen.freeze() is frozen
    with pytest.raises(ValueError):
        frozen.get("t")[0] = 1


def test_equal_attributes_are_one_key():
    one, two = OpAttrs({"a": 1, "b": np.arange(3)}).freeze(), OpAttrs({"b": np.arange(3), "a": 1}).freeze()
    assert one == two and hash(one) == hash(two) and {one: 1}[two] == 1


@pytest.mark.parametrize("a, b", [(1, True), (1, 1.0), (0.0, -0.0), (np.arange(2), np.arange(2.0)), ([1], 1)])
def test_values_that_python_takes_as_equal_are_different_attributes(a, b):
    assert OpAttrs({"x": a}).freeze() != OpAttrs({"x": b}).freeze()


def test_more_than_six_attributes_and_long_ones_are_kept():
    attributes = OpAttrs({f"name{n}": "x" * 100 for n in range(100)})
    assert len(attributes.freeze()) == 100 and attributes.get("name99") == "x" * 100
