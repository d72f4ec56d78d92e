"""Kernels of one signature are scheduled once: the others' functions are what a schedule of their own would give, and read
their own constants; where the data of constants decides, each has what its own data asks for."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import tosaic
from hypothesis import given, settings
from hypothesis import strategies as st
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Apply, Buffer, Cast, Const, Expr, Load, reduce
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.kernel import Compute, Kernel
from tosaic.lowering.loops.ir import Function, first_of, note_alike
from tosaic.lowering.loops.program import Program
from tosaic.lowering.loops.substitute_buffers import substituted
from tosaic.lowering.loops.text import print_function
from tosaic.lowering.loops.verify import verify, verify_program
from tosaic.lowering.native.llvm.emit import emit_functions
from tosaic.lowering.schedule.kernel_signature import signature_of
from tosaic.lowering.schedule.nest.index_arithmetic import computed_index
from tosaic.lowering.schedule.schedule import schedule, scheduled
from tosaic.lowering.schedule.schedule_cache import ScheduleCache, ScheduleRequest
from tosaic.lowering.target.target import Target

from .kernels import TARGETS

NAMES = ("512 bits, dot4", "512 bits", "256 bits, no masks", "128 bits", "scalar")


def product(name: str, weights: Array, x: str = "float32", zero_point: int = 0, m: int = 12) -> Kernel:
    """Rows of some argument times constant weights [k, n]."""
    (k, n), total = weights.shape, "float32" if x == "float32" else "int32"
    i, j, r = Axis("i", m), Axis("j", n), Axis("r", k)
    a = Load(Buffer(f"{name}.x", x, (m, k), "argument"), (Affine.of(i), Affine.of(r)))
    b = Load(Buffer(f"{name}.w", weights.dtype.name, weights.shape, "constant", weights), (Affine.of(r), Affine.of(j)))
    one, other = (e if e.dtype == total else Cast(e, total) for e in (a, b))
    less: Expr = Apply("sub", (one, Const(zero_point, total)), total) if zero_point else one
    value = reduce("add", (r,), Apply("mul", (less, other), total))
    return Kernel(Buffer(name, total, (m, n), "result"), (i, j), value)


def looked_up(name: str, table: Array, numbers: Array) -> Kernel:
    """Rows of a constant table by constant numbers."""
    i, j = Axis("i", len(numbers)), Axis("j", table.shape[1])
    number = Load(Buffer(f"{name}.numbers", "int32", numbers.shape, "constant", numbers), (Affine.of(i),))
    row = computed_index(number, len(table))
    return Kernel(Buffer(name, "float32", (len(numbers), table.shape[1]), "result"), (i, j),
                  Load(Buffer(f"{name}.table", "float32", table.shape, "argument"), (row, Affine.of(j))))


def constants(function: Function) -> list[bytes]:
    return [np.ascontiguousarray(b.data).tobytes() for b in function.params if b.data is not None]


def check_same(kernels: Sequence[Kernel], target: Target, shared: int | None = None) -> None:
    """What is scheduled together is what is scheduled alone; `shared` of it stand for another."""
    cache = ScheduleCache(scheduled)
    together = [cache.schedule(k, ScheduleRequest(target)).function for k in kernels]
    alone = [schedule(k, target) for k in kernels]
    assert [print_function(f) for f in together] == [print_function(f) for f in alone]
    assert [constants(f) for f in together] == [constants(f) for f in alone]
    assert [[b.name for b in f.scratch] for f in together] == [[b.name for b in f.scratch] for f in alone]
    scratch = [b for f in together for b in f.scratch]
    assert len(set(scratch)) == len(scratch), "scratch is shared"
    if shared is not None:
        assert sum(first_of(f) is not f for f in together) == shared


@pytest.mark.parametrize("name", NAMES)
def test_floats(name: str) -> None:
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((40, 33)).astype(np.float32) for _ in range(3)]
    check_same([product(f"k{i}", w) for i, w in enumerate(weights)], TARGETS[name], shared=2)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_whose_data_decides_how_they_are_stored(name: str) -> None:
    """Integers are packed in the narrowest type, so that only some of these can share code."""
    rng = np.random.default_rng(2)
    kernels = [product(f"k{i}", rng.integers(-most, most, (20, 18)).astype(np.int32), "int8", 3)
               for i, most in enumerate((100, 30_000, 90, 20_000, 1 << 20))]
    check_same(kernels, TARGETS[name])
    check_same([product(f"k{i}", rng.integers(-9, 9, (64, 32)).astype(np.int8), "int8", 5) for i in range(2)], TARGETS[name],
               shared=1)


def test_sums_that_start_from_nothing() -> None:
    """Without a zero point and a bias all sums start from 0, and code may go by that; with another zero point they do not."""
    rng = np.random.default_rng(3)
    kernels = [product(f"k{i}", rng.integers(-9, 9, (64, 32)).astype(np.int8), "int8", zero_point)
               for i, zero_point in enumerate((0, 5, 0, 5, 6))]
    for target in TARGETS.values():
        check_same(kernels, target, shared=2)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_that_say_whether_they_are_in_range(name: str) -> None:
    """Numbers of rows that are all in range need no clamp: the next kernel's may."""
    rng = np.random.default_rng(4)
    table = rng.standard_normal((9, 20)).astype(np.float32)
    numbers = [np.array(n, np.int32) for n in ([0, 8, 3], [1, 1, 2], [-1, 0, 9], [0, 100, 4])]
    check_same([looked_up(f"k{i}", table, n) for i, n in enumerate(numbers)], TARGETS[name])


