"""Imported models are held against their source: what a converter gets wrong is found, where both sides of the other stage
start from the converter's graph; and it is said where nothing could be compared.
"""
from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.source import SourceEvaluator
from tosaic.jit.stages import Traced
from tosaic.jit.tools.check.import_check import check_import
from tosaic.lowering.flatbuffer.table_builder import Scalar

from ..tflite.files import Graph, Operator, Signature, Tensor, constant, file

Array = np.ndarray[Any, Any]


def resize(aligned: int = 0, halves: int = 0, old: int = 4, new: int = 8) -> bytes:
    """A .tflite of one operator, which needs no converter."""
    return file(Graph("x", "y", [Tensor("x", (1, 1, old, 1)), constant("s", [1, new], "i32"), Tensor("y", (1, 1, new, 1))],
                      [Operator("RESIZE_NEAREST_NEIGHBOR", "x s", "y", (Scalar("B", aligned), Scalar("B", halves)))]))


X = np.arange(4, dtype=np.float32).reshape(1, 1, 4, 1)


def wrong_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the resize as Arm's converter does, which rounds places."""
    from tosaic.lowering.tflite.resizes import Axis

    def rows(self: Axis) -> Array:
        return (np.arange(self.new) * self.old / self.new + 0.5).astype(np.int64).clip(0, 3)

    monkeypatch.setattr(Axis, "rows", rows)


def test_a_right_import_agrees_and_says_by_which_system() -> None:
    found = tosaic.from_tflite(resize()).check([[X]])
    assert found.agrees and found.imported is not None and str(found.imported.evaluator).startswith("LiteRT ")
    assert [str(each) for each in found.imported.largest] == ["output 0: equal"]


def test_a_wrong_import_is_found_though_compiled_code_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_import(monkeypatch)
    found = tosaic.from_tflite(resize()).check([[X]])
    assert found.difference is None and not found.agrees and found.imported is not None
    assert str(found.imported).startswith("the import of a .tflite model differs from LiteRT ")
    assert "output 0: 3 of 8 elements differ in call 0, the first at [0, 0, 1, 0]: imported 1.0, LiteRT 0.0" in str(found)
    (largest,) = found.imported.largest
    assert (largest.difference, largest.index) == (1.0, (0, 0, 1, 0)) and largest.allowed < 1e-3


def test_the_command_says_no_to_a_wrong_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tflite").write_bytes(resize())
    assert main(["check", str(tmp_path / "m.tflite")]) == 0
    assert "the import of a .tflite model agrees with LiteRT" in capsys.readouterr().out
    wrong_import(monkeypatch)
    assert main(["check", str(tmp_path / "m.tflite"), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["agrees"] is False and answer["import"]["largest"][0]["is_within"] is False and answer["difference"] is None


def test_it_is_said_that_nothing_was_compared_where_no_system_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SourceEvaluator, "is_installed", property(lambda self: False))
    found = tosaic.from_tflite(resize()).check([[X]])
    assert found.agrees and "the import was not checked: install ai-edge-litert" in str(found)


def test_a_system_that_cannot_run_the_source_is_named_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(name: str) -> Any:
        raise RuntimeError("no such operator")

    traced = tosaic.from_tflite(resize()).main.trace()
    assert traced.imported is not None
    source = type(traced.imported)("a .tflite model", (SourceEvaluator("LiteRT", "ai_edge_litert", "ai-edge-litert", start),))
    found = check_import(source, traced.module, traced.function, [[X]])
    assert not found.agrees and not found.differs and "cannot run it (RuntimeError: no such operator)" in str(found)


def test_text_has_no_source() -> None:
    model = tosaic.load("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    assert isinstance(model.main.trace(), Traced) and model.check([[X.reshape(-1)[:2]]]).imported is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("aligned", "halves"), [(0, 0), (1, 0), (0, 1)])
def test_every_resize_to_nearest_is_the_kernels(aligned: int, halves: int) -> None:
    """All extents of 1 to 7 to 1 to 17 as signatures of one file."""
    pairs = [(old, new) for old in range(1, 8) for new in range(1, 18)]
    graphs = [Graph("x", "y", [Tensor("x", (1, old, 1, 1)), constant("s", [new, 1], "i32"), Tensor("y", (1, new, 1, 1))],
                    [Operator("RESIZE_NEAREST_NEIGHBOR", "x s", "y", (Scalar("B", aligned), Scalar("B", halves)))], f"g{i}")
              for i, (old, new) in enumerate(pairs)]
    data = file(*graphs, signatures=[Signature(f"f{i}", i, {"x": "x"}, {"y": "y"}) for i in range(len(graphs))])
    model = tosaic.from_tflite(data)
    for (old, _), entry in zip(pairs, model, strict=True):
        traced = entry.trace()
        assert traced.imported is not None
        x = np.arange(old, dtype=np.float32).reshape(1, old, 1, 1)
        whole = replace(traced.imported, locate=None)  # each is one operator
        found = check_import(whole, traced.module, traced.function, [[x]])
        assert found.evaluator is not None and found.agrees, f"{entry.name}: {found}"


# ---- state -------------------------------------------------------------------------------------------------------------------
def test_the_state_of_a_pytorch_module_is_compared_call_by_call() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
    pytest.importorskip("torch_mlir", reason="torch-mlir is not installed (the extra `torch`)")

    class Total(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.ones(3))

        def forward(self, x: Any) -> Any:
            self.total += x
            return torch.tanh(self.total)

    module = Total()
    model = tosaic.from_torch(module, torch.zeros(3))
    calls = [[np.full(3, 0.25 * n, np.float32)] for n in range(4)]
    found = model.check(calls)
    assert found.agrees and found.imported is not None and found.imported.evaluator is not None
    assert {each.where for each in found.imported.largest} == {"output 0", "variable @Total.total"}
    assert module.total.tolist() == [1, 1, 1]
    traced = model.main.trace()
    assert traced.imported is not None
    run = traced.imported.evaluators[0].start("main")
    for call in calls:
        run(call)
    np.testing.assert_array_equal(run.variables["Total.total"], np.full(3, 2.5, np.float32))
