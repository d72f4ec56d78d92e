"""MLIR bytecode as torch-mlir writes it, with constants as resources behind the graph: the same graph as its text."""
from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.lowering.bytecode import attributes
from tosaic.lowering.bytecode.reader import read_module
from tosaic.lowering.bytecode.sections import Unreadable
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module as read_text

TABLE = Path(__file__).parents[1] / "data" / "torch_mlir" / "table.mlirbc"


def constants(module: Module) -> list[np.ndarray]:
    values = (v.constant for f in module.functions for o in f.body.operations for v in o.results)
    return [array for array in values if array is not None]


def test_bytecode_and_text_are_the_same_graph() -> None:
    module = read_module(memoryview(TABLE.read_bytes()))
    text = read_text(TABLE.with_suffix(".mlir").read_text(), "table.mlir")
    assert print_module(module, elide=None) == print_module(text, elide=None)
    assert {"float32", "int32", "int8"} <= {array.dtype.name for array in constants(module)}


def test_resources_are_views_of_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attributes, "SMALL", 100)
    data = np.frombuffer(TABLE.read_bytes(), np.uint8)
    weights = [c for c in constants(read_module(memoryview(data))) if c.shape == (1, 10, 4)]  # type: ignore[arg-type]
    assert len(weights) == 1 and np.shares_memory(weights[0], data) and not weights[0].flags.writeable


def test_bytes_that_are_cut_off_or_changed_are_unreadable_or_another_graph() -> None:
    data = TABLE.read_bytes()
    for end in range(0, len(data), 7):
        with pytest.raises(Unreadable):
            read_module(memoryview(data[:end]))
    rng = np.random.default_rng(5)
    for at in rng.integers(0, len(data), 600).tolist():
        changed = bytearray(data)
        changed[at] ^= int(rng.integers(1, 256))
        with suppress(Unreadable, tosaic.Problem):
            assert isinstance(read_module(memoryview(bytes(changed))), Module)
