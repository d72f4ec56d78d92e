"""The interpreter of loops: what statements do, and what it refuses."""
from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tosaic.lowering.elements.affine import Affine, Axis, Range
from tosaic.lowering.elements.expression import PRIMITIVES, Buffer
from tosaic.lowering.graph.types import Array
from tosaic.lowering.kernels.interpret import VariableContents
from tosaic.lowering.kernels.kernel import Branch, CheckTrue, CheckWritten, Compute, Fault, Loop, MarkWritten, VariableUse
from tosaic.lowering.loops.builder import Builder
from tosaic.lowering.loops.interpret import LoopMemory, run_function
from tosaic.lowering.loops.interpret_steps import run_program
from tosaic.lowering.loops.ir import INDEX, Function, Literal, Type
from tosaic.lowering.loops.lane_operations import OPERATIONS, apply, converted
from tosaic.runtime.errors import Problem

from .functions import F32, argument, blurred, everything, guarded, program, result, temporary, unary


def run(f: Function, data: dict[Buffer, Array], rows: tuple[int, int] | None = None) -> LoopMemory:
    memory = LoopMemory()
    for b, x in data.items():
        memory.add(b, x)
    run_function(f, memory, rows)
    return memory


def rejects(f: Function, data: dict[Buffer, Array], message: str) -> None:
    with pytest.raises(Problem, match=message) as caught:
        run(f, data)
    assert caught.value.kind == "internal"


# ---- operations ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32", "uint8", "int64", "bool"])
@pytest.mark.parametrize("op", sorted(PRIMITIVES.keys() - {
    "select", "fma", "scaleb", "multiply_high", "multiply_high_nudged", "rounded_product", "rounded_shift"}))
def test_operations_mean_what_the_primitives_of_expressions_mean(op: str, dtype: str) -> None:
    """Two tables written independently; for values where both must agree, without zeros of two signs."""
    unary = op in ("rint", "floor", "ceil", "sqrt", "abs", "clz")
    if dtype == "bool" and op not in ("and", "or", "xor", "eq", "lt", "le"):
        return
    if op in (("and", "or", "xor", "shl", "ashr", "lshr", "clz") if dtype == "float32" else (
            "rint", "floor", "ceil", "sqrt")):
        return
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0 if dtype[0] in "ub" else -9, 2 if dtype == "bool" else 10, 100).astype(dtype) for _ in "xy")
    if dtype == "float32":
        x[:10], y[5:15] = np.nan, np.nan
        x[20:30], y[25:35] = np.inf, -np.inf
        x[x == 0], y[y == 0] = 2.5, -3.5
    if op in ("shl", "ashr", "lshr"):
        y = (y.astype(np.int64) % 8).astype(dtype)
    if op == "clz" and dtype in ("int64", "uint8"):
        return  # the primitive goes by way of float64, and is defined for int8 to int32
    with np.errstate(all="ignore"):
        ours, theirs = (table[op](*([x] if unary else [x, y])) for table in (OPERATIONS, PRIMITIVES))
    np.testing.assert_array_equal(ours, theirs)


def test_a_number_times_a_power_of_two_means_what_the_primitive_means() -> None:
    x, n = (a.reshape(-1).astype(np.float32) for a in np.meshgrid([1.0, 0.7, 1.99, -1.4, np.nan], np.arange(-200, 150)))
    with np.errstate(over="ignore"):
        ours, theirs = (table["scaleb"](x, n) for table in (OPERATIONS, PRIMITIVES))
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ours[(n == -3) & (x == 1)], np.float32(0.125))


