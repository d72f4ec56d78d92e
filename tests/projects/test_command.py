"""`tosaic compile --project` and `save(project=...)`: what they take, what they say; nothing is written where they fail."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main as command

from .building import DATA, SAMPLES, compiled_example, needs, said_by

LSTM, TWO_SUMS = (str(SAMPLES / "models" / f"{name}.mlir") for name in ("lstm", "two_sums"))
COUNTER = str(DATA / "corpus" / "v_counter_three_functions.tflite")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that fails because of its options."""
    assert command(["compile", *words]) == 2
    return capsys.readouterr().err


@needs("gcc")
def test_inputs_come_from_files_and_seeds_by_name(tmp_path: Path) -> None:
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.save(tmp_path / "x.npy", x)
    words = ["compile", TWO_SUMS, "-o", str(tmp_path / "p"), "--project", "make", "--calls", "2"]
    assert command([*words, "--input", f"x={tmp_path / 'x.npy'}", "--input", "y=random:7"]) == 0
    text = (tmp_path / "p" / "example" / "tosaic_two_sums_recorded.h").read_text()
    given = text.split("recorded_input_x[2][64] = {\n")[1].split("};")[0]
    values = [float(word.strip(" {}\n").rstrip("f")) for word in given.split(",") if word.strip(" {}\n")]
    assert values == [*x.ravel().tolist()] * 2
    assert said_by(compiled_example(tmp_path / "p")) == ("tosaic_two_sums: 2 calls, OK\n", 0)


def test_what_is_written_is_listed_with_the_memory_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["compile", LSTM, "-o", str(tmp_path), "--project", "esp-idf", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    files = {str(p) for p in tmp_path.rglob("*") if p.is_file()}
    assert set(found["files"]) == files
    assert found["files"][:2] == [str(tmp_path / "src/lstm.c"), str(tmp_path / "include/tosaic_lstm.h")]
    assert found["entries"][0]["arena"] == 160
    page = (tmp_path / "README.md").read_text()
    assert "* 160 bytes of memory to work in (the example's: `TOSAIC_LSTM_WORKSPACE_SECTION`)\n" in page
    assert "* 64 bytes of variables\n" in page


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("system", "target", "code"), [
    ("cmake", None, "src/lstm.o"), ("make", None, "src/lstm.o"), ("cmake", "esp32-s3", "src/lstm.c"),
    ("make", "any", "src/lstm.c"), ("make", "cortex-m4", "src/lstm.o"), ("esp-idf", None, "src/lstm.c"),
    ("esp-idf", "esp32-c3", "src/lstm.c"),
    ("zephyr", "cortex-m33", "src/lstm.c"), ("platformio", None, "src/lstm.c"), ("arduino", "rp2040", "src/lstm.c")])
def test_a_system_and_a_processor_decide_what_code_there_is(tmp_path: Path, system: str, target: str | None, code: str) -> None:
    words = ["--target", target] if target else []
    assert command(["compile", LSTM, "-o", str(tmp_path / "a"), "--project", system, *words]) == 0
    options = tosaic.CompileOptions(tosaic.target(target)) if target else None
    artifact = tosaic.load(LSTM).save(tmp_path / "b", "lstm", options, project=system)
    assert artifact.object == tmp_path / "b" / code and (tmp_path / "a" / code).is_file()
    files = [{str(p.relative_to(tmp_path / f)): p.read_bytes() for p in (tmp_path / f).rglob("*") if p.is_file()} for f in "ab"]
    assert files[0] == files[1]


def test_options_that_mean_nothing_together_are_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("library", "main"):
        found = told(capsys, LSTM, "-o", str(tmp_path), "--project", "make", f"--{option}")
        assert "a project " in found and f"help: leave out the {option}" in found
    for words in (("--calls", "2"), ("--input", "random:1")):
        assert "are for the example of a project" in told(capsys, LSTM, "-o", str(tmp_path), *words)
    found = told(capsys, LSTM, "-o", str(tmp_path), "--project", "make", "--input", "y=random:1")
    assert "main has no input named y" in found and "help: its inputs: arg0" in found
    known = "cmake, esp-idf, zephyr, platformio, arduino, make"
    with pytest.raises(tosaic.Problem, match=f"project is 'bazel'\n  help: it may be {known}"):
        tosaic.load(LSTM).main.lower().save(tmp_path, project="bazel")
    with pytest.raises(tosaic.Problem, match="calls are recorded in projects"):
        tosaic.load(LSTM).main.lower().save(tmp_path, calls=[])
    assert not list(tmp_path.iterdir())


def test_the_parser_knows_the_systems_that_there_are() -> None:
    from tosaic.jit.command_line.cli import parser
    from tosaic.jit.projects.systems import SYSTEMS
    commands = next(a for a in parser()._actions if a.dest == "command").choices
    assert commands is not None
    option = next(a for a in commands["compile"]._actions if a.dest == "project")  # type: ignore[call-overload]
    assert list(option.choices) == list(SYSTEMS)


@needs("gcc")
def test_signatures_that_share_variables_are_called_in_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    assert command(["compile", COUNTER, "-o", str(tmp_path / "p"), "--name", "count", "--project", "make", "--calls", "4"]) == 0
    assert said_by(compiled_example(tmp_path / "p")) == ("tosaic_count: 4 calls, OK\n", 0)
    found = told(capsys, COUNTER, "-o", str(tmp_path / "q"), "--project", "make", "--input", "random:1")
    assert "entries, and --input is for one" in found and "help: name it with --entry" in found


def test_a_project_is_written_again_and_no_folder_of_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compile", LSTM, "-o", str(tmp_path / "p"), "--project"]
    assert command([*words, "cmake"]) == 0 and command([*words, "make", "--emit", "c"]) == 0
    names = {p.name for p in (tmp_path / "p").rglob("*")}
    assert "Makefile" in names and "CMakeLists.txt" not in names and "lstm.o" not in names
    (tmp_path / "p" / "example" / "main.c").write_text("mine")
    capsys.readouterr()
    assert command([*words, "cmake"]) == 3
    assert "main.c has been changed since tosaic wrote it" in capsys.readouterr().err
    assert command(["compile", TWO_SUMS, "-o", str(tmp_path / "p"), "--project", "make"]) == 3
    told = capsys.readouterr().err
    assert "p is the project of tosaic_lstm, and this is tosaic_two_sums" in told and "p/tosaic_two_sums, or remove" in told
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    assert command(["compile", LSTM, "-o", str(tmp_path / "other"), "--project", "cmake"]) == 3
    assert "has files in it that tosaic has not written" in capsys.readouterr().err
