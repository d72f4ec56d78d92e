"""`tosaic run | compile | check | show | report`: answers as text and as JSON, exit codes, inputs, state."""
from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tosaic.jit.command_line.cli import main

DATA = Path(__file__).parents[1] / "data"

MODEL = """
module {
  tosa.variable @command_line.total = dense<0.0> : tensor<3xf32>
  func.func @main(%x: tensor<3xf32>, %scale: tensor<1xf32>) -> (tensor<3xf32>, tensor<1xi32>) {
    %shift = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
    %one = "tosa.const"() <{values = dense<7> : tensor<1xi32>}> : () -> tensor<1xi32>
    %0 = tosa.mul %x, %scale, %shift : (tensor<3xf32>, tensor<1xf32>, tensor<1xi8>) -> tensor<3xf32>
    %1 = tosa.variable_read @command_line.total : tensor<3xf32>
    %2 = tosa.add %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    tosa.variable_write @command_line.total, %2 : tensor<3xf32>
    return %2, %one : tensor<3xf32>, tensor<1xi32>
  }
  func.func @other(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = tosa.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return str(path)


@pytest.fixture
def tosaic(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command line: (exit code, standard output, standard error)."""
    def run(*arguments: Any) -> tuple[int, str, str]:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return run


def test_run_prints_outputs_time_and_arena(tosaic: Any, model: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 2, 3], np.float32))
    np.save(tmp_path / "two.npy", np.array([2], np.float32))
    code, out, err = tosaic("run", model, "--input", f"x={tmp_path}/x.npy", "--input", f"scale={tmp_path}/two.npy")
    assert (code, err) == (0, "")
    assert "result0: float32[3]\n  [2. 4. 6.]\nresult1: int32[1]\n  [7]\n" in out
    assert "microseconds a call (1 call), arena 0 bytes, live 0" in out


def test_inputs_come_from_npz_by_name_and_state_from_call_to_call(tosaic: Any, model: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "both.npz", x=np.array([1, 2, 3], np.float32), scale=np.array([1], np.float32))
    answer = json.loads(tosaic("run", model, "--input", tmp_path / "both.npz", "--calls", 5, "--json")[1])
    assert answer["outputs"][0] == {"name": "result0", "dtype": "float32", "element": "f32", "shape": [3], "strides": [1],
                                    "scale": None, "zero_point": None, "axis": None, "values": [5, 10, 15]}
    assert [t["name"] for t in answer["inputs"]] == ["x", "scale"]
    assert answer["calls"] == 5 and answer["microseconds"] >= answer["least_microseconds"] > 0
    assert answer["arena"] >= answer["live_bytes"] >= 0


def test_random_inputs_follow_their_seed(tosaic: Any, model: str) -> None:
    def outputs(*arguments: Any) -> Any:
        return json.loads(tosaic("run", model, "--entry", "other", "--json", *arguments)[1])["outputs"]

    assert outputs() == outputs("--seed", 0) == outputs("--input", "random:0") == outputs("--input", "x=random:0")
    assert outputs("--seed", 1) != outputs()


def test_save_writes_the_outputs_and_state_goes_on(tosaic: Any, model: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([1, 2, 3], np.float32), scale=np.array([1], np.float32))
    save, state = tmp_path / "out.npz", tmp_path / "state.npz"
    for _ in range(2):
        assert tosaic("run", model, "--input", tmp_path / "in.npz", "--save", save, "--state", state)[0] == 0
    np.testing.assert_array_equal(np.load(save)["result0"], [2, 4, 6])
    np.testing.assert_array_equal(np.load(state)["command_line.total"], [2, 4, 6])
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_check_says_yes_where_compiled_code_agrees(tosaic: Any, model: str) -> None:
    code, out, _ = tosaic("check", model, "--calls", 3)
    assert code == 0 and out.startswith("compiled code agrees with the reference: ") and "in 3 calls" in out
    answer = json.loads(tosaic("check", model, "--json")[1])
    assert answer["agrees"] is True and answer["difference"] is None and answer["entry"] == "main"


