"""FFT2D and RFFT2D: type rules, the reference against the specification's sums, what is compiled against the reference."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.dialects.tosa.fourier import FFT2D, RFFT2D
from tosaic.lowering.fuse.fuse import fuse
from tosaic.lowering.graph.graph import Module
from tosaic.lowering.graph.types import F16, F32, Array, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.kernels.interpret import run as interpret_kernels
from tosaic.lowering.loops.interpret_steps import run_program as interpret_loops
from tosaic.lowering.loops.verify import verify_program
from tosaic.lowering.pipeline import rewritten
from tosaic.lowering.rewrite.fourier import expand_transforms
from tosaic.lowering.schedule.schedule import describe, lower
from tosaic.lowering.target.presets import host
from tosaic.lowering.text.printer import print_module
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import interpret

from ..fuse.graphs import Graph
from .harness import given, unknown

Parts = tuple[Array, Array]
SHAPES = [(1, 1, 1), (2, 1, 2), (1, 2, 1), (2, 2, 2), (3, 4, 8), (1, 32, 32), (2, 1, 64), (1, 64, 1), (1, 16, 512),
          (1, 256, 64), (1, 4, 4096), (1, 8192, 2)]


def angles(height: int, width: int) -> Array:
    """2 pi (iy*oy/H + ix*ox/W) at [iy, ix, oy, ox]."""
    y, x = np.arange(height), np.arange(width)
    turns = (np.outer(y, y) % height / height)[:, None, :, None] + (np.outer(x, x) % width / width)[None, :, None, :]
    return np.asarray(2 * np.pi * turns)


def sums(real: Array, imaginary: Array, inverse: bool = False) -> Parts:
    """The specification's sums, term by term."""
    a = angles(*real.shape[1:]) * (-1 if inverse else 1)
    re, im = (x.astype(np.float64)[:, :, :, None, None] for x in (real, imaginary))
    with np.errstate(invalid="ignore"):
        return ((re * np.cos(a) + im * np.sin(a)).sum((1, 2)), (im * np.cos(a) - re * np.sin(a)).sum((1, 2)))


