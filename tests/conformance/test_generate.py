"""What Arm's generator cannot write is a failure by its name: the other batches are written, and a run is no success."""
from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from . import generate


def write(command: Sequence[str]) -> int:
    """A generator that fails for one batch by an exception, for one by its status, and for one by its end."""
    folder = Path(command[command.index("-o") + 1])
    if folder.parts[-3] == "conv2d":
        raise ValueError("low >= high")
    if folder.parts[-3] == "pad":
        return 3
    (folder / folder.parts[-3] / "test").mkdir(parents=True)
    (folder / folder.parts[-3] / "test" / "desc.json").write_text("{}")
    return 0


@pytest.fixture
def generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arm's packages, as far as they are asked."""
    suite: Any = types.ModuleType("tosa_verif_conformance_generator")

    def main() -> int:
        arguments = sys.argv
        output = Path(arguments[arguments.index("--output-directory") + 1])
        for name in arguments[arguments.index("--operators") + 1:]:
            if name == "resize":
                raise KeyError("seed")
            folder = output / name / "main" / "positive"
            _, status, _, _ = suite._run_sh_command_mp(None, ["build", "--seed", "42", "-o", str(folder)])
            assert status == 0, "one batch ends the others"
        return 0

    suite.main, suite.convert_tests, suite.check_op_tests_size = main, None, None
    build: Any = types.ModuleType("tosa_verif_build_tests")
    build.main = write
    select: Any = types.ModuleType("generator.tosa_test_select")
    select.TosaTestSelectList = select.TosaTestSelectOpList = type("Select", (), {})
    schemas: Any = types.ModuleType("schemavalidation")
    schemas.validate = None
    for name, holder in (("conformance", {"tosa_verif_conformance_generator": suite}),
                         ("generator", {"tosa_verif_build_tests": build}), ("schemavalidation", {"schemavalidation": schemas})):
        package: Any = types.ModuleType(name)
        for key, value in holder.items():
            setattr(package, key, value)
        monkeypatch.setitem(sys.modules, name, package)
    monkeypatch.setitem(sys.modules, "generator.tosa_test_select", select)


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system has no fork")
def test_a_batch_that_cannot_be_written_is_named_and_counted(generator: None, tmp_path: Path) -> None:
    output = tmp_path / "suite"
    failed = generate.generate_in_processes(2, "1.0", output, 42, ["abs", "conv2d", "pad", "resize", "add"])
    lines = generate.generator_failures(output)
    assert failed == len(lines) == 3
    assert sorted(line.split()[0] for line in lines) == ["conv2d", "pad", "resize"]
    assert "conv2d main positive : ValueError: low >= high" in lines and any("KeyError" in line for line in lines)
    assert {path.parts[-3] for path in output.rglob("desc.json")} == {"abs", "add"}


def test_a_run_with_missing_tests_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    from . import __main__ as driver
    generate.note_failure(tmp_path, "conv2d main positive", "ValueError: low >= high")
    monkeypatch.setattr(driver.environment, "enter", lambda *_: None)
    monkeypatch.setattr(driver, "tests", lambda *_: [tmp_path])
    monkeypatch.setattr(driver, "run", lambda *_: 0)
    assert driver.main(["--suite", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "Arm's generator has failed: conv2d main positive : ValueError: low >= high" in said and "1 batches" in said
    assert driver.main(["--suite", str(tmp_path), "--operators", "abs"]) == 0
