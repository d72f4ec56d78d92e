"""`tosaic run` on a kernel program: what goes where, exit codes, options that mean nothing to it."""
from __future__ import annotations

import io
import json
import pathlib

import pytest
from tosaic.jit.command_line.cli import main

from .test_operations import DOCUMENT

FAILING = """func.func @setup() {
  tfrt.return
}
func.func @f() -> i32 {
  %x = "tfrt_test.fail"() : () -> i32
  tfrt.return %x : i32
}
func.func @g(%x: i32) {
  tfrt.return
}
"""


def tosaic(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def failing(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "failing.mlir"
    path.write_text(FAILING)
    return path


def test_run_prints_what_the_program_of_the_document_prints(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(DOCUMENT)
    assert tosaic(capsys, "run", path) == (0, "--- Running 'example'\nDenseHostTensor dtype = f32, shape = [1, 1], "
                                              "values = [-3.000000e+00]\n'example' returned !tfrt.chain value\n", "")


def test_run_tells_errors_on_standard_error_and_by_its_exit_code(failing: pathlib.Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tosaic(capsys, "run", failing)
    assert code == 1
    assert out.splitlines() == ["--- Running 'setup'", "--- Running 'f'", "'f' returned <<error: something bad happened>>",
                                "--- Not running 'g' because it has arguments."]
    assert err == f"{failing}:5:8: runtime error: something bad happened\n"


def test_run_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FAILING.encode())))
    code, _, err = tosaic(capsys, "run", "-", "--json")
    assert code == 1 and err.startswith("<stdin>:5:8: runtime error: ")


def test_run_prints_json(failing: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = tosaic(capsys, "run", failing, "--json")
    found = json.loads(out)
    assert found["functions"][1] == {
        "function": "f", "run": True, "returned": ["<<error: something bad happened>>"], "failed": True}
    assert found["functions"][2]["run"] is False and len(found["printed"]) == 4


def test_run_runs_the_function_that_is_named(failing: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tosaic(capsys, "run", failing, "--entry", "setup") == (0, "--- Running 'setup'\n", "")
    code, _, err = tosaic(capsys, "run", failing, "--entry", "g")
    assert code == 2 and "the function @g has arguments" in err
    code, _, err = tosaic(capsys, "run", failing, "--entry", "nobody")
    assert code == 2 and "the program has no function nobody" in err


def test_run_refuses_options_of_models(failing: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tosaic(capsys, "run", failing, "--input", "x=random:1", "--save", "x.npz")
    assert (code, out) == (2, "") and "a kernel program takes no --input, --save" in err


def test_a_text_that_is_wrong_is_a_bad_model_and_nothing_runs(tmp_path: pathlib.Path,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(FAILING + "func.func @h() { tfrt.nothing tfrt.return }")
    code, out, err = tosaic(capsys, "run", path)
    assert (code, out) == (3, "") and err.startswith(f"{path}:11:18: error[symbol]: there is no kernel tfrt.nothing\n")
