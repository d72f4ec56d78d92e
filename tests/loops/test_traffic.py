"""The bytes that a run moves: as many as the interpreter of loops sees loaded and stored, access by access."""
from __future__ import annotations

import pathlib
from collections import Counter

import numpy as np
import pytest
import tosaic
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.graph.types import ITEM_SIZES, Array
from tosaic.lowering.kernels.kernel import Branch, Compute, Loop
from tosaic.lowering.loops.interpret import FunctionRun, dtype_of
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.ir import BOOL, INDEX, Address, For, Function, If, Let, Literal, LoadFrom, StoreTo, Type, Var
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.traffic import Traffic, program_traffic, traffic
from tosaic.lowering.target.presets import target

DATA = pathlib.Path(__file__).parents[1] / "data"
MACHINES = {"x86-64-v4": ("f_attention_block", "f_conv_bn_relu_pool_int8", "f_mlp_int8", "f_mobilenet_block_int8", "v_lstm"),
            "cortex-m7": ("f_conv_bn_relu_pool_int8", "f_gather_embed", "f_lstm_cell", "f_mlp_int8", "f_shape_ops",
                          "v_counter")}
"""Each model on a machine that it is quickly interpreted for, two of integers on both."""


def lowered(source: object, machine: str, **options: object) -> Program:
    return tosaic.load(source).entry(None).lower(tosaic.CompileOptions(target(machine), **options)).program


def counted(program: Program, monkeypatch: pytest.MonkeyPatch) -> dict[Buffer, Traffic]:
    """Elements that the interpreter looks up and writes, times their size."""
    read, written = Counter[Buffer](), Counter[Buffer]()
    elements, write = FunctionRun.elements, FunctionRun.write

    def looked_up(run: FunctionRun, buffer: Buffer, indices: Array) -> Array:
        read[buffer] += indices.size * ITEM_SIZES[buffer.dtype]
        return elements(run, buffer, indices)

    def stored(run: FunctionRun, buffer: Buffer, indices: Array, values: Array) -> None:
        written[buffer] += indices.size * ITEM_SIZES[buffer.dtype]
        write(run, buffer, indices, values)

    monkeypatch.setattr(FunctionRun, "elements", looked_up)
    monkeypatch.setattr(FunctionRun, "write", stored)
    draw = np.random.default_rng(1)
    run_program(program, [draw.integers(0, 3, b.shape).astype(dtype_of(b.dtype)) for b in program.inputs])
    return {b: Traffic(read[b], written[b]) for b in {*read, *written}}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model, machine", [(model, machine) for machine, models in MACHINES.items() for model in models])
