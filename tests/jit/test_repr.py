"""What a session shows of an object that a user holds: a line or ten, whatever the model's size."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic

LINES, CHARACTERS = 10, 800
WEIGHTS = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
X = np.ones((1, 32), np.float32)


@tosaic.jit
def deep(x: Any) -> Any:
    for layer in range(12):
        x = tosaic.ops.tanh(x @ (WEIGHTS + layer))
    return {"out": x, "sum": x.sum()}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Everything that a user can get hold of, from a function with some data."""
    traced = deep.trace(X)
    lowered = traced.lower()
    compiled = lowered.compile()
    runtime = tosaic.CoreRuntime()
    model = tosaic.load(Path(__file__).parents[2] / "samples" / "models" / "lstm.mlir")
    values = [deep, traced, lowered, compiled, lowered.report(ladder=True), lowered.plan, lowered.kernels, lowered.program,
              lowered.state, lowered.module, traced.function, traced.function.body, *traced.function.body.operations[:3],
              model, model.main, model.main.tensors, model.main.inputs[0], traced.check([[X]]), lowered.profile([X], calls=1),
              lowered.save(tmp_path_factory.mktemp("saved"), "deep"), compiled.executable, runtime, runtime.tensor(WEIGHTS),
              tosaic.OpAttrs({"weights": WEIGHTS}), tosaic.Variable("repr.weights", WEIGHTS), tosaic.Context("repr"),
              tosaic.default_context, tosaic.TensorSpec((2, 3)), tosaic.target("cortex-m4"), tosaic.Memory(), tosaic.tosa,
              tosaic.CompileOptions(target=tosaic.target("cortex-m4")), tosaic.Pool("sram"), deep.cache_info()]
    return {f"{type(value).__name__} {number}": value for number, value in enumerate(values)}


def test_no_repr_is_a_page(held: dict[str, Any]) -> None:
    for name, value in held.items():
        text = repr(value)
        assert text.count("\n") < LINES and len(text) <= CHARACTERS, f"{name}: {text}"
        assert " object at 0x" not in text, f"{name} says nothing"


def test_options_show_what_was_given() -> None:
    assert repr(tosaic.CompileOptions()) == "CompileOptions()"
    options = tosaic.CompileOptions(threads=2, memory=tosaic.Memory("hill_climb", workspace_io=True))
    assert repr(options) == "CompileOptions(threads=2, memory=Memory(algorithm='hill_climb', workspace_io=True))"
    assert eval(repr(options), {"CompileOptions": tosaic.CompileOptions, "Memory": tosaic.Memory}) == options
    assert repr(tosaic.Pool("sram", 1024)) == "PoolInfo(name='sram', size_hint_bytes=1024)"


def test_a_stage_says_what_it_is() -> None:
    traced = deep.trace(X)
    assert repr(traced).startswith("<Traced deep(x: tensor<1x32xf32>) -> (tensor<1x32xf32>, tensor<f32>): ")
    assert repr(traced.function) == "<Function deep(tensor<1x32xf32>) -> (tensor<1x32xf32>, tensor<f32>)>"
    assert "arena" in repr(traced.lower()) and repr(traced.module) == "<Module with deep>"


def test_names_of_a_model_cannot_drive_the_terminal() -> None:
    model = tosaic.load('func.func @"a\\1b[31m"(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }')
    for value in (model, model.main, model.main.trace(), model.main.trace().module, model.main.trace().function,
                  model.main.lower(), model.main.lower().report(), model.main.lower().plan, model.main.compile()):
        assert "\x1b" not in repr(value)


def test_every_operator_of_a_graph_shows_itself_in_a_line() -> None:
    shown = set()
    for path in sorted((Path(__file__).parents[1] / "data" / "corpus").glob("[fv]_*.mlir")):
        for function in tosaic.load(path).module.functions:
            for operation in function.body.walk():
                text = repr(operation.op)
                assert "\n" not in text and len(text) < CHARACTERS
                shown.add(type(operation.op))
    assert len(shown) > 30
