"""Operators that are written here and not by the converter: as LiteRT's kernels, or NumPy where its words are the kernel's."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import tosaic
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tosaic.jit.stages import prepared
from tosaic.lowering.flatbuffer.table_builder import Scalar
from tosaic.runtime import interpreter

from .files import Graph, Operator, Tensor, constant, file, ints

Array = np.ndarray


def litert(data: bytes, inputs: Sequence[Array]) -> Array:
    lite = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    lite.allocate_tensors()
    for detail, array in zip(lite.get_input_details(), inputs, strict=True):
        lite.set_tensor(detail["index"], array)
    lite.invoke()
    found: Array = lite.get_tensor(lite.get_output_details()[0]["index"])
    return found


def ours(data: bytes, inputs: Sequence[Array]) -> Array:
    """The result of compiled code, which is that of the interpreter; no converter is needed."""
    model = tosaic.from_tflite(data)
    found: Array = model(*inputs)
    (other,) = interpreter.interpret(prepared(model.module), None, list(inputs))
    np.testing.assert_allclose(found, other, rtol=1e-6, atol=1e-6)
    return found


def model(kind: str, operands: Sequence[Tensor], result: Tensor, options: Sequence[Scalar] = ()) -> bytes:
    names = " ".join(t.name for t in operands)
    inputs = " ".join(t.name for t in operands if t.array is None)
    return file(Graph(inputs, "y", [*operands, result], [Operator(kind, names, "y", options)]))


def floats(shape: tuple[int, ...], scale: float = 1.0) -> Array:
    found: Array = (np.random.default_rng(len(shape)).standard_normal(shape) * scale).astype(np.float32)
    return found


X, Y = Tensor("x", (3, 7)), Tensor("y", (3, 7))
SPECIAL = np.array([np.nan, 1, np.inf, -np.inf, -0.0, 0.0, 3e38], np.float32)


# ---- numbers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("type", ["i32", "i8", "i16", "i64"])
def test_a_cast_drops_the_fraction(type: str) -> None:
    dtype = {"i32": np.int32, "i8": np.int8, "i16": np.int16, "i64": np.int64}[type]
    data, x = model("CAST", [X], Tensor("y", (3, 7), type)), floats((3, 7), 5)
    np.testing.assert_array_equal(ours(data, [x]), x.astype(dtype))


def test_a_cast_drops_the_fraction_for_any_batch() -> None:
    data = model("CAST", [Tensor("x", (-1, 7))], Tensor("y", (-1, 7), "i32"))
    for rows in (1, 5):
        x = floats((rows, 7), 5)
        np.testing.assert_array_equal(tosaic.from_tflite(data)(x), x.astype(np.int32))


@pytest.mark.parametrize(("type", "zero_point"), [("i8", 3), ("i8", -128), ("ui8", 102), ("i16", 0)])
def test_quantize_saturates_and_rounds_halves_away_from_zero(type: str, zero_point: int) -> None:
    data = model("QUANTIZE", [X], Tensor("y", (3, 7), type, None, 0.5, zero_point))
    halves = (np.arange(-10, 11) / 4).astype(np.float32).reshape(3, 7)
    for x in (halves, floats((3, 7), 300), floats((3, 7), 1e6)):
        np.testing.assert_array_equal(ours(data, [x]), litert(data, [x]))


def test_the_number_below_a_half_is_no_half() -> None:
    data = model("QUANTIZE", [X], Tensor("y", (3, 7), "i8", None, 1.0, 0))
    x = np.full((3, 7), np.nextafter(np.float32(0.5), np.float32(0)))
    assert not ours(data, [x]).any() and not litert(data, [x]).any()


@pytest.mark.parametrize("kind", ["FLOOR_DIV", "FLOOR_MOD"])
def test_floored_division_of_floats(kind: str) -> None:
    data = model(kind, [X, Tensor("z", (7,))], Y)
    for scale in (1, 100):
        inputs = [floats((3, 7), scale), floats((7,)) + np.float32(0.01)]
        np.testing.assert_allclose(ours(data, inputs), litert(data, inputs), rtol=0, atol=2e-6 * scale)


def test_floored_division_of_whole_floats_is_never_one_off() -> None:
    a, b = np.meshgrid(np.arange(-60, 61), [n for n in range(-49, 50) if n])
    data = model("FLOOR_DIV", [Tensor("x", a.shape), Tensor("z", a.shape)], Tensor("y", a.shape))
    inputs = [a.astype(np.float32), b.astype(np.float32)]
    np.testing.assert_array_equal(ours(data, inputs), a // b)


def test_the_remainder_of_integers_has_the_sign_of_the_divisor() -> None:
    a, b = np.meshgrid(np.arange(-20, 21), [n for n in range(-7, 8) if n])
    data = model("FLOOR_MOD", [Tensor("x", a.shape, "i32"), Tensor("z", a.shape, "i32")], Tensor("y", a.shape, "i32"))
    np.testing.assert_array_equal(ours(data, [a.astype(np.int32), b.astype(np.int32)]), a % b)


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
def test_the_second_operand_is_the_result_where_one_is_no_number(kind: str) -> None:
    a, b = (m.reshape(-1) for m in np.meshgrid(SPECIAL, SPECIAL))
    data = model(kind, [Tensor("x", a.shape), Tensor("z", a.shape)], Tensor("y", a.shape))
    found, expected = ours(data, [a, b]), litert(data, [a, b])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_a_scalar_is_compared_with_each() -> None:
    data, x = model("MAXIMUM", [X, constant("c", 0.25)], Y), floats((3, 7))
    np.testing.assert_array_equal(ours(data, [x]), np.maximum(x, np.float32(0.25)))


def test_gelu_is_exact() -> None:
    data, x = model("GELU", [X], Y, [Scalar("B", 0)]), floats((3, 7), 3)
    np.testing.assert_allclose(ours(data, [x]), litert(data, [x]), rtol=0, atol=1e-6)


def test_log_softmax_does_not_overflow() -> None:
    data, x = model("LOG_SOFTMAX", [X], Y), floats((3, 7), 100)
    np.testing.assert_allclose(ours(data, [x]), litert(data, [x]), rtol=1e-6, atol=1e-6)


# ---- slices ----------------------------------------------------------------------------------------------------------
MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
SLICES = [((4, 5, 6), np.s_[0:4:2, ::-1, 5:0:-2]), ((4, 5, 6), np.s_[-1, ..., 1:6:3]), ((4, 5, 6), np.s_[..., 2]),
          ((7,), np.s_[::-3,]), ((7,), np.s_[6:1:-2,]), ((4, 5), np.s_[None, 1:9, -9:3]), ((4, 5), np.s_[1:3, None, ::2]),
          ((4, 5, 6), np.s_[2:, -1]), ((2, 3, 4, 5), np.s_[1, ..., ::2]), ((5, 8), np.s_[..., None]),
          ((4, 5), np.s_[::4, 4::-4]), ((9, 2, 3), np.s_[1:8:3,]), ((3,), np.s_[2,])]


def operands(places: tuple[object, ...]) -> tuple[list[list[int]], dict[str, int]]:
    """Begins, ends, steps and masks of places as Python has them."""
    rows, masks = [], dict.fromkeys(MASKS, 0)
    for i, place in enumerate(places):
        match place:
            case slice():
                rows.append([place.start or 0, place.stop or 0, place.step or 1])
                masks["begin"] |= (place.start is None) << i
                masks["end"] |= (place.stop is None) << i
            case None:
                rows.append([0, 0, 1])
                masks["new_axis"] |= 1 << i
            case int():
                rows.append([place, place + 1, 1])
                masks["shrink_axis"] |= 1 << i
            case _:
                rows.append([0, 0, 1])
                masks["ellipsis"] |= 1 << i
    return [list(column) for column in zip(*rows)], masks


@pytest.mark.parametrize(("shape", "places"), SLICES, ids=map(str, range(len(SLICES))))
def test_a_strided_slice_is_numpy_s(shape: tuple[int, ...], places: tuple[object, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    columns, masks = operands(places)
    data = model("STRIDED_SLICE", [Tensor("x", shape), *(constant(n, c, "i32") for n, c in zip("bes", columns))],
                 Tensor("y", x[places].shape), ints(*masks.values()))
    np.testing.assert_array_equal(tosaic.from_tflite(data)(x), x[places])
    if None not in places and Ellipsis not in places:
        np.testing.assert_array_equal(litert(data, [x]), x[places])


@pytest.mark.parametrize(("columns", "masks", "words"), [
    (([3], [9], [0]), {}, "a step of the slice is 0"), (([5], [9], [2]), {}, "the slice takes nothing of an axis of 4"),
    (([9], [10], [2]), {"shrink_axis": 1}, "index 9 is outside of an axis of 4"),
    (([0, 0, 0], [1, 1, 1], [2, 2, 2]), {}, "a slice of 3 axes, the tensor has 2"),
    (([0, 0], [1, 1], [2, 2]), {"ellipsis": 3}, "2 ellipses")])
def test_a_slice_that_makes_no_sense_is_a_problem(columns: tuple[list[int], ...], masks: dict[str, int], words: str) -> None:
    data = model("STRIDED_SLICE", [Tensor("x", (4, 5)), *(constant(n, c, "i32") for n, c in zip("bes", columns))],
                 Tensor("y", (4, 5)), ints(*(masks.get(m, 0) for m in MASKS)))
    with pytest.raises(tosaic.Problem, match=words) as found:
        tosaic.from_tflite(data)
    assert "operator 0 STRIDED_SLICE" in str(found.value)


OPEN = [np.s_[:, ::-2], np.s_[:, 7:2:-1], np.s_[:, 1::3], np.s_[..., ::4], np.s_[:, None, ::2], np.s_[:, -1], np.s_[:, 2:5]]


@pytest.mark.parametrize("places", OPEN, ids=map(str, range(len(OPEN))))
def test_a_slice_keeps_an_axis_of_unknown_extent(places: tuple[object, ...]) -> None:
    """The last two are the converter's, which writes a size of -1."""
    pytest.importorskip("tosa_converter_for_tflite")
    columns, masks = operands(places)
    result = np.zeros((5, 8))[places].shape
    data = model("STRIDED_SLICE", [Tensor("x", (-1, 8)), *(constant(n, c, "i32") for n, c in zip("bes", columns))],
                 Tensor("y", (-1, *result[1:])), ints(*masks.values()))
    run = tosaic.from_tflite(data)
    for rows in (1, 5):
        x = floats((rows, 8))
        np.testing.assert_array_equal(run(x), x[places])


