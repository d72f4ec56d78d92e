"""The memory layout of the packed second operand of a product, as data: panels [panel][k / step][limb][step / kr][nr][kr]. This
one description serves NumPy, which packs constants, the loops that pack at run time, and the micro-kernels that load.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....runtime.arena import empty
from ....runtime.records import dataclass
from ...elements.affine import Affine
from ...elements.interpret import numpy_dtype
from ...graph.types import Array
from ..nest.tile_axis import Cut, Piece


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """The layout of panels. `cut` are the panels, each as wide as its vectors (NR); columns beyond the existing ones are
    padding. A panel has `depth` elements of K, padding included, of which `group` (KR) are contiguous. A split number has
    `limbs` limbs, which follow one another for each `step` elements of K."""
    cut: Cut
    depth: int
    group: int = 1
    limbs: int = 1
    step: int = 1

    @property
    def columns(self) -> int:
        """Number of columns of all panels, padding included."""
        return sum(t.count * width_of(vectors) for t, vectors in self.cut)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.columns * self.depth * self.limbs

    def place(self, column: Affine, k: Affine, width: int, limb: int = 0) -> Affine:
        """Return the offset of the elements of K from k on (a multiple of `step`) in the panel that begins with `column` and is
        `width` columns wide."""
        place = column * (self.depth * self.limbs) + k * (width * self.limbs)
        return place + limb * self.step * width if limb else place

    def packed(self, data: Array, dtype: str) -> Array:
        """Return [batch, limb, n, k] packed as [batch, elements], with zeros for padding. Write each element once."""
        batch, limbs, _, terms = data.shape
        step = self.step if limbs > 1 else self.depth
        filled = data if terms == self.depth else np.pad(data, ((0, 0), (0, 0), (0, 0), (0, self.depth - terms)))
        flat = empty((batch, self.size), numpy_dtype(dtype))  # aligned, so that code reads it in place
        end = 0
        for t, vectors in self.cut:
            width, active = width_of(vectors), sum(p.active for p in vectors)
            columns = filled[:, :, t.start:t.start + t.count * active].reshape(
                batch, limbs, t.count, active, -1, step // self.group, self.group)
            start, end = end, end + t.count * width * self.depth * limbs
            panels = flat[:, start:end].reshape(batch, t.count, -1, limbs, step // self.group, width, self.group)
            panels[..., :active, :] = columns.transpose(0, 2, 4, 1, 5, 3, 6)
            panels[..., active:, :] = 0
        return flat


def width_of(vectors: Sequence[Piece]) -> int:
    """Return the number of columns of a panel, padding included."""
    return sum(piece.lanes for piece in vectors)
