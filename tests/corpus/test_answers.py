"""The corpus: graphs of TensorFlow Lite as Arm's converter writes them, and of PyTorch as torch-mlir does, give the answers
that were recorded. Where the converter's text says something else than the model, what the text says is computed here."""
from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import tosaic
from tosaic.jit.stages import prepared
from tosaic.runtime.interpreter import Interpreter

DATA = pathlib.Path(__file__).parents[1] / "data" / "corpus"
RECORDED = sorted(p.stem for p in DATA.glob("*.npz") if p.with_suffix(".mlir").exists())
Array = np.ndarray
Run = Callable[..., tuple[Array, ...]]


def calls(name: str) -> list[tuple[list[Array], list[Array]]]:
    """Inputs and outputs of each recorded call."""
    with np.load(DATA / f"{name}.npz") as file:
        def arrays(call: int, what: str) -> list[Array]:
            count = sum(key.startswith(f"call{call}/{what}") for key in file)
            return [file[f"call{call}/{what}{i}"] for i in range(count)]

        count = len({key.split("/")[0] for key in file if key.startswith("call")})
        return [(arrays(k, "in"), arrays(k, "out")) for k in range(count)]


def native(name: str) -> Run:
    compiled = tosaic.load(DATA / f"{name}.mlir").entry().compile(context=tosaic.Context(f"corpus {name}"))

    def run(*inputs: Array) -> tuple[Array, ...]:
        found = compiled(*inputs)
        return found if isinstance(found, tuple) else (found,)

    return run


def reference(name: str) -> Run:
    module = prepared(tosaic.load(DATA / f"{name}.mlir").module)
    return Interpreter(module)


def fake_quantized(x: Array) -> Array:
    """What the text of f_fakequant computes: i32 becomes i8 by dropping bits, where TFLite saturates."""
    integers = np.rint(x * np.float32(102)).astype(np.int32) - 26
    return (integers.astype(np.int8).astype(np.float32) + 26) * np.float32(0.00980392192)


def clamped(x: Array) -> Array:
    return np.minimum(np.maximum(x, np.float32(0)), np.finfo(np.float32).max)


DEVIATIONS: dict[str, dict[int, Callable[[Sequence[Array]], Array]]] = {
    "f_fakequant": {0: lambda x: fake_quantized(x[0])},
    "f_nonfinite": {0: lambda x: np.maximum(*x), 1: lambda x: np.minimum(*x), 4: lambda x: clamped(x[0]),
                    6: lambda x: np.argmax(x[0]), 7: lambda x: np.max(x[0])},
}
"""Outputs for which the converter's text has another meaning than the model: NaN is propagated, an infinity clamped."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", [native, reference])
@pytest.mark.parametrize("name", RECORDED)
def test_a_graph_gives_the_recorded_answers(name: str, engine: Callable[[str], Run]) -> None:
    run = engine(name)
    for inputs, outputs in calls(name):
        found = run(*inputs)
        assert len(found) == len(outputs)
        for number, (actual, expected) in enumerate(zip(found, outputs)):
            deviation = DEVIATIONS.get(name, {}).get(number)
            agree(actual, expected if deviation is None else deviation(inputs))
            assert deviation is None or not np.array_equal(actual, expected, equal_nan=True)


def agree(actual: Array, expected: Array) -> None:
    """Floats within 2e-6 of the range of the output; int8 within one step, as TFLite rounds twice."""
    assert actual.shape == expected.shape
    if actual.dtype.kind == "f":
        finite = expected[np.isfinite(expected)]
        span = float(np.abs(finite).max()) if finite.size else 0.0
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-6 * span + 1e-7)
    elif actual.dtype == np.int8:
        assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    else:
        np.testing.assert_array_equal(actual, expected)


def test_the_corpus_is_whole() -> None:
    assert len(RECORDED) == 21


# ---- torch-mlir --------------------------------------------------------------------------------------------------
def constants(name: str) -> dict[str, Array]:
    """The constants of a graph, by the name of their value."""
    function = tosaic.load(DATA / f"{name}.mlir").main.trace().function
    return {o.results[0].name: o.op.values for o in function.body.operations if o.op.name == "tosa.const"}  # type: ignore[attr-defined]


def test_a_module_of_pytorch_with_two_layers_gives_what_numpy_gives() -> None:
    c, x = constants("tmfx_mlp"), np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    hidden = np.maximum(x.astype(np.float64) @ c["6"][0] + c["7"], 0)
    logits = np.exp(hidden @ c["8"][0] + c["9"])
    agree(native("tmfx_mlp")(x)[0], logits / logits.sum(1, keepdims=True))
    agree(reference("tmfx_mlp")(x)[0], logits / logits.sum(1, keepdims=True))


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 65])
def test_a_module_of_pytorch_with_a_dynamic_batch_runs_for_any_batch(rows: int) -> None:
    c, model = constants("tmfx_dyn"), tosaic.load(DATA / "tmfx_dyn.mlir")
    x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
    agree(model(x), x.astype(np.float64) @ c["3"][0] + c["4"])
    agree(model.main.specialize({"arg0": x.shape})({"arg0": x}), model(x))


def test_a_dynamic_batch_is_compiled_once_for_each_shape() -> None:
    entry = tosaic.load(DATA / "tmfx_dyn.mlir").main
    assert entry.specialize({"arg0": (3, 8)}) is entry.specialize({"arg0": (3, 8)})
    assert entry.specialize({"arg0": (3, 8)}).outputs == ("tensor<3x4xf32>",)


def test_a_module_of_pytorch_that_changes_a_buffer_gives_its_new_value() -> None:
    x = np.arange(3, dtype=np.float32)
    for found in native("tmfx_buffer_mutation")(x):
        np.testing.assert_array_equal(found, x)
