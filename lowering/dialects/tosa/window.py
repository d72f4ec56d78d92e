"""Windows that slide over spatial axes, for the type rules and the references of convolutions and pools.

`pad` holds before and after per spatial axis (top, bottom, left, right; front and back first in 3-D); `kernel`, `stride` and
`dilation` hold one number per spatial axis.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....runtime.errors import require


def check(name: str, numbers: Sequence[int], length: int, minimum: int) -> None:
    """Check that an attribute has that many numbers, none of them below `minimum`."""
    require(len(numbers) == length, f"{name} has {len(numbers)} numbers, {length} are needed", kind="attribute")
    require(all(n >= minimum for n in numbers), f"{name} must not be below {minimum}, it is {list(numbers)}",
            kind="attribute")


def output_extent(extent: int | None, kernel: int | None, before: int, after: int, stride: int, dilation: int = 1
                  ) -> int | None:
    """Return the number of window positions along one axis; the stride must end exactly at the last one."""
    if extent is None or kernel is None:
        return None
    room = extent - 1 + before + after - (kernel - 1) * dilation
    sizes = f"input {extent}, kernel {kernel}, dilation {dilation}, padding {before} and {after}"
    require(room >= 0, f"the window is larger than its input: {sizes}", kind="shape")
    require(room % stride == 0, f"the stride {stride} does not divide {room}, the window's way to go: {sizes}",
            kind="shape", help=f"pad {stride - room % stride} more, or slice {room % stride} from the input")
    return room // stride + 1


def output_extents(extents: Sequence[int | None], kernel: Sequence[int | None], pad: Sequence[int],
                   stride: Sequence[int], dilation: Sequence[int]) -> tuple[int | None, ...]:
    """Return `output_extent` for all spatial axes."""
    return tuple(output_extent(extents[d], kernel[d], pad[2 * d], pad[2 * d + 1], stride[d], dilation[d])
                 for d in range(len(extents)))


Places = tuple[int, list[tuple[slice, slice]]]


def window_slices(extent: int, kernel: int, pad: Sequence[int], stride: int, dilation: int = 1) -> Places:
    """Return the number of window positions along an axis and, for each kernel offset, the slice of outputs whose input is not
    padding, and the slice of these inputs."""
    before, after = pad
    places = (extent - 1 + before + after - (kernel - 1) * dilation) // stride + 1
    slices = []
    for k in range(kernel):
        first = k * dilation - before
        low = max(0, -(first // stride))
        high = max(low, min(places, (extent - 1 - first) // stride + 1))
        start = first + low * stride
        slices.append((slice(low, high), slice(start, start + (high - low) * stride, stride)))
    return places, slices
