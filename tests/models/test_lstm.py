"""Keras LSTMs: one that keeps its state in variables, over 20 steps, and one that loops over a sequence."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic

from .lite import Lite
from .sources import DATA


def within(actual: np.ndarray, expected: np.ndarray) -> None:
    """Within 1e-5 of the range of the output."""
    span = float(expected.max() - expected.min())
    assert float(np.abs(actual - expected).max()) <= 1e-5 * span


@pytest.mark.parametrize("ending", ["tflite", "mlir"])
def test_a_stateful_lstm_follows_litert_for_twenty_steps(ending: str) -> None:
    context = tosaic.Context(ending)
    step = tosaic.load(DATA / f"corpus/v_lstm.{ending}").main.compile(context=context)
    lite, rng = Lite((DATA / "corpus/v_lstm.tflite").read_bytes(), keep=False), np.random.default_rng(0)
    actual, expected = [], []
    for _ in range(20):
        x = rng.standard_normal((1, 6)).astype(np.float32)
        expected.append(lite(x)[0])
        actual.append(step(x))
    within(np.array(actual), np.array(expected))
    assert sorted(context.snapshot()) == ["c", "h"]


@pytest.mark.parametrize("ending", ["tflite", "mlir"])
def test_an_lstm_over_a_sequence_gives_litert_answers(ending: str) -> None:
    run = tosaic.load(DATA / f"corpus/f_lstm_keras.{ending}").main.compile()
    lite, rng = Lite((DATA / "corpus/f_lstm_keras.tflite").read_bytes(), keep=False), np.random.default_rng(1)
    for _ in range(20):
        x = rng.standard_normal((2, 5, 6)).astype(np.float32)
        within(run(x), lite(x)[0])
