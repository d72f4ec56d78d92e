"""-1 in the shapes of SLICE, TILE and PAD, as MLIR writes it where an extent of the operand is not known."""
from __future__ import annotations

import numpy as np
import pytest
import tosaic
from tosaic.lowering.flatbuffer.writer import write_module
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import F32, TensorType
from tosaic.lowering.rewrite.specialize import specialize
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem

LEFT_OPEN = """func.func @main(%x: tensor<?x6xf32>) -> tensor<?x?xf32> {{
  %s = tosa.const_shape {{values = dense<[1, 2]> : tensor<2xindex>}} : () -> !tosa.shape<2>
  %n = tosa.const_shape {{values = dense<[{sizes}]> : tensor<2xindex>}} : () -> !tosa.shape<2>
  %0 = tosa.slice %x, %s, %n : (tensor<?x6xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32> }}"""


@pytest.mark.parametrize("sizes", ["-1, -1", "-1, 2", "1, -1", "1, 2"])
def test_a_slice_of_size_minus_one_takes_all_that_follow(sizes: str) -> None:
    model = tosaic.load(LEFT_OPEN.format(sizes=sizes))
    rows, columns = (None if n == "-1" else int(n) for n in sizes.split(", "))
    for count in (2, 3, 7):
        x = np.arange(count * 6, dtype=np.float32).reshape(count, 6)
        expected = x[1:None if rows is None else 1 + rows, 2:None if columns is None else 2 + columns]
        assert model(x).tolist() == expected.tolist()
        again = tosaic.load(write_module(module_at(LEFT_OPEN.format(sizes=sizes), (count, 6))))
        assert again(x).tolist() == expected.tolist()
    with pytest.raises(Problem, match="axis 0 of tensor<1x6xf32> has no 1 elements from 1 on"):
        model(np.zeros((1, 6), np.float32))


def module_at(text: str, shape: tuple[int, ...]) -> Module:
    return specialize(read_module(text), "main", [TensorType(shape, F32)])


@pytest.mark.parametrize(("body", "message"), [
    ("""%n = tosa.const_shape {values = dense<[-1, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
        %0 = tosa.tile %x, %n : (tensor<?x6xf32>, !tosa.shape<2>) -> tensor<?x12xf32>""", "multiples must be positive"),
    ("""%n = tosa.const_shape {values = dense<[-1, 2, 3, 3]> : tensor<4xindex>} : () -> !tosa.shape<4>
        %z = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
        %0 = tosa.pad %x, %n, %z : (tensor<?x6xf32>, !tosa.shape<4>, tensor<1xf32>) -> tensor<?x12xf32>""",
     "padding must not be negative"),
], ids=["tile", "pad"])
def test_a_tile_and_a_pad_may_leave_open_what_follows_from_extents_that_are_not_known(body: str, message: str) -> None:
    """They are read; to run them the number is needed."""
    def text(rows: str) -> str:
        return f"func.func @main(%x: tensor<?x6xf32>) -> tensor<?x12xf32> {{\n{body}\nreturn %0 : tensor<?x12xf32> }}".replace(
            "?x6", f"{rows}x6").replace("?x12", f"{rows}x12")
    model = tosaic.load(text("?"))
    with pytest.raises(Problem, match=message):
        model(np.zeros((2, 6), np.float32))
    with pytest.raises(Problem, match=message):
        tosaic.load(text("2"))
