"""Weights of four bits on microcontrollers: two of them take a byte of an object, shifts take them apart, results stay the
same, and the report says what that saves and costs."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.aot import ArtifactForm, save
from tosaic.jit.stages import Lowered
from tosaic.lowering.target.presets import target

from ..covering import covering
from .callers import Caller, printed, random_calls
from .machines import MACHINES, PROCESSORS, Machine, needs

RANDOM = np.random.default_rng(11)
SOME = [m for m in (*MACHINES, *PROCESSORS) if m.name in ("riscv32", "cortex-m0", "cortex-m4", "cortex-m55", "rv32imac")]
ON_SOME = [pytest.param(m, marks=needs(m), id=f"{m.name} {m.target}") for m in SOME]
SHAPES = {"vector": (1, 1, 32, 24, 1), "product": (5, 1, 32, 24, 1), "odd depth": (3, 4, 33, 6, 1), "filter": (6, 6, 8, 12, 3),
          "one more": (4, 4, 16, 9, 1), "wide": (2, 3, 40, 130, 1)}
"""Rows, columns, channels in and out, and the size of the filter."""


def convolution(shape: tuple[int, int, int, int, int], low: int = -8, high: int = 7, element: str = "i4") -> str:
    """A convolution with weights by lot between the limits, both of which occur."""
    rows, columns, depth, channels, size = shape
    weights = RANDOM.integers(low, high, (channels, size, size, depth), endpoint=True)
    weights.reshape(-1)[:2] = low, high
    x, w = f"tensor<1x{rows}x{columns}x{depth}xi8>", f"tensor<{channels}x{size}x{size}x{depth}x{element}>"
    y, pad = f"tensor<1x{rows}x{columns}x{channels}xi32>", size // 2
    return f"""
func.func @main(%x: {x}) -> {y} {{
  %w = "tosa.const"() <{{values = dense<{weights.tolist()}> : {w}}}> : () -> {w}
  %b = "tosa.const"() <{{values = dense<3> : tensor<{channels}xi32>}}> : () -> tensor<{channels}xi32>
  %xz = "tosa.const"() <{{values = dense<5> : tensor<1xi8>}}> : () -> tensor<1xi8>
  %wz = "tosa.const"() <{{values = dense<0> : tensor<1x{element}>}}> : () -> tensor<1x{element}>
  %y = tosa.conv2d %x, %w, %b, %xz, %wz {{acc_type = i32, pad = array<i64: {pad}, {pad}, {pad}, {pad}>,
    dilation = array<i64: 1, 1>, stride = array<i64: 1, 1>}}
    : ({x}, {w}, tensor<{channels}xi32>, tensor<1xi8>, tensor<1x{element}>) -> {y}
  return %y : {y}
}}"""


def lowered(text: str, machine: str = "") -> Lowered:
    return tosaic.load(text).main.lower(tosaic.CompileOptions(target(machine)) if machine else None)


def weight_bytes(text: str, machine: str) -> int:
    """What the weights of a convolution take on a machine."""
    return max(b.nbytes for b in lowered(text, machine).program.constants if b.name != "b")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "emit", "machine"), covering(3, SHAPES, ["object", "c"], ON_SOME))
def test_results_are_the_same(name: str, emit: str, machine: Machine, tmp_path: Path) -> None:
    text, form = convolution(SHAPES[name]), ArtifactForm(emit=emit)
    here, there = lowered(text), lowered(text, machine.target)
    artifact, calls = save([there], tmp_path, "model", form), random_calls([here], 2)
    (tmp_path / "main.c").write_text(Caller([here], artifact, form).source(calls))
    assert machine.run(machine.build(tmp_path, [tmp_path / "main.c", artifact.object])) == printed([here], calls)


@pytest.mark.parametrize("machine", ["cortex-m0", "cortex-m4", "cortex-m55", "riscv32", "rv32imac"])
@pytest.mark.parametrize("name", ["vector", "product", "odd depth", "filter", "wide"])
def test_two_weights_take_a_byte(machine: str, name: str) -> None:
    _, _, depth, channels, size = SHAPES[name]
    assert weight_bytes(convolution(SHAPES[name]), machine) == depth * channels * size * size // 2


def test_more_bits_an_odd_number_of_columns_and_few_weights_take_a_byte_each() -> None:
    assert weight_bytes(convolution((5, 1, 32, 24, 1), high=8, element="i8"), "cortex-m4") == 32 * 24
    assert weight_bytes(convolution((5, 1, 32, 24, 1), low=-9, element="i8"), "cortex-m4") == 32 * 24
    assert weight_bytes(convolution((5, 1, 32, 9, 1)), "cortex-m4") == 32 * 9
    assert weight_bytes(convolution((5, 1, 8, 12, 1)), "cortex-m4") == 8 * 12
    assert weight_bytes(convolution((5, 1, 32, 24, 1)), "aarch64") >= 32 * 24


@pytest.mark.parametrize(("machine", "each"), [("cortex-m4", 1), ("riscv32", 3)])
def test_the_report_says_what_that_saves_and_costs(machine: str, each: int) -> None:
    found, = lowered(convolution(SHAPES["vector"]), machine).report().narrow
    assert (found.type, found.saved, found.conversions, found.instructions) == ("int4", 384, 768, 384 * each)