@pytest.mark.parametrize("op", ["multiply_high", "multiply_high_nudged"])
def test_upper_halves_mean_what_the_primitives_mean(op: str) -> None:
    rng, ends = np.random.default_rng(0), [-1 << 31, (1 << 31) - 1, 0, -1]
    x, y = (np.array([*ends, *rng.integers(-1 << 31, 1 << 31, 200)], np.int32) for _ in "xy")
    z = rng.integers(-1 << 61, 1 << 61, len(x))
    nudge = (1 << 31) * (x < 0) * (op == "multiply_high_nudged")
    expected = [int(a) * int(b) + int(c) - int(n) >> 32 for a, b, c, n in zip(x, y, z, nudge)]
    for table in (OPERATIONS, PRIMITIVES):
        np.testing.assert_array_equal(table[op](x, y, z), expected)


def test_rounded_products_and_shifts_mean_what_the_primitives_mean() -> None:
    rng, ends = np.random.default_rng(0), [-1 << 31, (1 << 31) - 1, 0, -1, 1 << 30]
    x = np.array([*ends, *rng.integers(-1 << 31, 1 << 31, 200)], np.int32)
    y = np.array([(1 << 31) - 1, (1 << 31) - 1, 5, 1 << 30, 1, *rng.integers(0, 1 << 31, 200)], np.int32)
    n = np.resize(np.arange(-31, 1), len(x)).astype(np.int32)
    products = [math.floor(int(a) * int(b) / 2**31 + 0.5) if abs(int(a) * int(b)) < 1 << 52 else
                int(a) * int(b) + (1 << 30) >> 31 for a, b in zip(x, y)]
    shifted = [int(a) + (1 << -k >> 1) >> -k for a, k in zip(x, n.tolist())]
    for table in (OPERATIONS, PRIMITIVES):
        np.testing.assert_array_equal(table["rounded_product"](x, y), products)
        np.testing.assert_array_equal(table["rounded_shift"](x, n), shifted)


def test_a_dot_product_adds_all_lanes_and_wraps_around() -> None:
    x, y = np.array([-128, 127, 3], np.int8), np.array([-128, -128, 5], np.int8)
    for start in (0, 7, (1 << 31) - 1):
        total = start + 128 * 128 - 127 * 128 + 15
        assert apply("dot", 1, [np.array([start], np.int32), x, y])[0] == (total + (1 << 31)) % (1 << 32) - (1 << 31)


def test_the_interpreter_knows_every_primitive() -> None:
    assert OPERATIONS.keys() == PRIMITIVES.keys()


def test_minimum_and_its_kin_treat_nan_each_in_its_way() -> None:
    nan = math.nan
    x, y = np.array([nan, 1, nan, 2], np.float32), np.array([1, nan, nan, 3], np.float32)
    np.testing.assert_array_equal(apply("min", 4, [x, y]), [nan, 1, nan, 2])
    np.testing.assert_array_equal(apply("minimum", 4, [x, y]), [nan, nan, nan, 2])
    np.testing.assert_array_equal(apply("minnum", 4, [x, y]), [1, 1, nan, 2])
    np.testing.assert_array_equal(apply("maxnum", 4, [x, y]), [1, 1, nan, 3])


def test_fma_of_float32_is_rounded_once() -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(2000).astype(np.float32) for _ in "xy")
    near = -(x.astype(np.float64) * y) * (1 + rng.integers(-4, 5, 2000) * 2.0 ** -26)
    z = np.where(np.arange(2000) % 2 == 0, near, rng.standard_normal(2000)).astype(np.float32)
    z[::5] *= np.float32(2) ** -30
    z[1::5] *= np.float32(2) ** 30
    for a, b, c, ours in zip(x, y, z, apply("fma", 2000, [x, y, z])):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        candidates = [ours, np.nextafter(ours, np.float32(-np.inf)), np.nextafter(ours, np.float32(np.inf))]
        away = [abs(Fraction(float(v)) - exact) for v in candidates]
        assert away[0] == min(away) and (away.count(away[0]) == 1 or ours.view(np.int32) % 2 == 0)


def test_integer_division_is_toward_zero_and_never_fails() -> None:
    x, y = np.array([7, -7, 7, -7, 5, -5, -128], np.int8), np.array([2, 2, -2, -2, 0, 0, -1], np.int8)
    assert apply("div", 7, [x, y]).tolist() == [3, -3, -3, 3, 5, -5, -128]


