"""What headers say of tensors: tables of descriptors, and functions between floats and stored integers, in C and C++."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tosaic

from .c_programs import build, needs_gcc, run

STANDARDS = [*((c, f"-std={s}") for c in ("gcc", "clang") for s in ("c99", "c11", "c17")),
             *((c, f"-std={s}") for c in ("g++", "clang++") for s in ("c++11", "c++17", "c++20"))]
TYPES = {"i8": (0.1, -7), "u8": (0.00390625, 128), "i16": (3.0517578125e-05, 0), "i32": (1e-3, 11), "u16": (2.0, 40000),
         "i8<-127:127>": (2.0**-149, 3), "u32": (0.7, 3000000000)}
ELEMENTS = [f"!quant.uniform<{storage}:f32, {scale!r}:{zero_point}>" for storage, (scale, zero_point) in TYPES.items()]
SANITIZED = ("-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PER_AXIS = "!quant.uniform<i8:f32:1, {0.5:1,0.25:-2,2.0}>"


def model(element: str, shape: str = "2x3x4") -> str:
    tensor = f"tensor<{shape}x{element}>"
    return f"func.func @main(%x: {tensor}) -> {tensor} {{ return %x : {tensor} }}"


def hard_values(scale: float, count: int) -> np.ndarray:
    """Halves of the scale and their neighbours, huge and tiny numbers, NaN and infinities."""
    halves = (np.arange(-600, 600, dtype=np.float32) / 2 * np.float32(scale)).astype(np.float32)
    near = np.concatenate([halves, np.nextafter(halves, np.float32(np.inf)), np.nextafter(halves, np.float32(-np.inf))])
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-45, 8388607.5, 2.0**31, -2.0**31, 2.0**33],
                       np.float32)
    wide = np.random.default_rng(1).standard_normal(3000).astype(np.float32) * np.float32(scale * 1e5)
    values = np.concatenate([near, special, wide])
    return np.resize(values, -(-len(values) // count) * count)


CONVERT = """
#include "tosaic_m.h"
#include <stdio.h>
int main(void) {{
    static float real[{count}], back[{count}];
    static {type} stored[{count}];
    while (fread(real, sizeof real, 1, stdin) == 1) {{
        tosaic_m_quantize_array_input_x(real, stored);
        tosaic_m_dequantize_array_output_result0(stored, back);
        fwrite(stored, sizeof stored, 1, stdout);
        fwrite(back, sizeof back, 1, stdout);
    }}
    return 0;
}}
"""


@pytest.mark.sampled(2)
@needs_gcc
@pytest.mark.parametrize("element", [*ELEMENTS, PER_AXIS])
@pytest.mark.parametrize("flags", [(), SANITIZED], ids=["plain", "sanitized"])
def test_the_headers_functions_give_pythons_bytes_for_hard_values(element: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    loaded = tosaic.load(model(element))
    entry, artifact = loaded.main, loaded.save(tmp_path, "m", self_contained=True)
    dtype, numbers = np.dtype(entry.inputs[0].dtype), entry.inputs[0].quantization
    assert numbers is not None
    program = build(tmp_path, CONVERT.format(count=24, type=f"{dtype.name}_t"), [artifact], flags=flags)
    values = hard_values(numbers.scales[0], 24).reshape(-1, 2, 3, 4)
    found = np.frombuffer(run(program, values.tobytes()), np.uint8).reshape(len(values), -1)
    stored = np.stack([entry.quantize(v) for v in values])
    reals = np.stack([entry.dequantize(s) for s in stored])
    split = 24 * dtype.itemsize
    assert found[:, :split].tobytes() == stored.tobytes()
    assert found[:, split:].tobytes() == reals.tobytes()
    assert len(np.unique(stored)) > 20 and not np.isnan(reals).any()


TABLE = """
#include "tosaic_m.h"
#include <stdio.h>
static void show(const struct tosaic_tensor *t) {
    int32_t i;
    printf("%s %d %d", t->name, (int)t->dtype, (int)t->rank);
    for (i = 0; i < t->rank; ++i) printf(" %ld/%ld", (long)t->shape[i], (long)t->strides[i]);
    for (i = 0; i < t->scale_count; ++i) printf(" %a:%ld", (double)t->scales[i], (long)t->zero_points[i]);
    printf(" axis %d\\n", (int)t->axis);
}
int main(void) {
    int i;
    for (i = 0; i < TOSAIC_M_INPUT_TENSORS; ++i) show(tosaic_m_input_tensors() + i);
    for (i = 0; i < TOSAIC_M_OUTPUT_TENSORS; ++i) show(tosaic_m_output_tensors() + i);
    for (i = 0; i < TOSAIC_M_VARIABLE_TENSORS; ++i) show(tosaic_m_variable_tensors() + i);
    return 0;
}
"""


@needs_gcc
def test_tables_hold_what_python_says(tmp_path: Path) -> None:
    text = """tosa.variable @"a/state" = dense<0> : tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
      func.func @main(%x: tensor<4x!quant.uniform<i8:f32, 0.5:-3>>, %y: tensor<2x3x""" + PER_AXIS + """>, %z: tensor<f32>)
          -> (tensor<2x3x""" + PER_AXIS + """>, tensor<f32>) {
        tosa.variable_write @"a/state", %x : tensor<4x!quant.uniform<i8:f32, 0.5:-3>>
        return %y, %z : tensor<2x3x""" + PER_AXIS + """>, tensor<f32> }"""
    loaded = tosaic.load(text)
    entry, artifact = loaded.main, loaded.save(tmp_path, "m", self_contained=True)
    header = artifact.header.read_text()
    lines = run(build(tmp_path, TABLE, [artifact])).decode().splitlines()
    expected = []
    for t in (*entry.inputs, *entry.outputs, *entry.variables):
        number = header.split("enum tosaic_dtype {")[1].split("}")[0].split().index(f"TOSAIC_{t.dtype.upper()},")
        assert t.shape is not None and t.strides is not None
        parts = [t.name, str(number), str(len(t.shape)), *(f"{n}/{s}" for n, s in zip(t.shape, t.strides))]
        parts += [f"{c_hex(s)}:{z}" for s, z in zip(t.scales, t.zero_points)]
        expected.append(f"{' '.join(parts)} axis {-1 if t.axis is None else t.axis}")
    assert lines == expected and len(lines) == 6


def c_hex(x: float) -> str:
    """As printf's %a has it."""
    mantissa, _, exponent = x.hex().partition("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


@pytest.mark.parametrize(("compiler", "standard"), STANDARDS, ids=lambda x: str(x))
def test_headers_of_two_models_in_one_file_compile_without_a_warning_and_unused_tables_take_no_memory(
        compiler: str, standard: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    tosaic.load(model(PER_AXIS)).save(tmp_path, "one", self_contained=True)
    tosaic.load(model("!quant.uniform<u8:f32, 0.5:3>")).save(tmp_path, "two", self_contained=True)
    source = tmp_path / f"main.{'cpp' if '++' in compiler else 'c'}"
    source.write_text('#include "tosaic_one.h"\n#include "tosaic_two.h"\nint main(void) { return 0; }\n')
    command = [compiler, standard, "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", str(source)]
    done = subprocess.run([*command, "-o", str(tmp_path / "main.o")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sections = subprocess.run(["objdump", "-h", str(tmp_path / "main.o")], capture_output=True, text=True, check=True).stdout
    assert ".rodata" not in sections and ".data.rel" not in sections


POOLED = """
func.func @main(%x: tensor<6xi8>) -> (tensor<6xi8>, tensor<6xi8>) {
  %k = "tosa.const"() <{values = dense<[9, 8, 7, 6, 5, 4]> : tensor<6xi8>}> : () -> tensor<6x!quant.uniform<i8:f32, 0.125:7>>
  %n = "tosa.const"() <{values = dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi8>}> : () -> tensor<6xi8>
  %a = tosa.bitwise_and %x, %k : (tensor<6xi8>, tensor<6x!quant.uniform<i8:f32, 0.125:7>>) -> tensor<6xi8>
  %b = tosa.bitwise_or %x, %n : (tensor<6xi8>, tensor<6xi8>) -> tensor<6xi8>
  return %a, %b : tensor<6xi8>, tensor<6xi8>
}"""
CONSTANTS = """
#include "tosaic_m.h"
#include <stdio.h>
static const unsigned char pool[] = {TOSAIC_M_FLASH_CONSTANT_POOL_DATA};
int main(void) {
    int i, k;
    for (i = 0; i < TOSAIC_M_FLASH_CONSTANT_POOL_TENSORS; ++i) {
        const struct tosaic_tensor *t = tosaic_m_flash_constant_pool_tensors() + i;
        printf("%s %d %g", t->name, (int)t->scale_count, t->scale_count ? (double)t->scales[0] : 0.0);
        for (k = 0; k < t->shape[0]; ++k) printf(" %d", pool[tosaic_m_flash_constant_pool_offsets()[i] + (size_t)k]);
        printf("\\n");
    }
    return 0;
}
"""


@needs_gcc
def test_the_constants_of_a_named_pool_are_where_its_table_says(tmp_path: Path) -> None:
    memory = tosaic.Memory(constant_pools=(tosaic.Pool("flash"),))
    artifact = tosaic.load(POOLED).save(tmp_path, "m", tosaic.CompileOptions(memory=memory))
    lines = run(build(tmp_path, CONSTANTS, [artifact])).decode().splitlines()
    assert sorted(lines) == ["k 1 0.125 9 8 7 6 5 4", "n 0 0 1 2 3 4 5 6"]
