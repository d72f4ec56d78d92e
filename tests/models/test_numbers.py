"""What .tflite models say of their numbers, against LiteRT: its parameters, its own QUANTIZE and DEQUANTIZE, and answers of
models in real numbers from Python, from `--json`, and from the functions of the C header."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import parser
from tosaic.jit.command_line.compile_command import compile as compile_command

from ..aot.c_programs import build, needs_gcc, run
from ..tflite.files import Graph, Operator, Scalar, Tensor, file
from .lite import Lite
from .sources import DATA, WAKE_WORDS, speech, wake_word_model

SMALL = ("attention_block", "conv_bn_relu_pool", "lstm_cell", "mlp", "mobilenet_block")

ROUNDED_TWICE = ("attention_block",)
"""Models in which LiteRT's kernels round twice: answers are within one step of the output's scale, as in tests/corpus."""


def small(name: str) -> bytes:
    return (DATA / "corpus" / f"f_{name}_int8.tflite").read_bytes()


def parameters(detail: dict[str, Any]) -> tuple[Any, ...]:
    """What LiteRT says of a tensor."""
    found = detail["quantization_parameters"]
    return detail["dtype"].__name__, tuple(detail["shape"].tolist()), found["scales"].tolist(), found["zero_points"].tolist()


def described(tensor: Any) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, list(tensor.scales), list(tensor.zero_points)


def dequantized(array: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    """By LiteRT's parameters, in NumPy."""
    scale, zero_point = detail["quantization"]
    return (np.float64(scale) * (array.astype(np.int64) - zero_point)).astype(np.float32) if scale else array


@pytest.mark.parametrize("data", [*map(small, SMALL), *map(wake_word_model, WAKE_WORDS)], ids=[*SMALL, *WAKE_WORDS])
def test_inputs_outputs_and_weights_say_what_litert_says(data: bytes) -> None:
    lite, entry = Lite(data, keep=False), tosaic.load(data).main
    assert list(map(described, entry.inputs)) == list(map(parameters, lite.interpreter.get_input_details()))
    assert list(map(described, entry.outputs)) == list(map(parameters, lite.interpreter.get_output_details()))
    assert any(t.scale is not None for t in entry.inputs) and any(t.scale is not None for t in entry.outputs)
    every = list(map(parameters, lite.interpreter.get_tensor_details()))
    weights = [t for t in entry.constants if t.scale is not None]
    assert weights and all(described(t) in every for t in weights)
    assert any(t.axis is not None for t in weights) == any(len(p[2]) > 1 for p in every)


@pytest.mark.parametrize("zero_point", [-128, -5, 0, 7])
def test_an_input_that_is_averaged_has_numbers_too(zero_point: int) -> None:
    """The converter's pools hold no zero points. The window has an odd size, so that no mean lies between two integers."""
    tensors = [Tensor(name, shape, "i8", None, 0.05, zero_point) for name, shape in (("x", (1, 6, 9, 3)), ("y", (1, 2, 3, 3)))]
    options = Scalar("B", 1), *(Scalar("i", 3),) * 4, Scalar("B", 0)
    data = file(Graph("x", "y", tensors, [Operator("AVERAGE_POOL_2D", "x", "y", options)]))
    x = np.random.default_rng(zero_point + 128).integers(-128, 128, (1, 6, 9, 3)).astype(np.int8)
    entry = tosaic.load(data).main
    assert [t.zero_point for t in (*entry.inputs, *entry.outputs)] == [zero_point, zero_point]
    assert (np.asarray(entry(x)) == Lite(data, keep=False)(x)[0]).all()


@pytest.mark.parametrize(("type", "scale", "zero_point"), [
    ("i8", 0.10196078568696976, -128), ("i8", 0.5, 3), ("ui8", 0.00390625, 0), ("ui8", 0.7, 200), ("i16", 0.25, 0)])
def test_quantize_and_dequantize_are_litert_reference_kernels_bit_for_bit(type: str, scale: float, zero_point: int) -> None:
    count = 4000
    quantized = Tensor("q", (count,), type, scale=scale, zero_point=zero_point)
    down = file(Graph("x", "q", [Tensor("x", (count,)), quantized], [Operator("QUANTIZE", "x", "q")]))
    up = file(Graph("q", "y", [quantized, Tensor("y", (count,))], [Operator("DEQUANTIZE", "q", "y")]))
    halves = (np.arange(-1000, 1000, dtype=np.float32) / 2 * np.float32(scale)).astype(np.float32)
    far = np.random.default_rng(3).standard_normal(2000).astype(np.float32) * np.float32(scale * 20000)
    x = np.concatenate([halves, far])
    (stored,) = Lite(down)(x)
    (real,) = Lite(up)(stored)
    (output,), (source,) = tosaic.load(down).main.outputs, tosaic.load(up).main.inputs
    assert output.quantize(x).tobytes() == stored.tobytes() and len(np.unique(stored)) > 100
    assert source.dequantize(stored).tobytes() == real.tobytes()


