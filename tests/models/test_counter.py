"""One variable shared by three entry points of a module; the answers are TensorFlow's for the same functions."""
from __future__ import annotations

import numpy as np
import tosaic

from .sources import DATA

D = np.array([0.2739233672618866, -0.46042656898498535, -0.9180529713630676], np.float32)
CALLS = [
    ("get", [1.0, 2.0, 3.0]), ("add", 4.895443916320801), ("add", 3.7908878326416016),
    ("get", [1.547846794128418, 1.0791468620300293, 1.1638941764831543]), ("reset", [0.0, 0.0, 0.0]),
    ("add", -1.1045562028884888), ("get", [0.2739233672618866, -0.46042656898498535, -0.9180529713630676]),
]


def test_three_entry_points_share_one_variable() -> None:
    model, context = tosaic.load(DATA / "counter.mlir"), tosaic.Context("counter")
    entries = {name: model[name].compile(context=context) for name in ("get", "add", "reset")}
    for name, expected in CALLS:
        actual = entries[name](*([D] if name == "add" else []))
        np.testing.assert_allclose(actual, np.array(expected, np.float32), rtol=1e-6)
    assert list(context.snapshot()) == ["n"]
    np.testing.assert_array_equal(context.read("n"), D)
