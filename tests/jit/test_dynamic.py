"""Models with extents that are left open: code is made for the shapes of each call."""
from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.models.dynamic_shapes import KEPT

TEXT = """
func.func @main(%x: tensor<?x3xf32>, %y: tensor<1x3xf32>) -> tensor<?x3xf32> {
  %sum = tosa.add %x, %y : (tensor<?x3xf32>, tensor<1x3xf32>) -> tensor<?x3xf32>
  return %sum : tensor<?x3xf32>
}
"""
LOOP = """
func.func @main(%n: tensor<i32>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %one = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
  %zero = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
  %0:2 = tosa.while_loop (%i = %n, %v = %x) : (tensor<i32>, tensor<?xf32>) -> (tensor<i32>, tensor<?xf32>) {
    %go = tosa.greater %i, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    tosa.yield %go : tensor<i1>
  } do {
  ^bb0(%i: tensor<i32>, %v: tensor<?xf32>):
    %less = tosa.sub %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %twice = tosa.add %v, %v : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    tosa.yield %less, %twice : tensor<i32>, tensor<?xf32>
  }
  return %0#1 : tensor<?xf32>
}
"""


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_a_call_makes_code_for_its_shapes() -> None:
    model = tosaic.load(TEXT)
    for rows in (1, 4, 9):
        np.testing.assert_array_equal(model(ones(rows, 3), ones(1, 3)), 2 * ones(rows, 3))
        np.testing.assert_array_equal(model({"y": ones(1, 3), "x": ones(rows, 3)}), 2 * ones(rows, 3))


def test_shapes_go_into_loops() -> None:
    model = tosaic.load(LOOP)
    for length in (1, 5):
        np.testing.assert_array_equal(model(np.array(3, np.int32), ones(length)), 8 * ones(length))


def test_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(tosaic.Problem, match=r"x is tensor<\?x3xf32>, an array of tensor<2x4xf32> does not fit"):
        tosaic.load(TEXT)(ones(2, 4), ones(1, 3))
    with pytest.raises(tosaic.Problem, match="no input named z"):
        tosaic.load(TEXT).main.specialize({"z": (2, 3)})
    with pytest.raises(tosaic.Problem, match="its shape must be given"):
        tosaic.load(TEXT).main.specialize({"y": (1, 3)})


def test_an_array_of_another_type_is_refused() -> None:
    with pytest.raises(tosaic.Problem, match="f64"):
        tosaic.load(TEXT)(np.ones((2, 3)), ones(1, 3))


def test_without_shapes_the_way_to_give_them_is_named() -> None:
    with pytest.raises(tosaic.Problem, match="specialize"):
        tosaic.load(TEXT).main.compile()


def test_a_declared_extent_that_does_not_follow_is_refused() -> None:
    text = TEXT.replace("-> tensor<?x3xf32>", "-> tensor<2x3xf32>").replace("return %sum : tensor<?", "return %sum : tensor<2")
    np.testing.assert_array_equal(tosaic.load(text)(ones(2, 3), ones(1, 3)), 2 * ones(2, 3))
    with pytest.raises(tosaic.Problem, match="declared as tensor<2x3xf32>"):
        tosaic.load(text)(ones(4, 3), ones(1, 3))


def test_only_the_last_shapes_are_kept() -> None:
    entry = tosaic.load(TEXT).main
    first = entry.specialize({"x": (1, 3)})
    for rows in range(2, KEPT + 2):
        entry.specialize({"x": (rows, 3)})
    assert entry.specialize({"x": (1, 3)}) is not first
    assert entry.specialize({"x": (KEPT, 3)}) is entry.specialize({"x": (KEPT, 3)})


def test_the_command_line_takes_shapes(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert main(["run", str(path), "--shape", "x=5x3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]
    assert main(["run", str(path), "--shape", "x=5xthree"]) == 2
    assert "INPUT=SHAPE" in capsys.readouterr().err
    assert main(["compile", str(path), "-o", str(tmp_path)]) == 3
    assert "--shape" in capsys.readouterr().err
