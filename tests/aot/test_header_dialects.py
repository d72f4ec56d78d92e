"""A header of any form is C from C89 and C++ from C++98 on, without a warning, without a cast of C in C++."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tosaic.jit.command_line.cli import main

DATA = Path(__file__).parents[1] / "data"
STRICT = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wundef")
DIALECTS = [(compiler, standard) for compilers, standards in (
    (("gcc", "clang"), ("c89", "c99", "c11", "c17")), (("g++", "clang++"), ("c++98", "c++11", "c++14", "c++17", "c++20")))
    for compiler in compilers for standard in standards]
FORMS = {
    "plain": "", "state of the caller": "--state caller", "self-contained": "--self-contained",
    "mapped": "--workspace-io --workspace-pools sram,dram --workspace-pool-sram size=256 --parameter-pools flash",
    "mapped, self-contained": "--workspace-io --self-contained", "threads": "--threads 2", "C source": "--emit c",
    "namespace": "--namespace other", "microcontroller": "--target cortex-m4"}
MODELS = ("corpus/v_lstm", "corpus/f_mobilenet_block_int8", "quantized")
QUANTIZED = """
!perchannel = !quant.uniform<i8:f32:1, {0.5:3, 0.25:-4}>
func.func @main(%x: tensor<2x2x!quant.uniform<i8:f32, 0.5:-3>>, %w: tensor<3x!quant.uniform<i16:f32, 0.125>>)
    -> (tensor<2x2x!quant.uniform<i8:f32, 0.5:-3>>, tensor<3x!quant.uniform<i16:f32, 0.125>>) {
  return %x, %w : tensor<2x2x!quant.uniform<i8:f32, 0.5:-3>>, tensor<3x!quant.uniform<i16:f32, 0.125>>
}
"""


def header_of(model: str, form: str, folder: Path) -> Path:
    """The header that `tosaic compile` writes."""
    source = DATA / f"{model}.mlir"
    if model == "quantized":
        source = folder / "quantized.mlir"
        source.write_text(QUANTIZED)
    assert main(["compile", str(source), "-o", str(folder), "--name", "m", *FORMS[form].split()]) == 0
    return next(folder.glob("tosaic_*.h"))


@pytest.mark.sampled(4)
@pytest.mark.skipif(any(shutil.which(c) is None for c in ("gcc", "clang", "g++", "clang++")), reason="there is no clang")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS)
def test_a_header_is_of_every_dialect(model: str, form: str, tmp_path: Path) -> None:
    header = header_of(model, form, tmp_path)
    for compiler, standard in DIALECTS:
        language = ("c++", "-Wold-style-cast") if "++" in standard else ("c", "-Wstrict-prototypes")
        command = [compiler, f"-std={standard}", *STRICT, *language[1:], "-x", language[0], "-include", "stddef.h", "-"]
        text = f'#include "{header}"\n#include "{header}"\n'
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert done.returncode == 0, (compiler, standard, done.stderr)


def test_headers_with_quantized_tensors_have_functions_that_convert(tmp_path: Path) -> None:
    text = header_of("quantized", "plain", tmp_path).read_text()
    assert "_quantize_input_x" in text and "_dequantize_output" in text
