"""Models from one door in one process: each gives what it gives alone, though their variables are called the same. The whole
sweep is `python -m tosaic.tests.variables`."""
from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import tosaic

from ..tflite.files import Graph, Operator, Tensor, file
from .stateful_models import DOORS, Pairs, drawn, inputs, of_onnx

SLOW = ("tensorflow", "torch_mlir")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("door", DOORS)
def test_pairs_of_models_give_what_each_gives_alone(door: str, tmp_path: Path) -> None:
    needed = DOORS[door][0]
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    pairs = Pairs(door, tmp_path, 1 if needed in SLOW else 3)
    assert [fault for seed in range(10) if (fault := pairs.wrong(seed))] == []


def test_models_of_one_context_share_what_they_call_the_same(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model, other = of_onnx(drawn(0), tmp_path), of_onnx(drawn(0), tmp_path)
    shared, given = other.within(model.context), inputs(0)
    found = [m(x) for m, x in zip((model, shared, model, shared), given)]
    np.testing.assert_array_equal(found, drawn(0).results(given))
    assert other.context is not model.context is shared.context and len(other.context) == 0


def test_a_model_goes_to_another_process_with_initial_values_and_its_state_apart(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    model, given = of_onnx(drawn(1), tmp_path), inputs(1)
    for x in given[:2]:
        model(x)
    state = pickle.loads(pickle.dumps(model.context.state()))
    there = model.within(tosaic.Context.from_state(state))
    np.testing.assert_array_equal([there(x) for x in given[2:]], drawn(1).results(given)[2:])
    np.testing.assert_array_equal([model(x) for x in given[2:]], drawn(1).results(given)[2:])


def test_mlir_names_variables_of_the_process() -> None:
    assert tosaic.load("func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }"
                       ).context is tosaic.default_context


def test_a_model_without_state_has_a_context_without_variables() -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    data = file(Graph("x", "y", [Tensor("x", (2,)), Tensor("y", (2,))], [Operator("NEG", "x", "y")]))
    model = tosaic.load(data)
    assert model(np.ones(2, np.float32)).tolist() == [-1, -1] and list(model.context) == []
    assert model.context is model.main.context is model.main.compile().context is not tosaic.default_context
