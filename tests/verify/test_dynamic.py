"""EXT-DYNAMIC: zero points, shifts, tables, multipliers and the value of a border may be inputs of the graph.

They mean the same as constants do, in the interpreter and in compiled code; what the specification does not define (a
shift amount that is out of range) neither stops nor harms the program.
"""
from __future__ import annotations

import re

import numpy as np
import pytest
import tosaic
from tosaic.lowering.graph.types import Array, TensorType
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import interpret

from .graphs import text, verified
from .legal import ALL, RESCALE

GIVEN = [name for name, line in ALL.items() if "=" in line.partition(" ->")[0]]
SINGLE = RESCALE.replace("scale32 = true", "scale32 = false")


def as_inputs(line: str) -> str:
    """The graph with all its constants as inputs."""
    head, arrow, rest = line.partition(" ->")
    return re.sub(r"=\S+", "", head) + arrow + rest


def data_of(line: str) -> list[Array | None]:
    """The constant of each operand that is a tensor; None for the inputs."""
    operation = verified(line).functions[0].body.operations[-1]
    return [v.constant for v in operation.operands if isinstance(v.type, TensorType)]


def random(rng: np.random.Generator, type: TensorType) -> Array:
    if type.element.is_float:
        return np.asarray(rng.standard_normal(type.dims)).astype(type.element.dtype)
    if type.element.kind == "bool":
        return rng.random(type.dims) < 0.5
    span = min(type.element.maximum, 1 << 24)
    return np.asarray(rng.integers(-span, span, type.dims)).astype(type.element.dtype)


def run(line: str, inputs: list[Array]) -> tuple[list[Array], list[Array]]:
    """Results of compiled code and of the interpreter."""
    compiled = tosaic.load(text(line))(*inputs)
    module = read_module(text(line))
    return (list(compiled) if isinstance(compiled, tuple) else [compiled]), list(interpret(module, None, inputs))


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_usually_a_constant_may_be_an_input(name: str, rng: np.random.Generator) -> None:
    line, dynamic = ALL[name], as_inputs(ALL[name])
    constants = data_of(line)
    arguments = [v.tensor for v in verified(dynamic).functions[0].arguments]
    values = [random(rng, type) if known is None else known for known, type in zip(constants, arguments)]
    static = run(line, [v for v, known in zip(values, constants) if known is None])
    for found, expected in zip(run(dynamic, values), static):
        for a, b in zip(found, expected):
            assert a.dtype == b.dtype and a.shape == b.shape
            assert a.tobytes() == b.tobytes()
    for compiled, interpreted in zip(*static):
        if compiled.dtype.kind in "biu":
            assert compiled.tobytes() == interpreted.tobytes()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


SHIFTS = np.array([-128, -1, 0, 1, 31, 62, 63, 64, 127], np.int8)


@pytest.mark.parametrize("amount", SHIFTS)
def test_a_product_is_shifted_by_an_input_that_may_be_out_of_range(amount: np.int8, rng: np.random.Generator) -> None:
    a, b = (rng.integers(-(1 << 31), 1 << 31, (3, 4)).astype(np.int32) for _ in range(2))
    (compiled,), (interpreted,) = run("mul 3x4xi32 3x4xi32 1xi8 -> 3x4xi32", [a, b, np.array([amount], np.int8)])
    assert compiled.tolist() == interpreted.tolist()
    if 0 <= amount < 64:
        n = int(amount)
        exact = [[int(x) * int(y) + (1 << n >> 1) >> n for x, y in zip(*rows)] for rows in zip(a, b)]
        assert compiled.tolist() == np.array([[(v + (1 << 31)) % (1 << 32) - (1 << 31) for v in row] for row in exact]).tolist()


