"""`tosaic convert`: between .tosa and .mlir on the command line, whole files or none."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tosaic.jit.command_line.cli import main

from .files import ADD, graph

TEXT = """
tosa.variable @convert.total = dense<[0x7FC00001, 1.0]> : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.variable_read @convert.total : tensor<2xf32>
  %1 = tosa.add %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  tosa.variable_write @convert.total, %1 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
"""


@pytest.fixture
def tosaic(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command line: (exit code, standard output, standard error)."""
    def run(*arguments: Any) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    return path


def test_text_becomes_a_file_and_text_and_the_same_file(tosaic: Any, model: Path, tmp_path: Path) -> None:
    first, text, second = tmp_path / "1.tosa", tmp_path / "2.mlir", tmp_path / "3.TOSA"
    code, out, err = tosaic("convert", model, first)
    assert (code, out, err) == (0, f"{first}: {first.stat().st_size:,} bytes\n", "")
    assert tosaic("convert", first, text)[0] == 0
    assert tosaic("convert", text, second)[0] == 0
    assert first.read_bytes() == second.read_bytes()
    assert "0x7FC00001" in text.read_text()


def test_the_answer_is_json_too(tosaic: Any, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.tosa"
    assert json.loads(tosaic("convert", "--json", model, path)[1]) == {"file": str(path), "bytes": path.stat().st_size}


def test_open_extents_can_be_given(tosaic: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "open.mlir", tmp_path / "out.mlir"
    source.write_text("func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> { %0 = tosa.exp %x : (tensor<?x2xf32>) -> "
                      "tensor<?x2xf32> return %0 : tensor<?x2xf32> }")
    assert tosaic("convert", "--shape", "x=3x2", source, tmp_path / "out.tosa")[0] == 0
    assert tosaic("convert", tmp_path / "out.tosa", out)[0] == 0
    assert '"tosa.exp"(%x) : (tensor<3x2xf32>) -> tensor<3x2xf32>' in out.read_text()


def test_other_commands_take_files(tosaic: Any, tmp_path: Path) -> None:
    path = tmp_path / "sum.tosa"
    path.write_bytes(graph("a b", "c", *ADD))
    code, out, _ = tosaic("show", "graph", path)
    assert code == 0 and '%c = "tosa.add"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>' in out
    assert tosaic("run", path)[0] == 0
    assert tosaic("check", path)[0] == 0


def test_the_ending_has_to_say_what_to_write(tosaic: Any, model: Path, tmp_path: Path) -> None:
    code, out, err = tosaic("convert", model, tmp_path / "out.onnx")
    assert (code, out) == (2, "")
    assert err.endswith("out.onnx does not say what to write\n  help: let it end in .tosa or .mlir\n")


def test_a_bad_model_leaves_the_old_file_as_it_was(tosaic: Any, tmp_path: Path) -> None:
    bad, old = tmp_path / "bad.tosa", tmp_path / "old.mlir"
    bad.write_bytes(graph("a", "c", *ADD))
    old.write_text("old")
    code, out, err = tosaic("convert", bad, old)
    assert (code, out) == (3, "")
    assert f"{bad}: region main, block main, operator 0 ADD: error[symbol]: " in err
    assert old.read_text() == "old" and sorted(os.listdir(tmp_path)) == ["bad.tosa", "old.mlir"]


def test_what_cannot_be_written_is_an_error_of_the_model(tosaic: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "model.mlir", tmp_path / "out.tosa"
    source.write_text('func.func @main(%x: tensor<f32>) { "tf.Print"(%x) : (tensor<f32>) -> () return }')
    code, _, err = tosaic("convert", source, out)
    assert code == 3 and "error[unsupported]: tf.Print cannot be" in err and "leave what prints out" in err
    assert not out.exists()


def test_a_file_that_cannot_be_written_is_an_error(tosaic: Any, model: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.tosa").mkdir()
    code, _, err = tosaic("convert", model, tmp_path / "folder.tosa")
    assert code == 3 and err.startswith("error[file]: cannot write to ")
    assert sorted(os.listdir(tmp_path)) == ["folder.tosa", "model.mlir"]