def test_parts_of_an_axis_of_unknown_extent_are_a_problem() -> None:
    places = constant("b", [0, 0], "i32"), constant("e", [9, 8], "i32"), constant("s", [2, 1], "i32")
    data = model("STRIDED_SLICE", [Tensor("x", (-1, 8)), *places], Tensor("y", (-1, 8)), ints(0, 0, 0, 0, 0))
    with pytest.raises(tosaic.Problem, match="a slice along an axis of unknown extent is not supported"):
        tosaic.from_tflite(data)


def test_a_split_keeps_an_axis_of_unknown_extent() -> None:
    pytest.importorskip("tosa_converter_for_tflite")
    tensors = [constant("axis", 1, "i32"), Tensor("x", (-1, 8)), Tensor("y", (-1, 4)), Tensor("z", (-1, 4))]
    run = tosaic.from_tflite(file(Graph("x", "y z", tensors, [Operator("SPLIT", "axis x", "y z", ints(2))])))
    for rows in (1, 3):
        x = floats((rows, 8))
        for found, expected in zip(run(x), np.split(x, 2, 1)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("type", ["i32", "i64"])
def test_an_index_may_be_a_tensor(type: str) -> None:
    dtype = np.int32 if type == "i32" else np.int64
    operand = [Tensor("x", (4, 5, 6)), Tensor("b", (2,), type), Tensor("e", (2,), type), constant("s", [1, 1], type)]
    data = model("STRIDED_SLICE", operand, Tensor("y", (4, 6)), ints(1, 1, 0, 0, 2))
    x = floats((4, 5, 6))
    for index in (0, 3, 4, -1, -5):
        begin = np.array([0, index], dtype)
        np.testing.assert_array_equal(ours(data, [x, begin, begin + 1]), x[:, index])


def test_a_slice_of_known_size_may_begin_anywhere() -> None:
    data = model("SLICE", [Tensor("x", (4, 5, 6)), Tensor("b", (3,), "i32"), constant("n", [2, 5, 3], "i32")],
                 Tensor("y", (2, 5, 3)))
    x = floats((4, 5, 6))
    for first, last in ((0, 0), (2, 3), (1, 2)):
        begin = np.array([first, 0, last], np.int32)
        np.testing.assert_array_equal(ours(data, [x, begin]), x[first:first + 2, :, last:last + 3])
        np.testing.assert_array_equal(litert(data, [x, begin]), x[first:first + 2, :, last:last + 3])