def test_reductions_combine_halves() -> None:
    x = np.array([1e8, 1, -1e8, 1], np.float32)
    assert apply("reduce_add", 1, [x]).tolist() == [2.0]
    assert apply("reduce_add", 1, [x[:3]]).tolist() == [0.0]
    assert apply("reduce_max", 1, [np.array([1, 9, 4, 2, 3, 5])]).tolist() == [9]


def test_signed_dot4_takes_signed_bytes() -> None:
    top, x, y = np.array([(1 << 31) - 1], np.int32), np.full(4, -128, np.int8), np.full(4, -128, np.int8)
    assert apply("dot4_signed", 1, [top, x, y])[0] == -(1 << 31) + 4 * 128 * 128 - 1
    assert apply("dot4_signed", 1, [top * 0, x.view(np.uint8), y])[0] == 4 * 128 * 128


def test_pairs_are_products_of_two_rows_and_two_columns() -> None:
    x, y = np.arange(16, dtype=np.int8), np.full(16, -128, np.int8)
    found = apply("dot8", 4, [np.array([0, 1, 2, 3], np.int32), x, y])
    assert found.tolist() == [-128 * 28, 1 - 128 * 28, 2 - 128 * 92, 3 - 128 * 92]


def test_dot4_wraps_around() -> None:
    top, x, y = np.array([(1 << 31) - 1], np.int32), np.full(4, 255, np.uint8), np.full(4, 127, np.int8)
    assert apply("dot4", 1, [top, x, y])[0] == -(1 << 31) + 4 * 255 * 127 - 1


def test_dot2_adds_pairs_and_wraps_around() -> None:
    top = np.array([(1 << 31) - 1, 5], np.int32)
    x, y = np.array([-255, 255, -7, 3], np.int16), np.array([255, 2, 4, -9], np.int16)
    assert apply("dot2", 2, [top, x, y]).tolist() == [(1 << 31) - 1 - 255 * 253, 5 - 28 - 27]
    least = np.full(4, -(1 << 15), np.int16)
    assert apply("dot2", 2, [top, least, least]).tolist() == [-1, 5 - (1 << 31)]


def test_packing_clips_and_goes_by_groups_of_sixteen_bytes() -> None:
    x, y = np.array([1, -2, 40000, 4, 5, 6, 7, 8], np.int32), np.array([9, 10, 11, -40000, 13, 14, 15, 16], np.int32)
    assert apply("pack", 16, [x, y]).tolist() == [1, -2, 32767, 4, 9, 10, 11, -32768, 5, 6, 7, 8, 13, 14, 15, 16]


def test_integers_become_half_floats_by_way_of_float32() -> None:
    import ml_dtypes
    x = np.array([(1 << 24) + (1 << 16) + 1], np.int32)
    assert converted(x, np.dtype(ml_dtypes.bfloat16)) == np.float32(x[0]).astype(ml_dtypes.bfloat16)


# ---- functions -------------------------------------------------------------------------------------------------------
def test_bounds_follow_the_outer_index() -> None:
    x, y = argument("x", 9), result("y", 9)
    data = np.arange(9, dtype=np.float32)
    memory = run(blurred(x, y, 9), {x: data})
    np.testing.assert_array_equal(memory.array(y), np.convolve(data, [1, 1, 1], "same"))


def test_a_function_of_every_kind_of_statement_runs() -> None:
    f = everything()
    x, m, n = (next(b for b in f.params if b.name == name) for name in "xmn")
    y = next(b for b in f.params if b.name == "y")
    memory = run(f, {x: np.arange(40, dtype="f4"), m: np.ones(40, bool), n: np.array([-5, 3, 90, 7])}, (2, 4))
    assert memory.written[y].tolist() == [False] * 2 + [True] * 2 + [False] * 36
    np.testing.assert_array_equal(memory.array(y)[2:4], np.array([-5e-31, -np.inf], np.float32))


