"""Graph -> file -> graph, and text -> file -> text -> file: nothing is lost, and what is written once stays the same."""
from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.schema import BY_OPERATOR, ELEMENTS, REGIONS, SIGN_AGNOSTIC
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import BlockBuilder, Function, Module, Operation, Value
from tosaic.lowering.graph.operator import OPERATORS, Op
from tosaic.lowering.graph.types import F32, I8, I32, I64, Array, ElementType, ShapeType, TensorType, block_scaled
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.fields import declared
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module as read_text

from ..text.equality import equal_modules

DATA = pathlib.Path(__file__).parents[1] / "data"
T = TensorType((2, 3), F32)
SAMPLES: dict[str, Any] = {"i32": 1, "element": 1.5, "bool": True, "array<i64>": (1, 2), "array<i32>": (1, 2), "type": I32,
                           "string": "text", "nan_mode": "IGNORE", "resize_mode": "BILINEAR",
                           "rounding_mode": "DOUBLE_ROUND", "block_size": "BLOCK_SIZE_32"}


def module_of(block: BlockBuilder, *yields: Value) -> Module:
    return Module((Function("main", block.finish(*yields), tuple(v.type for v in yields)),))


def again(module: Module) -> Module:
    """The module after a trip through a file, whose bytes are the same the second time."""
    data = write_module(module)
    found = read_module(data)
    assert write_module(found) == data
    return found


def of_text(text: str) -> Module:
    module = read_text(text)
    verify(module)
    return module


def fixpoint(text: str) -> Module:
    """text -> file -> text -> file: the second file is the first, the second text reads as the first file."""
    module = of_text(text)
    first = write_module(module)
    found = read_module(first)
    verify(found)
    printed = print_module(found)
    assert write_module(of_text(printed)) == first
    assert print_module(read_module(write_module(of_text(printed)))) == printed
    return found


# ---- constants ---------------------------------------------------------------------------------------------------
def random_bits(element: ElementType, shape: tuple[int, ...]) -> Array:
    """Random values of an element type, all its bit patterns."""
    random = np.random.default_rng(7)
    raw = random.integers(0, 256, (*shape, element.dtype.itemsize), np.uint8)
    if element.kind == "bool":
        return np.asarray((raw[..., 0] & 1).astype(np.bool_))
    if element.name == "i48":
        return np.asarray(raw.view("<i8")[..., 0] << 16 >> 16)
    if element.name == "i4":
        return np.asarray((raw[..., 0] % 15).astype(np.int8) - 7, np.int8)
    if element.bits < 8:
        raw &= 0xFF >> 8 - element.bits
    return np.ascontiguousarray(raw).reshape(-1).view(element.dtype).reshape(shape)


@pytest.mark.parametrize("element", [e for e in ELEMENTS if e], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 1, 3)], ids=str)
def test_constants_of_every_type_survive(element: ElementType, shape: tuple[int, ...]) -> None:
    block = BlockBuilder()
    values = block.add(OPERATORS["tosa.const"](values=random_bits(element, shape), to=element))
    module = module_of(block, *values)
    assert equal_modules(module, again(module))


@pytest.mark.parametrize("value", [e for e in ELEMENTS if e and e.is_float and e.bits <= 8], ids=str)
def test_block_scaled_constants_survive(value: ElementType) -> None:
    element = block_scaled(value)
    records = np.empty((2, 64), element.dtype)
    records["value"] = random_bits(value, (2, 64))
    records["scale"] = np.repeat(random_bits(element.scale, (2, 2)), 32, axis=-1)
    block = BlockBuilder()
    values = block.add(OPERATORS["tosa.const"](values=records, to=element))
    module = module_of(block, *values)
    assert equal_modules(module, again(module))


def test_constant_shapes_survive() -> None:
    block = BlockBuilder()
    found = [block.add(OPERATORS["tosa.const_shape"](values=np.array(n, np.int64)))[0]
             for n in ([], [1], [2, -1, 1 << 40], list(range(16)))]
    module = module_of(block, *found)
    assert equal_modules(module, again(module))


# ---- operators ---------------------------------------------------------------------------------------------------
RESULTS = (Value("y", T), Value("z", TensorType((3,), I8)), Value("w", ShapeType(2)))


def sample(operator: type[Op]) -> Op:
    """An operator of the table with a value other than the default in each field that files have."""
    known = {f.name for f in BY_OPERATOR[operator.name].fields}
    fields = dataclasses.fields(operator)  # type: ignore[arg-type]
    given = {f.name: SAMPLES[f.metadata["mlir"]] for f in fields if f.name in known}
    types = tuple(v.type for v in RESULTS)
    given |= {f.name: declared(types, f.metadata["result"]) for f in fields if f.metadata["mlir"] == "result"}
    return operator(**given)


PLAIN = sorted((c for c in set(OPERATORS.values()) if c.name in BY_OPERATOR and not c.variable_effect and not c.regions
                and c.name not in ("tosa.const", "tosa.const_shape")), key=lambda c: c.name)


