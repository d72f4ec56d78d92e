"""tosaic in the place of ONNX Runtime, and as a backend of ONNX."""
from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tosaic

onnx = pytest.importorskip("onnx", reason="onnx is not installed (the extra `onnx`)")
PERCEPTRON = pathlib.Path(__file__).parents[1] / "data" / "onnx" / "perceptron.onnx"
X = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)


def test_a_program_for_onnx_runtime_changes_one_line() -> None:
    """The session says what ONNX Runtime's says, and gives what it gives."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (the extra `test`)")
    theirs = runtime.InferenceSession(str(PERCEPTRON), providers=["CPUExecutionProvider"])
    ours = tosaic.onnx.InferenceSession(str(PERCEPTRON), providers=["CPUExecutionProvider"])
    for get in ("get_inputs", "get_outputs"):
        assert [(a.name, a.type, a.shape) for a in getattr(ours, get)()] == [
            (a.name, a.type, a.shape) for a in getattr(theirs, get)()]
    name, wanted = ours.get_inputs()[0].name, [o.name for o in ours.get_outputs()]
    for outputs in (None, wanted):
        for found, right in zip(ours.run(outputs, {name: X}), theirs.run(outputs, {name: X}), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
    assert ours.get_modelmeta().producer_name.startswith(theirs.get_modelmeta().producer_name)


def test_an_output_that_is_not_there_and_an_input_that_is_missing_are_problems() -> None:
    session = tosaic.onnx.InferenceSession(PERCEPTRON)
    with pytest.raises(tosaic.Problem, match="no output named nothing"):
        session.run(["nothing"], {session.get_inputs()[0].name: X})
    with pytest.raises(tosaic.Problem, match="is missing"):
        session.run(None, {})


def test_the_backend_prepares_runs_and_names_outputs() -> None:
    from onnx.reference import ReferenceEvaluator
    proto = onnx.load(PERCEPTRON)
    right, = ReferenceEvaluator(proto).run(None, {proto.graph.input[0].name: X})
    prepared = tosaic.onnx.prepare(proto)
    for outputs in (prepared.run([X]), prepared.run(X), tosaic.onnx.run_model(proto, [X])):
        np.testing.assert_allclose(outputs[proto.graph.output[0].name], right, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(outputs[0], outputs[proto.graph.output[0].name])


def test_the_backend_runs_one_node() -> None:
    node = onnx.helper.make_node("Sub", ["a", "b"], ["c"])
    np.testing.assert_array_equal(tosaic.onnx.run_node(node, [X, X[0]])["c"], X - X[0])


def test_the_backend_says_which_devices_and_models_it_takes() -> None:
    assert tosaic.onnx.supports_device("CPU") and not tosaic.onnx.supports_device("CUDA:1")
    assert tosaic.onnx.is_compatible(onnx.load(PERCEPTRON)) and not tosaic.onnx.is_compatible(onnx.load(PERCEPTRON), "CUDA")
    with pytest.raises(tosaic.Problem, match="no device CUDA"):
        tosaic.onnx.prepare(onnx.load(PERCEPTRON), "CUDA")


def test_without_the_package_onnx_the_extra_is_named() -> None:
    """In a process of its own, to which the package is hidden."""
    code = ("import sys; sys.modules['onnx'] = None; import tosaic\n"
            f"try: tosaic.from_onnx({str(PERCEPTRON)!r})\nexcept tosaic.Problem as p: print(p.help)\n"
            "try: tosaic.onnx.prepare\nexcept tosaic.Problem as p: print(p.help)")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == 2 * 'pip install "tosaic[onnx]"\n'
