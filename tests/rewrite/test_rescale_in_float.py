"""RESCALE between bytes is computed in float32 for processors that have it, where that gives the same for each of the 256
values; everything else stays in integers.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tosaic.rescale_in_float import FloatForm, RescaleInFloat
from tosaic.lowering.graph.graph import Module, Value
from tosaic.lowering.graph.types import I8, I16, I32, UI8, Array, ElementType
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.options import CompileOptions
from tosaic.lowering.rewrite.rescale_in_float import rescale_in_float
from tosaic.lowering.target.presets import target
from tosaic.runtime.interpreter import Interpreter

from ..fuse.graphs import Graph
from ..operators.harness import check, operands

KNOWN = {1, 2, 3, 4}
BYTES = np.arange(-128, 128).astype(np.int8)
UNIT = 1 << 30
SIGNED, TO_UNSIGNED, FROM_UNSIGNED = (I8, False, I8, False), (I8, False, UI8, True), (UI8, True, I8, False)
Kind = tuple[ElementType, bool, ElementType, bool]
"""The types of operand and result, and whether each is read as unsigned."""


def scaled(g: Graph, x: Value, multiplier: Sequence[int], shift: Sequence[int], zero_points: tuple[int, int] = (0, 0),
           mode: str = "SINGLE_ROUND", kind: Kind = SIGNED) -> Value:
    source, is_source_unsigned, to, is_unsigned = kind
    before, after = (np.array([n]).astype(e.dtype) for n, e in zip(zero_points, (source, to)))
    return g.op("rescale", x, np.array(multiplier, np.int32), np.array(shift, np.int8), before, after, scale32=True,
                rounding_mode=mode, per_channel=len(multiplier) > 1, input_unsigned=is_source_unsigned,
                output_unsigned=is_unsigned, to=to)


def of_all(multiplier: Sequence[int], shift: Sequence[int], zero_points: tuple[int, int] = (0, 0), mode: str = "SINGLE_ROUND",
           kind: Kind = SIGNED) -> Module:
    """RESCALE of every byte there is, in each channel."""
    g = Graph()
    x = g.input(256, len(multiplier), dtype=kind[0].storage)
    return g.module(scaled(g, x, multiplier, shift, zero_points, mode, kind))


def is_in_float(module: Module) -> bool:
    return any(isinstance(o.op, RescaleInFloat) for o in rescale_in_float(module).functions[0].body.walk())


def every_byte(kind: Kind, channels: int) -> Array:
    return np.repeat(BYTES.view(kind[0].dtype)[:, None], channels, 1)


KINDS = pytest.mark.parametrize("kind", [SIGNED, TO_UNSIGNED, FROM_UNSIGNED], ids=["signed", "to unsigned", "from unsigned"])
MODES = pytest.mark.parametrize("mode", ["SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND"])


@pytest.mark.sampled(4)
@KINDS
@MODES
@pytest.mark.parametrize("channels", [1, 5])
def test_each_byte_comes_to_what_the_specification_says(channels: int, mode: str, kind: Kind) -> None:
    """With floats, as code of this process, and without, as loops for a processor that has none."""
    random, found = np.random.default_rng(channels), 0
    for _ in range(8):
        multiplier, shift = random.integers(UNIT, 2 * UNIT, channels).tolist(), random.integers(30, 34, channels).tolist()
        zero_points = tuple(int(n) for n in random.integers(-128, 128, 2))
        module, x = of_all(multiplier, shift, zero_points, mode, kind), every_byte(kind, channels)
        expected, = Interpreter(module)(x)
        assert len(np.unique(expected)) > 16
        found += is_in_float(module)
        np.testing.assert_array_equal(Traced(module, "main").compile()(x), expected)
        lowered = Traced(module, "main").lower(CompileOptions(target("cortex-m0plus")))
        assert "float" not in lowered.show("loops")
        np.testing.assert_array_equal(run_program(lowered.program, [x])[0], expected)
    assert found > 4


@KINDS
@MODES
def test_the_expression_gives_the_same_with_each_product_rounded(mode: str, kind: Kind) -> None:
    """On a processor that does not fuse a product with a sum."""
    source, is_source_unsigned, to, is_unsigned = kind
    random, found = np.random.default_rng(3), 0
    for _ in range(50):
        constants = [np.array([n]).astype(t) for n, t in zip(
            (random.integers(UNIT, 2 * UNIT), random.integers(28, 36), *random.integers(-128, 128, 2)),
            (np.int32, np.int8, source.dtype, to.dtype))]
        op = RescaleInFloat(True, mode, False, is_source_unsigned, is_unsigned, to)
        x, elements = every_byte(kind, 1), {0: source, 3: source, 4: to}
        first, *rest = operands((x, *constants), KNOWN, elements)
        form = FloatForm.of(op, first, rest)
        if form is not None and form.is_right:
            found += 1
            check(op, x, *constants, constants=KNOWN, elements=elements)
    assert found > 20


STAY = {
    "every eighth byte halfway between two integers": of_all([3 << 28], [31]),
    "a power of two": of_all([UNIT], [31]),
    "a channel halfway between two integers": of_all([1_518_500_250, 3 << 28], [31, 31]),
    "beyond what is specified": of_all([1_518_500_250], [63]),
    "from 16 bits": of_all([1_518_500_250], [31], kind=(I16, False, I8, False)),
    "to 16 bits": of_all([1_518_500_250], [31], kind=(I8, False, I16, False)),
    "to 32 bits": of_all([1_518_500_250], [31], kind=(I8, False, I32, False))}


@pytest.mark.parametrize("name", STAY)
def test_stays_in_integers(name: str) -> None:
    assert is_in_float(of_all([1_518_500_250], [31])) and not is_in_float(STAY[name])


def test_factors_that_only_a_run_knows_stay_in_integers() -> None:
    g = Graph()
    x, zero = g.input(256, dtype="int8"), np.zeros(1, np.int8)
    result = g.op("rescale", x, g.input(1, dtype="int32"), np.full(1, 31, np.int8), zero, zero, scale32=True,
                  rounding_mode="SINGLE_ROUND", per_channel=False, input_unsigned=False, output_unsigned=False, to=I8)
    assert not is_in_float(g.module(result))


def test_in_a_region() -> None:
    g = Graph()
    x, condition = g.input(256, 1, dtype="int8"), g.input(dtype="bool")
    branches = []
    for zero_point in (0, 5):
        inner = Graph()
        branches.append(inner.finish(scaled(inner, x, [1_518_500_250], [31], (0, zero_point))))
    module = g.module(g.op("cond_if", condition, regions=branches))
    assert sum(isinstance(o.op, RescaleInFloat) for o in rescale_in_float(module).functions[0].body.walk()) == 2
    arrays = BYTES[:, None], np.array(True)
    np.testing.assert_array_equal(Traced(module, "main").compile()(*arrays), Interpreter(module)(*arrays)[0])