@pytest.mark.parametrize("name", SMALL)
def test_small_models_answer_floats_as_litert_does(name: str) -> None:
    lite, entry = Lite(small(name)), tosaic.load(small(name), context=tosaic.Context(name)).main
    details, random = lite.interpreter.get_output_details(), np.random.default_rng(5)
    for _ in range(3):
        floats = [random.standard_normal(t.shape).astype(np.float32) for t in entry.inputs]
        stored, found = entry.quantize(*floats), entry.on_floats(*floats)
        results = lite(*(stored if isinstance(stored, tuple) else [stored]))
        expected = [dequantized(y, d) for y, d in zip(results, details, strict=True)]
        for y, e in zip(found if isinstance(found, tuple) else [found], expected, strict=True):
            assert y.dtype == np.float32 and len(np.unique(y)) > 1
            assert y.tobytes() == e.tobytes() or (name in ROUNDED_TWICE and np.allclose(y, e, 0, float(entry.outputs[0].scale)))


STEPS = """
#include "tosaic_m.h"
#include <stdio.h>
int main(void) {
    static float real[TOSAIC_M_INPUT_INPUT_AUDIO_SIZE];
    static int8_t audio[TOSAIC_M_INPUT_INPUT_AUDIO_SIZE];
    static uint8_t result[TOSAIC_M_OUTPUT_RESULT0_SIZE];
    const struct tosaic_m_inputs inputs = {audio, sizeof audio};
    const struct tosaic_m_outputs outputs = {result, sizeof result};
    while (fread(real, sizeof real, 1, stdin) == 1) {
        float probability;
        tosaic_m_quantize_array_input_input_audio(real, audio);
        if (tosaic_m_run(&inputs, &outputs) != TOSAIC_OK) return 1;
        probability = tosaic_m_dequantize_output_result0(result[0]);
        fwrite(&probability, sizeof probability, 1, stdout);
    }
    return 0;
}
"""


def spoken() -> tuple[np.ndarray, list[float]]:
    """Features of a spoken "okay nabu" as floats, and LiteRT's answers to them in real numbers."""
    lite = Lite(wake_word_model("okay_nabu"), keep=False)
    (source,), (result,) = lite.interpreter.get_input_details(), lite.interpreter.get_output_details()
    steps = speech("okay_nabu")
    answers = [float(dequantized(lite(x)[0], result)[0, 0]) for x in steps]
    return np.stack([dequantized(x, source) for x in steps]), answers


def in_python(floats: np.ndarray, folder: Path) -> list[float]:
    entry = tosaic.load(wake_word_model("okay_nabu"), context=tosaic.Context("numbers")).main
    return [float(entry.on_floats(x)[0, 0]) for x in floats]


def by_json(floats: np.ndarray, folder: Path) -> list[float]:
    """With nothing but what `tosaic compile --json` prints."""
    (folder / "m.tflite").write_bytes(wake_word_model("okay_nabu"))
    answer = compile_command(parser().parse_args(["compile", str(folder / "m.tflite"), "-o", str(folder), "--json"]))
    (entry,) = json.loads(json.dumps(answer.json))["entries"]
    (source,), (result,) = entry["inputs"], entry["outputs"]
    step = tosaic.load(folder / "m.tflite", context=tosaic.Context("json")).main
    low, high = np.iinfo(source["dtype"]).min, np.iinfo(source["dtype"]).max
    found = []
    for x in floats:
        stored = np.clip(np.round(x.astype(np.float64) / source["scale"]) + source["zero_point"], low, high)
        y = step(stored.astype(source["dtype"]).reshape(source["shape"]))
        assert list(y.shape) == result["shape"] and y.dtype == result["dtype"]
        found.append(float(result["scale"] * (int(y[0, 0]) - result["zero_point"])))
    return found


def in_c(floats: np.ndarray, folder: Path) -> list[float]:
    artifact = tosaic.load(wake_word_model("okay_nabu")).save(folder, "m", self_contained=True)
    return np.frombuffer(run(build(folder, STEPS, [artifact]), floats.tobytes()), np.float32).tolist()


@needs_gcc
@pytest.mark.parametrize("way", [in_python, by_json, in_c], ids=lambda way: way.__name__)
def test_okay_nabu_in_real_numbers_gives_litert_answers_to_a_spoken_word(
        way: Callable[[np.ndarray, Path], list[float]], tmp_path: Path) -> None:
    floats, answers = spoken()
    assert way(floats, tmp_path) == answers
    assert len(answers) > 70 and max(answers) > 0.8
