"""RESIZE."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tosaic.lowering.dialects.tosa.resize import Resize
from tosaic.lowering.elements.affine import Affine, Axis
from tosaic.lowering.elements.expression import Buffer, Load
from tosaic.lowering.elements.tensor import stored
from tosaic.lowering.graph.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    I8,
    I16,
    I32,
    I48,
    Array,
    ElementType,
    ShapeType,
    TensorType,
)
from tosaic.runtime.errors import Problem

from .harness import Given, check, infer, unknown

GRIDS = [  # rows and columns of the input, scale, offset, border
    ((3, 4), (1, 1, 1, 1), (0, 0), (0, 0)),
    ((3, 4), (2, 1, 3, 1), (0, 0), (0, 0)),
    ((3, 4), (4, 2, 4, 2), (-1, -1), (1, 1)),
    ((4, 3), (16, 1, 2, 3), (-7, -1), (7, 1)),
    ((5, 7), (1, 2, 2, 6), (0, 0), (0, 0)),
    ((5, 4), (3, 7, 5, 4), (2, -3), (-3, -2)),
    ((1, 1), (4, 1, 8, 2), (-2, 0), (1, 6)),
    ((6, 6), (8, 3, 1, 5), (2, 4), (4, -1)),
    ((2, 3), (6, 6, 7, 7), (5, 0), (-1, 0)),
]


def operands(x: Array, scale: tuple[int, ...], offset: tuple[int, ...], border: tuple[int, ...]) -> list[Array]:
    return [x, *(np.array(n, np.int64) for n in (scale, offset, border))]


def spelled_out(x: Array, scale: Any, offset: Any, shape: tuple[int, ...], bilinear: bool) -> Array:
    """The specification's loop, in Python's numbers."""
    out = np.zeros(shape, object)
    whole = x.dtype.kind == "i"
    for oy, ox in np.ndindex(shape[1], shape[2]):
        place = []
        for o, n, d, start, extent in zip((oy, ox), scale[::2], scale[1::2], offset, x.shape[1:3]):
            index, rest = divmod(o * d + start, n)
            place.append((max(index, 0), min(index + 1, extent - 1), rest if whole else rest / n, n if whole else 1))
        (y0, y1, dy, ny), (x0, x1, dx, nx) = place
        for b, c in np.ndindex(shape[0], shape[3]):
            v00, v01, v10, v11 = (x[b, i, j, c].item() for i in (y0, y1) for j in (x0, x1))
            if bilinear:
                out[b, oy, ox, c] = (v00 * (ny - dy) * (nx - dx) + v01 * (ny - dy) * dx + v10 * dy * (nx - dx)
                                     + v11 * dy * dx)
            else:
                out[b, oy, ox, c] = x[b, y1 if 2 * dy >= ny else y0, x1 if 2 * dx >= nx else x0, c].item()
    return out


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "NEAREST", "BILINEAR"])
@pytest.mark.parametrize("element", [I8, I16])
def test_integers_are_resized_exactly(grid: Any, mode: str, element: ElementType) -> None:
    extents, scale, offset, border = grid
    x = np.random.default_rng(0).integers(element.minimum, element.maximum + 1, (2, *extents, 3)).astype(element.dtype)
    out = check(Resize(mode), *operands(x, scale, offset, border), constants=(1, 2, 3))
    assert out.dtype == ((np.int32 if element == I8 else np.int64) if mode == "BILINEAR" else element.dtype)
    assert (out == spelled_out(x, scale, offset, out.shape, mode == "BILINEAR")).all()


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("element", [F32, F16, BF16, F8E4M3, F8E5M2])
def test_floats_are_resized_to_the_nearest_exactly(grid: Any, element: ElementType) -> None:
    extents, scale, offset, border = grid
    x = np.random.default_rng(1).normal(size=(2, *extents, 3)).astype(element.dtype)
    out = check(Resize("NEAREST_NEIGHBOR"), *operands(x, scale, offset, border), constants=(1, 2, 3))
    assert (out == spelled_out(x, scale, offset, out.shape, False)).all()


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize(("element", "fraction"), [(F32, 23), (F16, 10), (BF16, 7), (F8E4M3, 3), (F8E5M2, 2)])
def test_floats_are_interpolated_far_within_their_bound(grid: Any, element: ElementType, fraction: int) -> None:
    """The specification allows max(20 units, 0.006) of the largest input; four units are enough."""
    extents, scale, offset, border = grid
    x = np.random.default_rng(2).normal(size=(2, *extents, 3)).astype(element.dtype)
    largest = float(np.abs(x.astype(np.float64)).max())
    out = check(Resize("BILINEAR"), *operands(x, scale, offset, border), constants=(1, 2, 3),
                bound=lambda exact, *_: np.full(exact.shape, 4 * 2.0**-fraction * largest))
    expected = spelled_out(x, scale, offset, out.shape, True).astype(np.float64)
    assert np.abs(out.astype(np.float64) - expected).max() <= 4 * 2.0**-fraction * largest


def test_evenly_spaced_rows_are_affine() -> None:
    x = stored(TensorType((1, 5, 4, 2), I8), Buffer("x", "int8", (1, 5, 4, 2)))
    shapes = [stored(TensorType((len(n),), I32), Buffer("s", "int64", (len(n),), "constant", np.array(n)))
              for n in ((1, 2, 1, 1), (0, 0), (0, 0))]
    out = TensorType((1, 3, 4, 2), I8)
    axes = [Axis(f"i{d}", n) for d, n in enumerate(out.dims)]
    found = Resize("NEAREST_NEIGHBOR").element(out, x, *shapes)(*map(Affine.of, axes))
    assert isinstance(found, Load) and found.index[1] == Affine.of(axes[1]) * 2 and found.index[2] == Affine.of(axes[2])


# ---- what is refused ---------------------------------------------------------------------------------------------
BAD: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], str]] = [
    ((1, 4, 4, 1), (0, 1, 1, 1), (0, 0), (0, 0), "the scale of the rows, 0/1, must be positive"),
    ((1, 4, 4, 1), (1, 1, 1, -1), (0, 0), (0, 0), "the scale of the columns, 1/-1, must be positive"),
    ((1, 4, 4, 1), (2049, 1, 1, 1), (0, 0), (0, 0), "must not have more than 2048 above"),
    ((1, 4, 4, 1), (1, 16, 1, 1), (0, 0), (0, 0), "must be above 1/16"),
    ((1, 4, 4, 1), (2, 1, 2, 1), (-3, 0), (0, 0), "the offset of the rows, -3, is outside"),
    ((1, 4, 4, 1), (2, 1, 2, 1), (0, 32), (0, 0), "the offset of the columns, 32, is outside"),
    ((1, 4, 4, 1), (2, 1, 2, 1), (0, 0), (2, 0), "the border of the rows, 2, is outside"),
    ((1, 4, 4, 1), (2, 1, 2, 1), (0, 0), (0, -33), "the border of the columns, -33, is outside"),
    ((1, 4, 4, 1), (1, 2, 1, 1), (0, 0), (0, 0), "3 is not a multiple of 2"),
    ((1, 4, 4, 1), (1, 1, 1, 1), (4, 0), (0, 0), "-1 is not a multiple of 1"),
    ((1, 16384, 4, 1), (1, 3, 1, 1), (0, 0), (0, 0), "16384 rows to 5462"),
    ((1, 4, 9000, 1), (1, 1, 2, 1), (0, 0), (0, 0), "9000 columns to 17999"),
    ((4, 4, 1), (1, 1, 1, 1), (0, 0), (0, 0), "the input must have rank 4"),
    ((1, 4, 4, 1), (1, 1, 1), (0, 0), (0, 0), "the scale has 3 numbers, 4 are needed"),
    ((1, 4, 4, 1), (1, 1, 1, 1), (0,), (0, 0), "the offset has 1 numbers, 2 are needed"),
    ((1, 4, 4, 1), (1, 1, 1, 1), (0, 0), (0, 0, 0), "the border has 3 numbers, 2 are needed"),
]


def given(shape: tuple[int, ...], element: ElementType, *numbers: tuple[int, ...]) -> list[Given]:
    return [unknown(*shape, element=element), *(Given(ShapeType(len(n)), np.array(n, np.int64)) for n in numbers)]


@pytest.mark.parametrize(("shape", "scale", "offset", "border", "message"), BAD, ids=[b[4] for b in BAD])
def test_resize_refuses(shape: Any, scale: Any, offset: Any, border: Any, message: str) -> None:
    with pytest.raises(Problem, match=message):
        Resize("BILINEAR").result_types(given(shape, I8, scale, offset, border))


def test_resize_refuses_types_modes_and_unknown_scales() -> None:
    numbers = ((1, 1, 1, 1), (0, 0), (0, 0))
    with pytest.raises(Problem, match="the input of a resize may not be i32"):
        Resize("BILINEAR").result_types(given((1, 2, 2, 1), I32, *numbers))
    with pytest.raises(Problem, match="CUBIC is no mode of a resize"):
        Resize("CUBIC").result_types(given((1, 2, 2, 1), I8, *numbers))
    with pytest.raises(Problem, match="the scale must be known when compiling"):
        Resize("BILINEAR").result_types([unknown(1, 2, 2, 1, element=I8), unknown(4, element=I32), *(
            Given(ShapeType(n)) for n in (2, 2))])
    shapes = [Given(ShapeType(n)) for n in (4, 2, 2)]
    assert Resize("BILINEAR").result_types([unknown(1, 2, 2, 1, element=I8), *shapes]) \
        == (TensorType((1, None, None, 1), I32),)


def test_the_result_of_integers_is_wide_where_they_are_interpolated() -> None:
    numbers = [np.array(n) for n in ((2, 1, 2, 1), (0, 0), (0, 0))]
    for element, wide in ((I8, I32), (I16, I48), (F16, F16)):
        x = np.zeros((1, 2, 3, 1), element.dtype)
        assert infer(Resize("BILINEAR"), x, *numbers, constants=(1, 2, 3)) == TensorType((1, 3, 5, 1), wide)
        assert infer(Resize("NEAREST"), x, *numbers, constants=(1, 2, 3)) == TensorType((1, 3, 5, 1), element)
