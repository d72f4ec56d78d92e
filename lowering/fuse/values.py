"""Values of a graph as fusion sees them: of a static shape, with an axis for each dimension."""
from __future__ import annotations

from ...runtime.errors import Problem
from ..elements.affine import Axis
from ..graph.graph import Value
from ..graph.types import TensorType


def static(value: Value) -> TensorType:
    """Return the type of a value, which must be a tensor with known extents."""
    type = value.tensor
    if not type.is_static:
        raise Problem(f"%{value.name} has the dynamic shape {type}, which does not follow from the inputs", value.position,
                      kind="unsupported", help="declare its extents: its operator has no rule that gives them")
    return type


def axes_of(type: TensorType) -> tuple[Axis, ...]:
    return tuple(Axis(f"i{d}", n) for d, n in enumerate(type.dims))
