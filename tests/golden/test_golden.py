"""The text of each stage of two small models, for fixed targets. `pytest --update-golden` writes them again."""
from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest
import tosaic
from tosaic.lowering.target.presets import target

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize("stage", ["graph", "kernels", "schedule", "loops", "plan"])
@pytest.mark.parametrize(("model", "entry"), [("quantized", "main"), ("counter", "add")])
def test_a_stage_prints_as_its_golden_text(model: str, entry: str, stage: str, golden: Callable[[str, str], None]) -> None:
    path = HERE / f"{model}.mlir" if model == "quantized" else HERE.parent / "data" / f"{model}.mlir"
    lowered = tosaic.load(path)[entry].lower(tosaic.CompileOptions(target("x86-64-v3")))
    golden(f"{model}_{entry}.{stage}.txt", lowered.show(stage))
