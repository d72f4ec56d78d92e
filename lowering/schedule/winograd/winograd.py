"""The Winograd strategy: choose the minimal filter of a convolution and the rows of tiles of a block, and decide whether they
are faster than the direct sums. A heuristic by pattern and machine; `loops` writes the loops."""
from __future__ import annotations

from collections.abc import Iterator

from ....runtime.records import dataclass
from ...elements.affine import Affine, Axis
from ...elements.expression import Apply, Buffer, Load, Reduce
from ...elements.traverse import loads
from ...kernels.kernel import Kernel
from ...loops.builder import Builder
from ...target.target import Target
from ..contraction.contraction_strategies import ContractionStrategy, of_pattern
from ..contraction.recognise import recognise as contraction_of
from ..nest.loop_nest import Nest, flatten
from ..nest.row_range import RowRange
from ..strategy import Constraints, Strategy
from . import loops
from .minimal_filter import POINTS, TAPS, MinimalFilter
from .recognise import Convolution, recognise
from .tiling import Tiling

MIN_TILES = 6
"""Minimum rows of a product of transformed tiles: with fewer, weights come from memory for hardly any work. Chosen."""
TRANSFORM_OPERATION_CYCLES = 0.55
"""Cycles of a transform operation on a vector, with its share of loads and stores. Measured: F(4, 3) of 56 x 56 x 64,
AVX-512."""
TRIED_BLOCKS = 2
"""Number of block sizes, for each filter, that a measured search tries."""
MIN_SAVED_FRACTION = 0.15
"""Minimum fraction of the cycles that a filter must save, because its results are less exact. Chosen."""


@dataclass(frozen=True, slots=True)
class Winograd(Strategy):
    """The strategy for a convolution by a minimal filter, which takes a whole kernel. `product` multiplies the transformed
    tiles of a block by the transformed weights."""
    nest: Nest
    target: Target
    convolution: Convolution
    tiling: Tiling
    product: ContractionStrategy

    @staticmethod
    def recognise(kernel: Kernel, constraints: Constraints) -> Winograd | None:
        """Return the filter that takes the fewest cycles; None if it does not save enough of the cycles of the direct sums."""
        found = None if constraints.by_rows else convolution_of(kernel, constraints.target)
        if found is None:
            return None
        tiling = next(iter(tilings(found, constraints.target)), None)
        direct = direct_cycles(found, constraints.target)
        if tiling is None or cycles(found, tiling, constraints.target) > (1 - MIN_SAVED_FRACTION) * direct:
            return None
        return of(found, tiling, constraints.target)

    def lower(self, b: Builder, rows: RowRange | None) -> None:
        loops.lower(b, self.convolution, self.tiling, self.product, self.target)

    def alternatives(self) -> Iterator[Winograd]:
        """Return each filter with blocks of several sizes."""
        return (of(self.convolution, t, self.target) for t in tilings(self.convolution, self.target))

    def __str__(self) -> str:
        return f"{self.tiling}; {self.product}"


def convolution_of(kernel: Kernel, target: Target) -> Convolution | None:
    """Return the convolution that a kernel computes, on a machine with vectors of float32, or None."""
    if target.lanes(4) == 1 or any(x.buffer is kernel.out for x in loads(kernel.value)):
        return None
    return recognise(flatten(kernel))


def refusal(kernel: Kernel, target: Target) -> str | None:
    """Return the reason why a kernel uses direct sums although minimal filters are allowed; None if it uses a filter."""
    found = convolution_of(kernel, target)
    if found is None:
        return "it is no convolution of 3 x 3 with known weights, stride 1 and dilation 1"
    return None if Winograd.recognise(kernel, Constraints(target)) else "that is faster"


def of(convolution: Convolution, tiling: Tiling, target: Target) -> Winograd:
    return Winograd(convolution.nest, target, convolution, tiling, product_of(convolution, tiling, target))


