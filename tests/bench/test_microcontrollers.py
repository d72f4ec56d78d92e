"""The count of instructions, and the bench over it: what is read from a .tflite, what is computed for CMSIS-NN's kernels, and
one small network counted on a board. The sources of CMSIS-NN are not needed; where they are, its kernels are called, too."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ..aot.machines import needs
from ..tflite.files import Graph, Operator, Scalar, Tensor, file
from .microcontrollers import cmsis_nn, compiled, quantization
from .microcontrollers.boards import BOARDS, SHIFT, Board
from .microcontrollers.layers import Network, network, padding
from .microcontrollers.rates import BOUNDS, SINGLES, rate_table, rates
from .microcontrollers.table import Row, differences, layer_table, network_table

M4 = BOARDS["cortex-m4"]
boards = pytest.mark.parametrize("board", [pytest.param(b, marks=needs(b.machine), id=name) for name, b in BOARDS.items()])
on_m4 = needs(M4.machine)
PADDED, RELU = 0, 1

NOPS = """
#include "console.h"
#include "counting.h"
static int32_t few(void) { __asm__ volatile(".rept 100\\n nop\\n .endr"); return 0; }
static int32_t more(void) { __asm__ volatile(".rept 357\\n nop\\n .endr"); return 0; }
static int32_t many(void) {
    uint32_t n = 7000000;
#if defined(__riscv)
    __asm__ volatile("1: addi %0, %0, -1\\n bnez %0, 1b" : "+r"(n));
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %w0, %w0, #1\\n bne 1b" : "+r"(n) : : "cc");
#else
    __asm__ volatile("1: subs %0, %0, #1\\n bne 1b" : "+r"(n) : : "cc");
#endif
    return (int32_t)n;
}
int main(void) {
    int32_t (*volatile calls[])(void) = {few, more, many, few};
    for (int i = 0; i < 4; ++i) if (COUNTED(calls[i]()) != 0) return 1;
    return 0;
}
"""


@pytest.mark.sampled(4)
@boards
def test_each_instruction_counts_once(board: Board, tmp_path: Path) -> None:
    """Not one is lost where the timer of 24 bits has gone round, and a call of nothing counts nothing."""
    (tmp_path / "main.c").write_text(NOPS)
    few, more, many, again = (c.instructions for c in board.calibrated(tmp_path).counts(tmp_path, [tmp_path / "main.c"]))
    assert abs(more - few - 257) <= 1 and abs(again - few) <= 1 and 100 <= few < 110
    assert 14_000_000 * 2**SHIFT > 50 * 2**24 and 0 <= many - 14_000_000 < 40


@pytest.fixture(scope="module")
def small() -> Network:
    """A padded convolution of stride 2, a sum with a second input, a mean, a product and a softmax."""
    pytest.importorskip("tosa_converter_for_tflite", reason="Arm's converter is not installed (the extra `tflite`)")
    pytest.importorskip("ai_edge_litert", reason="LiteRT is not installed (the extra `test`)")
    rng = np.random.default_rng(1)
    weights = rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    dense = rng.integers(-127, 128, (5, 4)).astype(np.int8)
    bias = rng.integers(-500, 500, 4).astype(np.int32)
    tensors = [Tensor("x", (1, 7, 6, 2), "i8", None, 0.02, -3), Tensor("w", weights.shape, "i8", weights, 0.01),
               Tensor("b", (4,), "i32", bias, 0.0002), Tensor("c", (1, 4, 3, 4), "i8", None, 0.05, 9),
               Tensor("z", (1, 4, 3, 4), "i8", None, 0.03, 11),
               Tensor("s", (1, 4, 3, 4), "i8", None, 0.09, -20), Tensor("p", (1, 1, 1, 4), "i8", None, 0.09, -20),
               Tensor("v", dense.shape, "i8", dense, 0.02), Tensor("d", (1, 5), "i8", None, 0.1, 2),
               Tensor("y", (1, 5), "i8", None, 1 / 256, -128)]
    byte, number = (lambda v: Scalar("B", v)), (lambda v: Scalar("i", v))
    operators = [Operator("CONV_2D", "x w b", "c", (byte(PADDED), number(2), number(2), byte(RELU))),
                 Operator("ADD", "c z", "s", (byte(0),)),
                 Operator("AVERAGE_POOL_2D", "s", "p", (byte(1), *map(number, (3, 4, 3, 4)), byte(0))),
                 Operator("FULLY_CONNECTED", "p v", "d", (byte(0),)),
                 Operator("SOFTMAX", "d", "y", (Scalar("I", int(np.float32(1).view(np.uint32))),))]
    return network(file(Graph("x z", "y", tensors, operators)))


def test_layers_are_what_the_file_says(small: Network) -> None:
    assert [(layer.name, layer.products) for layer in small.layers] == [
        ("conv 3x3, 7x6x2 to 4x3x4", 4 * 3 * 4 * 18), ("add, 4x3x4 to 4x3x4", 0), ("pool 4x3, 4x3x4 to 1x1x4", 0),
        ("dense, 1x1x4 to 5", 20), ("softmax, 5 to 5", 0)]
    assert (small.layers[-1].expected == small.expected[0]).all()
    assert all(len(set(layer.expected.ravel().tolist())) > 2 for layer in small.layers), "a layer without numbers"


@on_m4
def test_a_network_and_its_layers_are_counted_without_cmsis_nn(small: Network, tmp_path: Path) -> None:
    figures = compiled.figures(small, M4.calibrated(tmp_path), tmp_path)
    layers = compiled.layer_counts(small, M4.calibrated(tmp_path), tmp_path)
    row = Row("small", "cortex-m4", small, figures, layers, [], "not installed")
    assert not list(differences(row))
    assert small.layers[0].products < layers[0].instructions < 40 * small.layers[0].products
    assert sum(c.instructions for c in layers) * 0.5 < figures.instructions < sum(c.instructions for c in layers) * 2
    line = network_table([row]).splitlines()[-1].split(" | ")
    assert line[:2] == ["| small", "cortex-m4"] and line[3] == "-" and line[4] == "0" and line[-2:] == ["-", "- |"]
    assert len(layer_table(row).splitlines()) == 2 + 2 + len(small.layers) + 1


@on_m4
def test_what_differs_is_named(small: Network, tmp_path: Path) -> None:
    layers = compiled.layer_counts(small, M4.calibrated(tmp_path), tmp_path)
    figures = compiled.figures(small, M4, tmp_path)
    wrong = np.array(small.layers[1].expected)
    wrong[0, 0, 0, 0] += 3 if wrong[0, 0, 0, 0] < 100 else -3
    changed = replace(small, layers=(small.layers[0], replace(small.layers[1], expected=wrong), *small.layers[2:]))
    row = Row("small", "cortex-m4", changed, replace(figures, interpreted=(b"",)), layers, [], 0)
    assert list(differences(row)) == [
        "small on cortex-m4: not what the interpreter has",
        "small on cortex-m4, add, 4x3x4 to 4x3x4: tosaic differs from LiteRT in 1 of 48, by 3 at most"]


@on_m4
@pytest.mark.skipif(bool(cmsis_nn.missing(cmsis_nn.default_folder())), reason="there are no sources of CMSIS-NN")
def test_the_kernels_of_cmsis_nn_are_called_with_the_same_numbers(small: Network, tmp_path: Path) -> None:
    folder = cmsis_nn.default_folder()
    counts = cmsis_nn.counts(folder, cmsis_nn.library(folder, M4, tmp_path), M4, small.layers, tmp_path)
    assert [c.data for c in counts] == [layer.expected.tobytes() for layer in small.layers]


def test_without_sources_the_reason_says_where_they_are_looked_for(tmp_path: Path) -> None:
    assert f"git clone https://github.com/ARM-software/CMSIS-NN {tmp_path}" in cmsis_nn.missing(tmp_path)
    (tmp_path / "Include").mkdir()
    (tmp_path / "Include" / "arm_nnfunctions.h").touch()
    assert not cmsis_nn.missing(tmp_path)


def test_multipliers_are_the_factors_in_31_bits() -> None:
    random = np.random.default_rng(3).uniform(-20, 20, 200)
    for real in (*np.exp2(random).tolist(), 1.0, 0.5, 1 - 2.0**-40, 2.0**-31):
        fixed, shift = quantization.multiplier(real)
        assert 2**30 <= fixed < 2**31 and abs(fixed * 2.0 ** (shift - 31) / real - 1) <= 2.0**-31
    assert quantization.multiplier(0.0) == quantization.multiplier(2.0**-40) == (0, 0)


def test_padding_is_tensorflow_s() -> None:
    """By counting: the window's places that lie outside, half of them, rounded down, before the first element."""
    for size in range(1, 12):
        for window in range(1, 5):
            for stride in range(1, 4):
                places = range(0, size, stride)
                outside = max(0, places[-1] + window - size)
                assert padding(size, window, stride, 1, 0) == outside // 2
                assert padding(size, window, stride, 1, 1) == 0


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs(BOARDS[n].machine)) for n in ("neoverse-v1", "rv64gcv")])
def test_rates_are_of_outputs_that_are_equal_and_below_the_bound(name: str, small: Network) -> None:
    wrong: list[str] = []
    found = rates(BOARDS[name], {"small": small}, wrong)
    assert not wrong and list(found) == ["small", *(single.name for single in SINGLES)]
    assert all(0 < rate.products / rate.instructions < BOUNDS[name][0] for rate in found.values())
    assert rate_table({name: found}).splitlines()[-1].startswith("| an instruction, at most |")