def test_other_forms_share_nothing() -> None:
    weights = np.ones((40, 33), np.float32)
    one = product("one", weights)
    others = [product("two", weights, m=13), product("three", weights[:, :32]), product("four", weights.astype(np.float64))]
    others += [replace(one, value=Apply("mul", (one.value, Const(x, "float32")), "float32")) for x in (0.0, -0.0)]
    others += [replace(one, out=Buffer("five", "float32", (12, 33), "temporary"))]
    signatures = [signature_of(k, {})[0] for k in (one, *others)]
    assert len(set(signatures)) == len(signatures)


def test_a_ring_is_part_of_the_form() -> None:
    kernel = product("k", np.ones((4, 5), np.float32))
    x = next(b for b in signature_of(kernel, {})[1] if b.role == "argument")
    ring = Buffer(x.name, x.dtype, (3, 4), x.role)
    assert signature_of(kernel, {x: ring})[0] != signature_of(kernel, {})[0]


def test_emitted_once_and_verified() -> None:
    """Functions that are alike are one function in LLVM, and each is what a verified program has."""
    rng = np.random.default_rng(5)
    weights = [rng.standard_normal((16, 16)).astype(np.float32) for _ in range(4)]

    @tosaic.jit
    def chain(x: tosaic.Tensor) -> tosaic.Tensor:
        for w in weights:
            x = tosaic.ops.tanh(x @ w)
        return x

    lowered = chain.lower(np.zeros((8, 16), np.float32))
    functions = lowered.program.functions
    names = emit_functions(functions, lowered.target).names
    assert len(set(names)) <= len({first_of(f) for f in functions}) < len(functions)
    for function, proof in zip(functions, verify_program(lowered.program), strict=True):
        assert proof == verify(function)


def test_a_fault_in_buffers_that_only_seem_alike_is_found() -> None:
    """A function that says it is like another is looked at itself where its buffers are not."""
    cache = ScheduleCache(scheduled)
    rng = np.random.default_rng(6)
    kernels = [product(f"k{i}", rng.standard_normal((40, 33)).astype(np.float32)) for i in range(2)]
    first, second = (cache.schedule(k, ScheduleRequest(TARGETS["512 bits"])).function for k in kernels)
    small = {b: replace(b, shape=(b.size - 1,)) for b in second.params if b.role == "argument"}
    wrong = substituted(second, small)
    note_alike(wrong, first)
    inputs = tuple(b for f in (first, wrong) for b in f.params if b.role == "argument")
    outputs = tuple(k.out for k in kernels)
    program = Program("p", inputs, outputs, tuple(kernels), (first, wrong), (Compute(0), Compute(1)), (), ())
    with pytest.raises(tosaic.Problem, match="is accessed at"):
        verify_program(program)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from([1, 3, 16, 33]), st.sampled_from([1, 4, 17]), st.integers(0, 2), st.integers(0, 99)),
                min_size=2, max_size=5), st.sampled_from(sorted(TARGETS)))
def test_random_kernels(shapes: list[tuple[int, int, int, int]], name: str) -> None:
    kernels = []
    for number, (k, n, kind, seed) in enumerate(shapes):
        rng = np.random.default_rng(seed)
        w = rng.integers(-100, 100, (k, n))
        kernels.append(product(f"k{number}", w.astype(np.float32)) if kind == 0 else
                       product(f"k{number}", w.astype(np.int8), "int8", kind - 1))
    check_same(kernels, TARGETS[name])
