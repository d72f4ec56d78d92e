"""Machine code of products of bytes on processors without vectors: sums and factors of a register tile stay in registers."""
from __future__ import annotations

import re

import numpy as np
import pytest
from tosaic import CompileOptions, target
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.emitter import Emitter
from tosaic.lowering.graph.graph import Function, Module
from tosaic.lowering.graph.types import I8, I32, TensorType

MIN_PRODUCTS = 16
"""Of a basic block that is the body of a loop over K."""
PRODUCTS_A_SPILL = 2
"""Products of it for each access of the stack, at least. Counted: there are 2.8 and more, with what a function saves; where
LLVM chose the order itself, on RV64, there were 0.3 to 0.5."""


def convolution(kernel: int, channels: int) -> Module:
    g, e = np.random.default_rng(kernel), Emitter()
    x = e.blocks[0].argument(TensorType((1, 12, 12, channels), I8), "x")
    weights = e.constant(g.integers(-127, 128, (32, kernel, kernel, channels)).astype(np.int8))
    y = e("conv2d", x, weights, e.constant(np.zeros(32, np.int32)), e.constant(np.array([3], np.int8)),
          e.constant(np.zeros(1, np.int8)), pad=(kernel // 2,) * 4, stride=(1, 1), dilation=(1, 1), acc_type=I32)
    return Module((Function("f", e.blocks[0].finish(y), (y.type,)),))


@pytest.mark.parametrize("name", ["cortex-m3", "cortex-m4", "cortex-m33", "rv32imc", "rv64gc"])
@pytest.mark.parametrize(("kernel", "channels"), [(1, 64), (3, 16), (3, 64)])
def test_loops_over_k_hardly_use_the_stack(name: str, kernel: int, channels: int) -> None:
    text = Traced(convolution(kernel, channels), "f").lower(CompileOptions(target(name))).show("asm")
    blocks = re.split(r"^\.L\w+:.*\n", text, flags=re.MULTILINE)
    counts = [(len(re.findall(r"^\s+(?:mul|mla|smlad)w?\b", b, re.MULTILINE)), len(re.findall(r"\bsp\b", b))) for b in blocks]
    loops = [(products, spills) for products, spills in counts if products >= MIN_PRODUCTS]
    assert loops and all(spills * PRODUCTS_A_SPILL <= products for products, spills in loops), counts