def test_an_access_out_of_range_is_an_error_that_says_where() -> None:
    i = Axis("i", 20)
    x, y = argument("x", 9), result("y", 20)
    data: dict[Buffer, Array] = {x: np.ones(9, np.float32)}
    late = guarded(x, y, 20, Range(Affine.of(i), 0, 10))
    rejects(late, data, r"guarded: reads element 9 of x: float32\[9\], which has 9")
    rejects(guarded(x, y, 20, Range(Affine.of(i) - 1, -1, 9)), data, "reads element -1")
    rejects(blurred(x, y, 20), data, "reads element 9")
    b = Builder("writer")
    b.store(result("y", 4), Affine.of(2), Literal(0.0, Type("float32", 4)))
    rejects(b.finish(), {}, "writer: writes element 4 of y")


def test_only_lanes_that_are_read_must_be_in_range() -> None:
    b, x, y = Builder("lanes"), argument("x", 3), result("y", 12)
    b.store(y, Affine(), b.load(x, Affine(), 4, active=3))
    at = b.op("lanes", Literal(1, INDEX), type=Type("int64", 4))
    inside = b.op("lt", at, Literal(3, at.type))
    b.store(y, Affine.of(4), b.load(x, Affine.of(1), 4, mask=inside))
    b.store(y, Affine.of(8), b.gather(x, at, mask=inside))
    memory = run(b.finish(), {x: np.array([5, 6, 7], np.float32)})
    assert memory.array(y).tolist() == [5, 6, 7, 0, 6, 7, 0, 0, 6, 7, 0, 0]


def test_what_nothing_has_written_is_not_read() -> None:
    b, s, y = Builder("reader"), Buffer("s", "float32", (4,), "scratch"), result("y", 4)
    b.scratch(s)
    b.store(s, Affine(), Literal(1.0, Type("float32", 4)), active=3)
    b.store(y, Affine(), b.load(s, Affine(), 4))
    rejects(b.finish(), {}, "reads element 3 of s: .* which nothing has written")


def test_scratch_does_not_outlive_a_call() -> None:
    b, s = Builder("keeper"), Buffer("s", "float32", (1,), "scratch")
    y, c = result("y", 1), argument("c", 1, dtype="bool")
    b.scratch(s)
    b.when(b.load(c, Affine()), lambda: b.store(s, Affine(), Literal(1.0, F32)))
    b.store(y, Affine(), b.load(s, Affine()))
    f = b.finish()
    memory = run(f, {c: np.array([True])})
    memory.add(c, np.array([False]))
    with pytest.raises(Problem, match="nothing has written"):
        run_function(f, memory)


def test_memory_that_is_not_ours_is_not_written() -> None:
    b, x = Builder("writer"), argument("x", 4)
    b.store(x, Affine(), Literal(0.0, Type("float32", 4)))
    rejects(b.finish(), {x: np.zeros(4, np.float32)}, "writes x, which is read only")


def test_arguments_are_not_changed() -> None:
    data = np.arange(4, dtype=np.float32)
    memory = LoopMemory()
    memory.add(argument("x", 4), data)
    next(iter(memory.arrays.values()))[:] = 0
    assert data.tolist() == [0, 1, 2, 3]


def test_rows_are_needed_where_a_function_takes_them() -> None:
    f = unary(result("y", 8), argument("x", 8), by_rows=True)
    rejects(f, {}, "needs the rows")


# ---- programs --------------------------------------------------------------------------------------------------------
X, T, Y = argument("x", 8), temporary("t", 8), result("y", 8)
DATA = np.linspace(-4, 9, 8, dtype=np.float32)


