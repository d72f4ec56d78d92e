"""Shapes of what a file leaves open: the batch that it states is taken and said, `shapes=` and `--shape` close inputs of every
door, and the option that a message suggests works."""
from __future__ import annotations

import importlib.util
import logging
import pathlib
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tflite"))
from files import Graph, Operator, Signature, Tensor, constant, file, ints


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{' and '.join(missing)} not installed")


# ---- y = |x|, of x: tensor<?x3xf32>, through each door -----------------------------------------------------------------------
def as_onnx(path: pathlib.Path, shape: Sequence[Any] = ("batch", 3), name: str = "x") -> pathlib.Path:
    import onnx
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", [name], ["y"])], "g", [value(name, 1, list(shape))],
                                   [value("y", 1, list(shape))])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path / "m.onnx")
    return path / "m.onnx"


def as_tflite(path: pathlib.Path) -> pathlib.Path:
    graph = Graph("x", "y", [Tensor("x", (-1, 3)), Tensor("y", (-1, 3))], [Operator("ABS", "x", "y")])
    (path / "m.tflite").write_bytes(file(graph))
    return path / "m.tflite"


def as_mlir(path: pathlib.Path, type: str = "tensor<?x3xf32>", name: str = "x") -> pathlib.Path:
    (path / "m.mlir").write_text(f"func.func @main(%{name}: {type}) -> {type} {{\n"
                                 f"  %y = tosa.abs %{name} : ({type}) -> {type}\n  return %y : {type}\n}}\n")
    return path / "m.mlir"


def as_tf_mlir(path: pathlib.Path) -> pathlib.Path:
    (path / "m.mlir").write_text('func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {\n'
                                 '  %y = "tf.Abs"(%x) : (tensor<?x3xf32>) -> tensor<?x3xf32>\n'
                                 '  return %y : tensor<?x3xf32>\n}\n')
    return path / "m.mlir"


def as_saved_model(path: pathlib.Path) -> pathlib.Path:
    import tensorflow as tf
    module = tf.Module()
    module.f = tf.function(tf.abs, input_signature=[tf.TensorSpec((None, 3), tf.float32, name="x")])
    tf.saved_model.save(module, str(path / "saved"), signatures={"f": tf.function(
        lambda x: {"y": tf.abs(x)}, input_signature=[tf.TensorSpec((None, 3), tf.float32, name="x")])})
    return path / "saved"


def as_keras(path: pathlib.Path) -> pathlib.Path:
    import tensorflow as tf
    x = tf.keras.Input((3,), name="x")
    tf.keras.Model(x, tf.keras.layers.ReLU()(x) + tf.keras.layers.ReLU()(-x)).save(path / "m.keras")
    return path / "m.keras"


