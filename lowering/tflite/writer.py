"""What writes one operator of TensorFlow Lite as operations of TOSA: they are appended to a block, at the operator's place."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.records import dataclass
from ..dialects.tosa.data import Const, ConstShape
from ..dialects.tosa.layout import Reshape
from ..flatbuffer.position import FilePosition
from ..graph.graph import BlockBuilder, Value
from ..graph.operator import Op
from ..graph.types import Array


@dataclass(slots=True)
class Writer:
    """Appends operations to a block."""
    builder: BlockBuilder
    position: FilePosition

    def add(self, op: Op, *operands: Value) -> Value:
        return self.builder.add(op, *operands, position=self.position)[0]

    def constant(self, values: Array) -> Value:
        return self.add(Const(values))

    def shape(self, extents: Sequence[int]) -> Value:
        return self.add(ConstShape(np.array(extents, np.int64)))

    def reshaped(self, x: Value, extents: Sequence[int | None]) -> Value:
        """x in another shape; one extent, of all, may be None and follows."""
        if x.tensor.shape == tuple(extents):
            return x
        return self.add(Reshape(), x, self.shape([-1 if n is None else n for n in extents]))