def test_check_says_no_where_it_differs(tosaic: Any, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tosaic.lowering.graph.operator import OPERATORS
    monkeypatch.setattr(OPERATORS["tosa.exp"], "reference", lambda self, x: np.exp(x) * np.float32(1.01))
    code, out, _ = tosaic("check", model, "--entry", "other")
    assert code == 1 and "compiled code differs from the reference" in out and "tosa.exp" in out
    assert json.loads(tosaic("check", model, "--entry", "other", "--json")[1])["agrees"] is False


@pytest.mark.parametrize(("stage", "word"), [
    ("graph", "func.func @other"), ("kernels", "kernel 0"), ("schedule", "kernel 0"), ("loops", "result0"),
    ("plan", "live"), ("llvm", "define "), ("asm", "ret")])
def test_show_prints_a_stage_in_either_order(tosaic: Any, model: str, stage: str, word: str) -> None:
    code, out, err = tosaic("show", stage, model, "--entry", "other")
    assert (code, err) == (0, "") and word in out
    assert tosaic("show", model, stage, "--entry", "other")[1] == out
    assert json.loads(tosaic("show", stage, model, "--entry", "other", "--json")[1])["stage"] == stage


def test_show_prints_the_whole_graph_as_it_was_read(tosaic: Any, model: str) -> None:
    out = tosaic("show", model)[1]
    assert "@main" in out and "@other" in out and "command_line.total" in out


def test_show_graph_reads_back(tosaic: Any, model: str, tmp_path: Path) -> None:
    (tmp_path / "again.mlir").write_text(tosaic("show", "graph", model)[1])
    assert tosaic("show", "graph", tmp_path / "again.mlir")[1] == tosaic("show", "graph", model)[1]


def test_report_counts_memory(tosaic: Any, model: str) -> None:
    code, out, _ = tosaic("report", model)
    assert code == 0 and "arena" in out and "command_line.total float32[3]" in out
    facts = json.loads(tosaic("report", model, "--json")[1])
    assert facts["name"] == "main" and facts["arena"] >= facts["live_bytes"]
    assert [b["name"] for b in facts["inputs"]] == ["x", "scale"]


def test_compile_writes_an_object_and_a_header(tosaic: Any, model: str, tmp_path: Path) -> None:
    code, out, err = tosaic("compile", model, "-o", tmp_path / "new" / "folder", "--name", "small")
    assert (code, err) == (0, "")
    assert (tmp_path / "new/folder/small.o").read_bytes()[:4] == b"\x7fELF"
    header = (tmp_path / "new/folder/tosaic_small.h").read_text()
    assert "main" in header and "other" in header and "arena" in out
    answer = json.loads(tosaic("compile", model, "-o", tmp_path, "--entry", "other", "--json")[1])
    assert answer["files"] == [str(tmp_path / "model.o"), str(tmp_path / "tosaic_model.h")]
    assert [e["name"] for e in answer["entries"]] == ["other"]


def test_compile_for_another_machine(tosaic: Any, model: str, tmp_path: Path) -> None:
    assert tosaic("compile", model, "-o", tmp_path, "--target", "thumbv7em")[0] == 0
    assert (tmp_path / "model.o").read_bytes()[4] == 1  # ELF of 32 bits
    code, _, err = tosaic("compile", model, "-o", tmp_path, "--target", "pdp11")
    assert code == 2 and "there is no target 'pdp11'" in err


def test_standard_input_is_a_model_too(tosaic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(MODEL.encode())))
    assert tosaic("run", "-", "--entry", "other")[0] == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"module {\n  wrong\n}")))
    code, out, err = tosaic("report", "-")
    assert (code, out) == (3, "") and err.startswith("<stdin>:2:")


def test_a_tflite_file_runs_whatever_its_name(tosaic: Any, tmp_path: Path) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    path = tmp_path / "model.mlir"
    path.write_bytes((DATA / "corpus/v_lstm.tflite").read_bytes())
    values = json.loads(tosaic("run", path, "--json")[1])["outputs"]
    assert values == json.loads(tosaic("run", DATA / "corpus/v_lstm.mlir", "--json")[1])["outputs"]


WRONG = [
    ("", 2, "usage"), ("fly", 2, "invalid choice"), ("run", 2, "MODEL"), ("run M --calls 0", 2, "below 1"),
    ("run M --calls x", 2, "invalid"), ("run M --input y=random:1", 2, "no input named y"),
    ("run M --input x=random:one", 2, "is not random:SEED"), ("run M --entry none", 2, "no entry none"),
    ("run M --input x=missing.npy", 2, "No such file"), ("run M --input x=M", 2, "no .npy or .npz"),
    ("run M --save /dev/null/x.npz", 2, "cannot be written"), ("show M tea", 2, "no stage tea"),
    ("run missing.mlir", 3, "No such file"), ("report .", 3, "a folder without")]