def as_pt2(path: pathlib.Path) -> pathlib.Path:
    import torch

    class Absolute(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.abs()
    program = torch.export.export(Absolute(), (torch.zeros(2, 3),), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    torch.export.save(program, path / "m.pt2")
    return path / "m.pt2"


DOORS: dict[str, tuple[Callable[[pathlib.Path], pathlib.Path], tuple[str, ...]]] = {
    "onnx": (as_onnx, ("onnx",)), "tflite": (as_tflite, ("tosa_converter_for_tflite",)), "mlir": (as_mlir, ()),
    "tf mlir": (as_tf_mlir, ()), "saved model": (as_saved_model, ("tensorflow",)), "keras": (as_keras, ("tensorflow",)),
    "pt2": (as_pt2, ("torch", "torch_mlir"))}
EACH = [pytest.param(name, marks=needs(*packages)) for name, (_, packages) in DOORS.items()]


def only(results: Any) -> Any:
    """The array of a function that gives one, by its name where it has that."""
    return next(iter(results.values())) if isinstance(results, dict) else results


@pytest.mark.sampled(2)
@pytest.mark.parametrize("door", EACH)
def test_shapes_close_the_inputs_of_every_door(door: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = DOORS[door][0](tmp_path)
    name, = tosaic.load(path).entry().input_names
    entry = tosaic.load(path, shapes={name: (5, 3)}).entry()
    assert not entry.is_dynamic and [t.shape for t in entry.inputs] == [(5, 3)]
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    assert np.array_equal(only(entry(x)), np.abs(x))
    assert main(["compile", str(path), "--shape", f"{name}=5x3", "-o", str(tmp_path / "out")]) == 0, capsys.readouterr()
    for wrong in ({"nothing": (5, 3)}, {name: (5, 3, 1)}, {name: (5, 4)}):
        with pytest.raises(tosaic.Problem):
            tosaic.load(path, shapes=wrong).entry().trace()


@pytest.mark.parametrize("door", EACH)
def test_a_call_still_takes_any_batch(door: str, tmp_path: pathlib.Path) -> None:
    model = tosaic.load(DOORS[door][0](tmp_path))
    for rows in (1, 4, 1, 4, 2, 1):
        x = np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
        assert np.array_equal(only(model(x)), np.abs(x))


@pytest.mark.parametrize("door", [EACH[0], EACH[1]])
def test_the_batch_that_a_file_states_is_taken_and_said(door: str, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DOORS[door][0](tmp_path))
    for _ in range(2):  # the second time from the cache
        caplog.clear()
        with caplog.at_level(logging.INFO, "tosaic"):
            entry = tosaic.load(path).entry()
        assert [record.getMessage() for record in caplog.records] == [
            "main: the batch that the file leaves open is taken as it states it: x as 1x3; shapes=, --shape for another"]
        assert not entry.is_dynamic and entry.inputs == ("x: tensor<1x3xf32>",) and entry.stated_shapes == {"x": (1, 3)}
        assert entry.compile().executable.signature.inputs[0].shape == (1, 3)
        assert np.array_equal(entry(np.full((1, 3), -2, np.float32)), np.full((1, 3), 2))
    for command, where in (("compile", 1), ("run", 1), ("report", 1), ("check", 1), ("info", 0)):
        capsys.readouterr()
        extra = ["-o", str(tmp_path / "out")] if command == "compile" else []
        assert main([command, path, *extra]) == 0
        said = [line for line in capsys.readouterr()[where].splitlines() if "x as 1x3" in line]
        assert len(said) == 1 and said[0].strip().startswith("note: ")
    assert main(["run", path, "--shape", "x=2x3"]) == 0 and "x as 1x3" not in capsys.readouterr().err


@needs("tosa_converter_for_tflite")
def test_each_signature_has_the_batch_that_its_inputs_state(tmp_path: pathlib.Path) -> None:
    graph = Graph("a b", "c", [Tensor("a", (-1, 3)), Tensor("b", (-1, 1)), Tensor("c", (-1, 3))],
                  [Operator("ADD", "a b", "c", ints(0))])
    fixed = Graph("x", "y", [Tensor("x", (2, 3)), Tensor("y", (2, 3))], [Operator("ABS", "x", "y")], "other")
    data = file(graph, fixed, signatures=[Signature("sum", 0, {"a": "a", "b": "b"}, {"c": "c"}),
                                          Signature("fixed", 1, {"x": "x"}, {"y": "y"})])
    model = tosaic.load(data)
    assert model["sum"].stated_shapes == {"a": (1, 3), "b": (1, 1)} and not model["fixed"].stated_shapes
    a, b = np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)
    assert model["sum"](a, b).shape == (4, 3) and model["sum"](a[:1], b[:1]).shape == (1, 3)
    closed = tosaic.load(data, shapes={"a": (4, 3), "b": (4, 1)})
    assert closed["sum"].outputs[0].shape == (4, 3) and closed["fixed"].outputs[0].shape == (2, 3)


@needs("tosa_converter_for_tflite")
def test_open_extents_behind_the_batch_stay_open() -> None:
    graph = Graph("x", "y", [Tensor("x", (-1, -1, 3)), Tensor("y", (-1, -1, 3))], [Operator("ABS", "x", "y")])
    entry = tosaic.load(file(graph)).entry()
    assert entry.is_dynamic and entry(np.ones((2, 5, 3), np.float32)).shape == (2, 5, 3)


@needs("onnx")
@pytest.mark.parametrize(("shape", "stated"), [
    (("N", 3), (1, 3)), (("batch",), (1,)), (("N", "C"), None), ((None, 3), None), ((3, "N"), None), (("N", "N"), (1, 1)),
    (("N", None), None), ((), None), ((2, 3), None)])
def test_leading_extents_of_onnx_that_have_names_are_one(shape: Sequence[Any], stated: Any, tmp_path: pathlib.Path) -> None:
    entry = tosaic.load(as_onnx(tmp_path, shape)).entry()
    assert entry.stated_shapes == ({"x": stated} if stated else {})
    assert entry.is_dynamic == (stated is None and any(not isinstance(n, int) for n in shape))


# ---- the option that a message suggests --------------------------------------------------------------------------------------
def drawn(seed: int) -> tuple[str, tuple[str, tuple[int | None, ...]]]:
    """An input's name, and a shape that has an open extent behind the first."""
    draw = np.random.default_rng(seed)
    name = str(draw.choice(["x", "image", "a.b", "in_0", "data-1"]))
    shape = [None if draw.random() < 0.5 else int(draw.integers(1, 9)) for _ in range(int(draw.integers(1, 6)))]
    shape[int(draw.integers(len(shape)))] = None
    if len(shape) == 4:
        shape[1] = 3
    return name, tuple(shape)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("door", ["mlir", pytest.param("onnx", marks=needs("onnx"))])
def test_the_option_that_a_message_suggests_works(door: str, seed: int, tmp_path: pathlib.Path,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    name, shape = drawn(seed)
    if door == "onnx":
        path = as_onnx(tmp_path, [f"d{n}" if n_ is None and n else n_ for n, n_ in enumerate(shape)], name)
    else:
        path = as_mlir(tmp_path, "tensor<" + "".join(f"{'?' if n is None else n}x" for n in shape) + "f32>",
                       re.sub(r"\W", "_", name))
    for command in ("run", "compile", "info")[:2 if door == "mlir" else 3]:
        extra = ["-o", str(tmp_path / "out")] if command == "compile" else []
        code = main([command, str(path), *extra])
        said = "".join(capsys.readouterr())
        found = re.search(r"--shape \S+(?: --shape \S+)*", said)
        assert found and (code != 0 or command == "info"), said
        assert main([command, str(path), *shlex.split(found[0]), *extra]) == 0, capsys.readouterr()
        capsys.readouterr()


@needs("onnx")
def test_one_name_is_one_number_in_every_option(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMul", ["a", "b"], ["y"])], "g",
                                   [value("a", 1, ["n", "k"]), value("b", 1, ["k", 4])], [value("y", 1, ["n", 4])])
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    tosaic.load(path)
    assert main(["run", str(path)]) in (0, 2)
    found = re.search(r"--shape \S+ --shape \S+", capsys.readouterr().err)
    if found:
        assert main(["run", str(path), *shlex.split(found[0])]) == 0


def test_constants_are_never_stated() -> None:
    assert constant("c", [1.0]).shape == (1,)


@pytest.mark.parametrize("given", [{"rfc_merge": True}, {"variables": {"h": "v"}}])
def test_an_option_of_tensorflows_graphs_is_refused_for_another_model(given: dict[str, Any]) -> None:
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}"
    with pytest.raises(tosaic.Problem, match=f"{next(iter(given))} is for graphs of TensorFlow"):
        tosaic.load(text, **given)
