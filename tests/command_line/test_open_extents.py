"""Models whose extents are open, at the command line: what needs them says how they are given, and works when they are."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed (the extra `onnx`)")


@pytest.fixture(params=["onnx", "tensorflow"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Rows of a table by their numbers, of which negative ones count from the end."""
    if request.param == "tensorflow":
        path = tmp_path / "embedding.mlir"
        path.write_text("""
func.func @main(%x: tensor<?x3xi64>) -> tensor<?x3x4xf32> {
  %table = "tf.Const"() <{value = dense<1.5> : tensor<10x4xf32>}> : () -> tensor<10x4xf32>
  %axis = "tf.Const"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %0 = "tf.GatherV2"(%table, %x, %axis) <{batch_dims = 0 : i64}>
      : (tensor<10x4xf32>, tensor<?x3xi64>, tensor<i32>) -> tensor<?x3x4xf32>
  return %0 : tensor<?x3x4xf32>
}""")
        return str(path)
    helper, types = onnx.helper, onnx.TensorProto
    table = onnx.numpy_helper.from_array(np.arange(40, dtype=np.float32).reshape(10, 4), "table")
    graph = helper.make_graph([helper.make_node("Gather", ["table", "x"], ["y"])], "embedding",
                              [helper.make_tensor_value_info("x", types.INT64, ["b", "n"])],
                              [helper.make_tensor_value_info("y", types.FLOAT, ["b", "n", 4])], [table])
    path = tmp_path / "embedding.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


@pytest.mark.parametrize("command", ["run", "check", "profile --calls 1", "tune --calls 1 -o {}", "report", "compile -o {}",
                                     "show plan", "convert {}/out.tosa"])
def test_what_needs_the_extents_says_how_they_are_given(command: str, model: str, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    name, *rest = command.format(tmp_path / "made").split()
    assert main([name, model, *rest]) in (2, 3)
    assert "--shape" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check --calls 3", "profile --calls 1", "report", "compile -o {}",
                                     "convert {}/out.tosa"])
def test_it_works_with_them(command: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Random numbers of rows are those of rows that there are, so that a check of an embedding agrees."""
    name, *rest = command.format(tmp_path / "made").split()
    assert main([name, model, *rest, "--shape", "x=2x3"]) == 0, capsys.readouterr().out


def test_a_converted_file_has_the_extents_that_were_given(model: str, tmp_path: Path) -> None:
    assert main(["convert", model, str(tmp_path / "out.tosa"), "--shape", "x=2x3"]) == 0
    assert tosaic.load(tmp_path / "out.tosa").main.inputs[0].shape == (2, 3)
