"""What the bridges to PyTorch and ONNX share, without either: missing packages, a converter that ends badly, and the changes to
the graphs that torch-mlir writes."""
from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.models.load_model import model_of
from tosaic.jit.models.open_extents import open_model
from tosaic.jit.models.torch_mlir import to_tosa
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.lowering.rewrite.function_interface import PersistentTensor, bind_state, rename_inputs
from tosaic.lowering.rewrite.narrow_doubles import narrow_doubles
from tosaic.lowering.rewrite.open_bounds import open_bounds
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import Interpreter

DATA = pathlib.Path(__file__).parents[1] / "data" / "torch_mlir"


# ---- the child -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("package", ["torch", "torch_mlir"])
def test_a_missing_package_is_named_with_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else sys.__spec__)
    with pytest.raises(tosaic.Problem, match=f"needs {package.replace('_', '-')}, which is not installed") as caught:
        tosaic.from_torch(b"anything")
    assert caught.value.help == 'pip install "tosaic[torch]"'


def answered_by(program: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tosaic.Problem:
    """The Problem that comes of a child that runs `program`."""
    monkeypatch.setattr(to_tosa.ConversionRequest, "command", lambda self, result, is_text: [sys.executable, "-c", program])
    with pytest.raises(tosaic.Problem) as caught:
        to_tosa.lowered(to_tosa.ConversionRequest(pathlib.Path("m.mlirbc"), "model"), **options)
    return caught.value


def test_a_converter_that_aborts_does_not_end_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = answered_by("import os, sys; print('assertion failed', file=sys.stderr, flush=True); os.abort()", monkeypatch)
    assert problem.unsupported and "model cannot be lowered to TOSA: torch-mlir was ended by signal 6" in problem.message
    assert "assertion failed" in str(problem) and problem.help


def test_a_converter_that_says_nothing_sensible_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in ("", "[1]", "{"):
        assert "ended with status 3" in answered_by(f"print({said!r}); raise SystemExit(3)", monkeypatch).message


def test_a_converter_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "took longer than 0.2 seconds" in answered_by("import time; time.sleep(60)", monkeypatch, seconds=0.2).message


def test_a_failure_without_an_operation_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    diagnostic = {"message": "no rank", "location": "loc(unknown)", "notes": []}
    said = json.dumps({"step": "lower", "failure": "MLIRError: x", "diagnostics": [diagnostic]})
    assert answered_by(f"print({said!r})", monkeypatch).message == "torch-mlir cannot lower it: no rank"
    said = json.dumps({"step": "read", "failure": "KeyError: 7\nmore", "diagnostics": []})
    problem = answered_by(f"print({said!r})", monkeypatch)
    assert problem.message == "model cannot be read by torch-mlir: KeyError: 7" and "more" in str(problem)


# ---- graphs --------------------------------------------------------------------------------------------------------------
def read(text: str) -> Module:
    return read_module(text, "<test>")


def test_f64_between_becomes_f32() -> None:
    module = narrow_doubles(read((DATA / "table.mlir").read_text()))
    assert "f64" not in print_graph(module)
    model = model_of(lambda: module, None)
    tokens = np.array([[1, 2, 9], [0, 5, 5]], np.int64)
    codes = np.arange(6, dtype=np.float32).reshape(2, 3) - 3
    np.testing.assert_allclose(model(tokens), codes, atol=1e-5)  # rows that are normalised add up to 0
    np.testing.assert_allclose(Interpreter(module)(tokens)[0], codes, atol=1e-5)


def print_graph(module: Module) -> str:
    from tosaic.lowering.text.printer import print_module
    return print_module(module, elide=None)


def test_finite_constants_stay_finite() -> None:
    module = narrow_doubles(read("""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "tosa.const"() {values = dense<[-1.7e308, 0xFFF0000000000000, 0.1]> : tensor<3xf64>} : () -> tensor<3xf64>
      %1 = tosa.cast %x : (tensor<3xf32>) -> tensor<3xf64>
      %2 = tosa.add %1, %0 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %3 = tosa.clamp %2 {min_val = -1.0e300 : f64, max_val = 1.0 : f64} : (tensor<3xf64>) -> tensor<3xf64>
      %4 = tosa.cast %3 : (tensor<3xf64>) -> tensor<3xf32>
      return %4 : tensor<3xf32> }"""))
    largest = np.finfo(np.float32).max
    found = model_of(lambda: module, None)(np.zeros(3, np.float32))
    np.testing.assert_array_equal(found, np.array([-largest, -largest, 0.1], np.float32))
    assert [o.op.name for o in module.functions[0].body.operations].count("tosa.cast") == 0


@pytest.mark.parametrize("text", ["func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> { return %x : tensor<3xf64> }",
    "func.func @main(%x: tensor<3xf32>) -> tensor<3xf64> { %0 = tosa.cast %x : (tensor<3xf32>) -> tensor<3xf64>\n"
    "return %0 : tensor<3xf64> }"], ids=["input", "result"])
def test_f64_that_callers_see_is_refused(text: str) -> None:
    with pytest.raises(tosaic.Problem, match=r"(input x|result 0) of main is of f64"):
        narrow_doubles(read(text))


def test_a_graph_without_f64_is_left_alone() -> None:
    module = read("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }")
    assert narrow_doubles(module) is module


@pytest.mark.parametrize(("element", "largest"), [("f32", "3.40282347E+38"), ("f16", "6.550400e+04"), ("bf16", "3.389530e+38")])
def test_a_bound_at_the_largest_number_is_none(element: str, largest: str) -> None:
    module = open_bounds(read(f"""func.func @main(%x: tensor<{element}>) -> tensor<{element}> {{
      %0 = tosa.clamp %x {{min_val = 0.0 : {element}, max_val = {largest} : {element}}}
        : (tensor<{element}>) -> tensor<{element}>
      return %0 : tensor<{element}> }}"""))
    clamp: Any = module.functions[0].body.operations[0].op
    assert (clamp.min_val, clamp.max_val) == (0.0, np.inf)


def test_other_bounds_stay() -> None:
    module = open_bounds(read("""func.func @main(%x: tensor<2xi8>, %y: tensor<2xf32>) -> (tensor<2xi8>, tensor<2xf32>) {
      %0 = tosa.clamp %x {min_val = -128 : i8, max_val = 127 : i8} : (tensor<2xi8>) -> tensor<2xi8>
      %1 = tosa.clamp %y {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<2xf32>) -> tensor<2xf32>
      return %0, %1 : tensor<2xi8>, tensor<2xf32> }"""))
    bounds: Any = [(o.op.min_val, o.op.max_val) for o in module.functions[0].body.operations]  # type: ignore[attr-defined]
    assert bounds == [(-128, 127), (0.0, 6.0)]


SUM = """func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %0 = tosa.add %arg0, %arg1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = tosa.sub %0, %arg0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32> }"""


def test_inputs_and_results_become_state() -> None:
    module = read(SUM)
    bound = bind_state(module, module.function("main"), [PersistentTensor("sum.total", np.array([1, 2], np.float32))])
    model, context = model_of(lambda: bound, None), tosaic.Context("bind")
    assert model.main.inputs == ("arg1: tensor<2xf32>",) and model.main.outputs == ("tensor<2xf32>",)
    x = np.array([1, 10], np.float32)
    for times in (1, 2):
        np.testing.assert_array_equal(model(x, context=context), x)
        np.testing.assert_array_equal(context.read("sum.total"), np.array([1, 2], np.float32) + times * x)


def test_state_of_another_type_is_refused() -> None:
    module = read(SUM)
    with pytest.raises(tosaic.Problem, match=r"total is tensor<2xf32>, its initial value has shape \[2\] of int32"):
        bind_state(module, module.function("main"), [PersistentTensor("total", np.array([1, 2], np.int32))])


def test_inputs_are_named() -> None:
    module = read(SUM)
    named = rename_inputs(module, module.function("main"), ["a", "b"])
    x, y = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    total, same = model_of(lambda: named, None)({"b": y, "a": x})
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(same, y)


def test_names_are_made_of_letters_that_mlir_allows_and_differ() -> None:
    assert to_tosa.spelled_names(["x", "serving/x:0", "a b", "a_b", ""]) == ["x", "serving_x_0", "a_b_2", "a_b_3", "_"]


def test_a_graph_may_be_made_for_each_set_of_shapes() -> None:
    asked: list[dict[str, tuple[int, ...]]] = []

    def make(shapes: Any) -> Module:
        asked.append(dict(shapes))
        type = "tensor<" + "".join(f"{n}x" for n in shapes["x"]) + "f32>"
        return read(f"func.func @main(%x: {type}) -> {type} {{\n%0 = tosa.ceil %x : ({type}) -> {type}\nreturn %0 : {type} }}")

    model = open_model({"x": TensorType((None, 2), F32)}, (TensorType((None, 2), F32),), "other.graph", make)
    assert model.main.is_dynamic and "other.graph" in str(model)
    for rows in (1, 3, 1):
        x = np.full((rows, 2), 0.5, np.float32)
        np.testing.assert_array_equal(model(x), x + x)
    assert asked == [{"x": (1, 2)}, {"x": (3, 2)}]
    with pytest.raises(tosaic.Problem, match="does not fit"):
        model(np.ones((1, 3), np.float32))
    with pytest.raises(tosaic.Problem, match="its shape must be known"):
        model.main.compile()
