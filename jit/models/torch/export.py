"""A PyTorch module as torch.export's program, in operations that torch-mlir knows; and such a program for other shapes.

The module is left as it was. What PyTorch cannot trace is a Problem at the module's own line.
"""
from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ....runtime.errors import Label, Position, Problem, Source, class_of
from ..torch_mlir.to_tosa import package_folder
from .decompositions import decompositions, spell_out_slices
from .plain_state import check_plain_state

MOST_LINES = 8
"""Lines of PyTorch's message that a Problem holds at most."""


def exported(module: Any, inputs: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, training: bool, strict: bool,
             name: str) -> Any:
    """The module as an ExportedProgram; one that is, as it is."""
    import torch
    if isinstance(module, torch.export.ExportedProgram):
        return module
    if not isinstance(module, torch.nn.Module):
        raise Problem(f"from_torch takes a torch.nn.Module or an ExportedProgram, not {class_of(module)}",
                      kind="argument", help="a function of tensors is the forward of a small module")
    with traced(name), mode(module, training):
        check_plain_state(module, inputs, kwargs, name)
        return torch.export.export(module, inputs, dict(kwargs), dynamic_shapes=dynamic_shapes, strict=strict)


def simpler(program: Any, name: str) -> Any:
    """Another program, of simpler operations, in which writes to buffers are results."""
    with traced(name):
        found = program.run_decompositions(decompositions())
    spell_out_slices(found.graph)
    return found


def reexported(program: Any, shapes: Mapping[str, tuple[int, ...]], name: str) -> Any:
    """The program for inputs of these shapes, by name."""
    import torch
    args, kwargs = with_shapes(program, shapes)
    with traced(name):
        return torch.export.export(program.module(), args, kwargs)


def with_shapes(program: Any, shapes: Mapping[str, tuple[int, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example inputs with these shapes."""
    import torch
    leaves, structure = torch.utils._pytree.tree_flatten(program.example_inputs)
    new = [torch.zeros(shapes[name], dtype=leaf.dtype, device=leaf.device) if isinstance(leaf, torch.Tensor) else leaf
           for name, leaf in zip(input_names(program), leaves, strict=True)]
    args, kwargs = torch.utils._pytree.tree_unflatten(new, structure)
    return args, kwargs


def example_shapes(program: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of the example inputs that are tensors."""
    import torch
    leaves = torch.utils._pytree.tree_leaves(program.example_inputs)
    return {name: tuple(leaf.shape) for name, leaf in zip(input_names(program), leaves, strict=True)
            if isinstance(leaf, torch.Tensor)}


def input_names(program: Any) -> list[str]:
    from torch.export.graph_signature import InputKind
    return [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]


@contextmanager
def traced(name: str) -> Iterator[None]:
    """Around what PyTorch traces: without warnings of what its own code will have to change, attention in parts that there are
    lowerings for and not as one call of a whole encoder layer; what fails is a Problem."""
    import torch
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    except Problem:
        raise
    except Exception as error:
        raise untraceable(error, name) from error
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


@contextmanager
def mode(module: Any, training: bool) -> Iterator[None]:
    """With every module in its mode for inference, unless `training`."""
    modules = [] if training else [m for m in module.modules() if m.training]
    for inner in modules:
        inner.training = False
    try:
        yield
    finally:
        for inner in modules:
            inner.training = True


def untraceable(error: Exception, name: str) -> Problem:
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    first = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    return Problem(f"torch.export cannot trace {name}: {first}", own_line(error), kind="unsupported",
                   labels=tuple(Label(None, line[:300]) for line in lines[1:MOST_LINES]),
                   help="forward must run on the example inputs, its control flow must not depend on values of tensors, and "
                   "what dynamic_shapes leaves open must be able to vary")


def own_line(error: Exception) -> Position | None:
    """The last line of Python in its traceback that is neither PyTorch's nor of this package."""
    others = (package_folder("torch"), package_folder("torch_mlir"), str(Path(__file__).parents[2]) + os.sep)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((*others, "<"))]
    return Position(Source(frames[-1].filename), frames[-1].lineno or 1, 1) if frames else None
