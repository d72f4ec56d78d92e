"""Statements of a matrix unit in the loop IR: what they mean, what the verifier refuses, their text, the order of accesses."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.dependence.access_order import may_overwrite
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.ir import (
    Function,
    MultiplyFloatTiles,
    MultiplyTiles,
    ShapeTiles,
    StoreTile,
    buffers_read,
    buffers_written,
)
from tosaic.lowering.loops.text import print_program, read_program
from tosaic.lowering.loops.verify import verify
from tosaic.runtime.errors import Problem

from .functions import program
from .test_verify import rejects

RNG = np.random.default_rng(2)
X, W, C = (Buffer(name, dtype, shape, role) for name, dtype, shape, role in (
    ("x", "int8", (3, 24), "argument"), ("w", "int8", (6, 5, 4), "argument"), ("c", "int32", (3, 5), "result")))

HALVES, PAIRS, TOTAL = Buffer("h", "bfloat16", (2, 4), "argument"), Buffer("p", "bfloat16", (2, 3, 2), "argument"), Buffer(
    "t", "float32", (2, 3), "temporary")


def product(x: Buffer = X, w: Buffer = W, c: Buffer = C, steps: int = 3) -> Function:
    """c = x * w by tiles of 3 x 8 and 2 x 20 bytes; w is packed in groups of four rows."""
    b, step = Builder("product"), Axis("step", steps)
    b.shape_tiles(((3, 20), (3, 8), (2, 20)))
    b.zero_tile(0)

    def body() -> None:
        b.load_tile(1, x, Affine.of(step) * 8, 24)
        b.load_tile(2, w, Affine.of(step) * 40, 20)
        b.multiply_tiles(0, 1, 2, x.dtype == "int8")

    b.loop(step, body)
    b.store_tile(0, c, Affine(), 5)
    return b.finish()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_tiles_multiply_bytes(dtype: str) -> None:
    x, memory = replace(X, dtype=dtype), LoopMemory()
    a, w = RNG.integers(0, 256, (3, 24)).astype(np.uint8).view(dtype), RNG.integers(-128, 128, (24, 5)).astype(np.int8)
    memory.add(x, a)
    memory.add(W, w.reshape(6, 4, 5).transpose(0, 2, 1))
    f = product(x)
    assert verify(f).guarded == 0
    run_function(f, memory)
    assert np.array_equal(memory.array(C), a.astype(np.int64) @ w)
    assert (buffers_read(f), buffers_written(f)) == ({x, W}, {C})


def float_product(x: Buffer = HALVES) -> Function:
    """total += x * y by tiles of 2 x 4 and 2 x 6 bfloat16; y is packed in pairs of rows."""
    b = Builder("floats")
    b.shape_tiles(((2, 12), (2, 8), (2, 12)))
    b.load_tile(0, TOTAL, Affine(), 3)
    b.load_tile(1, x, Affine(), 4)
    b.load_tile(2, PAIRS, Affine(), 6)
    b.multiply_float_tiles(0, 1, 2)
    b.store_tile(0, TOTAL, Affine(), 3)
    return b.finish()


def float_sums(x: object, y: object, total: object = 0.0) -> np.ndarray:
    """What that makes of numbers: [2, 4], [4, 3] and one for all totals."""
    memory = LoopMemory()
    memory.add(HALVES, np.asarray(x, np.float32))
    memory.add(PAIRS, np.asarray(y, np.float32).reshape(2, 2, 3).transpose(0, 2, 1))
    memory.add(TOTAL, np.full((2, 3), total, np.float32))
    f = float_product()
    assert verify(f).guarded == 0
    run_function(f, memory)
    return memory.array(TOTAL)


def test_tiles_multiply_pairs_of_floats() -> None:
    x, y = RNG.integers(-9, 10, (2, 4)) / 4, RNG.integers(-9, 10, (4, 3)) / 2
    np.testing.assert_array_equal(float_sums(x, y, 0.5), x @ y + 0.5)


def test_float_sums_go_by_pairs_first() -> None:
    """Terms 0 and 2, then 1 and 3, then both, then the total: each sum is rounded."""
    big, x = 2.0**24, np.ones((2, 4))
    for terms, total, expected in (((big, 1, -big, 1), 0, 2), ((big, -big, 1, 0), 0, 0), ((1, 0, big, -big), 0, 0),
                                   ((big, -big, 0, 0), 1, 1), ((1, 0, 0, 0), big, big), ((1, 1, 0, 0), big, big + 2)):
        assert (float_sums(x, np.repeat(terms, 3), total) == expected).all()


def test_subnormal_floats_are_zeros_of_their_sign() -> None:
    x, least = np.zeros((2, 4)), 2.0**-126
    x[:, 0] = 1
    one = np.zeros((4, 3))
    one[0] = 1
    assert (float_sums(x * 2.0**-130, one * 2.0**100) == 0).all()  # an operand
    assert (float_sums(x * 2.0**-100, one * 2.0**-27) == 0).all() and (float_sums(x * least, one) == least).all()
    assert (float_sums(x, one * 0, 2.0**-127) == 0).all()  # a total
    assert np.signbit(float_sums(x * 0, one, -(2.0**-127))).sum() == 0  # plus what is 0


def test_an_exponent_is_too_small_once_the_result_is_rounded() -> None:
    """2^-126 less 2^-151 is halfway between two numbers of 24 bits, if the exponent had no bound, and goes to 2^-126."""
    x, y = np.zeros((2, 4)), np.zeros((4, 3))
    x[:, 0], y[0] = 2.0**-63, 2.0**-63
    for factor, expected in ((1, 2.0**-126), (1.5, 0)):
        x[:, 2], y[2] = -factor * 2.0**-75, 2.0**-76
        assert (float_sums(x, y) == expected).all()


def test_floats_that_are_not_finite_stay() -> None:
    x, y = np.zeros((2, 4)), np.ones((4, 3))
    x[0, 1] = np.inf
    y[1, 2] = 0
    with np.errstate(invalid="ignore"):
        found = float_sums(x, y)
    assert np.isinf(found[0, :2]).all() and np.isnan(found[0, 2]) and not found[1].any()


def test_the_text_of_products_of_floats_reads_back() -> None:
    text = print_program(program([float_product()], [HALVES, PAIRS], [], [TOTAL]))
    assert "multiply_float_tiles 0 = 1, 2\n" in text
    assert print_program(read_program(text)) == text


def test_rows_without_a_stride_are_the_same() -> None:
    line, out = Buffer("line", "int32", (4,), "argument"), Buffer("out", "int32", (3, 4), "result")
    b, memory = Builder("spread"), LoopMemory()
    b.shape_tiles(((3, 16),))
    b.load_tile(0, line, Affine(), 0)
    b.store_tile(0, out, Affine(), 4)
    memory.add(line, np.arange(4))
    run_function(b.finish(), memory)
    assert memory.array(out).tolist() == [[0, 1, 2, 3]] * 3


def test_reading_what_nothing_has_written_is_told() -> None:
    b = Builder("early")
    s = b.scratch(Buffer("s", "int8", (16,), "scratch"))
    b.shape_tiles(((2, 8),))
    b.load_tile(0, s, Affine(), 8)
    with pytest.raises(Problem, match="which nothing has written"):
        run_function(b.finish(), LoopMemory())


def test_the_text_reads_back() -> None:
    text = print_program(program([product()], [X, W], [C]))
    assert "shape_tiles [3, 20, 3, 8, 2, 20]" in text and "multiply_tiles 0 = 1, 2 signed" in text
    assert "load_tile 1 = @x[" in text and "store_tile @c[0] = 0 stride 5" in text
    assert print_program(read_program(text)) == text


@pytest.mark.parametrize("line", ["shape_tiles [3, 20, 3]", "multiply_tiles 0 = 1, 2", "load_tile 1 = @x[0]", "turn_tile 1"])
def test_text_that_is_no_statement_is_a_problem(line: str) -> None:
    text = print_program(program([product()], [X, W], [C]))
    with pytest.raises(Problem):
        read_program(text.replace("zero_tile 0", line))


def swapped(f: Function, kind: type, **fields: object) -> Function:
    """The function with fields of its statements of a kind replaced."""
    def block(statements: list) -> list:
        return [replace(s, body=block(s.body)) if hasattr(s, "body") else replace(s, **fields) if isinstance(s, kind) else s
                for s in statements]
    return replace(f, body=block(f.body))


FAULTS: dict[str, Callable[[], Function]] = {
    "tile 3 has no shape": lambda: swapped(product(), MultiplyTiles, x=3),
    "takes three of them": lambda: swapped(product(), MultiplyTiles, x=2),
    "make none of": lambda: swapped(product(), MultiplyTiles, x=2, y=1),
    "no tile has 17 rows": lambda: swapped(product(), ShapeTiles, shapes=((17, 20), (17, 8), (2, 20))),
    "no tile has 3 rows of 18 bytes": lambda: swapped(product(), ShapeTiles, shapes=((3, 18), (3, 8), (2, 20))),
    "9 tiles get shapes": lambda: swapped(product(), ShapeTiles, shapes=((3, 20),) * 9),
    "is accessed at": lambda: product(steps=4),
    "elements apart": lambda: swapped(product(), StoreTile, stride=-5),
    "is moved to or from": lambda: product(x=replace(X, dtype="float64")),
    "and 2 x 8 make none of": lambda: swapped(float_product(), MultiplyFloatTiles, y=1, x=2),
    "and has 15 elements": lambda: swapped(product(), StoreTile, stride=6),
    "and is an argument": lambda: product(c=replace(C, role="argument")),
    "tile 1 has no shape": lambda: swapped(product(), ShapeTiles, shapes=((3, 20),)),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_found(what: str) -> None:
    rejects(FAULTS[what](), what)


def test_tiles_keep_their_shapes_in_a_loop() -> None:
    b, i = Builder("inside"), Axis("i", 2)
    b.loop(i, lambda: b.shape_tiles(((1, 4),)))
    rejects(b.finish(), "inside of a block")


@pytest.mark.parametrize(("before", "allowed"), [(True, True), (False, False)])
def test_the_order_of_rows_is_known(before: bool, allowed: bool) -> None:
    """A tile that is stored where a later one is still to be loaded."""
    x, y = Buffer("x", "int8", (4, 8), "argument"), Buffer("y", "int8", (4, 8), "result")
    b, i = Builder("moved"), Axis("i", 2)
    b.shape_tiles(((2, 8),))

    def body() -> None:
        b.load_tile(0, x, Affine.of(i) * 16, 8)
        b.store_tile(0, y, Affine.of(i) * 16 if before else Affine.of(i) * -16 + 16, 8)

    b.loop(i, body)
    assert may_overwrite(b.finish(), x, y) == allowed
