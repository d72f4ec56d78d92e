"""RESIZE: a resized image, by the nearest pixel or by bilinear interpolation."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....runtime.errors import require
from ...elements.affine import Affine
from ...elements.expression import Expr, cast
from ...elements.tensor import ConstantTable, Element, Tensor, gathered
from ...graph.operator import Op, Operand, attribute
from ...graph.types import (
    BF16,
    F4E2M1,
    F6E2M3,
    F6E3M2,
    F8E4M3,
    F8E5M2,
    F8E8M0,
    F16,
    F32,
    I8,
    I16,
    I32,
    I48,
    MXINT8,
    Array,
    ElementType,
    TensorType,
)
from .elementwise import rounded
from .operands import extents as numbers
from .operands import one_of, ranked, tensor
from .product_types import COMPOSITES

BILINEAR: dict[ElementType, ElementType] = {
    I8: I32, I16: I48, F8E4M3: F8E4M3, F8E5M2: F8E5M2, F16: F16, BF16: BF16, F32: F32}
"""Type of the input: type of an interpolated result. An integer carries the product of both scales."""
NEAREST = (*BILINEAR, *COMPOSITES, F6E2M3, F6E3M2, F4E2M1, F8E8M0, MXINT8)
"""Input types for NEAREST_NEIGHBOR, including the parts of a block-scaled tensor (`rewrite/decompose.py`)."""
LARGEST_EXTENT, LARGEST_SCALE = 16383, 1 << 11


class Resize(Op, name="tosa.resize"):
    """Output row o lies at (o * scale_d + offset) / scale_n in the input. `scale` holds n and d for rows, then for
    columns; `offset` and `border` one number for rows, one for columns. TOSA 1.0, image operators."""
    mode: str = attribute("resize_mode")

    def infer(self, x: Operand, scale: Operand, offset: Operand, border: Operand) -> TensorType:
        batch, *extents, channels = ranked(x, 4, "the input")
        element = one_of(tensor(x, "the input").element, tuple(BILINEAR) if self.is_bilinear else NEAREST,
                         "the input of a resize")
        require(self.mode in ("NEAREST_NEIGHBOR", "NEAREST", "BILINEAR"), f"{self.mode} is no mode of a resize",
                kind="attribute", help="NEAREST_NEIGHBOR or BILINEAR")
        scales, offsets, borders = (numbers(operand, what, length) for operand, what, length in
                                    ((scale, "the scale", 4), (offset, "the offset", 2), (border, "the border", 2)))
        places = [output_extent(extents[d], scales[2 * d], scales[2 * d + 1], offsets[d], borders[d],
                                ("rows", "columns")[d]) for d in range(2)]
        return TensorType((batch, *places, channels), BILINEAR[element] if self.is_bilinear else element)

    @property
    def is_bilinear(self) -> bool:
        return self.mode == "BILINEAR"

    def reference(self, x: Array, scale: Array, offset: Array, border: Array) -> Array:
        floats = x.dtype.kind not in "iu"
        numbers = zip(x.shape[1:3], scale[0::2].tolist(), scale[1::2].tolist(), offset.tolist(), border.tolist())
        (y0, y1, dy, unit_y), (x0, x1, dx, unit_x) = (neighbours(*n, floats) for n in numbers)
        if not self.is_bilinear:
            rows = np.where(2 * dy >= unit_y, y1, y0)
            return x[:, rows][:, :, np.where(2 * dx >= unit_x, x1, x0)]
        wide = x.astype(np.float64 if floats else np.int64)
        dy, dx = dy[:, None, None], dx[:, None]
        left, right = wide[:, :, x0] * (unit_x - dx), wide[:, :, x1] * dx
        result = (left[:, y0] + right[:, y0]) * (unit_y - dy) + (left[:, y1] + right[:, y1]) * dy
        return rounded(result, x.dtype if floats else np.dtype(np.int32 if x.dtype == np.int8 else np.int64))

    def element(self, out: TensorType, x: Tensor, scale: Tensor, offset: Tensor, border: Tensor) -> Element:
        scales, starts = scale.integers, offset.integers
        dtype = "float32" if out.element.is_float else out.element.storage
        rows = InterpolatedLine.of(x.type.dims[1], out.dims[1], scales[0], scales[1], starts[0], dtype)
        columns = InterpolatedLine.of(x.type.dims[2], out.dims[2], scales[2], scales[3], starts[1], dtype)
        if not self.is_bilinear:
            return lambda n, oh, ow, c: x[n, rows.nearest(oh), columns.nearest(ow), c]

        def element(n: Affine, oh: Affine, ow: Affine, c: Affine) -> Expr:
            def between(row: Affine) -> Expr:
                left, right = (cast(x[n, row, column, c], dtype) for column in columns.pair(ow))
                return left * columns.near(ow) + right * columns.far(ow)

            above, below = map(between, rows.pair(oh))
            return cast(above * rows.near(oh) + below * rows.far(oh), out.element.storage)

        return element


def output_extent(extent: int | None, n: int | None, d: int | None, offset: int | None, border: int | None, what: str
                  ) -> int | None:
    """Return the output's rows or columns, after checking the numbers along one axis as far as they are known."""
    if n is None or d is None or offset is None or border is None:
        return None
    require(n > 0 and d > 0, f"the scale of the {what}, {n}/{d}, must be positive", kind="shape")
    require(n <= LARGEST_SCALE, f"the scale of the {what}, {n}/{d}, must not have more than {LARGEST_SCALE} above",
            kind="shape")
    require(d < 16 * n, f"the scale of the {what}, {n}/{d}, must be above 1/16", kind="shape")
    require(-n <= offset < 16 * n, f"the offset of the {what}, {offset}, is outside [{-n}, {16 * n})", kind="shape")
    require(-16 * n <= border < n, f"the border of the {what}, {border}, is outside [{-16 * n}, {n})", kind="shape")
    if extent is None:
        return None
    length = (extent - 1) * n - offset + border
    require(length >= 0 and length % d == 0, f"scale {n}/{d}, offset {offset} and border {border} do not fit {extent} "
            f"{what}: {length} is not a multiple of {d}", kind="shape")
    require(max(extent, length // d + 1) <= LARGEST_EXTENT,
            f"{extent} {what} to {length // d + 1}: there may be {LARGEST_EXTENT}", kind="shape")
    return length // d + 1


class InterpolatedLine(NamedTuple):
    """For each row (or column) of the output: the two input rows around it, its nearness to each, and the nearest."""
    extent: int
    first: ConstantTable
    second: ConstantTable
    near: ConstantTable
    far: ConstantTable
    closest: ConstantTable

    @staticmethod
    def of(extent: int, places: int, n: int, d: int, offset: int, dtype: str) -> InterpolatedLine:
        position = np.arange(places) * d + offset
        whole, rest = np.divmod(position, n)
        first, second = np.maximum(whole, 0), np.minimum(whole + 1, extent - 1)
        unit = n if dtype != "float32" else 1
        far = rest if dtype != "float32" else (rest / n).astype("f4")
        return InterpolatedLine(
            extent,
            ConstantTable(first, "int32"),
            ConstantTable(second, "int32"),
            ConstantTable(unit - far, dtype),
            ConstantTable(far, dtype),
            ConstantTable(np.where(2 * rest >= n, second, first), "int32"),
        )

    def pair(self, place: Affine) -> tuple[Affine, Affine]:
        return self.at(self.first, place), self.at(self.second, place)

    def nearest(self, place: Affine) -> Affine:
        return self.at(self.closest, place)

    def at(self, table: ConstantTable, place: Affine) -> Affine:
        """Return entry `place` as an index: affine if the entries rise evenly, otherwise computed at run time."""
        values = table.buffer.data
        assert values is not None
        step = int(values[1] - values[0]) if len(values) > 1 else 0
        if (np.diff(values) == step).all():
            return place * step + int(values[0])
        return gathered(table(place), self.extent)


def neighbours(extent: int, n: int, d: int, offset: int, border: int, floats: bool
               ) -> tuple[Array, Array, Array, int]:
    """Return, for each output along an axis, the inputs before and after it, the distance from the first, and the unit of
    distances."""
    places = ((extent - 1) * n - offset + border) // d + 1
    position = np.arange(places, dtype=np.int64) * d + offset
    index = position // n
    distance = position - index * n
    before, after = index.clip(0), (index + 1).clip(None, extent - 1)
    return (before, after, distance / n, 1) if floats else (before, after, distance, n)
