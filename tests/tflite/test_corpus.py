"""The 24 models of the corpus from their .tflite files: every call gives the recorded answers, natively and in the interpreter,
with one state, which is the same after every call."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import prepared
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

DATA = Path(__file__).parents[1] / "data"
NAMES = sorted(p.stem for p in (DATA / "corpus").glob("*.tflite"))
RECORDED = [n for n in NAMES if (DATA / f"corpus/{n}.npz").exists()]
ORDER_OF_NAN = {"f_nonfinite": (6, 7)}
"""Outputs that depend on the order in which a reduction of TensorFlow Lite meets a NaN; here a NaN is the result."""
Array = np.ndarray
Calls = list[tuple[list[Array], list[Array]]]

pytestmark = pytest.mark.usefixtures("converter")


@pytest.fixture
def converter() -> None:
    pytest.importorskip("tosa_converter_for_tflite")


def calls_of(name: str) -> Calls:
    """Inputs and outputs of each recorded call."""
    with np.load(DATA / f"corpus/{name}.npz") as file:
        count = len({key.split("/")[0] for key in file})
        return [([file[k] for k in sorted_keys(file, f"call{i}/in")], [file[k] for k in sorted_keys(file, f"call{i}/out")])
                for i in range(count)]


def sorted_keys(file: object, start: str) -> list[str]:
    found = [k for k in file if k.startswith(start) and k[len(start):].isdigit()]  # type: ignore[attr-defined]
    return sorted(found, key=lambda k: int(k[len(start):]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RECORDED)
def test_a_model_gives_the_recorded_answers(name: str) -> None:
    model, context, variables = tosaic.from_tflite(DATA / f"corpus/{name}.tflite"), tosaic.Context(name), InterpreterVariables()
    native, reference = model.entry().compile(context=context), Interpreter(prepared(model.module), None, variables)
    for inputs, outputs in calls_of(name):
        found = native(*inputs)
        for results in (found if isinstance(found, tuple) else (found,), reference(*inputs)):
            assert len(results) == len(outputs)
            for number, (actual, expected) in enumerate(zip(results, outputs)):
                if number not in ORDER_OF_NAN.get(name, ()):
                    agree(actual, expected)
        assert sorted(context.snapshot()) == sorted(variables.snapshot())
        for symbol, value in variables.snapshot().items():
            agree(context.snapshot()[symbol], value)


def agree(actual: Array, expected: Array) -> None:
    """Floats within 2e-6 of the range of the output; int8 within one step, as TFLite rounds twice."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if actual.dtype.kind == "f":
        finite = expected[np.isfinite(expected)]
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-6 * float(np.abs(finite).max(initial=0)) + 1e-7)
    elif actual.dtype == np.int8:
        assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    else:
        np.testing.assert_array_equal(actual, expected)


EXACT = ("f_conv_bn_relu_pool_int8", "f_lstm_cell_int8", "f_mlp_int8", "f_mobilenet_block_int8")


@pytest.mark.parametrize("name", EXACT)
def test_an_int8_model_gives_the_recorded_bytes(name: str) -> None:
    run = tosaic.from_tflite(DATA / f"corpus/{name}.tflite").entry().compile()
    for inputs, outputs in calls_of(name):
        found = run(*inputs)
        for actual, expected in zip(found if isinstance(found, tuple) else (found,), outputs, strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_nan_in_a_reduction_is_the_result() -> None:
    (inputs, outputs), = calls_of("f_nonfinite")
    found = tosaic.from_tflite(DATA / "corpus/f_nonfinite.tflite")(*inputs)
    assert np.isnan(found[7]) and found[6] == np.argmax(inputs[0]) and not np.isnan(outputs[7])


def test_three_signatures_share_a_variable_as_tensorflow_s_functions_do() -> None:
    """The file has no answers of its own; TensorFlow's are of the same module."""
    folder, context = DATA / "tensorflow/v_counter_three_functions", tosaic.Context("three")
    model = tosaic.from_tflite(DATA / "corpus/v_counter_three_functions.tflite")
    native = {e.name: e.compile(context=context) for e in model}
    variables = InterpreterVariables()
    reference = {e.name: Interpreter(prepared(model.module), e.name, variables) for e in model}
    functions = json.loads((folder / "meta.json").read_text())["calls"]
    with np.load(folder / "data.npz") as data:
        (variable,) = {key.split("/")[-1] for key in data if "/var/" in key}
        for number, name in enumerate(functions):
            inputs = [data[k] for k in sorted_keys(data, f"call{number}/in")][:len(native[name].inputs)]
            agree(native[name](*inputs), data[f"call{number}/out0"])
            agree(reference[name](*inputs)[0], data[f"call{number}/out0"])
            agree(context.read("n"), data[f"call{number}/var/{variable}"])
    assert len(functions) == 7 and {e.name for e in model} == {"add", "get", "reset"}


def test_the_corpus_is_whole() -> None:
    assert len(NAMES) == 24 and len(RECORDED) == 23