@pytest.mark.parametrize(("line", "code", "words"), WRONG)
def test_what_is_wrong_is_told_in_the_exit_code(tosaic: Any, model: str, line: str, code: int, words: str) -> None:
    found, out, err = tosaic(*(word.replace("M", model) for word in line.split()))
    assert (found, out) == (code, "") and words in err


def test_inputs_of_another_type_are_a_usage_error(tosaic: Any, model: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(3))
    code, _, err = tosaic("run", model, "--input", f"x={tmp_path}/x.npy")
    assert code == 2 and "input x of main must be tensor<3xf32>, got tensor<3xf64>" in err


def test_pickles_in_array_files_are_refused(tosaic: Any, model: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([object()]), allow_pickle=True)
    assert tosaic("run", model, "--input", f"x={tmp_path}/x.npy")[0] == 2


def test_an_error_of_tosaic_itself_is_4_and_short(tosaic: Any, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tosaic.jit.models import front_door

    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError("inside\x1b[31m")
    monkeypatch.setattr(front_door, "load", broken)
    code, out, err = tosaic("run", model)
    assert (code, out) == (4, "") and err.startswith("tosaic: internal error: ZeroDivisionError: inside\\x1b[31m\n")
    assert len(err.splitlines()) == 3 and "Traceback" in tosaic("run", model, "--traceback")[2]


def test_a_stage_that_fails_its_verifier_is_4_too(tosaic: Any, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tosaic.jit.models import front_door
    from tosaic.runtime.errors import Problem

    def broken(*arguments: Any) -> None:
        raise Problem("a load is out of range", kind="internal")
    monkeypatch.setattr(front_door, "load", broken)
    assert tosaic("run", model) == (4, "", "error[internal]: a load is out of range\n")


GATHER = """
func.func @main(%rows: tensor<1x7x2xf32>, %which: tensor<5xi32>) -> tensor<1x5x2xf32> {
  %shape = "tosa.const_shape"() <{values = dense<[1, 5]> : tensor<2xindex>}> : () -> !tosa.shape<2>
  %0 = tosa.reshape %which, %shape : (tensor<5xi32>, !tosa.shape<2>) -> tensor<1x5xi32>
  %1 = tosa.gather %rows, %0 : (tensor<1x7x2xf32>, tensor<1x5xi32>) -> tensor<1x5x2xf32>
  return %1 : tensor<1x5x2xf32>
}
"""


def test_random_indices_are_in_range_where_they_are_used(tosaic: Any, tmp_path: Path) -> None:
    from tosaic.jit.command_line.inputs import gather_inputs
    from tosaic.jit.models.load_model import load_model
    function = load_model(GATHER).entry().trace().function
    for seed in range(20):
        rows, which = gather_inputs(function, [], seed)
        assert rows.shape == (1, 7, 2) and which.dtype == np.int32
        assert which.min() >= 0 and which.max() < 7 and len(set(which.tolist())) == 5
    (tmp_path / "gather.mlir").write_text(GATHER)
    assert tosaic("check", tmp_path / "gather.mlir", "--calls", 4)[0] == 0


def test_show_whole_prints_constants_that_read_back(tosaic: Any, tmp_path: Path) -> None:
    values = ", ".join(f"{n}.5" for n in range(100))
    path, again = tmp_path / "model.mlir", tmp_path / "again.mlir"
    path.write_text("func.func @main() -> tensor<100xf32> {\n"
                    f'  %0 = "tosa.const"() <{{values = dense<[{values}]> : tensor<100xf32>}}> : () -> '
                    "tensor<100xf32>\n"
                    "  return %0 : tensor<100xf32>\n}\n")
    assert "99.5" not in tosaic("show", "graph", path)[1]
    again.write_text(tosaic("show", "graph", path, "--whole")[1])
    outputs = [json.loads(tosaic("run", p, "--json")[1])["outputs"][0]["values"] for p in (path, again)]
    assert outputs == [[n + 0.5 for n in range(100)]] * 2


def test_the_version_and_help_end_with_0(tosaic: Any) -> None:
    assert tosaic("--version")[0] == 0
    code, out, _ = tosaic("--help")
    assert code == 0 and "exit codes: 0 yes, 1 no, 2 usage, 3 bad model, 4 internal error" in out
    assert tosaic("show", "--help")[0] == 0


# ---- targets ---------------------------------------------------------------------------------------------------------
def test_targets_are_listed_as_text_and_as_json(tosaic: Any) -> None:
    code, out, err = tosaic("targets")
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    assert (code, err) == (0, "") and "nrf52840" in lines["cortex-m4"] and "C source" in lines["esp32-s3"]
    listed = json.loads(tosaic("targets", "--json")[1])["targets"]
    assert {t["name"] for t in listed} <= set(lines)
    found = next(t for t in listed if t["name"] == "cortex-m4")
    assert found["float_unit"] == ["float32"] and found["object"] and "thumbv7em" in found["aliases"]


def test_a_processor_alone_says_the_machine(tosaic: Any, model: str, tmp_path: Path) -> None:
    assert tosaic("compile", model, "-o", tmp_path, "--cpu", "cortex-m3")[0] == 0
    assert "thumbv7m-none-eabi, cortex-m3" in next(tmp_path.glob("*.h")).read_text()
    code, _, err = tosaic("compile", model, "-o", tmp_path, "--target", "esp32-s3")
    assert code == 2 and "no back end for Xtensa" in err and "--emit c" in err
    code, _, err = tosaic("compile", model, "-o", tmp_path, "--target", "cortex-m34")
    assert code == 2 and " cortex-m33?" in err


def test_compile_writes_c_source_in_place_of_the_object(tosaic: Any, model: str, tmp_path: Path) -> None:
    code, out, _ = tosaic("compile", model, "-o", tmp_path, "--emit", "c", "--name", "m")
    assert code == 0 and sorted(p.name for p in tmp_path.glob("*m.*")) == ["m.c", "tosaic_m.h"] and "m.c:" in out
    assert "c99-unknown-none, any" in (tmp_path / "tosaic_m.h").read_text()
    assert tosaic("compile", model, "-o", tmp_path, "--emit", "c", "--name", "m", "--target", "esp32-s3")[0] == 0
    assert "esp32-s3" in (tmp_path / "tosaic_m.h").read_text()
    code, _, err = tosaic("compile", model, "-o", tmp_path, "--emit", "c", "--library")
    assert code == 2 and "a static library has objects" in err


def test_compile_says_whose_the_variables_are(tosaic: Any, model: str, tmp_path: Path) -> None:
    for name, options in (("own", ()), ("shared", ("--namespace", "a.b")), ("held", ("--state", "caller", "--main"))):
        assert tosaic("compile", model, "-o", tmp_path, "--entry", "main", "--name", name, *options)[0] == 0
    own, shared, held = ((tmp_path / f"tosaic_{name}.h").read_text() for name in ("own", "shared", "held"))
    assert "tosaic_own_variable_command_line_x2e_total[3];" in own
    assert "tosaic_a_x2e_b_variable_command_line_x2e_total[3];" in shared and "in namespace a.b" in shared
    assert "int32_t tosaic_held_init(struct tosaic_held_state *state);" in held and "extern float" not in held
    assert "tosaic_held_init(&state)" in (tmp_path / "main.c").read_text()
    code, _, err = tosaic("compile", model, "-o", tmp_path, "--namespace", "n", "--state", "caller")
    assert code == 2 and "variables that the caller holds have no symbols, and no namespace" in err
    assert tosaic("compile", model, "-o", tmp_path, "--state", "callee")[0] == 2


def test_open_extents_are_compiled_as_the_command_line_says(tosaic: Any, tmp_path: Path) -> None:
    """`compile --shape` writes an object for these shapes, of one entry; without it the open input is named."""
    model = tmp_path / "open.mlir"
    model.write_text("func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {\n"
                     "  %0 = tosa.abs %x : (tensor<?x3xf32>) -> tensor<?x3xf32>\n  return %0 : tensor<?x3xf32>\n}\n")
    code, _, said = tosaic("compile", model, "-o", tmp_path)
    assert code and "its shape must be known" in said
    assert tosaic("compile", model, "--shape", "x=5x3", "-o", tmp_path)[0] == 0
    assert "5x3" in (tmp_path / "tosaic_open.h").read_text()
    model.write_text(model.read_text() + model.read_text().replace("@main", "@other"))
    code, _, said = tosaic("compile", model, "--shape", "x=5x3", "-o", tmp_path)
    assert code and "name it with --entry" in said
    assert tosaic("compile", model, "--shape", "x=5x3", "--entry", "other", "-o", tmp_path)[0] == 0