def real_sums(real: Array) -> Parts:
    """RFFT2D's sums: sines are left out where both angles are whole half turns."""
    height, width = real.shape[1:]
    y, x = np.arange(height), np.arange(width)
    a = angles(height, width)[..., :width // 2 + 1]
    turned = ((2 * np.outer(y, y) % height > 0)[:, None, :, None]
              | (2 * np.outer(x, x) % width > 0)[None, :, None, :])[..., :width // 2 + 1]
    values = real.astype(np.float64)[:, :, :, None, None]
    with np.errstate(invalid="ignore"):
        return (values * np.cos(a)).sum((1, 2)), np.where(turned, -values * np.sin(a), 0).sum((1, 2))


def random(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def special(shape: tuple[int, ...], count: int, values: tuple[float, ...], seed: int) -> Array:
    """Random numbers with a few infinities or NaN among them."""
    x = random(shape, seed)
    rng = np.random.default_rng(seed + 1)
    x.reshape(-1)[rng.choice(x.size, count, replace=False)] = rng.choice(values, count)
    return x


def assert_near(found: Parts, expected: Parts, tolerance: float) -> None:
    """Equal where not finite, and near relative to the largest value."""
    for a, b in zip(found, expected):
        assert a.shape == b.shape and np.array_equal(np.isnan(a), np.isnan(b))
        wild = ~np.isfinite(b)
        assert np.array_equal(a[wild], b[wild], equal_nan=True)
        largest = np.abs(b[~wild]).max(initial=1e-30)
        assert np.abs(a[~wild] - b[~wild]).max(initial=0) <= tolerance * largest


# ---- types -------------------------------------------------------------------------------------------------------
def test_both_results_of_fft2d_have_the_shape_of_the_inputs() -> None:
    x = given(random((2, 4, 8)))
    assert FFT2D(inverse=False).result_types([x, x]) == (TensorType((2, 4, 8), F32),) * 2


def test_rfft2d_gives_half_the_columns_and_one() -> None:
    assert RFFT2D().result_types([given(random((2, 4, 8)))]) == (TensorType((2, 4, 5), F32),) * 2
    assert RFFT2D().result_types([given(random((1, 4, 1)))]) == (TensorType((1, 4, 1), F32),) * 2


def test_extents_may_be_unknown() -> None:
    x, y = unknown(None, 4, None, element=F32), unknown(2, None, None, element=F32)
    assert FFT2D(inverse=False).result_types([x, y])[0] == TensorType((2, 4, None), F32)
    assert RFFT2D().result_types([x])[0] == TensorType((None, 4, None), F32)


@pytest.mark.parametrize("shape, message", [((1, 3, 4), "height"), ((1, 4, 12), "width"), ((4, 8), "rank 3"),
                                            ((1, 4, 8, 1), "rank 3")])
def test_extents_that_are_no_powers_of_two_and_other_ranks_are_refused(shape: tuple[int, ...], message: str) -> None:
    x = given(random(shape))
    with pytest.raises(Problem, match=message):
        FFT2D(inverse=True).result_types([x, x])
    with pytest.raises(Problem, match=message):
        RFFT2D().result_types([x])


@pytest.mark.parametrize("other", [(2, 4, 8), (1, 8, 8), (1, 4, 4)])
def test_parts_of_different_shapes_are_refused(other: tuple[int, ...]) -> None:
    with pytest.raises(Problem, match="imaginary part"):
        FFT2D(inverse=False).result_types([given(random((1, 4, 8))), given(random(other))])


def test_other_element_types_are_refused() -> None:
    half = unknown(1, 4, 8, element=F16)
    with pytest.raises(Problem, match="may not be f16"):
        RFFT2D().result_types([half])
    with pytest.raises(Problem, match="may not be f16"):
        FFT2D(inverse=False).result_types([given(random((1, 4, 8))), half])


@pytest.mark.parametrize("line", [
    "%a, %b = tosa.fft2d %x {inverse = false} : (tensor<1x4x2xf32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xf32>)",
    "%a, %b = tosa.fft2d %x, %x, %x {inverse = false} : (tensor<1x4x2xf32>, tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> "
    "(tensor<1x4x2xf32>, tensor<1x4x2xf32>)",
    "%a = tosa.fft2d %x, %x {inverse = false} : (tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> tensor<1x4x2xf32>",
    "%a, %b = tosa.fft2d %x, %x {inverse = false} : (tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> "
    "(tensor<1x4x2xf32>, tensor<1x4x4xf32>)",
    "%a, %b = tosa.fft2d %x, %x : (tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xf32>)",
    "%a, %b = tosa.rfft2d %x : (tensor<1x4x2xf32>) -> (tensor<1x4x2xf32>, tensor<1x4x1xf32>)",
    "%a = tosa.rfft2d %x : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32>",
])
def test_wrong_operands_results_and_attributes_are_problems(line: str) -> None:
    with pytest.raises(Problem) as caught:
        verify(read_module(f"func.func @main(%x: tensor<1x4x2xf32>) {{\n  {line}\n  return }}"))
    assert not caught.value.unsupported and caught.value.position


# ---- reference ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 1, 2), (1, 2, 1), (2, 4, 8), (1, 16, 8)])
@pytest.mark.parametrize("inverse", [False, True])
def test_the_reference_is_the_specifications_sum(shape: tuple[int, ...], inverse: bool) -> None:
    x, y = random(shape).astype(np.float64), random(shape, 1).astype(np.float64)
    assert_near(FFT2D(inverse=inverse).reference(x, y), sums(x, y, inverse), 1e-14)
    assert_near(RFFT2D().reference(x), real_sums(x), 1e-14)


def test_the_inverse_does_not_divide() -> None:
    x, y = random((2, 8, 16)).astype(np.float64), random((2, 8, 16), 1).astype(np.float64)
    back = FFT2D(inverse=True).reference(*FFT2D(inverse=False).reference(x, y))
    assert_near(back, (128 * x, 128 * y), 1e-14)


@pytest.mark.parametrize("values", [(np.inf,), (np.inf, -np.inf), (np.nan,), (np.inf, -np.inf, np.nan)])
@pytest.mark.parametrize("count", [1, 3, 64])
def test_the_reference_spreads_infinities_and_nan_as_the_sums_do(values: tuple[float, ...], count: int) -> None:
    x, y = special((1, 8, 8), count, values, 3), random((1, 8, 8), 4)
    assert_near(FFT2D(inverse=False).reference(x, y), sums(x, y), 1e-6)
    assert_near(FFT2D(inverse=True).reference(y, x), sums(y, x, True), 1e-6)
    assert_near(RFFT2D().reference(x), real_sums(x), 1e-6)


# ---- compiled ----------------------------------------------------------------------------------------------------
def fft(shape: tuple[int, ...], inverse: bool = False) -> Module:
    t = str(TensorType(shape, F32))
    return read_module(f"func.func @main(%x: {t}, %y: {t}) -> ({t}, {t}) {{\n"
                       f"  %a, %b = tosa.fft2d %x, %y {{inverse = {str(inverse).lower()}}} : ({t}, {t}) -> ({t}, {t})\n"
                       f"  return %a, %b : {t}, {t} }}")


def rfft(shape: tuple[int, ...]) -> Module:
    t, half = str(TensorType(shape, F32)), str(TensorType((*shape[:2], shape[2] // 2 + 1), F32))
    return read_module(f"func.func @main(%x: {t}) -> ({half}, {half}) {{\n"
                       f"  %a, %b = tosa.rfft2d %x : ({t}) -> ({half}, {half})\n  return %a, %b : {half}, {half} }}")


def compiled(module: Module, *inputs: Array) -> Parts:
    verify(module)
    a, b = Traced(module, "main").compile()(*inputs)
    return a, b


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_compiled_transforms_are_near_the_reference(shape: tuple[int, ...]) -> None:
    """Within a tenth of the error bound of a sum of as many rounded products."""
    x, y = random(shape), random(shape, 1)
    precise = x.astype(np.float64), y.astype(np.float64)
    for inverse in (False, True):
        assert_near(compiled(fft(shape, inverse), x, y), FFT2D(inverse=inverse).reference(*precise), 1e-6)
    assert_near(compiled(rfft(shape), x), RFFT2D().reference(precise[0]), 1e-6)


@pytest.mark.parametrize("shape", [(1, 4, 8), (1, 64, 128)])
def test_one_impulse_is_exact_where_angles_are_quarter_turns(shape: tuple[int, ...]) -> None:
    x, zero = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    x[0, shape[1] // 4, shape[2] // 2] = 3
    a, b = compiled(fft(shape), x, zero)
    turns = np.arange(shape[1])[:, None] + 2 * np.arange(shape[2])[None]
    assert np.array_equal(a[0], 3 * np.array([1, 0, -1, 0])[turns % 4])
    assert np.array_equal(b[0], 3 * np.array([0, -1, 0, 1])[turns % 4])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(1, 16, 8), (1, 8, 64), (1, 64, 4)])
@pytest.mark.parametrize("values", [(np.inf,), (np.inf, -np.inf), (np.nan,)])
@pytest.mark.parametrize("count", [1, 2, 20])
def test_what_is_nan_in_the_sums_is_nan_in_compiled_transforms(shape: tuple[int, ...], values: tuple[float, ...],
                                                               count: int) -> None:
    """Sums that are infinite become infinite with the same sign, or NaN."""
    x, y = special(shape, count, values, 5), special(shape, count, values, 7)
    for found, expected in ((compiled(fft(shape), x, y), FFT2D(inverse=False).reference(x, y)),
                            (compiled(rfft(shape), x), RFFT2D().reference(x))):
        for a, b in zip(found, expected):
            assert np.isnan(a[np.isnan(b)]).all()
            wild = np.isinf(b)
            assert (np.isnan(a[wild]) | (a[wild] == b[wild])).all()


def test_imaginary_parts_that_are_left_out_are_zero_even_for_nan() -> None:
    for shape in ((1, 8, 16), (1, 64, 64), (1, 1, 4)):
        imaginary = compiled(rfft(shape), np.full(shape, np.nan, np.float32))[1]
        expected = np.full(imaginary.shape, np.nan, np.float32)
        for y in {0, shape[1] // 2}:
            for x in {0, shape[2] // 2}:
                expected[0, y, x] = 0
        assert np.array_equal(imaginary, expected, equal_nan=True)


def test_a_transform_of_a_batch_does_not_see_the_others() -> None:
    x, y = random((3, 8, 64)), random((3, 8, 64), 1)
    x[1] = np.nan
    a, b = compiled(fft((3, 8, 64)), x, y)
    assert np.isnan(a[1]).all() and np.isnan(b[1]).all()
    kept = [0, 2]
    assert_near((a[kept], b[kept]), FFT2D(inverse=False).reference(x[kept], y[kept]), 1e-6)


@pytest.mark.parametrize("module", [fft((1, 64, 4096)), rfft((1, 8192, 2)), rfft((2, 16, 512))], ids=["fft", "tall", "rfft"])
def test_a_transform_becomes_one_operator_and_slices_of_its_result(module: Module) -> None:
    found = rewritten(module)
    verify(found)
    names = [o.op.name for o in found.function().body.operations]
    assert names.count("tosaic.fourier2d") == 1 and not {"tosa.fft2d", "tosa.rfft2d", "tosa.matmul"} & set(names)


@pytest.mark.parametrize("shape, lanes", [((1, 1, 1), 1), ((2, 4, 2), 4), ((1, 2, 16), 1), ((1, 2, 16), 4), ((1, 2, 16), 16),
                                          ((1, 64, 2), 4), ((1, 64, 2), 16), ((1, 8, 32), 16)], ids=str)
def test_the_loops_of_each_length_of_vector_are_near_the_reference(shape: tuple[int, ...], lanes: int) -> None:
    """Short rows, rows of one vector, products and steps; run by the interpreter of loops."""
    target = dataclasses.replace(host(), vector_bytes=4 * lanes if lanes > 1 else 1, has_masked=lanes == 16)
    x, y = random(shape), random(shape, 1)
    for module, op, inputs in ((fft(shape), FFT2D(inverse=False), (x, y)), (fft(shape, True), FFT2D(inverse=True), (x, y)),
                               (rfft(shape), RFFT2D(), (x,))):
        found = rewritten(module)
        kernels = fuse(found, found.function())
        program = lower(kernels, target)
        verify_program(program)
        assert any("Fourier" in describe(k, target) for k in kernels.kernels)
        precise = [v.astype(np.float64) for v in inputs]
        real, imaginary = interpret_loops(program, inputs)
        assert_near((real, imaginary), op.reference(*precise), 1e-6)


def test_the_sum_of_an_element_is_the_transform() -> None:
    """What a kernel's expression says, without the fast way."""
    x, y = random((2, 4, 8)), random((2, 4, 8), 1)
    module = rewritten(fft((2, 4, 8), True))
    found = interpret_kernels(fuse(module, module.function()), (x, y))
    precise = x.astype(np.float64), y.astype(np.float64)
    assert_near((found[0], found[1]), FFT2D(inverse=True).reference(*precise), 1e-6)


def test_a_transform_of_padded_and_of_sliced_numbers_stores_what_it_must() -> None:
    import tosaic

    @tosaic.jit
    def transformed(x: tosaic.ops.Tensor) -> object:  # type: ignore[name-defined]
        return tosaic.tosa.rfft2d(tosaic.ops.abs(x)[:, 1:5, :8])

    x = random((1, 6, 9))
    assert_near(tuple(transformed(x)), RFFT2D().reference(np.abs(x.astype(np.float64))[:, 1:5, :8]), 1e-6)


def test_constants_grow_no_faster_than_the_input() -> None:
    kernels = Traced(fft((1, 256, 256)), "main").lower().kernels
    program = lower(kernels, host())
    constants = {b for f in program.functions for b in f.params if b.data is not None}
    assert sum(b.nbytes for b in constants) <= 1 << 14


def test_a_transform_of_which_one_part_is_used_computes_that_part_alone() -> None:
    text = print_module(fft((1, 8, 8))).replace("-> (tensor<1x8x8xf32>, tensor<1x8x8xf32>) {", "-> tensor<1x8x8xf32> {")
    module = read_module(text.replace("return %a, %b : tensor<1x8x8xf32>, tensor<1x8x8xf32>", "return %b : tensor<1x8x8xf32>"))
    x, y = random((1, 8, 8)), random((1, 8, 8), 1)
    lowered = Traced(module, "main").lower()
    assert len(lowered.kernels.kernels) < len(Traced(fft((1, 8, 8)), "main").lower().kernels.kernels)
    assert_near((lowered.compile()(x, y),) * 2, (FFT2D(inverse=False).reference(x, y)[1],) * 2, 1e-6)


def test_a_transform_inside_a_branch_is_compiled() -> None:
    t = "tensor<1x4x64xf32>"
    module = read_module(f"""func.func @main(%c: tensor<i1>, %x: {t}, %y: {t}) -> ({t}, {t}) {{
      %r:2 = tosa.cond_if %c : tensor<i1> -> ({t}, {t}) {{
        %a, %b = tosa.fft2d %x, %y {{inverse = true}} : ({t}, {t}) -> ({t}, {t})
        tosa.yield %a, %b : {t}, {t}
      }} else {{
        tosa.yield %y, %x : {t}, {t}
      }}
      return %r#0, %r#1 : {t}, {t} }}""")
    x, y = random((1, 4, 64)), random((1, 4, 64), 1)
    run = Traced(module, "main").compile()
    for condition, expected in ((True, FFT2D(inverse=True).reference(x, y)), (False, (y, x))):
        flag = np.array(condition)
        assert_near(run(flag, x, y), expected, 1e-6)
        assert_near(interpret(module, "main", (flag, x, y)), expected, 1e-7)  # type: ignore[arg-type]


def test_a_module_without_transforms_stays_the_same_object() -> None:
    module = read_module("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    assert expand_transforms(module) is module


def test_a_transform_of_unknown_extents_is_refused_as_unsupported() -> None:
    t = "tensor<?x4x8xf32>"
    module = read_module(f"func.func @main(%x: {t}, %y: {t}) -> ({t}, {t}) {{\n  %a, %b = tosa.fft2d %x, %y "
                         f"{{inverse = false}} : ({t}, {t}) -> ({t}, {t})\n  return %a, %b : {t}, {t} }}")
    with pytest.raises(Problem) as caught:
        Traced(module, "main").compile()
    assert caught.value.unsupported


# ---- text and Python ---------------------------------------------------------------------------------------------
T = "(tensor<1x4x8xf32>, tensor<1x4x8xf32>) -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>)"


@pytest.mark.parametrize("line, inverse, local_bound", [
    (f"tosa.fft2d %x, %y {{inverse = false, local_bound = true}} : {T}", False, True),
    (f"tosa.fft2d %x, %y {{inverse = true}} : {T}", True, False),
    (f"tosa.fft2d %x, %y inverse(true) local_bound(true) : {T}", True, True),
    (f"tosa.fft2d %x, %y inverse(false) : {T}", False, False),
    (f'"tosa.fft2d"(%x, %y) <{{inverse = true, local_bound = false}}> : {T}', True, False),
    (f'"tosa.fft2d"(%x, %y) {{inverse = false}} : {T}', False, False),
])
def test_every_spelling_is_read_and_what_is_printed_reads_back(line: str, inverse: bool, local_bound: bool) -> None:
    module = read_module(f"func.func @main(%x: tensor<1x4x8xf32>, %y: tensor<1x4x8xf32>) {{\n  %a, %b = {line}\n  return }}")
    for found in (module, read_module(print_module(module))):
        verify(found)
        op = found.function().body.operations[0].op
        assert isinstance(op, FFT2D) and (op.inverse, op.local_bound) == (inverse, local_bound)


def test_python_functions_may_transform() -> None:
    import tosaic

    @tosaic.jit
    def power(x: tosaic.ops.Tensor) -> object:  # type: ignore[name-defined]
        real, imaginary = tosaic.tosa.rfft2d(x)
        return real * real + imaginary * imaginary

    x = random((1, 8, 16))
    expected = np.abs(np.fft.rfft2(x.astype(np.float64))) ** 2
    assert np.allclose(power(x), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("value", ["2.0", "-0.0", "random"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 4), (2, 4, 8)])
@pytest.mark.parametrize("name", ["fft2d", "rfft2d"])
def test_a_transform_of_constants_is_that_of_inputs(name: str, shape: tuple[int, ...], value: str) -> None:
    """A constant of one number is a literal where others read it."""
    x = random(shape) if value == "random" else np.full(shape, float(value), np.float32)
    g = Graph()
    constants = [g.constant(x)] * (2 if name == "fft2d" else 1)
    results = g.ops(name, *constants, local_bound=False, **({"inverse": False} if name == "fft2d" else {}))
    found = Traced(g.module(*results), "main").compile()()
    right = sums(x, x) if name == "fft2d" else real_sums(x)
    for mine, wanted in zip(found, right, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-6, atol=1e-5)
