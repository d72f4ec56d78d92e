"""Windows of floats whose tiles are alike at the border and inside: what lies outside of a row adds nothing, whatever it is,
and every row is computed."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.interpret import run
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.ir import Function
from tosaic.lowering.loops.text import print_function
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.memory.planner import plan
from tosaic.lowering.native.process.load import load
from tosaic.lowering.schedule import lower

from ..fuse.graphs import Graph, conv
from ..native.machines import runs_here
from .kernels import TARGETS

Window = dict[str, tuple[int, ...]]
WINDOWS: dict[str, tuple[int, Window]] = {
    "3x3": (3, {"pad": (1, 1, 1, 1)}), "5x5": (5, {"pad": (2, 2, 2, 2)}),
    "3x3 s2": (3, {"pad": (1, 1, 0, 1), "stride": (2, 2)}),
    "3x3 dilated": (3, {"pad": (2, 2, 2, 2), "dilation": (2, 2)}), "3x3 to the left": (3, {"pad": (1, 1, 2, 0)}),
    "3x3 far out": (3, {"pad": (1, 1, 5, 4)})}


def floats(*shape: int) -> Array:
    """Halves: sums of their products are exact in every order."""
    return (np.random.default_rng(sum(shape)).integers(-6, 7, shape) / 2).astype(np.float32)


def depthwise(width: int, channels: int, name: str, batch: int = 1) -> Module:
    kernel, window = WINDOWS[name]
    g = Graph()
    if "stride" in window:
        width += width % 2
    x = g.input(batch, 9, width, channels)
    return g.module(conv(g, x, floats(kernel, kernel, channels, 1), floats(channels), name="depthwise_conv2d", **window))


def hostile(shape: tuple[int, ...]) -> Array:
    """What a tap beside a row would read: the end of another row, which is no number, or infinite."""
    x = floats(*shape)
    x[:, 2::3, 0], x[:, 1::3, -1] = np.nan, np.inf
    return x


def check(module: Module) -> None:
    kernels = fuse(module, module.function("main"))
    data = [hostile(b.shape) for b in kernels.inputs]
    with np.errstate(invalid="ignore"):
        expected, = run(kernels, data)
    for t in TARGETS.values():
        program = lower(kernels, t)
        verify_program(program)
        if t.vector_bytes == 64:
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(run_program(program, data)[0], expected)
        if runs_here(t):
            call = load(program, plan(program), t)
            np.testing.assert_array_equal(np.asarray(call(*data)).reshape(expected.shape), expected)
            call.close()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("width, channels", [(24, 32), (17, 24), (12, 42), (8, 96), (7, 16), (33, 5)])
def test_what_lies_beside_a_row_adds_nothing(width: int, channels: int, name: str) -> None:
    check(depthwise(width, channels, name))


def test_a_batch_has_the_same_borders() -> None:
    check(depthwise(16, 36, "3x3", batch=2))


@pytest.mark.parametrize("channels", [16, 28])
def test_a_maximum_is_of_what_is_inside(channels: int) -> None:
    g = Graph()
    x = g.input(1, 9, 20, channels)
    check(g.module(g.op("max_pool2d", x, kernel=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1), nan_mode="PROPAGATE")))


def loops_of(module: Module) -> str:
    function = lower(fuse(module, module.function("main")), TARGETS["512 bits"]).functions[0]
    assert isinstance(function, Function)
    return print_function(function)


def test_tiles_of_a_row_are_one_loop_where_there_are_masks() -> None:
    text = loops_of(depthwise(24, 32, "3x3"))
    assert text.count("for ") == 4 and " mask " in text  # rows, tiles of columns, vectors of channels, rows of the window


@pytest.mark.parametrize("name, width", [("3x3", 64), ("5x5", 64), ("5x5", 32), ("3x3", 96)])
def test_what_is_inside_for_sure_has_no_mask(name: str, width: int) -> None:
    """All steps of a row of the window are unrolled where some are tested: so that a row of a tile is tested for those alone
    that can be outside."""
    text, (kernel, window) = loops_of(depthwise(width, 32, name)), WINDOWS[name]
    tested, outside = text.count("select"), sum(window["pad"][2:]) * (kernel // 2 + 1) // 2
    assert tested % outside == 0 and tested <= 2 * outside
