"""Constants of float32 that are float16 in all their numbers: on processors that convert them in an instruction they take two
bytes each in the object, results stay the same to the bit, and the report says what that saves and costs."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tosaic
from tosaic import ops, tosa
from tosaic.jit.aot import Artifact, ArtifactForm, save
from tosaic.jit.stages import Lowered
from tosaic.lowering.fuse.halve_constants import is_exact
from tosaic.lowering.graph.types import Array
from tosaic.lowering.target.presets import target

from ..covering import covering
from .callers import Caller, printed
from .machines import PROCESSORS, Machine, needs

ZERO = np.zeros(1, np.float32)
RANDOM = np.random.default_rng(5)


def numbers(*shape: int) -> Array:
    """Small multiples of a power of two: products and sums of them are exact, in whatever order they are made."""
    return (RANDOM.integers(-64, 64, shape) / 32).astype(np.float32)


FILTER, BIAS, DEPTHWISE, MATRIX, TABLE, SCALE = (numbers(16, 3, 3, 8), numbers(16), numbers(3, 3, 8, 1), numbers(32, 24),
                                                 numbers(100, 8), numbers(1, 64))
KERNELS: dict[str, tuple[Callable[..., Any], Array, Array]] = {
    "conv": (lambda x: tosa.conv2d(x, FILTER, BIAS, ZERO, ZERO, pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1),
                                   acc_type="f32"), numbers(1, 8, 8, 8), FILTER),
    "transposed": (lambda x: tosa.transpose_conv2d(x, FILTER, BIAS, ZERO, ZERO, out_pad=(0, 0, 0, 0), stride=(2, 2),
                                                   acc_type="f32"), numbers(1, 4, 4, 8), FILTER),
    "depthwise": (lambda x: tosa.depthwise_conv2d(x, DEPTHWISE, BIAS[:8], ZERO, ZERO, pad=(1, 1, 1, 1), stride=(1, 1),
                                                  dilation=(1, 1), acc_type="f32"), numbers(1, 8, 8, 8), DEPTHWISE),
    "matmul": (lambda x: ops.matmul(x, MATRIX), numbers(5, 32), MATRIX),
    "vector": (lambda x: ops.matmul(x, MATRIX), numbers(1, 32), MATRIX),
    "elementwise": (lambda x: x * SCALE + SCALE, numbers(3, 64), SCALE),
    "gather": (lambda i: ops.take(TABLE, i, axis=0), np.array([3, 99, 0, 41], np.int32), TABLE)}
"""A function, what it is called with, and the constant."""
WITH = "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"
WITHOUT = "cortex-m0", "cortex-m4+nofp", "riscv32", "aarch64"
BOARDS = [m for m in PROCESSORS if m.name in WITH]
CASES = [pytest.param(m, marks=needs(m), id=m.name) for m in BOARDS]
ON_BOARDS = pytest.mark.parametrize("machine", CASES)


def lowered(name: str, machine: str = "") -> Lowered:
    function, x, _ = KERNELS[name]
    return tosaic.jit(function).trace(x).lower(tosaic.CompileOptions(target(machine)) if machine else None)


def check(machine: Machine, folder: Path, name: str, form: ArtifactForm) -> Artifact:
    there, here, calls = lowered(name, machine.target), lowered(name), [(0, [KERNELS[name][1]])]
    artifact = save([there], folder, "model", form)
    (folder / "main.c").write_text(Caller([here], artifact, form).source(calls))
    assert machine.run(machine.build(folder, [folder / "main.c", artifact.object])) == printed([here], calls)
    return artifact


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "machine"), covering(2, KERNELS, CASES))
def test_a_constant_takes_half_and_the_result_is_the_same(name: str, machine: Machine, tmp_path: Path) -> None:
    artifact = check(machine, tmp_path, name, ArtifactForm())
    elsewhere = lowered(name, "cortex-m4+nofp").save(tmp_path / "elsewhere", "model").constant_bytes
    assert elsewhere >= KERNELS[name][2].nbytes and artifact.constant_bytes <= elsewhere // 2 + 32  # a bias is too small


@ON_BOARDS
def test_c_source_converts_them_in_the_same_instruction(machine: Machine, tmp_path: Path) -> None:
    check(machine, tmp_path, "matmul", ArtifactForm(emit="c"))
    command = ["arm-none-eabi-objdump", "-d", str(tmp_path / "program")]
    assert "vcvtb.f32.f16" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("machine", WITHOUT)
@pytest.mark.parametrize("name", KERNELS)
def test_elsewhere_they_stay_float32(machine: str, name: str, tmp_path: Path) -> None:
    """Where a conversion is many instructions, and where there is a cache."""
    assert lowered(name, machine).save(tmp_path, "model").constant_bytes >= KERNELS[name][2].nbytes


def test_other_numbers_stay_float32(tmp_path: Path) -> None:
    for other in (np.float32(1 / 3), np.float32(1e5), np.float32(1e-9), np.float32("nan")):
        weights = MATRIX.copy()
        weights[31, 23] = other
        assert not is_exact(weights)
        traced = tosaic.jit(lambda x: ops.matmul(x, weights)).trace(numbers(1, 32))
        there = traced.lower(tosaic.CompileOptions(target("cortex-m4")))
        assert there.save(tmp_path, "model").constant_bytes >= weights.nbytes
    assert is_exact(np.array([0.0, -0.0, 65504, 2.0 ** -24, np.inf, -np.inf, 1 / 1024], np.float32))


def test_the_report_says_what_that_saves_and_costs() -> None:
    report = lowered("vector", "cortex-m4").report()
    found, = report.narrow
    assert (found.type, found.saved, found.conversions) == ("float16", MATRIX.size * 2, MATRIX.size)
    line = next(line for line in str(report).splitlines() if "in float16" in line)
    assert line.endswith("1,536 bytes of flash saved, and 1,536 instructions of a run more: 768 numbers converted")
    assert lowered("vector", "cortex-m4+nofp").report().narrow == () == lowered("vector").report().narrow
