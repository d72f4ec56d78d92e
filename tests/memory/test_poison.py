"""Plans of real programs, run with every dead byte overwritten after each step: the same answers."""
from __future__ import annotations

import pathlib
from dataclasses import replace

import numpy as np
import pytest
import tosaic
from tosaic.lowering.kernels.kernel import CheckWritten, Compute, MarkWritten
from tosaic.lowering.memory.planner import Memory
from tosaic.lowering.options import CompileOptions
from tosaic.lowering.target.presets import target
from tosaic.lowering.target.target import Target

from ..models.sources import convert, wake_word_model
from .poison import Poisoned

DATA = pathlib.Path(__file__).parents[1] / "data" / "corpus"
HOST = target("host")
MODELS = ("f_conv_bn_relu_pool", "f_conv_bn_relu_pool_int8", "f_mobilenet_block", "f_mobilenet_block_int8", "f_mlp",
          "f_lstm_cell", "f_attention_block_int8", "f_shape_ops", "tmfx_mlp")
OPTIONS = {"as it comes": CompileOptions(HOST), "by rows": CompileOptions(HOST, rows="memory", memory=Memory(alignment=1)),
           "several pools": CompileOptions(HOST, memory=Memory(pools=(tosaic.Pool("fast", 700), tosaic.Pool("slow")),
                                                               alignment=8)),
           "no sharing": CompileOptions(HOST, rows="never", order=False, memory=Memory(overlap=False))}


def is_straight(lowered: object) -> bool:
    return all(isinstance(s, (Compute, CheckWritten, MarkWritten)) for s in lowered.program.steps)  # type: ignore[attr-defined]


PAIRS = [(model, name) for i, model in enumerate(MODELS) for j, name in enumerate(OPTIONS) if i == 0 or (i + j) % 2]
"""The first model with all options, every other one with two, each of these with every second model."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model, options", PAIRS)
def test_a_model_gives_the_same_on_poisoned_memory(model: str, options: str) -> None:
    entry = next(iter(tosaic.load(DATA / f"{model}.mlir").entries.values()))
    lowered = entry.trace().lower(OPTIONS[options])
    assert is_straight(lowered)
    rng = np.random.default_rng(4)
    inputs = [tame(rng, b.shape, b.dtype) for b in lowered.program.inputs]
    expected = lowered.compile(tosaic.Context("poison"))(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = Poisoned(lowered.program, lowered.plan, OPTIONS[options].memory, HOST).run(*inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("machine, rows", [(HOST, "memory"), (replace(HOST, vector_bytes=16), "memory"),
                                           (replace(HOST, vector_bytes=1), "cache")], ids=["host", "16 bytes", "scalar"])
def test_a_streaming_model_keeps_its_state_on_poisoned_memory(machine: Target, rows: str) -> None:
    entry = next(iter(tosaic.load(convert(wake_word_model("okay_nabu"))).entries.values()))
    options = CompileOptions(machine, rows=rows)  # type: ignore[arg-type]
    lowered = entry.trace().lower(options)
    assert is_straight(lowered)
    poisoned = Poisoned(lowered.program, lowered.plan, options.memory, machine)
    compiled = lowered.compile(tosaic.Context(f"poison {rows} {machine.vector_bytes}"))
    rng = np.random.default_rng(8)
    for _ in range(6):
        x = rng.integers(-128, 128, lowered.program.inputs[0].shape).astype(np.int8)
        np.testing.assert_array_equal(poisoned.run(x)[0], compiled(x))


def tame(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
