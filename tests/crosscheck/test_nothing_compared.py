"""Nothing compared is never yes: entries from every door, with inputs that are wrong in every way in which inputs can be, end
in a Problem, and the command line in exit code 2. Elements that cannot be compared are counted."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.tools.check.tally import NANS, UNBOUNDED, Elements, Tally
from tosaic.jit.tools.check.verdict import Agrees
from tosaic.lowering.flatbuffer.table_builder import Scalar
from tosaic.runtime.errors import Problem

from ..tflite.files import Graph, Operator, Tensor, constant, file

Array = np.ndarray[Any, Any]

TOSA = """func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = tosa.add %x, %y : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}"""
INTEGERS = """func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %0 = tosa.bitwise_not %x : (tensor<4xi8>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}"""
STATEFUL = """tosa.variable @n = dense<1> : tensor<2xi32>
func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = tosa.variable_read @n : tensor<2xi32>
  %1 = tosa.add %0, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  tosa.variable_write @n, %1 : tensor<2xi32>
  return %0 : tensor<2xi32>
}"""
NO_RESULT = """tosa.variable @n = dense<1> : tensor<2xi32>
func.func @main(%x: tensor<2xi32>) {
  tosa.variable_write @n, %x : tensor<2xi32>
  return
}"""
TF = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = "tf.Tanh"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
OPEN = """func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "tf.Tanh"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}"""
IDENTITY = "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> { return %x : tensor<2x3xf32> }"


def tflite() -> bytes:
    return file(Graph("x", "y", [Tensor("x", (1, 1, 4, 1)), constant("s", [1, 8], "i32"), Tensor("y", (1, 1, 8, 1))],
                      [Operator("RESIZE_NEAREST_NEIGHBOR", "x s", "y", (Scalar("B", 0), Scalar("B", 0)))]))


def onnx() -> bytes:
    helper = pytest.importorskip("onnx.helper", reason="onnx is not installed (the extra `onnx`)")
    x, y = (helper.make_tensor_value_info(name, 1, [2, 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "main", [x], [y])
    return bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString())


def jitted() -> Any:
    return tosaic.jit(lambda x, y: x @ y.T).trace(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))


DOORS: dict[str, Callable[[], Any]] = {
    "tosa": lambda: tosaic.load(TOSA).main, "integers": lambda: tosaic.load(INTEGERS).main,
    "stateful": lambda: tosaic.load(STATEFUL).main, "no result": lambda: tosaic.load(NO_RESULT).main,
    "tf": lambda: tosaic.load(TF).main, "open": lambda: tosaic.load(OPEN).main, "identity": lambda: tosaic.load(IDENTITY).main,
    "tflite": lambda: tosaic.from_tflite(tflite()).main, "onnx": lambda: tosaic.from_onnx(onnx()).main, "jit": jitted,
    "model": lambda: tosaic.load(TOSA)}


def right(entry: Any) -> list[Array]:
    """Arrays that the entry takes."""
    entry = entry.main if isinstance(entry, tosaic.Model) else entry
    return [np.ones([n or 2 for n in t.shape], t.dtype) for t in entry.inputs]


def malformed(x: list[Array]) -> Iterator[tuple[str, Any]]:
    """Arguments of `check` that are wrong, each in one way."""
    first, *rest = x
    other = np.float64 if first.dtype.kind == "f" else np.float32
    yield "no calls", ([],)
    yield "no inputs", ()
    yield "an empty call", ([[]],)
    yield "one input more", ([[*x, first]],)
    yield "one input less", ([x[:-1]],)
    yield "another type", ([[first.astype(other), *rest]],)
    yield "another type in the second call", ([x, [first.astype(other), *rest]],)
    yield "another rank", ([[np.ones((*first.shape, 2), first.dtype), *rest]],)
    yield "another extent", ([[np.ones((*first.shape[:-1], first.shape[-1] + 1), first.dtype), *rest]],)
    yield "no elements", ([[np.ones((*first.shape[:-1], 0), first.dtype), *rest]],)
    yield "a number", (3,)
    yield "None", (None,)
    yield "a text", ("inputs",)
    yield "a text in a call", ([["inputs", *rest]],)
    yield "an unknown name", ([{"nobody": first}],)
    yield "no names", ([{}],)
    yield "objects", ([[np.array([None, {}], object), *rest]],)
    yield "ragged lists", ([[[1, [2, 3]], *rest]],)


KINDS = [name for name, _ in malformed([np.ones(2, np.float32)])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("door", DOORS)
def test_wrong_inputs_end_in_a_problem(door: str, kind: str) -> None:
    entry = DOORS[door]()
    with pytest.raises(Problem) as raised:
        entry.check(*dict(malformed(right(entry)))[kind])
    assert raised.value.kind in ("argument", "shape"), str(raised.value)


@pytest.mark.parametrize("door", DOORS)
def test_inputs_are_given_as_a_call_gives_them(door: str) -> None:
    entry = DOORS[door]()
    x = right(entry)
    found = [entry.check(*x), entry.check([x]), entry.check([x, x])]
    if door != "jit":
        names = [v.name for v in (entry.main if door == "model" else entry).inputs]
        found += [entry.check(dict(zip(names, x))), entry.check(**dict(zip(names, x)))]
    assert all(f.agrees and f.verdict.elements.compared > 0 for f in found)
    assert found[2].verdict.elements.compared == 2 * found[0].verdict.elements.compared


def test_options_may_still_stand_behind_the_calls() -> None:
    entry = tosaic.load(INTEGERS).main
    for options in (None, tosaic.CompileOptions(threads=1)):
        assert entry.check([right(entry)], options).agrees


# ---- nothing to compare ------------------------------------------------------------------------------------------------------
FAULTS = """tosa.variable @n : tensor<2xi32>
func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
  %0 = tosa.variable_read @n : tensor<2xi32>
  tosa.variable_write @n, %x : tensor<2xi32>
  return %0 : tensor<2xi32>
}"""
NOTHING = {
    "no results and no variables": "func.func @main(%x: tensor<2xi32>) { return }",
    "only faults": FAULTS,
    "only NaN": """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = tosa.log %x : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""}


