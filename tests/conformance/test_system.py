"""tosaic as a system under test, on a graph written here: nothing of Arm's is needed."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tosaic import Problem
from tosaic.jit.models import front_door

from .system import ENGINES, Engine, Outcome, Subject

TEXT = """func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %c = tosa.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}"""


def subject(folder: Path, text: str = TEXT, **changes: Any) -> Subject:
    """A test like those of the suite, its graph as text. Its inputs are listed in another order than the graph's."""
    (folder / "test.mlir").write_text(text)
    np.save(folder / "b.npy", np.arange(4, dtype=np.float32))
    np.save(folder / "a.npy", np.full(4, 10, np.float32))
    return Subject(folder, {"tosa_file": "test.mlir", "ifm_name": ["b", "a"], "ifm_file": ["b.npy", "a.npy"],
                            "ofm_name": ["c"], "ofm_file": ["result.npy"], "expected_failure": False} | changes)


@pytest.mark.parametrize("engine", ENGINES)
def test_inputs_and_results_are_matched_by_name(engine: Engine, tmp_path: Path) -> None:
    run = subject(tmp_path).run(engine)
    assert run.outcome is Outcome.VALID, run.message
    assert run.results["result.npy"].tolist() == [10, 9, 8, 7]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fault_of_the_graph_is_an_error(engine: Engine, tmp_path: Path) -> None:
    run = subject(tmp_path, TEXT.replace("tensor<4xf32> {", "tensor<5xf32> {")).run(engine)
    assert run.outcome is Outcome.ERROR and "5xf32" in run.message


@pytest.mark.parametrize("failure", [Problem("not yet", kind="unsupported"), Problem("none", kind="file"), KeyError("x")],
                         ids=["unsupported", "file", "exception"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_not_a_fault_of_the_graph_is_another_error(engine: Engine, failure: Exception, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise failure
    monkeypatch.setattr(front_door, "load_model", fails)
    run = subject(tmp_path).run(engine)
    assert run.outcome is Outcome.OTHER
    assert isinstance(failure, Problem) or "Traceback" in run.message


@pytest.mark.parametrize("engine", ENGINES)
def test_an_input_of_the_wrong_type_is_another_error(engine: Engine, tmp_path: Path) -> None:
    test = subject(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros(4, np.int32))
    np.save(tmp_path / "b.npy", np.zeros(4, np.int64))
    assert test.run(engine).outcome is Outcome.OTHER
