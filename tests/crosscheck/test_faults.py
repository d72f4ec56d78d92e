"""Calls that end with an error, and operands that the specification forbids: both are findings of the check, not faults of
the model."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit import stages
from tosaic.jit.command_line.cli import main
from tosaic.lowering.dialects.tosa import unary
from tosaic.runtime.errors import Problem

EXP = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = tosa.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""
UNWRITTEN = """
module {
  tosa.variable @n : tensor<2xi32>
  func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
    %0 = tosa.variable_read @n : tensor<2xi32>
    tosa.variable_write @n, %x : tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
"""
X = np.zeros(3, np.float32)


def fails(self: Any, *operands: Any) -> Any:
    raise Problem("it breaks", kind="check")


def test_an_error_of_the_reference_alone_is_a_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(unary.Exp, "reference", fails)
    found = tosaic.load(EXP).main.check([[X]])
    assert not found.agrees and found.difference is not None
    assert 'the reference ends with "it breaks", compiled code gives results, in call 0' in str(found)
    (tmp_path / "m.mlir").write_text(EXP)
    assert main(["check", str(tmp_path / "m.mlir")]) == 1
    assert "it breaks" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [Problem, ValueError])
def test_an_error_of_compiled_code_alone_is_a_difference(kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: Any, *arrays: Any, **named: Any) -> Any:
        raise kind("it breaks")

    monkeypatch.setattr(stages, "executable", lambda *ignored, **named: lambda *a, **k: breaks(None))
    found = tosaic.load(EXP).main.check([[X]])
    assert not found.agrees and "compiled code ends with" in str(found)
    assert "the reference gives results, in call 0" in str(found)


def positive(x: Any) -> Any:
    tosaic.check(tosaic.ops.all(x > 0), "x is not positive")
    return x + 1


def test_an_error_of_both_is_told_beside_the_calls_that_agree() -> None:
    entry = tosaic.jit(positive).trace(np.ones(2, np.int32))
    found = entry.check([[np.array(x, np.int32)] for x in ((1, 2), (-1, 2), (3, -3))])
    assert found.agrees and len(found.faults) == 2 and "both end call 1 with" in str(found)


def test_errors_of_both_alone_are_no_agreement() -> None:
    with pytest.raises(Problem, match="nothing was compared: both engines end call 0 with"):
        tosaic.load(UNWRITTEN).main.check([[np.array([1, 2], np.int32)]] * 2)


def test_two_models_with_one_variable_name_and_other_types_are_checked_in_one_process() -> None:
    for text in (UNWRITTEN, UNWRITTEN.replace("i32", "i16")):
        x = np.array([1, 2], np.int32 if "i32" in text else np.int16)
        with pytest.raises(Problem, match="read before"):
            tosaic.load(text).main.check([[x]])
    assert "n" not in tosaic.default_context


# ---- indices -----------------------------------------------------------------------------------------------------------------
GATHER = """
func.func @main(%x: tensor<1x5x2xf32>, %i: tensor<1x3xi32>) -> tensor<1x3x2xf32> {
  %0 = tosa.gather %x, %i : (tensor<1x5x2xf32>, tensor<1x3xi32>) -> tensor<1x3x2xf32>
  return %0 : tensor<1x3x2xf32>
}
"""
SCATTER = """
func.func @main(%x: tensor<1x5x2xf32>, %i: tensor<1x3xi32>, %y: tensor<1x3x2xf32>) -> tensor<1x5x2xf32> {
  %0 = tosa.scatter %x, %i, %y : (tensor<1x5x2xf32>, tensor<1x3xi32>, tensor<1x3x2xf32>) -> tensor<1x5x2xf32>
  return %0 : tensor<1x5x2xf32>
}
"""
BRANCH = """
func.func @main(%x: tensor<1x5x2xf32>, %i: tensor<1x3xi32>) -> tensor<1x3x2xf32> {
  %t = "tosa.const"() <{values = dense<true> : tensor<i1>}> : () -> tensor<i1>
  %m = tosa.reduce_max %i {axis = 1 : i32} : (tensor<1x3xi32>) -> tensor<1x1xi32>
  %s = "tosa.const_shape"() <{values = dense<> : tensor<0xindex>}> : () -> !tosa.shape<0>
  %r = tosa.reshape %m, %s : (tensor<1x1xi32>, !tosa.shape<0>) -> tensor<i32>
  %z = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
  %c = tosa.greater %r, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %0 = tosa.cond_if %c : tensor<i1> -> tensor<1x3x2xf32> {
    %1 = tosa.gather %x, %i : (tensor<1x5x2xf32>, tensor<1x3xi32>) -> tensor<1x3x2xf32>
    tosa.yield %1 : tensor<1x3x2xf32>
  } else {
    %j = tosa.abs %i : (tensor<1x3xi32>) -> tensor<1x3xi32>
    %2 = tosa.gather %x, %j : (tensor<1x5x2xf32>, tensor<1x3xi32>) -> tensor<1x3x2xf32>
    tosa.yield %2 : tensor<1x3x2xf32>
  }
  return %0 : tensor<1x3x2xf32>
}
"""
ROWS = np.arange(10, dtype=np.float32).reshape(1, 5, 2)


def indices(*values: int) -> Any:
    return np.array([values], np.int32)


@pytest.mark.parametrize(("index", "what"), [((0, 4, 2), None),
                                             ((0, 5, 2), "index 5 at [0, 1] is out of range, 1 of 3 are not in 0 to 4"),
                                             ((-1, 4, 9), "index -1 at [0, 0] is out of range, 2 of 3")])
@pytest.mark.parametrize("text", [GATHER, SCATTER, BRANCH], ids=["gather", "scatter", "in a branch"])
def test_an_index_out_of_range_is_reported_with_operator_and_call(text: str, index: tuple[int, ...], what: str | None) -> None:
    more = [np.ones((1, 3, 2), np.float32)] if text is SCATTER else []
    found = tosaic.load(text, name="t.mlir").main.check([[ROWS, indices(1, 2, 3), *more], [ROWS, indices(*index), *more]])
    assert found.agrees and found.passes == (what is None)
    if what is not None:
        (violation,) = found.violations
        name = "tosa.scatter" if text is SCATTER else "tosa.gather"
        assert what in str(violation) and name in str(violation) and "in call 1" in str(violation)
        assert str(violation).startswith("t.mlir:")


def test_an_index_that_is_written_twice_is_reported() -> None:
    found = tosaic.load(SCATTER).main.check([[ROWS, indices(1, 3, 1), np.ones((1, 3, 2), np.float32)]])
    assert not found.passes and "index 1 is written more than once, in call 0" in str(found)


def test_the_command_says_no_to_an_index_out_of_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(GATHER)
    np.save(tmp_path / "i.npy", indices(0, 7, 1))
    assert main(["check", str(tmp_path / "m.mlir"), "--input", f"i={tmp_path}/i.npy", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["agrees"] is True and answer["passes"] is False and "index 7" in answer["violations"][0]
