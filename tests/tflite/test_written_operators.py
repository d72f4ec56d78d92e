"""Operators that the converter leaves or gets wrong, each over the types that it has. Those that move, place, count and
compare numbers give what one of LiteRT's kernels gives (it has a reference for each, and another one, and either may lack a
type); those that compute with quantized numbers give the step next to the real result.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tosaic
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tosaic.jit.stages import prepared
from tosaic.lowering.flatbuffer.table_builder import Scalar
from tosaic.runtime import interpreter

from .files import Graph, Operator, Tensor, constant, file, ints

Array = np.ndarray
DTYPES: dict[str, Any] = {"f32": np.float32, "i8": np.int8, "ui8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
                          "i1": np.bool_}
STEPS = {"i8": (0.05, 3), "ui8": (0.05, 120), "i16": (0.0005, 0)}
"""Scale and zero point of each type's tensors."""
ENGINES = (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def drawn(tensor: Tensor, low: float | None, high: float | None) -> Array:
    rng, dtype = np.random.default_rng((len(tensor.name), *tensor.shape)), DTYPES[tensor.type]
    if tensor.type == "i1":
        return rng.integers(0, 2, tensor.shape).astype(bool)
    if tensor.type == "f32":
        return (rng.standard_normal(tensor.shape) * 2 if low is None or high is None else rng.uniform(low, high, tensor.shape)
                ).astype(dtype)
    bounds = (-9, 9) if tensor.type in ("i32", "i64") else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    least, most = bounds if low is None or high is None else (low, high)
    return rng.integers(int(least), int(most) + 1, tensor.shape).astype(dtype)


def t(name: str, shape: Sequence[int], type: str, step: tuple[float, int] | None = None) -> Tensor:
    """A tensor of a type, quantized where it is narrow."""
    scale, zero_point = step or STEPS.get(type, (None, 0))
    return Tensor(name, tuple(shape), type, None, scale, zero_point)


def known(name: str, value: object, type: str = "i32") -> Tensor:
    return constant(name, value, type)


def flags(*values: int) -> tuple[Scalar, ...]:
    return tuple(Scalar("B", v) for v in values)


def real(value: float) -> Scalar:
    return Scalar("I", int(np.float32(value).view(np.uint32)))


@dataclass(frozen=True)
class Case:
    """One operator; `low` and `high` bound what its inputs are drawn from."""
    kind: str
    operands: Sequence[Tensor]
    results: Sequence[Tensor]
    options: Sequence[Scalar] = ()
    low: float | None = None
    high: float | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}-{next(o.type for o in (*self.operands, *self.results) if o.array is None)}"

    @property
    def inputs(self) -> list[Tensor]:
        return [o for o in self.operands if o.array is None and o.name != "-"]

    def file(self) -> bytes:
        given, made = (" ".join(x.name for x in tensors) for tensors in (self.operands, self.results))
        tensors = [o for o in self.operands if o.name != "-"]
        return file(Graph(" ".join(x.name for x in self.inputs), made, [*tensors, *self.results],
                          [Operator(self.kind, given, made, self.options)]))

    def arrays(self) -> list[Array]:
        return [drawn(o, self.low, self.high) for o in self.inputs]


def litert(data: bytes, inputs: Sequence[Array]) -> list[list[Array]]:
    """The results of each of LiteRT's kernels for the operator."""
    found = []
    for engine in ENGINES:
        try:
            lite = Interpreter(model_content=data, experimental_op_resolver_type=engine)
            lite.allocate_tensors()
        except (RuntimeError, ValueError):
            continue
        for detail, array in zip(lite.get_input_details(), inputs, strict=True):
            lite.set_tensor(detail["index"], array)
        lite.invoke()
        found.append([lite.get_tensor(d["index"]).copy() for d in lite.get_output_details()])
    assert found, "LiteRT has no kernel for it"
    return found


def ours(data: bytes, inputs: Sequence[Array]) -> list[Array]:
    """The results of compiled code, which are those of the interpreter; no converter is needed."""
    model = tosaic.from_tflite(data)
    results = model(*inputs)
    found = list(results) if isinstance(results, tuple) else [results]
    for one, other in zip(found, interpreter.interpret(prepared(model.module), None, list(inputs)), strict=True):
        assert is_near(one, other)
    return found


def is_near(one: Array, other: Array) -> bool:
    """Equal; floats within 2^-19 of the greatest: sums of up to 24 products, each rounded once."""
    if one.dtype != other.dtype or one.dtype.kind != "f":
        return one.dtype == other.dtype and np.array_equal(one, other)
    return np.allclose(one, other, rtol=0, atol=2.0**-19 * float(np.abs(other).max(initial=0)))


