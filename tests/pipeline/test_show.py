"""`show` at any pass, and on from any text: what is printed is what the passes make."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.lowering.pipeline import PASSES

MODEL = str(Path(__file__).parents[1] / "data" / "corpus" / "f_conv_bn_relu_pool_int8.mlir")
TARGET = ("--target", "x86-64-v3")


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> object:
    def run(*arguments: object, code: int = 0) -> str:
        assert main(["show", *map(str, arguments), *TARGET]) == code
        out = capsys.readouterr()
        return out.err if code else out.out
    return run


def test_every_pass_has_a_name_and_a_promise() -> None:
    assert len({p.name for p in PASSES}) == len(PASSES) > 15
    assert all(re.fullmatch(r"[a-z-]+", p.name) and re.fullmatch(r"[A-Z].*\.", p.promises) for p in PASSES)


def test_after_the_last_pass_of_a_stage_there_is_what_show_prints(show) -> None:  # type: ignore[no-untyped-def]
    for name, stage in (("verify-rewritten", "graph"), ("order-kernels", "kernels"), ("plan", "plan")):
        assert show(MODEL, "--after", name) == show(MODEL, stage, "--entry", "main")
    assert "tosa.rescale" in show(MODEL, "--after", "legalize")


def test_all_passes_are_printed_in_order(show) -> None:  # type: ignore[no-untyped-def]
    text = show(MODEL, "--print-after-all")
    assert re.findall(r"^// ----- ([a-z-]+): ", text, re.MULTILINE) == [p.name for p in PASSES]
    assert "// (nothing changed)" in text


def test_each_text_goes_on_to_the_same_code(show, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    kernels, loops, plan, schedule = (tmp_path / n for n in ("kernels.txt", "loops.txt", "plan.txt", "schedule.txt"))
    kernels.write_text(show(MODEL, "kernels", "--whole"))
    loops.write_text(show(MODEL, "loops", "--whole"))
    plan.write_text(show(MODEL, "plan"))
    schedule.write_text(show(MODEL, "schedule"))
    expected = show(MODEL, "llvm")
    assert show("llvm", "--from", kernels) == show("llvm", "--from", kernels, "--from", schedule) == expected
    assert show("llvm", "--from", loops) == show("llvm", "--from", loops, "--from", plan) == expected
    assert show("plan", "--from", loops) == show(MODEL, "plan")


@pytest.mark.parametrize(("arguments", "message"), [
    ((MODEL, "--after", "legalise"), "there is no pass legalise"), ((), "show needs a model"),
    (("loops", "--from", "nowhere"), "nowhere cannot be read")])
def test_what_is_wrong_is_said(show, arguments: tuple[str, ...], message: str) -> None:  # type: ignore[no-untyped-def]
    code = 3 if "nowhere" in message else 2
    assert message in show(*arguments, code=code)


@pytest.mark.parametrize(("text", "message"), [
    ("", "stage.txt:1:1: error[argument]: nothing can be made of an empty text alone"),
    ("// a comment", "stage.txt:1:1: error[argument]: nothing can be made of graph alone"),
    ("kernel 0: x", "stage.txt:1:1: error[argument]: nothing can be made of schedule alone")])
def test_a_text_of_no_stage_is_a_problem_with_its_place(show, text: str, message: str, tmp_path: Path  # type: ignore[no-untyped-def]
                                                        ) -> None:
    stage = tmp_path / "stage.txt"
    stage.write_text(text)
    assert message in show("loops", "--from", stage, code=2)


def test_a_plan_that_is_wrong_for_the_loops_is_a_problem(show, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    loops, plan = tmp_path / "loops.txt", tmp_path / "plan.txt"
    loops.write_text(show(MODEL, "loops", "--whole"))
    text = show(MODEL, "plan")
    first = next(line for line in text.splitlines() if " intermediate " in line)
    plan.write_text(text.replace(f"{first}\n", ""))
    said = show("llvm", "--from", loops, "--from", plan, code=3)
    assert "plan.txt is no plan for these loops: the memory plan is wrong: " in said


def test_python_shows_what_the_command_line_does(show) -> None:  # type: ignore[no-untyped-def]
    options = tosaic.CompileOptions(tosaic.target("x86-64-v3"))
    entry = tosaic.load(MODEL).main
    assert entry.show(after="fuse", options=options).rstrip("\n") == show(MODEL, "--after", "fuse").rstrip("\n")
    assert entry.show("loops", options=options).rstrip("\n") == show(MODEL, "loops").rstrip("\n")
