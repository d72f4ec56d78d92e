"""Functions with lists, slices and updates as TensorFlow writes them, in its executor's form: interpreted and compiled, they
give TensorFlow's answers."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tf.interpret import Environment, interpret
from tosaic.lowering.rewrite.tensorflow import to_tosa
from tosaic.lowering.text.reader import read_module

from .corpus import same
from .three_ways import type_of

DATA = Path(__file__).parents[1] / "data" / "tensorflow_lists"
TEXTS = sorted(DATA.glob("*.mlir"))


@pytest.mark.parametrize("path", TEXTS, ids=[p.stem for p in TEXTS])
def test_a_function_with_lists_gives_tensorflows_answers(path: Path) -> None:
    module = read_module(path.read_text("utf-8"), path.name)
    name = next(f.name for f in module.functions if not f.is_private)
    with np.load(DATA / "answers.npz") as data:
        x, answers = data["x"], [data[key] for key in sorted(data.files) if key.startswith(f"{path.stem}/")]
    assert answers
    compiled = Traced(to_tosa(module, name, [type_of(x)]), name).compile()(x)
    for found in (interpret(Environment(module), name, [x]), compiled if isinstance(compiled, tuple) else (compiled,)):
        assert len(found) == len(answers)
        for i, (mine, right) in enumerate(zip(found, answers)):
            same(mine, right, f"result {i}")
