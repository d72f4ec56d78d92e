"""What the tests of the report report on: small models, and reports made by hand."""
from __future__ import annotations

import pathlib

import tosaic
from tosaic.jit.stages import Lowered
from tosaic.jit.tools.report import Report
from tosaic.jit.tools.report.figures import BufferLine, KernelLine, PoolLine, StepLine
from tosaic.jit.tools.report.live import peak_of
from tosaic.lowering.memory.planner import Memory
from tosaic.lowering.target.presets import target

DATA = pathlib.Path(__file__).parents[1] / "data"

MODELS = ("corpus/f_mobilenet_block", "corpus/f_attention_block", "corpus/f_while_in_cond", "corpus/v_lstm",
          "corpus/f_conv_bn_relu_pool_int8")

ROWS = """
func.func @main(%x: tensor<1x{rows}x16x8xf32>) -> tensor<1x{rows}x16x8xf32> {{
  %z = "tosa.const"() <{{values = dense<0.0> : tensor<1xf32>}}> : () -> tensor<1xf32>
  %w = "tosa.const"() <{{values = dense<0.5> : tensor<8x3x3x8xf32>}}> : () -> tensor<8x3x3x8xf32>
  %b = "tosa.const"() <{{values = dense<0.25> : tensor<8xf32>}}> : () -> tensor<8xf32>
{convolutions}
  return %c{last} : tensor<1x{rows}x16x8xf32>
}}
"""

CONVOLUTION = (
    "  %c{i} = tosa.conv2d %{x}, %w, %b, %z, %z {{acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, "
    "stride = array<i64: 1, 1>}} : (tensor<1x{rows}x16x8xf32>, tensor<8x3x3x8xf32>, tensor<8xf32>, tensor<1xf32>, "
    "tensor<1xf32>) -> tensor<1x{rows}x16x8xf32>")


def lowered(model: str, entry: str | None = None) -> Lowered:
    """A model of the test data (or a text) for a fixed machine."""
    source = model if "\n" in model else DATA / f"{model}.mlir"
    return tosaic.load(source).entry(entry).lower(tosaic.CompileOptions(target("cortex-m7")))


def in_pools(found: Lowered, options: Memory) -> Lowered:
    """The same function, for these memories."""
    return found.traced.lower(tosaic.CompileOptions(found.target, memory=options))


def by_rows(rows: int, count: int) -> str:
    """A chain of convolutions that runs by rows on a small machine."""
    lines = (CONVOLUTION.format(i=i, rows=rows, x=f"c{i - 1}" if i else "x") for i in range(count))
    return ROWS.format(rows=rows, convolutions="\n".join(lines), last=count - 1)


def made(*buffers: BufferLine, ticks: int = 4, kernels: int = 4, limit: int | None = None) -> Report:
    """A report of buffers in one pool: one kernel a tick."""
    timeline = tuple(StepLine("compute", i % kernels) for i in range(ticks))
    lines = tuple(KernelLine(f"out{i}: int8[1]", "add mul", f"m.mlir:{i + 1}:3", f"%{i} = tosa.add") for i in range(kernels))
    size = max((b.end for b in buffers), default=0)
    peak = peak_of(buffers, timeline)
    bound = peak.nbytes if peak else 0
    pool = PoolLine("workspace", "workspace", size, limit, bound, 64, peak)
    return Report("main", (), (), (), size, bound, 0, "portfolio", 0, lines, ticks, buffers, "thumb, cortex-m7", {}, (pool,),
                  peak, timeline)


def buffer(name: str, nbytes: int, offset: int, *live: tuple[int, int], kind: str = "intermediate") -> BufferLine:
    return BufferLine(name, "int8", (nbytes,), nbytes, offset, "workspace", kind, live, live[0][0] % 4 if live else None,
                      live[-1][1] % 4 if live else None)