@pytest.mark.parametrize("kind", NOTHING)
def test_a_comparison_of_nothing_is_a_problem(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = tosaic.load(NOTHING[kind]).main
    x = [np.full(t.shape, -1, t.dtype) for t in entry.inputs]
    with pytest.raises(Problem, match="nothing was compared"):
        entry.check([x, x])
    path, values = tmp_path / "m.mlir", tmp_path / "x.npy"
    path.write_text(NOTHING[kind])
    np.save(values, x[0])
    assert main(["check", str(path), "--input", str(values)]) == 2
    out = capsys.readouterr()
    assert "agrees" not in out.out and "nothing was compared" in out.err


def test_a_verdict_without_elements_cannot_be_made() -> None:
    for elements in (Elements(), Elements(0, ((NANS, 3),))):
        with pytest.raises(Problem, match="nothing was compared"):
            Agrees(elements)
    assert Agrees(Elements(1)).difference is None


def test_elements_without_a_bound_and_nans_are_counted() -> None:
    x = np.array([1, np.nan, np.nan, 2], np.float32)
    tally = Tally()
    assert tally.add(x, x, np.array([False, True, False, False]), UNBOUNDED) == 2
    assert tally.elements == Elements(2, ((NANS, 1), (UNBOUNDED, 1)))
    assert tally.elements.not_comparable == 2 and "2 not comparable" in tally.elements.reasons


def test_the_verdict_says_what_could_not_be_compared() -> None:
    entry = tosaic.load(NOTHING["only NaN"]).main
    found = entry.check(np.array([1, 2, -1, -1], np.float32))
    assert found.agrees and found.uncompared == 4 and found.elements == 2 and found.results == 2
    assert f"4 not comparable: {NANS} (4)" in str(found) and found.as_dict()["reasons"] == {NANS: 4}


# ---- the command line --------------------------------------------------------------------------------------------------------
def wrong_files(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Options with files that do not give the inputs of TOSA."""
    x = np.ones((2, 3), np.float32)
    named: dict[str, dict[str, Array]] = {
        "empty": {}, "lacks an input": {"x": x}, "unknown names": {"a": x, "b": x},
        "one name too many": {"x": x, "y": x, "z": x}, "another type": {"x": x, "y": x.astype(np.float64)},
        "another shape": {"x": x, "y": x[:1]}, "no elements": {"x": x, "y": x[:0]},
        "objects": {"x": x, "y": np.array([None, {}], object)}}
    for number, (kind, arrays) in enumerate(named.items()):
        np.savez(folder / f"{number}.npz", **arrays)  # type: ignore[arg-type]
        yield kind, ["--input", str(folder / f"{number}.npz")]
    yield "an array of a file that has none", ["--input", f"x={folder}/0.npz"]
    yield "an unknown input", ["--input", f"z={folder}/1.npz"]
    np.save(folder / "x.npy", x)
    yield "one array for two inputs", ["--input", f"{folder}/x.npy"]
    yield "no file", ["--input", f"{folder}/none.npz"]
    yield "no source", ["--input", ""]
    yield "no calls", ["--calls", "0"]


@pytest.mark.parametrize("command", ["check", "run", "profile"])
def test_wrong_files_end_with_exit_code_two(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(TOSA)
    for kind, options in wrong_files(tmp_path):
        assert main([command, str(tmp_path / "m.mlir"), *options]) == 2, kind
        assert "agrees" not in capsys.readouterr().out, kind


def test_a_file_and_what_is_said_of_the_others_make_a_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(TOSA)
    np.savez(tmp_path / "x.npz", x=np.ones((2, 3), np.float32))
    for other in ("y=random:-3", "random:5"):
        assert main(["check", str(tmp_path / "m.mlir"), "--input", f"{tmp_path}/x.npz", "--input", other, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["agrees"] is True
    assert main(["check", str(tmp_path / "m.mlir"), "--seed", "-1"]) == 0


@pytest.mark.parametrize(("option", "value"), [
    (option, value) for option in ("--fit", "--boards", "--limits", "--html", "--diff", "--entry", "--shape")
    for value in ("", " ", ",", ":") if option != "--html" or not value.strip()])
def test_an_option_with_nothing_in_it_is_a_problem(option: str, value: str, tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mlir").write_text(TOSA)
    assert main(["report", str(tmp_path / "m.mlir"), option, value]) in (2, 3)
    assert not capsys.readouterr().out
