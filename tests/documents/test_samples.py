"""Every sample runs, and prints what it should."""
from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples").glob("[0-9]*.py"))


def output(name: str, *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "samples" / name), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.skipif(importlib.util.find_spec("pymicro_wakeword") is None, reason="the extra `samples` is not installed")
@pytest.mark.parametrize("name", ["okay_nabu", "alexa", "hey_jarvis", "hey_mycroft"])
def test_the_wake_word_sample_hears_its_word(name: str) -> None:
    text = output("1_wake_word.py", name)
    assert "heard it: True" in text
    assert re.search(r"us a step", text) and re.search(r"arena \d+ bytes \(\d+ live at once\)", text)


def test_the_decorator_sample_follows_the_level() -> None:
    text = output("2_decorator.py")
    assert "in 4.0  out 1.04  level 14.04" in text and "variable level: float32[1]" in text


@pytest.mark.skipif(shutil.which("cc") is None and shutil.which("gcc") is None, reason="there is no C compiler")
def test_the_c_program_prints_the_numbers_of_python(tmp_path: pathlib.Path) -> None:
    text = output("3_link_from_c.py", str(tmp_path))
    found = dict(re.findall(r"^from (C|Python): *(.*)$", text, re.MULTILINE))
    assert len(found) == 2 and found["C"] == found["Python"]
    second = dict(re.findall(r"^second instance from (C|Python): *(.*)$", text, re.MULTILINE))
    assert second["C"] == second["Python"] != found["C"]


@pytest.mark.parametrize(("system", "needed"), [
    pytest.param(system, needed, id=system, marks=pytest.mark.skipif(
        any(shutil.which(c) is None for c in needed), reason=f"not installed: one of {', '.join(needed)}"))
    for system, needed in (("host", ("cc",)), ("board", ("arm-none-eabi-gcc", "qemu-system-arm")))])
def test_the_use_cases_print_the_numbers_of_python(tmp_path: pathlib.Path, system: str, needed: tuple[str, ...]) -> None:
    text = output("4_use_cases.py", system, str(tmp_path))
    assert text.count("equals Python: True") == 4 and "equals Python: False" not in text
    if system == "board":
        symbols = subprocess.run(["arm-none-eabi-nm", str(tmp_path / "board/3_placed_memories/3_placed_memories")],
                                 capture_output=True, text=True, check=True).stdout
        places = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
        assert (places["itcm"], places["dtcm"], places["sram"]) == (0x300000, 0x20000000, 0x21000000)
        assert places["tosaic_classifier_flash_constant_pool"] < 0x300000


def test_the_detector_moves_a_quarter_of_what_first_fit_does_through_the_slow_memory(tmp_path: pathlib.Path) -> None:
    """Both plans move the same bytes in all, which one pool moves too."""
    text = output("11_two_memories.py", str(tmp_path))
    rows = {m[1]: [int(n.replace(",", "")) for n in m[2].split()]
            for m in re.finditer(r"^(one pool|first fit|least moved)((?: +[\d,]+){4})$", text, re.MULTILINE)}
    assert len(rows) == 3 and {fast + slow for _, _, fast, slow in rows.values()} == {rows["one pool"][3]}
    assert all(sram <= 128 << 10 for sram, *_ in rows.values())
    assert rows["least moved"][3] * 4 < rows["first fit"][3] < rows["one pool"][3]
    assert (tmp_path / "detector.o").stat().st_size > 500_000


def test_the_planner_of_two_banks_writes_less_beside_what_is_read() -> None:
    text = output("13_planner.py")
    rows = {m[1]: int(m[2].replace(",", "")) for m in re.finditer(r"^(portfolio|two_banks) .* ([\d,]+)$", text, re.MULTILINE)}
    # by how much depends on this machine's vectors: 2.0 times with AVX2, 1.6 with AVX-512
    assert rows["two_banks"] * 3 < rows["portfolio"] * 2 and "the same results: True" in text


def test_the_graph_of_tensorflow_counts_down() -> None:
    text = output("5_tensorflow_graph.py")
    assert all(f"{start} counts down to 0" in text for start in (1, 5, 100))
    assert text.count("tosa.while_loop") == 1 and "compiled code agrees with the reference" in text