def test_every_operator_of_the_file_format_is_tested() -> None:
    others = {f"tosa.{n.lower()}" for n in (*REGIONS, "UNKNOWN", "CONST", "CONST_SHAPE", "VARIABLE", "VARIABLE_READ",
                                            "VARIABLE_WRITE")}
    assert {c.name for c in PLAIN} | others == set(BY_OPERATOR)


@pytest.mark.parametrize("operator", PLAIN, ids=lambda c: c.name)
def test_every_operator_and_its_attributes_survive(operator: type[Op]) -> None:
    arguments = [Value("x", T), Value("s", ShapeType(3))]
    operation = Operation(sample(operator), tuple(arguments), RESULTS, location='loc("f":1:2)')
    block = BlockBuilder()
    block.arguments, block.operations = arguments, [operation]
    module = module_of(block, *RESULTS)
    assert equal_modules(module, again(module))


def test_attributes_of_custom_operators_are_any_bytes() -> None:
    attributes = "a\0\n\udc80\udcff"  # bytes that are not UTF-8, as the graph has them
    op = OPERATORS["tosa.custom"](operator_name="o", domain_name="d", implementation_attrs=attributes)
    block = BlockBuilder()
    x = block.argument(T, "x")
    found = again(module_of(block, *block.add(op, x, types=(T,)))).functions[0].body.operations[0].op
    assert found.implementation_attrs == attributes  # type: ignore[attr-defined]


# ---- structure ---------------------------------------------------------------------------------------------------
CONTROL_FLOW = """
func.func @main(%condition: tensor<i1>, %x: tensor<2xi32>, %n: tensor<i32>) -> (tensor<2xi32>, tensor<i32>, tensor<2xi32>) {
  %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %many = "tosa.const"() <{values = dense<[5, 6]> : tensor<2xi32>}> : () -> tensor<2xi32>
  %0 = tosa.cond_if %condition : tensor<i1> -> tensor<2xi32> {
    %1 = tosa.add %x, %many : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %2 = tosa.cond_if %condition : tensor<i1> -> tensor<2xi32> {
      %3 = tosa.add %1, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
      tosa.yield %3 : tensor<2xi32>
    } else {
      tosa.yield %many : tensor<2xi32>
    }
    tosa.yield %2 : tensor<2xi32>
  } else {
    tosa.yield %x : tensor<2xi32>
  }
  %4:2 = tosa.while_loop (%i = %n, %v = %x) : (tensor<i32>, tensor<2xi32>) -> (tensor<i32>, tensor<2xi32>) {
    %5 = tosa.greater %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %5 : tensor<i1>
  } do {
    ^bb0(%i: tensor<i32>, %v: tensor<2xi32>):
    %6 = tosa.sub %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %7 = tosa.add %v, %0 : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    tosa.yield %6, %7 : tensor<i32>, tensor<2xi32>
  }
  return %0, %4#0, %4#1 : tensor<2xi32>, tensor<i32>, tensor<2xi32>
}
"""

MODULES = {
    "control flow that captures": CONTROL_FLOW,
    "an argument that is returned twice": """
        func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          return %x, %x : tensor<2xf32>, tensor<2xf32>
        }""",
    "nothing": "func.func @main() { return }",
    "names": """
        func.func @"a graph"(%in-0: tensor<f32> {tosa.tensor_name = "serving:0"}, %b: tensor<f32>)
            -> (tensor<f32> {tosa.tensor_name = "b"}, tensor<f32>) {
          %0 = tosa.add %in-0, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %1 = tosa.add %0, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
          return %0, %1 : tensor<f32>, tensor<f32>
        }""",
    "variables": """
        tosa.variable @with = dense<[1.0, -0.0]> : tensor<2xf32>
        tosa.variable @"without/a name" : tensor<i8>
        tosa.variable @unused = dense<3> : tensor<1xi48>
        func.func @main(%x: tensor<2xf32>, %c: tensor<i1>) -> tensor<2xf32> {
          %with = tosa.variable_read @with : tensor<2xf32>
          %0 = tosa.add %with, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          tosa.variable_write @with, %0 : tensor<2xf32>
          %1 = tosa.cond_if %c : tensor<i1> -> tensor<i8> {
            %2 = tosa.variable_read @"without/a name" : tensor<i8>
            tosa.yield %2 : tensor<i8>
          } else {
            %2 = "tosa.const"() <{values = dense<1> : tensor<i8>}> : () -> tensor<i8>
            tosa.variable_write @"without/a name", %2 : tensor<i8>
            tosa.yield %2 : tensor<i8>
          }
          return %0 : tensor<2xf32>
        }""",
    "functions that share a variable": """
        tosa.variable @state = dense<0> : tensor<i32>
        func.func @set(%x: tensor<i32>) { tosa.variable_write @state, %x : tensor<i32> return }
        func.func @main() -> tensor<i32> {
          %0 = tosa.variable_read @state : tensor<i32>
          return %0 : tensor<i32>
        }""",
    "a loop of one value that captures two": """
        func.func @main(%x: tensor<i32>, %0: tensor<i32>, %1_a: tensor<i32>) -> tensor<i32> {
          %2 = tosa.while_loop (%i = %x) : (tensor<i32>) -> tensor<i32> {
            %3 = tosa.greater %i, %0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
            tosa.yield %3 : tensor<i1>
          } do {
            ^bb0(%i: tensor<i32>):
            %3 = tosa.sub %i, %1_a : (tensor<i32>, tensor<i32>) -> tensor<i32>
            tosa.yield %3 : tensor<i32>
          }
          return %2 : tensor<i32>
        }""",
    "unknown extents": """
        func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
          %0 = tosa.exp %x : (tensor<?x2xf32>) -> tensor<?x2xf32>
          return %0 : tensor<?x2xf32>
        }""",
    "bounds": """
        func.func @main(%x: tensor<i8>, %y: tensor<f16>, %z: tensor<bf16>) -> (tensor<i8>, tensor<f16>, tensor<bf16>) {
          %0 = tosa.clamp %x {min_val = -128 : i8, max_val = 127 : i8} : (tensor<i8>) -> tensor<i8>
          %1 = tosa.clamp %y {min_val = -0.0 : f16, max_val = 0x7C00 : f16, nan_mode = IGNORE} : (tensor<f16>) -> tensor<f16>
          %2 = tosa.clamp %z {min_val = 0.1 : bf16, max_val = 0.2 : bf16} : (tensor<bf16>) -> tensor<bf16>
          return %0, %1, %2 : tensor<i8>, tensor<f16>, tensor<bf16>
        }""",
}