def moving(type: str) -> list[Case]:
    """What places, counts and chooses elements of any type."""
    x = t("x", (4, 6), type)
    found = [
        Case("TOPK_V2", [x, known("k", 3)], [t("y", (4, 3), type), t("i", (4, 3), "i32")]),
        Case("FILL", [known("s", [3, 4]), t("x", (), type)], [t("y", (3, 4), type)]),
        Case("MATRIX_DIAG", [t("x", (2, 3), type)], [t("y", (2, 3, 3), type)]),
        Case("MATRIX_SET_DIAG", [t("x", (2, 3, 3), type), t("zz", (2, 3), type)], [t("y", (2, 3, 3), type)]),
        Case("DYNAMIC_UPDATE_SLICE", [x, t("uu", (2, 2), type), known("i", [1, 5])], [t("y", (4, 6), type)]),
        Case("SELECT", [t("ccc", (4,), "i1"), x, t("zz", (4, 6), type)], [t("y", (4, 6), type)])]
    if type != "i16":
        found += [
            Case("ONE_HOT", [t("x", (4,), "i32"), known("d", 5), t("on", (), type), t("off", (), type)],
                 [t("y", (4, 5), type)], ints(-1)),
            Case("SCATTER_ND", [known("i", [[3], [0], [3]]), t("x", (3, 4), type), known("s", [5, 4])],
                 [t("y", (5, 4), type)])]
    if type == "ui8":
        found.append(Case("UNPACK", [t("x", (2, 2, 4), type)], [t("y", (2, 4), type), t("z", (2, 4), type)], ints(2, 1)))
    if type != "i8":
        found.append(Case("REVERSE_SEQUENCE", [x, known("l", [1, 6, 3, 2])], [t("y", (4, 6), type)], ints(1, 0)))
    return found


