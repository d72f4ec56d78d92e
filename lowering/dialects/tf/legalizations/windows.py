"""The common base of convolutions and pools: the order of their axes, and the positions of their windows.

TOSA has channels last, and requires the last window to end where its input ends: TensorFlow drops the elements that a stride
leaves over, so the trailing padding is reduced, and the input cropped if that is not enough.
"""
from __future__ import annotations

from collections.abc import Sequence

from .....runtime.errors import Problem
from .....runtime.records import dataclass
from ....formulas.windows import Ints, Pads, Window, reach, same_pads
from ....graph.foreign import find, string
from ....graph.graph import Operation, Value
from ...emitter import Emitter


@dataclass(frozen=True, slots=True)
class AxisOrder:
    """The order of axes of an operation with `spatial` spatial axes."""
    operation: Operation
    spatial: int
    channels_first: bool

    @staticmethod
    def of(operation: Operation, x: Value, spatial: int) -> AxisOrder:
        """Return the axis order of `data_format`, for an input that must have the spatial axes and two more."""
        if x.tensor.rank != spatial + 2:
            raise Problem(f"the input is {x.type}, a tensor of rank {spatial + 2} is needed", kind="shape")
        return AxisOrder(operation, spatial, channels_first(operation, spatial))

    def last(self, e: Emitter, x: Value) -> Value:
        """Return x with the channels last."""
        return e.transpose(x, (0, *range(2, self.spatial + 2), 1)) if self.channels_first else x

    def as_written(self, e: Emitter, x: Value) -> Value:
        """Return x in the operation's own order."""
        return e.transpose(x, (0, self.spatial + 1, *range(1, self.spatial + 1))) if self.channels_first else x

    def inner(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return the entries of the spatial axes from a list with one number for each axis."""
        return tuple(dims[2:] if self.channels_first else dims[1:-1])

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return the spatial entries of an attribute with one number for each axis, whose entries for batch and channels must
        be 1."""
        found = integers(self.operation, name) or (1,) * (self.spatial + 2)
        if len(found) != self.spatial + 2 or min(found) < 1:
            raise Problem(f"{name} is {list(found)}: {self.spatial + 2} positive numbers are needed", kind="attribute")
        inner = self.inner(found)
        if sum(found) != sum(inner) + 2:
            raise Problem(f"{name} is {list(found)}: along batch and channels only 1 is known", kind="unsupported")
        return inner

    def window(self, extents: Sequence[int], kernel: Ints, dilations: Ints) -> Window:
        """Return the window over an input of these extents, from `strides` and `padding`."""
        strides = self.numbers("strides")
        return Window(kernel, strides, dilations, self.pads(extents, reach(kernel, dilations), strides))

    def pads(self, extents: Sequence[int], reach: Sequence[int], strides: Sequence[int]) -> Pads:
        """Return the padding of the input, for windows with this reach."""
        match string(self.operation, "padding"):
            case "VALID":
                return [(0, 0)] * self.spatial
            case "SAME":
                return [same_pads(n, k, s) for n, k, s in zip(extents, reach, strides)]
            case "EXPLICIT":
                return self.explicit_pads()
            case other:
                raise Problem(f"the padding {other} is not known", kind="unsupported", help="SAME, VALID or EXPLICIT")

    def explicit_pads(self) -> Pads:
        found = integers(self.operation, "explicit_paddings")
        if len(found) != 2 * (self.spatial + 2) or min(found) < 0:
            raise Problem(f"explicit_paddings is {list(found)}: two numbers for each of {self.spatial + 2} axes are needed, "
                          "none below 0", kind="attribute")
        inner = found[4:] if self.channels_first else found[2:-2]
        if sum(found) != sum(inner):
            raise Problem(f"explicit_paddings is {list(found)}: batch and channels cannot be padded", kind="unsupported")
        return list(zip(inner[::2], inner[1::2]))


def channels_first(operation: Operation, spatial: int) -> bool:
    """True if channels directly follow the batch."""
    found = find(operation, "data_format", "") or "last"
    if found in ("last", *(("NHWC",) if spatial == 2 else ("NDHWC",))):
        return False
    if found == ("NCHW" if spatial == 2 else "NCDHW"):
        return True
    raise Problem(f"the data format {found} is not known", kind="unsupported",
                  help="NHWC or NCHW" if spatial == 2 else "NDHWC or NCDHW")


def integers(operation: Operation, name: str) -> tuple[int, ...]:
    """Return an attribute that is a list of integers; empty if it is absent."""
    found = find(operation, name) or ()
    if not all(isinstance(getattr(v, "value", None), int) for v in found):
        raise Problem(f"{name} must be a list of integers", kind="attribute")
    return tuple(int(v.value) for v in found)
