"""TOSA's level 8K, where it is asked for: each limit is kept at its number and refused beyond, and without a level it does not
hold."""
from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line import cli
from tosaic.runtime.errors import Problem

from .graphs import text

CONV = "acc_type = i32, pad = array<i64: {pad}>, stride = array<i64: {stride}>, dilation = array<i64: {dilation}>"
POOL = "kernel = array<i64: {kernel}>, stride = array<i64: {stride}>, pad = array<i64: 0, 0, 0, 0>"


def conv(rows: int, kernel: int, out: int, stride: int = 1, dilation: int = 1, pad: int = 0) -> str:
    given = CONV.format(pad=f"{pad}, 0, 0, 0", stride=f"{stride}, 1", dilation=f"{dilation}, 1")
    return f"conv2d 1x{rows}x1x1xi8 1x{kernel}x1x1xi8 1xi32 1xi8=0 1xi8=0 -> 1x{out}x1x1xi32 | {given}"


def pool(rows: int, kernel: int, stride: int) -> str:
    given = POOL.format(kernel=f"{kernel}, 1", stride=f"{stride}, 1")
    return f"max_pool2d 1x{rows}x1x1xi8 -> 1x{(rows - kernel) // stride + 1}x1x1xi8 | {given}"


def concat(count: int) -> str:
    return f"concat {' '.join(['1x2xi8'] * count)} -> {count}x2xi8 | axis = 0 : i32"


def resize(scale: int) -> str:
    given = f"[{scale},1,1,1] [0,0] [{scale - 1},0]"
    return f"resize 1x2x1x1xi8 {given} -> 1x{2 * scale}x1x1xi8 | mode = NEAREST_NEIGHBOR"


def ones(rank: int) -> str:
    return f"abs {'1x' * rank}i32 -> {'1x' * rank}i32"


def shape(length: int) -> str:
    return f"func.func private @f(%x: !tosa.shape<{length}>) {{ return }}\nfunc.func @main() {{ return }}"


LIMITS = {
    "rank": (ones(6), ones(7), "has rank 7, level 8K allows 6"),
    "kernel of a convolution": (conv(8192, 8192, 1), conv(8193, 8193, 1), "a kernel is 8193|dilation times kernel is 8193"),
    "dilation": (conv(8192, 2, 4097, dilation=4095), conv(8200, 2, 4103, dilation=4097), "dilation times kernel is 8194"),
    "pad": (conv(2, 1, 8194, pad=8192), conv(2, 1, 8195, pad=8193), "a pad is 8193"),
    "stride of a convolution": (conv(8193, 1, 2, stride=8192), conv(8194, 1, 2, stride=8193), "a stride is 8193"),
    "kernel of a pool": (pool(8192, 8192, 1), pool(8193, 8193, 1), "kernel is 8193"),
    "stride of a pool": (pool(8193, 1, 8192), pool(8194, 1, 8193), "a stride is 8193"),
    "scale": (resize(256), resize(257), "a scale is 257"),
    "list of tensors": (concat(64), concat(65), "the number of its operands is 65, level 8K allows 64"),
    "length of a shape": (shape(16), shape(17), "has 17 extents, level 8K allows 16"),
}


def source(line: str) -> str:
    return line if line.startswith("func") else text(line)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_level_8k_is_kept_where_it_is_asked_for(limit: str) -> None:
    within, above, message = LIMITS[limit]
    tosaic.load(source(within), level="8K")
    tosaic.load(source(above))
    with pytest.raises(Problem, match=message) as found:
        tosaic.load(source(above), level="8K")
    assert found.value.kind == "level"


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(Problem, match="there is no level 4K"):
        tosaic.load(text(ones(2)), level="4K")


def test_nesting_and_bytes_are_limited_without_a_level() -> None:
    with pytest.raises(Problem, match="nested 7 deep"):
        tosaic.load(nested(7))
    tosaic.load(nested(6), level="8K")
    with pytest.raises(Problem, match=r"level 8K allows 2\^31 - 1"):
        tosaic.load("func.func @f(%x: tensor<2147483648xi8>) { return }")


def nested(depth: int) -> str:
    body = "%r = tosa.add %x, %x : (tensor<i32>, tensor<i32>) -> tensor<i32>"
    for _ in range(depth):
        body = f"""%r = tosa.cond_if %c : tensor<i1> -> tensor<i32> {{ {body}
            tosa.yield %r : tensor<i32> }} else {{ tosa.yield %x : tensor<i32> }}"""
    return f"func.func @main(%c: tensor<i1>, %x: tensor<i32>) -> tensor<i32> {{ {body}\nreturn %r : tensor<i32> }}"


def test_the_command_line_checks_a_level(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rank.mlir"
    path.write_text(text(ones(7)))
    assert cli.main(["check", str(path)]) == 0
    assert cli.main(["check", str(path), "--level", "8K"]) == 3
    assert "has rank 7, level 8K allows 6" in capsys.readouterr().err


def test_what_a_graph_of_tensorflow_becomes_is_checked() -> None:
    graph = """func.func @main(%x: tensor<1x1x1x1x1x2x2xf32>) -> tensor<1x1x1x1x1x2x2xf32> {
      %0 = "tf.Abs"(%x) : (tensor<1x1x1x1x1x2x2xf32>) -> tensor<1x1x1x1x1x2x2xf32>
      return %0 : tensor<1x1x1x1x1x2x2xf32> }"""
    x = np.full((1, 1, 1, 1, 1, 2, 2), -1, np.float32)
    assert (tosaic.load(graph)(x) == 1).all()
    with pytest.raises(Problem, match="has rank 7, level 8K allows 6"):
        tosaic.load(graph, level="8K")