@pytest.mark.parametrize("name", MODULES)
def test_text_becomes_a_file_and_text_and_the_same_file_again(name: str) -> None:
    fixpoint(MODULES[name])


@pytest.mark.parametrize("path", sorted(DATA.glob("*.mlir")), ids=lambda p: p.name)
def test_models_become_files_and_text_and_the_same_files_again(path: pathlib.Path) -> None:
    module = of_text(path.read_text())
    assert equal_modules(dataclasses.replace(module, name=None, attributes={}), fixpoint(path.read_text()))


def test_the_only_function_is_called_main() -> None:
    assert [f.name for f in fixpoint(MODULES["names"]).functions] == ["main"]


def test_the_entry_comes_first() -> None:
    assert [f.name for f in fixpoint(MODULES["functions that share a variable"]).functions] == ["main", "set"]


def test_names_of_values_arguments_and_results_survive() -> None:
    function = fixpoint(MODULES["names"]).functions[0]
    assert [v.name for v in (*function.arguments, *function.body.yields)] == ["serving:0", "b_1", "b", "1"]


def test_names_that_rewrites_make_stay_the_same_through_text() -> None:
    block = BlockBuilder("7_")
    x = block.argument(T, "x")
    names = ["7_0", "7_0_1", "7#0", "a b", "3x", "x"]
    values = [block.add(OPERATORS["tosa.abs"](), x, name=name)[0] for name in names]
    found = again(module_of(block, *values)).functions[0]
    assert [v.name for v in found.body.yields] == ["v7_0", "v7_0_1", "7#0", "a b", "3x", "x_1"]


def test_variables_survive_with_their_initial_values() -> None:
    found = {d.op.symbol: d.op for d in fixpoint(MODULES["variables"]).declarations}  # type: ignore[attr-defined]
    initial = found["with"].initial  # type: ignore[attr-defined]
    assert set(found) == {"with", "without/a name", "unused"}
    assert initial.tobytes() == np.array([1, -0.0], np.float32).tobytes()
    assert found["without/a name"].initial is None  # type: ignore[attr-defined]


def test_shapes_that_are_computed_survive() -> None:
    block = BlockBuilder()
    x = block.argument(TensorType((6,), I64), "x")
    (two,) = block.add(OPERATORS["tosa.const_shape"](values=np.array([2], np.int64)))
    (one,) = block.add(OPERATORS["tosa.const_shape"](values=np.array([1], np.int64)))
    (three,) = block.add(OPERATORS["tosa.add_shape"](), two, one)
    (both,) = block.add(OPERATORS["tosa.concat_shape"](), two, three)
    found = again(module_of(block, *block.add(OPERATORS["tosa.reshape"](), x, both)))
    verify(found)
    assert [constant_of(o.results) for o in found.functions[0].body.operations] == [[2], [1], [3], [2, 3], None]


def constant_of(values: Sequence[Value]) -> list[int] | None:
    return None if values[0].constant is None else values[0].constant.tolist()


def test_every_operator_that_minds_no_signs_is_one() -> None:
    assert {f"tosa.{name.lower()}" for name in SIGN_AGNOSTIC} <= set(BY_OPERATOR)
