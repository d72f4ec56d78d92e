"""`tosaic info`, `doctor`, `completion` and `python -m tosaic`: figures against those counted by hand; completion in the shells
themselves."""
from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.command_line.cli import main
from tosaic.jit.models import file_kinds

DATA = Path(__file__).parents[1] / "data"
MODEL = """
tosa.variable @info.total = dense<0.0> : tensor<1x2x3xf32>
func.func @main(%x: tensor<1x2x5x!quant.uniform<i8:f32, 0.5:-3>>, %y: tensor<1x2x4xf32>) -> tensor<1x2x3xf32> {
  %w = "tosa.const"() <{values = dense<1.0> : tensor<1x4x3xf32>}> : () -> tensor<1x4x3xf32>
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %y, %w, %z, %z : (tensor<1x2x4xf32>, tensor<1x4x3xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x2x3xf32>
  %1 = tosa.variable_read @info.total : tensor<1x2x3xf32>
  %2 = tosa.add %0, %1 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  tosa.variable_write @info.total, %2 : tensor<1x2x3xf32>
  return %2 : tensor<1x2x3xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return str(path)


def answer(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_info_says_tensors_operators_constants_and_products(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "info", model) == f"""{model}: MLIR text, {len(MODEL):,} bytes
  operators: 4: 1 tosa.add, 1 tosa.matmul, 1 tosa.variable_read, 1 tosa.variable_write
entry main
  input x: int8[1, 2, 5], scale 0.5, zero point -3
  input y: float32[1, 2, 4]
  output result0: float32[1, 2, 3]
  variable info.total: float32[1, 2, 3]
  in TOSA: 4: 1 tosa.add, 1 tosa.matmul, 1 tosa.variable_read, 1 tosa.variable_write
  constants: 52 bytes
  multiply-adds: 24
"""
    entry, = json.loads(answer(capsys, "info", model, "--json"))["entries"]
    assert (entry["inputs"][0]["scale"], entry["constant_bytes"], entry["multiply_adds"]) == (0.5, 52, 2 * 3 * 4)


@pytest.mark.parametrize(("operation", "types", "result", "expected"), [
    ("conv2d", ("1x8x6x4", "5x3x2x4"), "1x6x5x5", 6 * 5 * 5 * 3 * 2 * 4),
    ("depthwise_conv2d", ("1x8x6x4", "3x2x4x2"), "1x6x5x8", 6 * 5 * 8 * 3 * 2)])
def test_products_of_convolutions_are_counted(operation: str, types: tuple[str, str], result: str, expected: int,
                                              capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    image, weights = (f"tensor<{t}xf32>" for t in types)
    channels = result.rpartition("x")[2]
    (tmp_path / "m").write_text(
        f"""func.func @main(%x: {image}, %w: {weights}, %b: tensor<{channels}xf32>) -> tensor<{result}xf32> {{
  %z = "tosa.const"() <{{values = dense<0.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
  %0 = tosa.{operation} %x, %w, %b, %z, %z {{acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>,
    stride = array<i64: 1, 1>}} : ({image}, {weights}, tensor<{channels}xf32>, tensor<1xf32>, tensor<1xf32>)
    -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32> }}""")
    assert json.loads(answer(capsys, "info", tmp_path / "m", "--json"))["entries"][0]["multiply_adds"] == expected


def test_an_open_batch_is_what_the_file_states_and_shapes_give_another(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx")
    path = DATA / "onnx" / "perceptron.onnx"
    found = json.loads(answer(capsys, "info", path, "--json"))
    assert found["operators"]["onnx.Gemm"] == 2 and "17" in found["made"]["onnx.opsets"]
    entry, = found["entries"]
    assert entry["inputs"][0]["shape"] == [1, 8] and entry["multiply_adds"] == 8 * 16 + 16 * 4 and entry["unknown"] is None
    entry, = json.loads(answer(capsys, "info", path, "--shape", "x=3x8", "--json"))["entries"]
    assert entry["multiply_adds"] == 3 * (8 * 16 + 16 * 4) and entry["unknown"] is None


def test_info_tells_the_operators_of_a_tflite_without_the_converter(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_kinds, "find_spec", lambda *names: None)
    text = answer(capsys, "info", DATA / "corpus" / "f_mlp_int8.tflite")
    assert "operators: 3: 2 FULLY_CONNECTED, 1 SOFTMAX" in text and 'pip install "tosaic[tflite]"' in text


def test_doctor_names_versions_the_machine_and_every_extra(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(answer(capsys, "doctor", "--json"))
    assert found["tosaic"] == tosaic.__version__ and found["wrong"] == []
    assert {"llvmlite", "machine", "threads", "cache", "extra onnx", "extra torch"} <= set(found)


def test_python_runs_the_package(model: str) -> None:
    said = subprocess.run([sys.executable, "-m", "tosaic", "info", model, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout)["kind"] == "text"


# ---- completion --------------------------------------------------------------------------------------------------------
@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The path of a shell whose script is in tmp_path, called as the shell wants it."""
    pytest.importorskip("shtab")
    name: str = request.param
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    (tmp_path / {"zsh": "_tosaic"}.get(name, "script")).write_text(answer(capsys, "completion", name))
    (tmp_path / "net.onnx").touch()
    return found


@pytest.mark.parametrize("shell", ["bash"], indirect=True)
@pytest.mark.parametrize(("words", "expected"), [
    ("tosaic comp", {"compile", "completion"}), ("tosaic show net.o", {"net.onnx"}), ("tosaic show net.onnx lo", {"loops"}),
    ("tosaic run --le", {"--level"}), ("tosaic compile --emit o", {"object"}), ("tosaic completion z", {"zsh"})])
def test_bash_completes(shell: str, tmp_path: Path, words: str, expected: set[str]) -> None:
    code = f"""source ./script; COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}
found=$(complete -p tosaic); found=${{found##*-F }}; ${{found%% *}}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    said = subprocess.run([shell, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(said.stdout.split()) == expected and said.stderr == ""


@pytest.mark.parametrize("shell", ["fish"], indirect=True)
def test_fish_completes(shell: str, tmp_path: Path) -> None:
    lines = ["tosaic comp", "tosaic show net.o", "tosaic run --le", "tosaic compile --emit o"]
    code = "source ./script; " + "; ".join(f'complete -C "{line}"' for line in lines)
    said = subprocess.run([shell, "--no-config", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
                          env={**os.environ, "HOME": str(tmp_path)})
    assert [line.split("\t")[0] for line in said.stdout.splitlines()] == [
        "compile", "completion", "net.onnx", "--level", "object"]


@pytest.mark.parametrize("shell", ["zsh"], indirect=True)
def test_zsh_completes(shell: str, tmp_path: Path) -> None:
    reader, terminal = pty.openpty()
    process = subprocess.Popen([shell, "-f", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path,
                               env={**os.environ, "TERM": "dumb", "HOME": str(tmp_path), "PS1": "> "}, start_new_session=True)
    os.close(terminal)
    try:
        os.write(reader, b"fpath=($PWD $fpath); autoload -U compinit; compinit -D -u; echo rea''dy\n")
        read_until(reader, b"ready")
        os.write(reader, b"tosaic compi\t")
        read_until(reader, b"tosaic compile ")
        os.write(reader, b"net.o\t")
        read_until(reader, b"net.onnx")
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def read_until(descriptor: int, text: bytes) -> None:
    found = b""
    while text not in found:
        found += os.read(descriptor, 4096)