@pytest.mark.parametrize("element", ["i8", "i16", "f32"])
def test_a_shift_that_is_an_input_does_not_count_for_other_types(element: str, rng: np.random.Generator) -> None:
    result = "f32" if element == "f32" else "i32"
    a = np.arange(-6, 6).reshape(3, 4).astype({"i8": np.int8, "i16": np.int16, "f32": np.float32}[element])
    for amount in SHIFTS:
        found = run(f"mul 3x4x{element} 3x4x{element} 1xi8 -> 3x4x{result}", [a, a, np.array([amount], np.int8)])
        for results in found:
            assert results[0].tolist() == (a.astype(np.int64) ** 2).tolist()


@pytest.mark.parametrize("amount", SHIFTS)
@pytest.mark.parametrize("mode", ["SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND"])
def test_a_rescale_by_inputs_agrees_with_the_interpreter_in_range_and_out_of_it(amount: np.int8, mode: str) -> None:
    x = np.arange(-128, 128, dtype=np.int8)
    line = f"rescale 256xi8 1xi32 1xi8 1xi8 1xi8 -> 256xi8 | {RESCALE.replace('SINGLE_ROUND', mode)}"
    for multiplier in (1 << 30, 0, -(1 << 31), 1987654321):
        inputs = [x, np.array([multiplier], np.int32), np.array([amount], np.int8), *np.array([[5], [-7]], np.int8)]
        (compiled,), (interpreted,) = run(line, inputs)
        assert compiled.tolist() == interpreted.tolist()


def test_a_rescale_of_channels_takes_factors_that_are_inputs(rng: np.random.Generator) -> None:
    x = rng.integers(-30000, 30000, (5, 7)).astype(np.int16)
    multiplier, shift = rng.integers(1 << 13, 1 << 15, 7).astype(np.int16), rng.integers(8, 24, 7).astype(np.int8)
    line = f"rescale 5x7xi16 7xi16 7xi8 1xi16 1xi8 -> 5x7xi8 | {SINGLE.replace('per_channel = false', 'per_channel = true')}"
    zero, offset = np.zeros(1, np.int16), np.array([3], np.int8)
    exact = [[min(max((int(v) * int(m) + (1 << int(s) - 1) >> int(s)) + 3, -128), 127)
              for v, m, s in zip(row, multiplier, shift)] for row in x]
    for (found,) in run(line, [x, multiplier, shift, zero, offset]):
        assert found.tolist() == exact


@pytest.mark.parametrize(("element", "entries"), [("i8", 256), ("i16", 513)])
def test_a_table_that_is_an_input_is_looked_up_everywhere(element: str, entries: int, rng: np.random.Generator) -> None:
    dtype = np.int8 if element == "i8" else np.int16
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1, dtype=np.int64).astype(dtype)
    table = rng.integers(info.min // 2, info.max // 2, entries).astype(dtype)
    result = "i8" if element == "i8" else "i32"
    (compiled,), (interpreted,) = run(f"table {len(x)}x{element} {entries}x{element} -> {len(x)}x{result}", [x, table])
    assert compiled.tolist() == interpreted.tolist()
    assert compiled[0] == (table[0] if element == "i8" else int(table[0]) * 128)


@pytest.mark.parametrize("element", ["i1", "i8", "i16", "i32", "f16", "bf16", "f32", "f8E4M3FN", "f8E5M2"])
def test_a_border_takes_its_value_from_an_input(element: str, rng: np.random.Generator) -> None:
    line = f"pad 2x3x{element} [1,0,0,2] 1x{element} -> 3x5x{element}"
    x, value = (random(rng, v.tensor) for v in verified(line).functions[0].arguments)
    for (found,) in run(line, [x, value]):
        inside = np.zeros((3, 5), bool)
        inside[1:, :3] = True
        assert found[inside].tobytes() == x.tobytes()
        assert found[~inside].tobytes() == np.repeat(value, 9).tobytes()


def test_a_shape_may_not_be_an_input() -> None:
    with pytest.raises(tosaic.Problem, match="input %x1 of @f is a shape, which must be known when compiling") as caught:
        verified("reshape 2x3xi8 shape<2> -> 3x2xi8")
    assert not caught.value.unsupported
