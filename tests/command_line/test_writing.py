"""Files that cannot be written or must not be waited for: each error of the system has its own remedy, for everything that
writes."""
from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.runtime.errors import REMEDIES, Problem

MODEL = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tosa.abs %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
"""
WRITERS = ["compile M -o {}", "convert M {}/again.mlir", "convert M {}/again.tosa", "report M --html {}/page.html",
           "profile M --calls 1 --trace {}/trace.json", "tune M --calls 1 -o {}/tuning", "run M --save {}/saved.npz",
           "run M --state {}/state.npz"]
ELSEWHERE = "name a directory that can be written"


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return str(path)


def failing(number: int) -> Callable[..., Any]:
    def fail(*ignored: object, **named: object) -> Any:
        raise OSError(number, os.strerror(number))
    return fail


NUMBERS = sorted({*REMEDIES, errno.EACCES, errno.EPERM})
EACH = [(WRITERS[1], n) for n in NUMBERS] + [
    (w, errno.EACCES if i % 2 else errno.ENOSPC) for i, w in enumerate(WRITERS[:1] + WRITERS[2:])]
"""One writer with every error, and each other with one of two by turns."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("command", "number"), EACH)
def test_an_error_of_the_system_has_its_own_remedy(command: str, number: int, model: str, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    line = command.replace("M", model, 1).replace("{}", str(tmp_path)).split()
    monkeypatch.setattr(os, "replace", failing(number))  # the last step of every writer
    assert main(line) in (2, 3)
    said = capsys.readouterr().err
    assert os.strerror(number) in said and f"help: {REMEDIES.get(number, ELSEWHERE)}" in said
    assert ("can be written" in said) == (number not in REMEDIES)
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]  # nothing half written stays


def test_a_name_that_is_too_long_is_told_from_a_place_that_cannot_be_written(model: str, tmp_path: Path,
                                                                            capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", model, str(tmp_path / f"{'n' * 300}.mlir")]) == 3
    assert "choose a shorter name" in capsys.readouterr().err
    assert main(["convert", model, str(Path(model, "below.mlir"))]) == 3
    assert ELSEWHERE in capsys.readouterr().err
    (tmp_path / "folder.mlir").mkdir()
    assert main(["convert", model, str(tmp_path / "folder.mlir")]) == 3
    assert "a directory has this name" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["show"], ["report", "--json"], ["run"]])
def test_an_answer_that_finds_no_room_is_a_problem(command: list[str], model: str) -> None:
    with open("/dev/full", "wb") as full:
        found = subprocess.run([sys.executable, "-m", "tosaic.jit.command_line.cli", *command, model], stdout=full,
                               stderr=subprocess.PIPE)
    said = found.stderr.decode()
    assert found.returncode == 3 and "internal" not in said and "Exception" not in said
    assert "the disk is full: make room" in said


def test_a_temporary_file_without_room_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.mlir"
    path.write_text("""func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
      %c = "tosa.const"() <{values = dense<1.5> : tensor<64x1024xf32>}> : () -> tensor<64x1024xf32>
      %0 = tosa.add %x, %c : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
      return %0 : tensor<64x1024xf32> }""")
    monkeypatch.setattr(Path, "write_bytes", failing(errno.ENOSPC))
    assert main(["compile", str(path), "-o", str(tmp_path)]) == 3
    assert "(TMPDIR) cannot be written" in (said := capsys.readouterr().err) and "the disk is full" in said


def test_a_cache_without_room_is_gone_without(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOSAIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "replace", failing(errno.ENOSPC))
    np.testing.assert_array_equal(tosaic.load(Path(model))(np.array([-1, 2], np.float32)), [1, 2])


# ---- pipes ---------------------------------------------------------------------------------------------------------------
pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")


@pipes
@pytest.mark.parametrize("command", ["run", "show", "show kernels", "check", "report", "compile", "profile --calls 1"])
def test_a_model_may_come_through_a_named_pipe(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """Which can be read once: a shell makes one for `<(...)`."""
    monkeypatch.chdir(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(MODEL,), daemon=True)
    writer.start()
    name, *rest = command.split()
    assert main([name, str(pipe), *rest]) == 0, capsys.readouterr().err
    writer.join(10)
    assert not writer.is_alive()


@pipes
def test_load_reads_a_named_pipe_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=(MODEL,), daemon=True).start()
    assert tosaic.load(pipe)(np.array([-1, 2], np.float32)).tolist() == [1, 2]
    threading.Thread(target=pipe.write_bytes, args=(b"no model at all",), daemon=True).start()
    with pytest.raises(Problem, match=r"is no \.tflite file"):
        tosaic.from_tflite(pipe)


@pipes
def test_a_main_that_is_no_file_is_not_read(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "main.c")
    assert main(["compile", model, "--main", "-o", str(tmp_path / "out")]) == 3
    assert "is there already" in capsys.readouterr().err


def test_a_stream_without_an_encoding_is_written_to(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["show", model]) == 0
    assert "tosa.abs" in stream.getvalue()
