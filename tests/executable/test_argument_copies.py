"""Arrays with other strides, in another byte order or misaligned, and lists, are copied at the call: the result is that of the
array itself, from the first call to those of the built-in function, for every kind of callable and every element type."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tosaic

DTYPES = ("bool", "int8", "int16", "int32", "float16", "float32")
MLIR = {"bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "float16": "f16", "float32": "f32"}
SHAPE = (3, 4)


def misaligned(x: np.ndarray) -> np.ndarray:
    room = np.zeros(x.nbytes + 1, np.uint8)
    made = np.frombuffer(room.data, x.dtype, x.size, 1).reshape(x.shape)
    made[...] = x
    return made


def spread(x: np.ndarray) -> np.ndarray:
    wide = np.zeros((x.shape[0] * 2, x.shape[1] * 3), x.dtype)
    wide[::2, ::3] = x
    return wide[::2, ::3]


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "as it is": lambda x: x, "transposed": np.asfortranarray, "every third": spread,
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1], "misaligned": misaligned,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")), "list": lambda x: x.tolist(),
    "big-endian and transposed": lambda x: np.asfortranarray(x.astype(x.dtype.newbyteorder(">"))),
    "list of arrays": list,
}


def text(dtype: str, extents: str) -> str:
    type = f"tensor<{extents}x{MLIR[dtype]}>"
    return f"func.func @main(%x: {type}) -> {type} {{\n  %y = tosa.identity %x : ({type}) -> {type}\n  return %y : {type}\n}}"


CALLABLES: dict[str, Callable[[str], Callable[..., Any]]] = {
    "model": lambda dtype: tosaic.load(text(dtype, "3x4")),
    "entry": lambda dtype: tosaic.load(text(dtype, "3x4")).main,
    "open entry": lambda dtype: tosaic.load(text(dtype, "?x4")).main,
    "compiled": lambda dtype: tosaic.load(text(dtype, "3x4")).main.compile(),
    "jit": lambda dtype: tosaic.jit(lambda x: tosaic.ops.reshape(x, SHAPE)),
    "compiled function": lambda dtype: tosaic.jit(lambda x: tosaic.ops.reshape(x, SHAPE)).compile(
        tosaic.TensorSpec(SHAPE, dtype)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", CALLABLES)
def test_every_form_of_an_array_gives_the_same(kind: str, dtype: str) -> None:
    call = CALLABLES[kind](dtype)
    x = np.random.default_rng(0).integers(-8, 8, SHAPE).astype(dtype)
    for turn in range(3):
        for form, made in FORMS.items():
            if kind == "jit" and form.startswith("list"):  # a nest, as every list that a traced function takes
                continue
            given = made(x)
            found = call(given)
            assert found.dtype == x.dtype and np.array_equal(found, x), (form, turn)
            named = call(x=given)
            assert np.array_equal(named, x), (form, turn)


def test_out_may_lie_over_an_input_that_is_copied() -> None:
    call = tosaic.load(text("float32", "3x4")).main.compile()
    x = np.arange(12, dtype=">f4").reshape(SHAPE)
    out = np.frombuffer(x.data, "<f4").reshape(SHAPE)
    with pytest.raises(tosaic.Problem, match="another machine"):
        call(x, out=np.empty_like(x))
    call(x, out=np.empty(SHAPE, np.float32))
    assert np.array_equal(x, np.arange(12).reshape(SHAPE)) and out.dtype != x.dtype


@pytest.mark.parametrize(("given", "dtype", "said"), [
    ([[1.5] * 4] * 3, "int32", "is a list of numbers of float64, its elements are int32"),
    ([[300] * 4] * 3, "int8", "with a number that int8 does not hold"), ([[1, 2], [3]], "float32", "have different shapes"),
    ([["a"] * 4] * 3, "float32", "is a list of numbers of <U1"), ([[1j] * 4] * 3, "float32", "complex128"),
    ([[None] * 4] * 3, "float32", "is a list of objects"),
    ([[1] * 4] * 2, "float32", "must be tensor<3x4xf32>, got tensor<2x4xf32>"),
    ([[1] * 4] * 3, "bool", "is a list of numbers of int64, its elements are bool")])
def test_a_list_that_does_not_fit_is_refused(given: Any, dtype: str, said: str) -> None:
    with pytest.raises(tosaic.Problem) as found:
        tosaic.load(text(dtype, "3x4"))(given)
    assert said in str(found.value)


@pytest.mark.parametrize("form", ["transposed", "big-endian", "as it is"])
def test_the_type_of_elements_stays_exact(form: str) -> None:
    with pytest.raises(tosaic.Problem, match="must be tensor<3x4xf32>, got tensor<3x4xf64>"):
        tosaic.load(text("float32", "3x4"))(FORMS[form](np.zeros(SHAPE)))