def counting() -> list[Case]:
    """What adds up elements and finds them, of the types that LiteRT has it for."""
    found = []
    for type in ("f32", "i32"):
        x, y = t("x", (4, 6), type), t("y", (4, 6), type)
        found += [Case("CUMSUM", [x, known("a", 1)], [y], flags(exclusive, reverse))
                  for exclusive, reverse in ((0, 0), (1, 0), (0, 1), (1, 1))]
        for name in ("SUM", "MAX", "MIN", "PROD"):
            found.append(Case(f"UNSORTED_SEGMENT_{name}", [x, known("s", [2, 0, -1, 2]), known("n", 4)],
                              [t("y", (4, 6), type)]))
        found.append(Case("SEGMENT_SUM", [x, known("s", [0, 0, 1, 1])], [t("y", (2, 6), type)]))
    boxes, scores = t("b", (6, 4), "f32"), t("s", (6,), "f32")
    limits = [known("m", 4), constant("o", np.float32(0.3)), constant("l", np.float32(-0.5))]
    kept, count = t("y", (4,), "i32"), t("n", (), "i32")
    return [
        *found, Case("NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], [kept, count]),
        Case("SEGMENT_SUM", [t("x", (4, 6), "f32"), known("s", [0, 0, 1, 2])], [t("y", (-1, 6), "f32")]),
        Case("NON_MAX_SUPPRESSION_V5", [boxes, scores, *limits, constant("g", np.float32(0))],
             [kept, t("v", (4,), "f32"), count]),
        Case("EMBEDDING_LOOKUP", [t("x", (3,), "i32"), constant("w", drawn(t("w", (10, 4), "f32"), None, None))],
             [t("y", (3, 4), "f32")], low=0, high=9),
        Case("EQUAL", [t("x", (4, 6), "i1"), t("zz", (6,), "i1")], [t("y", (4, 6), "i1")]),
        Case("NOT_EQUAL", [t("x", (4, 6), "i1"), t("zz", (6,), "i1")], [t("y", (4, 6), "i1")]),
        Case("POW", [t("x", (4, 6), "i32"), t("zz", (4, 6), "i32")], [t("y", (4, 6), "i32")], low=0, high=4),
        *(Case("MEAN", [t("x", (4, 6), type), known("a", [1])], [t("y", (4,), type)], flags(0)) for type in ("i32", "i64")),
        *(Case("ARG_MIN", [t("x", (4, 6), type), known("a", 1)], [t("y", (4,), "i32")], flags(2)) for type in ("i8", "ui8")),
        *(Case("RIGHT_SHIFT", [plain("x", type), plain("zz", type)], [plain("y", type)], low=0, high=6)
          for type in ("i8", "ui8", "i16", "i32")),
        Case("BITWISE_XOR", [plain("x", "ui8"), plain("zz", "ui8")], [plain("y", "ui8")]),
        *(Case("CAST", [plain("x", type)], [plain("y", "ui8")], low=0, high=100)
          for type in ("f32", "i8", "ui8", "i16", "i32", "i64", "i1"))]


def plain(name: str, type: str) -> Tensor:
    return Tensor(name, (4, 6), type)


def comparing() -> list[Case]:
    """Quantized numbers of two scales, and choices between those of one."""
    kinds = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    other = {"i8": (0.02, -20), "ui8": (0.02, 140)}
    y = t("y", (4, 6), "i1")
    return [*(Case(kind, [t("x", (4, 6), type), t("zz", (6,), type, other[type])], [y]) for kind in kinds for type in other),
            *(Case(kind, [t("x", (4, 6), type), t("zz", (1, 6), type)], [t("y", (4, 6), type)])
              for kind in ("MAXIMUM", "MINIMUM") for type in STEPS)]


def floats() -> list[Case]:
    """Of floats, where sums may have another order."""
    x = t("x", (1, 2, 3, 8), "f32")
    a, b = t("x", (2, 4, 3), "f32"), t("zz", (1, 5, 4), "f32")
    found = [
        Case("SOFTMAX", [x], [t("y", (1, 2, 3, 8), "f32")], [real(0.5)]),
        Case("LOCAL_RESPONSE_NORMALIZATION", [x], [t("y", (1, 2, 3, 8), "f32")],
             [Scalar("i", 2), real(1.0), real(0.5), real(0.75)]),
        Case("BATCH_MATMUL", [a, b], [t("y", (2, 3, 5), "f32")], flags(1, 1))]
    weights = constant("w", drawn(t("w", (2, 3, 2, 3, 2), "f32"), None, None))
    bias = constant("b", [1, -2, 3])
    for padding, stride in ((0, 1), (0, 2), (1, 1), (1, 2), (1, 3)):
        extents = [n * stride if padding == 0 else (n - 1) * stride + k for n, k in zip((2, 3, 3), (2, 3, 2))]
        options = (Scalar("B", padding), *ints(stride, stride, stride), Scalar("B", 0), *ints(1, 1, 1))
        operands = [known("s", [1, *extents, 3]), weights, t("x", (1, 2, 3, 3, 2), "f32")]
        for last in ([], [bias], [Tensor("-")]):
            found.append(Case("CONV_3D_TRANSPOSE", [*operands, *last], [t("y", (1, *extents, 3), "f32")], options))
    return found


CASES = [*floats(), *(c for type in ("f32", "i8", "ui8", "i16", "i32", "i64") for c in moving(type)), *counting(), *comparing()]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_result_is_a_kernel_s(case: Case) -> None:
    data, inputs = case.file(), case.arrays()
    found = ours(data, inputs)
    assert any(all(is_near(a, b) for a, b in zip(found, expected, strict=True)) for expected in litert(data, inputs)), found


def softmax(x: Array, beta: float) -> Array:
    powers = np.exp(beta * (x - x.max(-1, keepdims=True)))
    found: Array = powers / powers.sum(-1, keepdims=True)
    return found


def normalized(x: Array) -> Array:
    found: Array = x / np.sqrt((x * x).sum(-1, keepdims=True))
    return found


UNITS = {"i8": (1 / 256, -128), "ui8": (1 / 256, 0), "i16": (1 / 32768, 0)}
RATIOS = {"i8": (1 / 128, 0), "ui8": (1 / 128, 128)}
POSITIVE = {"i8": (0.05, -128), "i16": (0.0005, 0)}
QUANTIZED: list[tuple[str, str, Callable[..., Array], tuple[float, int], Sequence[Scalar]]] = [
    *(("DIV", type, np.divide, {"i8": (3.0, 5), "ui8": (3.0, 100), "i16": (0.01, 0)}[type], flags(0)) for type in STEPS),
    *(("ABS", type, np.abs, STEPS[type], ()) for type in ("i8", "i16")),
    *(("SQRT", type, np.sqrt, (0.02, 0), ()) for type in ("i8", "i16")),
    ("ELU", "i8", lambda x: np.where(x > 0, x, np.expm1(x)), (0.06, 5), ()),
    *(("SOFTMAX", type, lambda x: softmax(x, 0.5), UNITS[type], [real(0.5)]) for type in ("i8", "ui8")),
    *(("LOG_SOFTMAX", type, lambda x: np.log(softmax(x, 1)), step, ()) for type, step in (("i8", (1 / 16, 127)),
                                                                                          ("ui8", (1 / 16, 255)))),
    *(("L2_NORMALIZATION", type, normalized, RATIOS[type], flags(0)) for type in RATIOS)]


@pytest.mark.parametrize(("kind", "type", "function", "step", "options"), QUANTIZED, ids=[f"{q[0]}-{q[1]}" for q in QUANTIZED])
def test_a_quantized_result_is_the_step_next_to_the_real_one(kind: str, type: str, function: Callable[..., Array],
                                                            step: tuple[float, int], options: Sequence[Scalar]) -> None:
    """Half a step away at most, and what float32 rounds on the way: 2^-20 of the result."""
    is_positive = kind == "SQRT"
    own = POSITIVE[type] if is_positive else STEPS[type]
    low, high = (1, 127) if is_positive else (None, None) if type == "i8" or kind != "DIV" else (1, 100)
    operands = [t("x", (4, 6), type, own), *([t("zz", (4, 6), type, own)] if kind == "DIV" else [])]
    case = Case(kind, operands, [t("y", (4, 6), type, step)], options, low, high)
    inputs = case.arrays()
    if kind == "DIV":
        inputs[1] = np.where(inputs[1] == own[1], inputs[1] + 1, inputs[1])
    (found,) = ours(case.file(), inputs)
    with np.errstate(over="ignore"):
        numbers = ((x.astype(np.float64) - own[1]) * np.float32(own[0]) for x in inputs)
        exact = function(*numbers) / np.float32(step[0]) + step[1]
    bounds = np.iinfo(DTYPES[type])
    exact = np.clip(exact, bounds.min, bounds.max)
    assert float((np.abs(found - exact) - np.abs(exact) * 2.0**-20).max()) <= 0.5 + 1e-4


@pytest.mark.parametrize(("scale", "beta"), [(0.0005, 1.0), (0.0005, 0.5), (3e-5, 1.0)])
def test_softmax_of_two_bytes_holds_what_is_far_below_the_greatest(scale: float, beta: float) -> None:
    """Exponentials are within two of 2^-15 by interpolation, so that the quotient is within two for each of the row's, the
    reciprocal's and its own rounding."""
    case = Case("SOFTMAX", [t("x", (8, 6), "i16", (scale, 0))], [t("y", (8, 6), "i16", UNITS["i16"])], [real(beta)])
    (x,) = case.arrays()
    (found,) = ours(case.file(), [x])
    exact = softmax(x * np.float64(scale), beta) * 32768
    assert float(np.abs(found - exact).max()) <= 2 * (6 + 2)
    assert float(np.abs(found.astype(int) - litert(case.file(), [x])[0][0]).max()) <= 2 * (6 + 2)


@pytest.mark.parametrize("value", [-1e9, -300.0, -0.5, 255.5, 1e9, np.inf, -np.inf])
def test_a_cast_to_bytes_without_a_sign_holds_the_nearest(value: float) -> None:
    case = Case("CAST", [plain("x", "f32")], [plain("y", "ui8")])
    x = np.full((4, 6), value, np.float32)
    np.testing.assert_array_equal(ours(case.file(), [x])[0], litert(case.file(), [x])[0][0])


@pytest.mark.parametrize("kind", ["WHERE", "UNIQUE"])
def test_a_shape_that_depends_on_data_is_refused_with_the_reason(kind: str) -> None:
    results = [Tensor("y", (-1, 2), "i64")] if kind == "WHERE" else [Tensor("y", (-1,), "i32"), t("i", (6,), "i32")]
    x = t("x", (6,), "i1" if kind == "WHERE" else "i32")
    with pytest.raises(tosaic.Problem, match="depends on the data"):
        tosaic.from_tflite(Case(kind, [x], results).file())


@pytest.mark.parametrize("kind", ["MUL", "SUM", "RELU", "MEAN"])
def test_arithmetic_of_bytes_that_stand_for_nothing_is_refused(kind: str) -> None:
    operands = [plain("x", "ui8"), *([plain("z", "ui8")] if kind == "MUL" else [known("a", [1])] if kind != "RELU" else [])]
    with pytest.raises(tosaic.Problem, match=f"{kind} computes with bytes without a sign"):
        tosaic.from_tflite(Case(kind, operands, [plain("y", "ui8")]).file())


def test_boxes_have_the_shape_that_the_file_says() -> None:
    """A converter writes [1, rows] for the rows that the kernel gives, and what comes behind goes by that."""
    boxes, scores = t("b", (6, 4), "f32"), t("s", (6,), "f32")
    limits = [known("m", 4), constant("o", np.float32(0.3)), constant("l", np.float32(-0.5))]
    tensors = [boxes, scores, *limits, t("k", (1, 4), "i32"), t("n", (), "i32"), known("d", [2, 2]), t("y", (2, 2), "i32")]
    data = file(Graph("b s", "y", tensors, [Operator("NON_MAX_SUPPRESSION_V4", "b s m o l", "k n"),
                                            Operator("RESHAPE", "k d", "y")]))
    inputs = [drawn(boxes, None, None), drawn(scores, None, None)]
    pytest.importorskip("tosa_converter_for_tflite", reason="Arm's converter is not installed (the extra `tflite`)")
    found = tosaic.from_tflite(data)(*inputs)
    np.testing.assert_array_equal(found, litert(data, inputs)[0][0])
