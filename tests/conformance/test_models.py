"""Whole models as `.tosa` files: they read back to the same bytes, and Arm's reference model takes them and gives what compiled
code gives: real models, and the corpus of graphs that converters write."""
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.models.tflite.from_tflite import mlir_of_tflite
from tosaic.lowering.flatbuffer.reader import read_module
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.verify import verify

from ..models.sources import WAKE_WORDS, face_detection_front, wake_word_model
from . import environment

Array = np.ndarray
CORPUS = Path(__file__).parents[1] / "data" / "corpus"
GRAPHS = sorted(path.stem for path in CORPUS.glob("*.mlir"))
CONVERTED = sorted(path.stem for path in CORPUS.glob("*.tflite"))
SHAPES = {"tmfx_dyn": {"arg0": (5, 8)}}
UNPREDICTABLE = {"f_attention_block": "OpPow: x is less than 0"}
"""Graphs that the specification gives no result: GELU is written with a power of negative numbers."""


def source(name: str) -> str | bytes | Path:
    if name == "face_detection_front":
        return mlir_of_tflite(face_detection_front(), name)
    return mlir_of_tflite(wake_word_model(name), name) if name in WAKE_WORDS else CORPUS / f"{name}.mlir"


def entry(name: str) -> tosaic.Entry:
    found = tosaic.load(source(name)).entry()
    return found.specialize(SHAPES[name]) if name in SHAPES else found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*WAKE_WORDS, "face_detection_front", *GRAPHS])
def test_a_model_reads_back_to_the_same_bytes(name: str) -> None:
    module = tosaic.load(source(name)).module
    data = write_module(module)
    back = read_module(data, name)
    verify(back)
    assert write_module(back) == data


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CONVERTED)
def test_a_tflite_file_becomes_a_tosa_file(name: str) -> None:
    module = tosaic.load(CORPUS / f"{name}.tflite").module
    data = write_module(module)
    back = read_module(data, name)
    verify(back)
    assert write_module(back) == data and len(back.functions) == len(module.functions)


def reference_model() -> Path:
    """Arm's reference model; the test is skipped where it cannot be had."""
    try:
        environment.ensure()
    except environment.Unavailable as reason:
        pytest.skip(str(reason))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return environment.folder() / "lib" / version / "site-packages" / "bin" / "tosa_reference_model"


def inputs(function: tosaic.lowering.graph.graph.Function) -> list[Array]:
    """Random inputs: floats around 0, bytes over their range, other integers small, as they may be indices."""
    rng = np.random.default_rng(0)

    def one(type: tosaic.lowering.graph.types.TensorType) -> Array:
        match type.element.dtype.kind, type.element.bits:
            case "f", _:
                return np.asarray(rng.standard_normal(type.dims), type.element.dtype)
            case "b", _:
                return np.asarray(rng.integers(0, 2, type.dims), bool)
            case _, 8:
                return np.asarray(rng.integers(-128, 128, type.dims), type.element.dtype)
        return np.asarray(rng.integers(0, 3, type.dims), type.element.dtype)

    return [one(value.tensor) for value in function.arguments]


def reference(file: Path, function: tosaic.lowering.graph.graph.Function, arrays: Sequence[Array]
              ) -> subprocess.CompletedProcess[str]:
    """Run Arm's model in the folder of `file`; its results are out0.npy and so on."""
    folder, program = file.parent, reference_model()
    outputs = [f"out{i}.npy" for i in range(len(function.body.yields))]
    for number, array in enumerate(arrays):
        np.save(folder / f"in{number}.npy", array)
    description = {"tosa_file": file.name, "ifm_name": [v.name for v in function.arguments],
                   "ifm_file": [f"in{i}.npy" for i in range(len(arrays))], "ofm_name": [v.name for v in function.body.yields],
                   "ofm_file": outputs, "expected_failure": False, "expected_return_code": 0}
    (folder / "desc.json").write_text(json.dumps(description))
    command = [str(program), "--tosa_level", "NONE", "--operator_fbs", str(program.with_name("tosa.fbs")),
               "--test_desc", str(folder / "desc.json"), "--output_dir", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [*WAKE_WORDS, "face_detection_front", *GRAPHS])
def test_arms_reference_model_gives_what_compiled_code_gives(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.tosa"
    file.write_bytes(write_module(entry(name).trace().module))
    read = tosaic.load(file).entry()
    function = read.trace().function
    arrays = inputs(function)
    ran = reference(file, function, arrays)
    if name in UNPREDICTABLE:
        assert ran.returncode and UNPREDICTABLE[name] in ran.stdout + ran.stderr
        return
    assert ran.returncode == 0, ran.stderr
    found = read.compile(context=tosaic.Context(f"reference {name}"))(*arrays)
    for number, actual in enumerate(found if isinstance(found, tuple) else (found,)):
        expected = np.load(tmp_path / f"out{number}.npy")
        assert actual.shape == expected.shape
        if actual.dtype.kind == "f":
            finite = np.abs(expected[np.isfinite(expected)])
            np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-6 * float(finite.max(initial=0.0)))
        else:
            np.testing.assert_array_equal(actual, expected)
