"""Decompositions of PyTorch operations that torch-mlir lowers to TOSA only in some forms, into operations that it lowers in
all: grouped convolutions, dilated windows and windows with indices, elements that are added or copied by index, order
statistics, distances.

A function that returns NotImplemented leaves the operation unchanged.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any


def own_decompositions() -> dict[Any, Callable[..., Any]]:
    import torch
    aten = torch.ops.aten
    return {aten.convolution.default: convolution, aten.scatter_add.default: scatter_add, aten.index_add.default: index_add,
            aten.index_copy.default: index_copy, aten.avg_pool3d.default: average_pool_3d,
            aten.max_pool2d_with_indices.default: max_pool_with_indices, aten.max_pool2d.default: max_pool,
            aten.adaptive_max_pool2d.default: adaptive_max_pool, aten.median.dim: median, aten.kthvalue.default: kth_value,
            aten._cdist_forward.default: distances, aten.__lshift__.Scalar: shifted_left, aten.col2im.default: folded}


# ---- convolutions ----------------------------------------------------------------------------------------------------
def convolution(x: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
                transposed: bool, output_padding: Sequence[int], groups: int) -> Any:
    """Decompose a grouped convolution into one for each group if torch-mlir does not lower the groups: in three dimensions,
    transposed, or with several channels per group and a stride. A dilated transposed convolution gets a kernel with zeros
    between its taps."""
    import torch
    if transposed and any(d != 1 for d in dilation):
        weight, dilation = spread(weight, dilation), [1] * len(dilation)
        return convolution_of(x, weight, bias, stride, padding, dilation, True, output_padding, groups)
    is_taken = groups == 1 or (not transposed and weight.dim() <= 4 and (weight.shape[1] == 1 or set(stride) == {1}))
    if is_taken:
        return NotImplemented
    parts = [x.chunk(groups, 1), weight.chunk(groups, 0), [None] * groups if bias is None else bias.chunk(groups, 0)]
    return torch.cat([convolution_of(a, w, b, stride, padding, dilation, transposed, output_padding, 1)
                      for a, w, b in zip(*parts, strict=True)], 1)


def convolution_of(*arguments: Any) -> Any:
    import torch
    return torch.ops.aten.convolution.default(*arguments)


def spread(weight: Any, dilation: Sequence[int]) -> Any:
    """Insert zeros between the taps."""
    import torch
    for dim, gap in enumerate(dilation, 2):
        if gap > 1:
            taps = weight.unsqueeze(dim + 1)
            zeros = torch.zeros_like(taps).repeat_interleave(gap - 1, dim + 1) if gap > 2 else torch.zeros_like(taps)
            wide = torch.cat([taps, zeros], dim + 1).flatten(dim, dim + 1)
            weight = wide.narrow(dim, 0, wide.shape[dim] - gap + 1)
    return weight


def folded(x: Any, output_size: Sequence[int], kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
           stride: Sequence[int]) -> Any:
    """Fold columns of windows back into an image: a transposed convolution, in which each tap adds its own number at its
    position."""
    import torch
    taps = kernel_size[0] * kernel_size[1]
    places = [(n + 2 * p - d * (k - 1) - 1) // s + 1
              for n, p, d, k, s in zip(output_size, padding, dilation, kernel_size, stride, strict=True)]
    image = x.reshape(-1, taps, *places)
    weight = torch.eye(taps, dtype=x.dtype).view(taps, 1, *kernel_size)
    rest = [n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
            for n, m, s, p, d, k in zip(output_size, places, stride, padding, dilation, kernel_size, strict=True)]
    found = convolution_of(image, weight, None, stride, padding, dilation, True, rest, 1)
    return found.reshape(*x.shape[:-2], x.shape[-2] // taps, *output_size)


# ---- by numbers ------------------------------------------------------------------------------------------------------
def hits(index: Any, extent: int) -> Any:
    """Return a mask [extent, W]: which of W indices select each row; negative indices count from the end."""
    import torch
    rows = torch.arange(extent, dtype=index.dtype)
    return torch.where(index < 0, index + extent, index).unsqueeze(0) == rows.unsqueeze(1)


def index_add(x: Any, dim: int, index: Any, source: Any, alpha: float = 1) -> Any:
    import torch
    moved, parts = x.movedim(dim, 0), source.movedim(dim, 0)
    hit = hits(index.reshape(-1), moved.shape[0]).view(moved.shape[0], -1, *(1,) * (moved.dim() - 1))
    total = torch.where(hit, parts.unsqueeze(0), torch.zeros((), dtype=x.dtype)).sum(1, dtype=x.dtype)
    return (moved + (total if alpha == 1 else total * alpha)).movedim(0, dim)


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    """If several indices select the same row, the last one applies."""
    import torch
    moved, parts = x.movedim(dim, 0), source.movedim(dim, 0)
    hit = hits(index.reshape(-1), moved.shape[0])
    order = torch.arange(1, hit.shape[1] + 1, dtype=torch.int64)
    last = torch.where(hit, order, torch.zeros_like(order)).amax(1)
    taken = parts.index_select(0, (last - 1).clamp(min=0))
    return torch.where((last > 0).view(-1, *(1,) * (moved.dim() - 1)), taken, moved).movedim(0, dim)


def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    import torch
    dim %= max(x.dim(), 1)
    if not x.dim():
        return NotImplemented
    source = source[tuple(slice(0, n) for n in index.shape)]
    rows = torch.arange(x.shape[dim], dtype=index.dtype).view(*(-1 if d == dim else 1 for d in range(x.dim())))
    hit = index.unsqueeze(dim) == rows.unsqueeze(dim + 1)
    total = torch.where(hit, source.unsqueeze(dim), torch.zeros((), dtype=x.dtype)).sum(dim + 1, dtype=x.dtype)
    missing = [x.shape[d] - total.shape[d] for d in range(x.dim())]
    if any(missing):
        total = torch.nn.functional.pad(total, [n for m in reversed(missing) for n in (0, m)])
    return x + total


def shifted_left(x: Any, count: int) -> Any:
    """Multiply by a power of two, as a number of the integers' own type."""
    import torch
    if x.dtype.is_floating_point or x.dtype == torch.bool:
        return NotImplemented
    bits = torch.iinfo(x.dtype).bits
    factor = 1 << int(count)
    return x * (factor - (1 << bits) if factor == 1 << (bits - 1) else factor)