def product_of(convolution: Convolution, tiling: Tiling, target: Target) -> ContractionStrategy:
    """Return the strategy for
    products[place, tile, output] = sum over channels of inputs[place, tile, channel] * weights[place, channel, output]."""
    contraction = convolution.contraction
    name, depth, n = contraction.nest.name, convolution.channels.extent, contraction.n.extent
    weights = MinimalFilter.of(tiling.filter).of_weights(convolution.weights()).reshape(tiling.places, depth, n)
    place, tile, output, k = Axis("place", tiling.places), Axis("tile", tiling.tiles), Axis("n", n), Axis("k", depth)
    constant = Buffer(f"{name}.transformed", "float32", (weights.size,), "constant", weights.reshape(-1))
    a = Load(tiling.inputs, (tiling.input_place(place, Affine.of(tile), Affine.of(k)),))
    b = Load(constant, (Affine.of(place) * (depth * n) + Affine.of(k) * n + output,))
    total = Reduce("add", (k,), Apply("mul", (a, b), "float32"), ())
    index = tiling.product_place(place, Affine.of(tile), Affine.of(output))
    pattern = contraction_of(Nest(f"{name}.product", tiling.products, (place, tile, output), index, total), False)
    assert pattern is not None
    return of_pattern(pattern, Constraints(target))


# ---- cost ------------------------------------------------------------------------------------------------------------
def tilings(convolution: Convolution, target: Target) -> list[Tiling]:
    """Return each filter with the blocks that take the fewest cycles and the next best blocks, sorted by cycles."""
    found = []
    for size in POINTS:
        rows = -(-convolution.height.extent // size)
        each = [Tiling.of(convolution, size, n, target) for n in range(1, rows + 1) if rows % n == 0]
        enough = [t for t in each if t.tiles >= MIN_TILES]
        found += sorted(enough, key=lambda t: cycles(convolution, t, target))[:TRIED_BLOCKS]
    return sorted(found, key=lambda t: cycles(convolution, t, target))


def cycles(convolution: Convolution, tiling: Tiling, target: Target) -> float:
    """Return the cycles of one image: the products, the loads of weights that exceed the second-level cache, the transforms,
    the copies of inputs, and the part of a block that is no longer in that cache when it is read again."""
    depth, n, lanes, filter = convolution.channels.extent, convolution.contraction.n.extent, target.lanes(4), MinimalFilter.of(
        tiling.filter)
    blocks = tiling.tile_rows // tiling.rows
    products = blocks * tiling.places * product_cycles(tiling.tiles, depth, n, target)
    weights = tiling.places * depth * n * 4
    far = blocks * max(weights - target.block_bytes, 0) / target.costs.memory_bytes_per_cycle
    spilled = 2 * blocks * max(tiling.nbytes - target.l2_bytes, 0) / target.costs.l3_bytes_per_cycle
    transforms = (operations(filter.inputs) * (2 * filter.width) + 2 * tiling.places) * -(-depth // lanes) + (
        operations(filter.outputs) * (filter.width + filter.size) + 2 * tiling.places) * -(-n // lanes)
    copied = tiling.halo.size / lanes * 2 * blocks
    return products + far + blocks * tiling.tiles * transforms * TRANSFORM_OPERATION_CYCLES + copied + spilled


def direct_cycles(convolution: Convolution, target: Target) -> float:
    """Return the cycles of the direct sums of one image."""
    depth, n = convolution.channels.extent, convolution.contraction.n.extent
    rows = convolution.height.extent * convolution.width.extent
    weights = TAPS * TAPS * depth * n * 4
    far = weights / target.costs.l3_bytes_per_cycle if weights > target.block_bytes else 0.0
    return max(product_cycles(rows, TAPS * TAPS * depth, n, target), far)


def product_cycles(rows: int, depth: int, n: int, target: Target) -> float:
    return rows * depth * -(-n // target.lanes(4)) / target.fma_per_cycle * 1.1


def operations(rows: tuple[tuple[float, ...], ...]) -> int:
    """Return the number of vector operations of a multiplication by a matrix."""
    return sum(max(sum(x != 0 for x in row) - 1, 0) for row in rows)