def test_the_signatures_sample_finds_the_two_wrong_readings(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    text = output("6_signatures.py", str(tmp_path))
    assert re.findall(r"reading (\d+) is unusual", text) == ["120", "170"] and "learned 198 readings" in text
    functions = re.findall(r"tosaic_monitor_\w+_run", (tmp_path / "tosaic_monitor.h").read_text())
    assert {f"tosaic_monitor_{name}_run" for name in ("observe", "restart", "statistics")} <= set(functions)


@pytest.mark.skipif(any(importlib.util.find_spec(package) is None for package in ("torch", "torch_mlir")),
                    reason="the extra `torch` is not installed")
def test_the_pytorch_sample_streams_as_pytorch_does() -> None:
    text = output("7_pytorch.py")
    errors = re.search(r"error of the prediction: ([0-9.]+), of the last sample instead: ([0-9.]+)", text)
    assert errors and 2 * float(errors[1]) < float(errors[2])
    difference = re.search(r"largest difference from PyTorch in 300 steps: (\S+)", text)
    assert difference and float(difference[1]) <= 1e-5 and "the state is PyTorch's: True" in text


@pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="the extra `onnx` is not installed")
def test_the_onnx_sample_finds_the_directions() -> None:
    text = output("8_onnx.py")
    found = re.findall(r"^striped (.*?) +found (.*?) +[0-9.]+$", text, re.MULTILINE)
    assert len(found) == 4 and all(given == answer for given, answer in found)
    difference = re.search(r"largest difference from ONNX's reference: (\S+)", text)
    assert difference and float(difference[1]) <= 1e-5


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="the extra `tensorflow` is not installed")
def test_tensorflows_module_and_model_are_the_same_compiled() -> None:
    text = output("9_tensorflow.py")
    assert text.count("True") == 4 and "False" not in text and "compiled code agrees with the reference" in text


def test_one_operator_at_a_time() -> None:
    lines = output("10_op_by_op.py").splitlines()
    assert lines[0].endswith("[[4.0, 4.0], [13.0, 13.0]]") and "do not broadcast" in lines[1]
    assert lines[2:] == ["[1, 2, 3]", "a region as one graph: True"]


@pytest.mark.skipif(importlib.util.find_spec("pymicro_wakeword") is None or shutil.which("cc") is None,
                    reason="the extra `samples`, or a C compiler, is not installed")
def test_the_firmware_sample_hears_each_word_once(tmp_path: pathlib.Path) -> None:
    """Two words; the page of the samples runs it with all four."""
    names = ["hey_mycroft", "hey_jarvis"]
    text = output("12_wake_words_on_esp32.py", str(tmp_path), *names)
    assert re.findall(r"^heard (.*) in row", text, re.MULTILINE) == [name.replace("_", " ").title() for name in names]
    assert f" of {len(names)} models, 0 differences from Python" in text and "| TFLite Micro" in text


def test_the_kernel_program_prints_its_sum(capsys: pytest.CaptureFixture[str]) -> None:
    from tosaic.jit.command_line.cli import main
    assert main(["run", str(ROOT / "samples" / "models" / "op_by_op.mlir")]) == 0
    assert "values = [11, 22, 33]" in capsys.readouterr().out


def test_every_sample_is_tested_and_in_the_tutorial() -> None:
    tutorial, here = (ROOT / "samples" / "README.md").read_text(), pathlib.Path(__file__).read_text()
    assert SAMPLES and all(s.name in tutorial and s.name in here for s in SAMPLES)


@pytest.mark.parametrize(("name", "package", "printed"), [
    ("14_dask.py", "distributed", "64 images in 4 blocks, equal to calls in this process: True"),
    ("15_ray.py", "ray", "64 images in batches of 16, equal to calls in this process: True")])
def test_a_model_runs_on_other_processes_data(name: str, package: str, printed: str) -> None:
    pytest.importorskip(package, reason=f"the package {package} is not installed")
    assert printed in output(name)


@pytest.mark.skipif(importlib.util.find_spec("pymicro_wakeword") is None, reason="the extra `samples` is not installed")
def test_what_stands_around_a_model_is_compiled_with_it(tmp_path: pathlib.Path) -> None:
    heard, memory, written = output("17_around_a_model.py", str(tmp_path)).splitlines()
    assert re.fullmatch(r"heard in step \d+ of \d+; the same by hand: True", heard) and "bytes of memory" in memory
    assert written == "written: heard.o and tosaic_heard.h" and (tmp_path / "heard.o").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are the system's")
def test_models_from_strangers_run_or_are_refused_in_processes_of_their_own() -> None:
    good, splat, calls, picture = output("16_strangers.py").splitlines()
    assert good == "lstm.mlir: output_0: float32[1, 8]"
    assert "refused: " in splat and "1,073,741,824 bytes, the limit is 67,108,864" in splat
    assert "refused: " in calls and "more than 20,000 operations" in calls
    assert picture == "a picture: refused: error[file]: a picture is an image and no model"
