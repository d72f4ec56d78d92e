"""Decompositions that PyTorch applies before torch-mlir: those that torch-mlir requests, and a few more for operations that it
cannot lower to TOSA. Each function here defines an ATen operation in terms of others."""
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from .own_decompositions import own_decompositions


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the decompositions by operation, as `ExportedProgram.run_decompositions` takes them."""
    import torch
    from torch._decomp import get_decompositions
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table
    aten = torch.ops.aten
    own = {aten.roll.default: roll, aten.bitwise_and.Scalar: with_tensor(aten.bitwise_and.Tensor),
           aten.bitwise_or.Scalar: with_tensor(aten.bitwise_or.Tensor),
           aten.bitwise_xor.Scalar: with_tensor(aten.bitwise_xor.Tensor)}
    nearest = get_decompositions([aten.upsample_nearest1d, aten.upsample_nearest2d])
    return {**nearest, **get_decomposition_table(), **own_decompositions(), **own}


def roll(x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Rotate elements along axes; without axes, rotate the flattened tensor."""
    import torch
    if not dims:
        return roll(x.flatten(), shifts, (0,)).view(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        extent = x.shape[dim]
        count = shift % extent if extent else 0
        if count:
            x = torch.cat((x.narrow(dim, extent - count, count), x.narrow(dim, 0, extent - count)), dim)
    return x


def spell_out_slices(graph: Any) -> None:
    """Write the bounds that slices omit: torch-mlir does not infer them in programs that were exported again."""
    import torch
    for node in graph.nodes:
        if node.target is torch.ops.aten.slice.Tensor:
            x, dim, start, end, step = list(node.args) + [0, None, None, 1][len(node.args) - 1:]
            node.args = (x, dim, 0 if start is None else start, sys.maxsize if end is None else end, step)


def with_tensor(operation: Any) -> Callable[[Any, Any], Any]:
    """Return an operation on a tensor and a number as one on two tensors."""
    def applied(x: Any, number: Any) -> Any:
        import torch
        return operation(x, torch.full((), number, dtype=x.dtype, device=x.device))
    return applied