def test_steps_run_in_order() -> None:
    p = program([unary(T, X), unary(Y, T, "sqrt", by_rows=True)], [X], [Y],
                [Compute(0), Compute(1, (4, 8)), Compute(1, (0, 4))])
    np.testing.assert_array_equal(run_program(p, [DATA])[0], np.sqrt(np.abs(DATA)))
    whole = program([unary(T, X), unary(Y, T, "sqrt", by_rows=True)], [X], [Y])
    np.testing.assert_array_equal(run_program(whole, [DATA])[0], np.sqrt(np.abs(DATA)))


def test_rows_that_are_not_computed_are_not_read() -> None:
    p = program([unary(T, X, by_rows=True), unary(Y, T)], [X], [Y], [Compute(0, (0, 7)), Compute(1)])
    with pytest.raises(Problem, match="reads element 7 of t"):
        run_program(p, [DATA])


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_runs_one_side(flag: bool) -> None:
    c = argument("c", dtype="bool")
    p = program([unary(Y, X), unary(Y, X, "rint")], [X, c], [Y], [Branch(c, (Compute(0),), (Compute(1),))])
    np.testing.assert_array_equal(run_program(p, [DATA, np.array(flag)])[0], np.abs(DATA) if flag else np.rint(DATA))


def test_a_loop_runs_while_its_condition_holds() -> None:
    """y counts to 5; the condition is computed from it each time."""
    y, c = result("y", 1), temporary("c", 1, dtype="bool")
    start, count, test = Builder("start"), Builder("count"), Builder("test")
    start.store(y, Affine(), Literal(0.0, F32))
    count.store(y, Affine(), count.op("add", count.load(y, Affine()), Literal(1.0, F32)))
    test.store(c, Affine(), test.op("lt", test.load(y, Affine()), Literal(5.0, F32)))
    p = program([start.finish(), count.finish(), test.finish()], [], [y], [
        Compute(0), Loop((Compute(2),), c, (Compute(1),))])
    assert run_program(p, [])[0].tolist() == [5.0]


def test_variables_are_kept_between_runs_and_checked() -> None:
    v = Buffer("state", "float32", (8,), "variable")
    keep, show = unary(v, X), unary(Y, v)
    p = program([keep, show], [X], [Y], [Compute(0), MarkWritten(v), Compute(1)])
    p = type(p)(p.name, p.inputs, p.outputs, p.kernels, p.functions, p.steps, (VariableUse(v, "f32", None),))
    read = type(p)(p.name, (), p.outputs, p.kernels, p.functions, (CheckWritten(v, 0), Compute(1)), p.variables, (
        Fault("state is read before it is written"),))
    state = VariableContents()
    with pytest.raises(Problem, match="read before it is written"):
        run_program(read, [], state)
    run_program(p, [DATA], state)
    np.testing.assert_array_equal(run_program(read, [], state)[0], np.abs(DATA))


def test_an_initial_value_counts_as_written() -> None:
    v = Buffer("state", "float32", (8,), "variable")
    initial = Buffer("initial", "float32", (8,), "constant", DATA)
    p = program([unary(Y, v)], [], [Y], [CheckWritten(v, 0), Compute(0)])
    p = type(p)(p.name, p.inputs, p.outputs, p.kernels, p.functions, p.steps, (VariableUse(v, "f32", initial),), (
        Fault("state is read before it is written"),))
    np.testing.assert_array_equal(run_program(p, [])[0], np.abs(DATA))


def test_a_run_ends_at_the_first_check_that_fails() -> None:
    first, second = argument("c", dtype="bool"), argument("d", dtype="bool")
    p = program([unary(Y, X)], [X, first, second], [Y], [CheckTrue(first, 1), Compute(0), CheckTrue(second, 0)])
    p = replace(p, faults=(Fault("late", kind="check"), Fault("early", help="do", kind="check")))
    np.testing.assert_array_equal(run_program(p, [DATA, np.array(True), np.array(True)])[0], np.abs(DATA))
    for values, message in (((False, False), "early"), ((True, False), "late")):
        with pytest.raises(Problem, match=message) as caught:
            run_program(p, [DATA, *map(np.array, values)])
        assert caught.value.kind == "check"