def test_what_a_run_moves_is_what_the_interpreter_sees(model: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = lowered(DATA / "corpus" / f"{model}.mlir", machine)
    assert not any(isinstance(step, (Branch, Loop)) for step in program.steps)
    assert program_traffic(program) == counted(program, monkeypatch)


ROWS = """func.func @main(%x: tensor<1x{n}x6x4xi8>) -> tensor<1x{n}x6x4xi8> {{
  %z = "tosa.const"() <{{values = dense<0> : tensor<1xi8>}}> : () -> tensor<1xi8>
  %w = "tosa.const"() <{{values = dense<1> : tensor<4x3x3x4xi8>}}> : () -> tensor<4x3x3x4xi8>
  %b = "tosa.const"() <{{values = dense<0> : tensor<4xi32>}}> : () -> tensor<4xi32>
  %m = "tosa.const"() <{{values = dense<1073741824> : tensor<1xi32>}}> : () -> tensor<1xi32>
  %s = "tosa.const"() <{{values = dense<34> : tensor<1xi8>}}> : () -> tensor<1xi8>
  %o = "tosa.const"() <{{values = dense<0> : tensor<1xi32>}}> : () -> tensor<1xi32>
{body}
  return %y2 : tensor<1x{n}x6x4xi8> }}"""
LAYER = """  %a{i} = tosa.conv2d %{x}, %w, %b, %z, %z {{acc_type = i32, dilation = array<i64: 1, 1>,
    pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}} : (tensor<1x{n}x6x4xi8>, tensor<4x3x3x4xi8>, tensor<4xi32>,
    tensor<1xi8>, tensor<1xi8>) -> tensor<1x{n}x6x4xi32>
  %y{i} = tosa.rescale %a{i}, %m, %s, %o, %z {{input_unsigned = false, output_unsigned = false, per_channel = false,
    rounding_mode = SINGLE_ROUND, scale32 = true}} : (tensor<1x{n}x6x4xi32>, tensor<1xi32>, tensor<1xi8>, tensor<1xi32>,
    tensor<1xi8>) -> tensor<1x{n}x6x4xi8>"""


def chain(n: int) -> str:
    return ROWS.format(n=n, body="\n".join(LAYER.format(n=n, i=i, x=f"y{i - 1}" if i else "x") for i in range(3)))


def test_steps_of_some_rows_and_tasks_count_each_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows = lowered(chain(24), "cortex-m7", rows="memory")
    assert sum(isinstance(s, Compute) and s.rows is not None for s in by_rows.steps) > 10
    assert program_traffic(by_rows) == counted(by_rows, monkeypatch)


def test_tasks_count_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    program = lowered("""func.func @main(%x: tensor<200x300xf32>, %y: tensor<200x300xf32>) -> tensor<200x300xf32> {
      %0 = tosa.exp %x : (tensor<200x300xf32>) -> tensor<200x300xf32>
      %1 = tosa.add %0, %y : (tensor<200x300xf32>, tensor<200x300xf32>) -> tensor<200x300xf32>
      return %1 : tensor<200x300xf32> }""", "x86-64-v3", threads=2)
    assert any(isinstance(s, Compute) and s.tasks > 1 for s in program.steps)
    assert program_traffic(program) == counted(program, monkeypatch)


# ---- by hand -----------------------------------------------------------------------------------------------------------
X, Y, FLAG = Buffer("x", "int16", (100,)), Buffer("y", "int16", (100,)), Buffer("flag", "bool", (1,))
SHORT = Type("int16")


def number(n: int) -> Literal:
    return Literal(n, INDEX)


def loop(index: Var, low: object, high: object, *body: object) -> For:
    return For(index, low, high, (), (), (), list(body), ())  # type: ignore[arg-type]


def test_bounds_and_conditions_of_outer_loops_count_as_they_are() -> None:
    """A triangle of which the diagonal is stored: 45 loads and 10 stores of 2 bytes."""
    i, j, same = Var(0, INDEX, 1), Var(1, INDEX, 2), Var(2, BOOL, 1)
    body = [loop(i, number(0), number(10),
                 loop(j, number(0), i, LoadFrom(Var(3, SHORT, 2), Address(X, j, 0), 1)),
                 Let(same, "lt", (i, number(4))),
                 If(same, [StoreTo(Address(Y, i, 0), Literal(1, SHORT), 1)]))]
    assert traffic(Function("triangle", (X, Y), (), body)) == {X: Traffic(90, 0), Y: Traffic(0, 8)}


def test_what_memory_decides_counts_as_true() -> None:
    held = Var(0, BOOL, 0)
    body = [LoadFrom(held, Address(FLAG, number(0), 0), 1), If(held, [StoreTo(Address(Y, number(0), 0), Literal(1, SHORT), 1)])]
    assert traffic(Function("decided", (FLAG, Y), (), body)) == {FLAG: Traffic(1, 0), Y: Traffic(0, 2)}


def test_a_loop_over_many_iterations_is_counted_in_no_time() -> None:
    """A thousand million iterations, of which a border is told apart."""
    i, j, inside = Var(0, INDEX, 1), Var(1, INDEX, 2), Var(2, BOOL, 2)
    body = [loop(i, number(0), number(1000), loop(
        j, number(0), number(1000), Let(inside, "lt", (number(0), i)),
        If(inside, [loop(Var(3, INDEX, 3), number(0), number(1000),
                         LoadFrom(Var(4, SHORT, 3), Address(X, number(0), 0), 1))])))]
    assert traffic(Function("border", (X,), (), body)) == {X: Traffic(2 * 999 * 1000 * 1000, 0)}
