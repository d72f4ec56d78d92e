"""The judge of a run's skips: what it must not take for green, from reports that pytest itself wrote."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..skips import ROWS, Ran, faults, main, read, row_of

ROOT = Path(__file__).parents[2]
OF_THE_MACHINE = (
    "this processor lacks its instructions", "this machine has no matrix unit, or does not let us use it",
    "this machine has no avx512f, avx512vl", "this machine has no fused products",
    "this processor has another number for rounding up", "NumPy has no dtype for any combination of types of conv2d",
    "this system does not let a process forbid itself system calls", "this is no checkout of git")
RAN = [Ran("aot", "passed")] * 30


def skips(reason: str, count: int = 1) -> list[Ran]:
    return RAN + [Ran("aot", "skipped", reason)] * count


def report_of(folder: Path, name: str, text: str) -> Path:
    """The report that pytest writes of one module."""
    (folder / "tests" / name).mkdir(parents=True)
    (folder / "tests" / name / "test_it.py").write_text(text)
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".",
                    "--junitxml", "report.xml", f"tests/{name}"], cwd=folder, capture_output=True, text=True)
    return folder / "report.xml"


def test_a_run_in_which_enough_passed_and_nothing_was_skipped_is_green() -> None:
    assert faults(RAN, least=30) == []


def test_a_run_in_which_too_little_passed_is_not() -> None:
    assert faults(RAN, least=31) == ["30 tests passed, at least 31 must"]


def test_an_empty_run_is_not() -> None:
    assert faults([]) != []


def test_a_folder_whose_tests_are_all_skipped_is_a_fault() -> None:
    tests = [*RAN, Ran("onnx", "skipped", "this processor lacks its instructions")]
    assert faults(tests, least=1) == ["tests/onnx: no test passed"]


def test_a_reason_without_a_row_is_a_fault() -> None:
    assert faults(skips("it rains"), least=1) == ["1 skipped without a row in tests/skips.py: it rains"]


@pytest.mark.parametrize("reason", OF_THE_MACHINE)
def test_a_reason_may_skip_as_many_tests_as_its_row_says_and_no_more(reason: str) -> None:
    assert (row := row_of(reason)) is not None
    assert faults(skips(reason, row.most), least=1) == []
    assert faults(skips(reason, row.most + 1), least=1) == [
        f"{row.most + 1} skipped, at most {row.most} may be: {row.pattern}"]


def test_every_row_of_the_machine_has_a_reason_here() -> None:
    assert {row_of(reason) for reason in OF_THE_MACHINE} == {row for row in ROWS if not row.brought_by}


@pytest.mark.parametrize("reason, name", [
    ("there is no arm-none-eabi-gcc", "emulators"), ("not installed: qemu-arm, gcc-aarch64-linux-gnu", "emulators"),
    ("PyTorch is not installed (the extra `torch`)", "torch"),
    ("could not import 'torch_mlir': No module named 'torch_mlir'", "torch"),
    ('the extra is not installed: pip install "tosaic[tensorflow]"', "tensorflow"),
    ("pip cannot install tosa-tools==2026.8.0: exit status 1", "arm"), ("there is no chromium to open the page in", "browser")])
def test_what_an_installation_brings_is_skipped_only_when_told(reason: str, name: str) -> None:
    assert len(faults(skips(reason), least=1)) == 1
    assert faults(skips(reason), [name], least=1) == []


def test_failures_that_are_expected_are_counted(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_a(): assert 0\n@pytest.mark.xfail\ndef test_b(): pass\n"
    assert read(report_of(tmp_path, "some", text)) == [Ran("some", "xfailed", "known"), Ran("some", "passed")]
    assert faults([*RAN, *[Ran("aot", "xfailed", "known")] * 4], least=1) == ["4 tests failed as expected, at most 0 may"]


def test_a_name_that_no_row_knows_is_a_fault() -> None:
    assert faults(RAN, ["weather"], least=1)[0].startswith("--without weather: there is no such installation")


def test_outcomes_are_read_from_pytests_own_report(tmp_path: Path) -> None:
    report = report_of(tmp_path, "some", "import pytest\ndef test_a(): pass\ndef test_b(): assert 0\n"
                       "@pytest.mark.skipif(True, reason='marked')\ndef test_c(): pass\ndef test_d(): pytest.skip('inside')\n")
    assert read(report) == [Ran("some", "passed"), Ran("some", "failed"), Ran("some", "skipped", "marked"),
                            Ran("some", "skipped", "inside")]


def test_a_module_that_is_skipped_whole_gives_its_reason(tmp_path: Path) -> None:
    report = report_of(tmp_path, "other", "import pytest\npytest.importorskip('no_such', reason='PyTorch is not here')\n")
    assert [(test.outcome, test.reason) for test in read(report)] == [("skipped", "PyTorch is not here")]
    assert main([str(report)]) == 1


def test_ci_judges_its_run_and_fails_where_it_cannot_install() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert re.search(r'python3? tests/skips\.py "\$work/report\.xml"', script)
    attempts = re.findall(r"^(?!#).*(?:apt-get install|environment\.py|torch==|install .* transformers)", script, re.MULTILINE)
    assert len(attempts) == len(re.findall(r"\|\| cannot_be_had|\|\|\n +cannot_be_had", script)) == 4
    assert re.search(r"cannot_be_had\(\) \{.*exit 1", script, re.DOTALL)
