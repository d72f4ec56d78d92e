"""The tiling of a convolution for a minimal filter, and the layout of transformed tiles in scratch. Plain data and index
arithmetic; `winograd` chooses a tiling, `loops` writes the loops."""
from __future__ import annotations

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Buffer
from ...target.target import Target
from .minimal_filter import TAPS
from .recognise import Convolution


@dataclass(frozen=True, slots=True, eq=False)
class Tiling:
    """Tiles of `filter` x `filter` outputs; `rows` of the `tile_rows` rows of tiles, each of `columns` tiles, are a block.
    `halo` holds the inputs of a block with zeros around them, [row][column][channel]; `inputs` the transformed tiles,
    [place][tile][channel]; `products` their products, [place][tile][output]. The strides of planes are `input_plane` and
    `product_plane` elements, the stride of tiles of inputs is `pitch`: no multiple of many cache lines, since a transform
    stores to all planes at once."""
    filter: int
    rows: int
    tile_rows: int
    columns: int
    pitch: int
    input_plane: int
    product_plane: int
    outputs: int
    halo: Buffer
    inputs: Buffer
    products: Buffer

    @staticmethod
    def of(convolution: Convolution, filter: int, rows: int, target: Target) -> Tiling:
        depth, outputs, name = convolution.channels.extent, convolution.contraction.n.extent, convolution.nest.name
        tile_rows, columns = -(-convolution.height.extent // filter), -(-convolution.width.extent // filter)
        line, places, tiles = target.costs.cache_line_bytes // 4, (filter + TAPS - 1)**2, rows * columns
        pitch = depth + (line if depth * 4 % target.costs.few_sets_stride_bytes == 0 else 0)
        input_plane, product_plane = odd_lines(tiles * pitch, line), odd_lines(tiles * outputs, line)
        halo = (rows * filter + TAPS - 1, columns * filter + TAPS - 1, depth)
        return Tiling(
            filter, rows, tile_rows, columns, pitch, input_plane, product_plane, outputs,
            Buffer(f"{name}.halo", "float32", halo, "scratch"),
            Buffer(f"{name}.inputs", "float32", (places * input_plane,), "scratch"),
            Buffer(f"{name}.products", "float32", (places * product_plane,), "scratch"),
        )

    @property
    def tiles(self) -> int:
        """Number of tiles of a block."""
        return self.rows * self.columns

    @property
    def places(self) -> int:
        """Number of elements of a transformed tile."""
        return (self.filter + TAPS - 1)**2

    @property
    def nbytes(self) -> int:
        """Bytes of scratch of a block."""
        return self.halo.nbytes + self.inputs.nbytes + self.products.nbytes

    def input_place(self, place: Affine | Axis, tile: Affine, channel: Affine) -> Affine:
        return Affine.of(place) * self.input_plane + tile * self.pitch + channel

    def product_place(self, place: Affine | Axis, tile: Affine, output: Affine) -> Affine:
        return Affine.of(place) * self.product_plane + tile * self.outputs + output

    def __str__(self) -> str:
        return f"Winograd F({self.filter}, 3): {self.rows} of {self.tile_rows} rows of {self.columns} tiles at a time"


def odd_lines(elements: int, line: int) -> int:
    """Return the number of elements, rounded up to an odd number of cache lines."""
    return (-(-elements // line) | 1) * line
