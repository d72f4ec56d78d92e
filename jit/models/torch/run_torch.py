"""A PyTorch module run eagerly: a copy of the module, so that its own buffers are not changed."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...source import ImportedSource, Locate, SourceEvaluator, SourceRun

if TYPE_CHECKING:
    from ....lowering.graph.types import Array

Buffers: TypeAlias = "Mapping[str, Array]"


def torch_source(module: Any, program: Any, training: bool, buffers: Buffers, variables: str | None,
                 locate: Locate) -> ImportedSource:
    """Return the source of a module (or of an exported program), called with the nest of `program`'s example inputs. `buffers`
    are those that it writes, with their initial values; as variables they are named `variables`.BUFFER, and without `variables`
    they are the first inputs and results. `locate` compares its nodes."""
    def start(entry: str) -> SourceRun:
        return EagerRun(module, program, training, buffers, variables)

    return ImportedSource("a PyTorch module", (SourceEvaluator("eager PyTorch", "torch", "torch", start),), locate)


class EagerRun:
    """Calls of a copy of the module."""

    def __init__(self, module: Any, program: Any, training: bool, buffers: Buffers, variables: str | None) -> None:
        import copy

        import torch
        self.module = program.module() if isinstance(module, torch.export.ExportedProgram) else copy.deepcopy(module)
        if self.module is not module and isinstance(module, torch.nn.Module) and not training:
            self.module.eval()
        self.structure, self.leaves = structure_of(program)
        self.prefix, self.names = variables, tuple(buffers)
        self.give(buffers)

    def give(self, values: Mapping[str, Array]) -> None:
        """Set the buffers to these values."""
        import torch
        held = dict([*self.module.named_buffers(), *self.module.named_parameters()])
        with torch.no_grad():
            for name, value in values.items():
                held[name].copy_(tensor_of(value))

    def held(self) -> dict[str, Array]:
        held = dict([*self.module.named_buffers(), *self.module.named_parameters()])
        return {name: numpy_of(held[name]).copy() for name in self.names}

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        import torch
        count = len(self.names) if self.prefix is None else 0
        self.give(dict(zip(self.names, arrays[:count])))
        given = iter(map(tensor_of, arrays[count:]))
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = torch.utils._pytree.tree_unflatten(leaves, self.structure)
        fastpath = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            with torch.no_grad():
                found = self.module(*args, **kwargs)
        finally:
            torch.backends.mha.set_fastpath_enabled(fastpath)
        results = [numpy_of(leaf) for leaf in torch.utils._pytree.tree_leaves(found) if isinstance(leaf, torch.Tensor)]
        return [*(self.held().values() if count else ()), *results]

    @property
    def variables(self) -> Mapping[str, Array | None]:
        return {} if self.prefix is None else {f"{self.prefix}.{name}": value for name, value in self.held().items()}


def structure_of(program: Any) -> tuple[Any, list[Any]]:
    import torch
    leaves, structure = torch.utils._pytree.tree_flatten(program.example_inputs)
    return structure, leaves


def tensor_of(array: Array) -> Any:
    import torch
    array = np.require(array, requirements=["C", "W"]) if array.flags.writeable else array.copy()
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def numpy_of(tensor: Any) -> Array:
    import torch
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()