# ---- windows ---------------------------------------------------------------------------------------------------------
def pair(numbers: Sequence[int]) -> tuple[int, int]:
    return (numbers[0], numbers[-1])


def average_pool_3d(x: Any, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
                    ceil_mode: bool = False, count_include_pad: bool = True, divisor: int | None = None) -> Any:
    """Pool along the first axis, and then in its planes: the mean of means of equally many elements."""
    import torch
    pool = torch.nn.functional.avg_pool2d
    if ceil_mode or divisor is not None or (any(padding) and not count_include_pad):
        return NotImplemented
    (d, h, w), (pd, ph, pw) = (tuple(v) * 3 if len(v) == 1 else tuple(v) for v in (kernel, padding))
    sd, sh, sw = tuple(stride) * 3 if len(stride) == 1 else tuple(stride) or (d, h, w)
    *outer, depth, height, width = x.shape
    found = pool(x.reshape(1, -1, depth, height * width), (d, 1), (sd, 1), (pd, 0))
    found = pool(found.reshape(1, -1, height, width), (h, w), (sh, sw), (ph, pw))
    return found.reshape(*outer, -1, *found.shape[-2:])


def taps_of(x: Any, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Any:
    """Yield, for each tap of the kernel, the elements that all windows read at it, and their indices in the plane; the image is
    padded with the minimum of its type."""
    import torch
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = map(pair, (kernel, stride or kernel, padding, dilation))
    least = float("-inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    wide = torch.nn.functional.pad(x, (pw, pw, ph, ph), value=least) if ph or pw else x
    oh, ow = ((n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(wide.shape[-2:], (dh, dw), (kh, kw), (sh, sw), strict=True))
    for i, j in itertools.product(range(kh), range(kw)):
        seen = wide[..., i * dh:i * dh + (oh - 1) * sh + 1:sh, j * dw:j * dw + (ow - 1) * sw + 1:sw]
        rows = torch.arange(oh, dtype=torch.int64).view(-1, 1) * sh + i * dh - ph
        columns = torch.arange(ow, dtype=torch.int64) * sw + j * dw - pw
        yield seen, rows * x.shape[-1] + columns


def max_pool(x: Any, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
             dilation: Sequence[int] = (1,), ceil_mode: bool = False) -> Any:
    import torch
    if ceil_mode or set(dilation) == {1}:
        return NotImplemented
    found: Any = None
    for seen, _ in taps_of(x, kernel, stride, padding, dilation):
        found = seen if found is None else torch.maximum(found, seen)
    return found


def max_pool_with_indices(x: Any, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
                          dilation: Sequence[int] = (1,), ceil_mode: bool = False) -> Any:
    """Return the maxima, and the index in the plane of the first of equal numbers."""
    import torch
    if ceil_mode:
        return NotImplemented
    found: Any = None
    places: Any = None
    for seen, place in taps_of(x, kernel, stride, padding, dilation):
        here = place.expand(seen.shape)
        if found is None:
            found, places = seen, here
            continue
        better = seen > found
        found, places = torch.where(better, seen, found), torch.where(better, here, places)
    return found, places


def adaptive_max_pool(x: Any, size: Sequence[int]) -> Any:
    """Return the maximum of each part of the plane, and its index."""
    import torch
    height, width = x.shape[-2:]
    rows, columns = ([(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
                     for n, m in zip((height, width), pair(size), strict=True))
    values, places = [], []
    for (top, bottom), (left, right) in itertools.product(rows, columns):
        part = x[..., top:bottom, left:right]
        flat = part.flatten(-2)
        at = flat.argmax(-1)
        values.append(flat.amax(-1))
        across = right - left
        row = torch.div(at, across, rounding_mode="floor")
        places.append((row + top) * width + at - row * across + left)
    shape = (*x.shape[:-2], *pair(size))
    return torch.stack(values, -1).view(shape), torch.stack(places, -1).view(shape)


# ---- order and distance ----------------------------------------------------------------------------------------------
def kth_value(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, places = x.sort(dim)
    found = [v.narrow(dim, k - 1, 1) for v in (values, places)]
    return tuple(found if keepdim else (v.squeeze(dim) for v in found))


def median(x: Any, dim: int, keepdim: bool = False) -> Any:
    return kth_value(x, (x.shape[dim] + 1) // 2, dim, keepdim)


def distances(x: Any, y: Any, p: float, mode: int | None = None) -> Any:
    between = (x.unsqueeze(-2) - y.unsqueeze(-3)).abs()
    if p == 2:
        return (between * between).sum(-1).sqrt()
    if p == 1:
        return between.sum(-1)
    return between.amax(-1) if p == float("inf") else NotImplemented
