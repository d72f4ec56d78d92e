"""A schedule that `show` has printed is an option of a compile: `--schedule FILE`, or `CompileOptions(schedule=text)`."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import BAD_MODEL, main

MODEL = Path(__file__).parents[1] / "data" / "corpus" / "f_mlp.mlir"
TARGET = ["--target", "x86-64-v3"]


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["show", str(MODEL), *arguments, *TARGET]) == 0
    return capsys.readouterr().out.rstrip("\n")


def test_a_schedule_from_a_file_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "schedule.txt"
    text = shown(capsys, "schedule")
    for changed in (text, text.replace("rows outermost", "columns outermost", 1)):
        file.write_text(changed)
        assert shown(capsys, "schedule", "--schedule", str(file)) == changed
        assert (shown(capsys, "loops", "--schedule", str(file)) == shown(capsys, "loops")) == (changed == text)
    assert main(["compile", str(MODEL), "-o", str(tmp_path), "--schedule", str(file), *TARGET]) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"kernel 0: x\n  what\n", "schedule.txt:2:3: error[schedule]: expected a loop nest"),
        (b"", "schedule.txt:1:1: error[schedule]: the schedule is empty, and the function has "),
        (b"// no kernels\n", "schedule.txt:1:1: error[schedule]: expected `kernel 0: ` and its operators, got '// no kernels'"),
        (b"\xff\xfe", "is no text"),
        (
            b"kernel 0: x\n  result0 [i<3] elementwise: 1 vectors of 8\n" * 2,
            "schedule.txt:3:1: error[schedule]: expected `kernel 1: `",
        ),
        (None, "cannot be read: No such file"),
    ],
)
def test_another_file_is_a_problem(content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
                                   ) -> None:
    file = tmp_path / "schedule.txt"
    if content is not None:
        file.write_bytes(content)
    assert main(["show", str(MODEL), "loops", "--schedule", str(file), *TARGET]) == BAD_MODEL
    assert message in capsys.readouterr().err


def test_a_schedule_is_an_option_of_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache does not take code with one schedule for code with another."""
    monkeypatch.setenv("TOSAIC_CACHE", str(tmp_path))
    x, w = np.random.default_rng(0).standard_normal((2, 96, 96)).astype(np.float32)

    def product(x: tosaic.Tensor) -> tosaic.Tensor:
        return x @ w

    plain = tosaic.jit(product).compile(x)
    text = plain.lowered.show("schedule")
    other = text.replace("rows outermost", "columns outermost")
    assert other != text
    for _ in range(2):
        compiled = tosaic.jit(product, options=tosaic.CompileOptions(schedule=other)).compile(x)
        assert compiled.lowered.show("schedule") == other
        np.testing.assert_array_equal(compiled(x), plain(x))
