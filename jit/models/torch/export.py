"""A PyTorch module as torch.export's program, in operations that torch-mlir knows; and the same program for other shapes.

The module is not changed. Code that PyTorch cannot trace is a Problem at the module's own line.
"""
from __future__ import annotations

import copy
import os
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....runtime.errors import Label, Position, Problem, Source, class_of
from ..torch_mlir.to_tosa import package_folder
from .decompositions import decompositions, spell_out_slices
from .plain_state import check_plain_state

MOST_LINES = 8
"""Maximum number of lines of PyTorch's message in a Problem."""


def exported(module: Any, inputs: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, training: bool, strict: bool,
             name: str) -> Any:
    """Return the module as an ExportedProgram; an ExportedProgram is returned unchanged."""
    import torch
    if isinstance(module, torch.export.ExportedProgram):
        return module
    if not isinstance(module, torch.nn.Module):
        raise Problem(f"from_torch takes a torch.nn.Module or an ExportedProgram, not {class_of(module)}",
                      kind="argument", help="a function of tensors is the forward of a small module")
    with traced(name), mode(module, training), numbers_kept(module):
        check_plain_state(module, inputs, kwargs, name)
        return torch.export.export(module, inputs, dict(kwargs), dynamic_shapes=dynamic_shapes, strict=strict)


def simpler(program: Any, name: str) -> Any:
    """Return a decomposed program, in which writes to buffers are results."""
    with traced(name):
        found = with_constants_as_buffers(program).run_decompositions(decompositions())
    spell_out_slices(found.graph)
    return found


def with_constants_as_buffers(program: Any) -> Any:
    """Return the program with its tensors in plain attributes, such as those of transformers' StaticCache, as buffers:
    torch.export lifts them as constants, and cannot decompose a program that writes them. A tensor that shares memory with a
    buffer becomes that buffer, because two inputs over the same memory cannot be decomposed either. The given program is not
    changed."""
    from torch.export.graph_signature import ExportGraphSignature, InputKind
    old = program.graph_signature
    if not any(spec.kind == InputKind.CONSTANT_TENSOR for spec in old.input_specs):
        return program
    found = copy.copy(program)
    found._graph_module = copy.deepcopy(program.graph_module)
    nodes = {node.name: node for node in found.graph_module.graph.nodes if node.op == "placeholder"}
    firsts: dict[Any, Any] = {}
    specs = []
    for spec in sorted(old.input_specs, key=lambda spec: bool(spec.kind == InputKind.CONSTANT_TENSOR)):
        held = tensor_of(program, spec)
        first = firsts.setdefault(memory_of(held), spec) if held is not None else spec
        if first is not spec and spec.kind == InputKind.CONSTANT_TENSOR:
            nodes[spec.arg.name].replace_all_uses_with(nodes[first.arg.name])
            found.graph_module.graph.erase_node(nodes[spec.arg.name])
        else:
            specs.append(spec)
    specs.sort(key=old.input_specs.index)
    found.graph_module.recompile()
    found._graph_signature = ExportGraphSignature([
        replace(spec, kind=InputKind.BUFFER, persistent=False) if spec.kind == InputKind.CONSTANT_TENSOR else spec
        for spec in specs], list(old.output_specs))
    return found


def tensor_of(program: Any, spec: Any) -> Any:
    """Return the tensor that an input of a program holds; None for an input of the forward."""
    found = program.constants.get(spec.target) if spec.target else None
    return program.state_dict.get(spec.target) if found is None and spec.target else found


def memory_of(tensor: Any) -> Any:
    """Return a key that identifies a tensor's memory and its view of it; for a tensor without memory, the tensor's id."""
    if not hasattr(tensor, "data_ptr") or not tensor.numel():
        return id(tensor)
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())


def reexported(program: Any, shapes: Mapping[str, tuple[int, ...]], name: str) -> Any:
    """Return the program for inputs of these shapes, by name."""
    import torch
    args, kwargs = with_shapes(program, shapes)
    with traced(name):
        return torch.export.export(program.module(), args, kwargs)


def with_shapes(program: Any, shapes: Mapping[str, tuple[int, ...]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example inputs with these shapes."""
    import torch
    leaves, structure = torch.utils._pytree.tree_flatten(program.example_inputs)
    new = [torch.zeros(shapes[name], dtype=leaf.dtype, device=leaf.device) if isinstance(leaf, torch.Tensor) else leaf
           for name, leaf in zip(input_names(program), leaves, strict=True)]
    args, kwargs = torch.utils._pytree.tree_unflatten(new, structure)
    return args, kwargs


def example_shapes(program: Any) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the example inputs that are tensors."""
    import torch
    leaves = torch.utils._pytree.tree_leaves(program.example_inputs)
    return {name: tuple(leaf.shape) for name, leaf in zip(input_names(program), leaves, strict=True)
            if isinstance(leaf, torch.Tensor)}


def input_names(program: Any) -> list[str]:
    from torch.export.graph_signature import InputKind
    return [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]


@contextmanager
def traced(name: str) -> Iterator[None]:
    """Trace in this context: without deprecation warnings of PyTorch's own code, and with attention as separate operations that
    have lowerings, instead of one call of a whole encoder layer; errors become a Problem."""
    import torch
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.no_grad():
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
    """Put every module into inference mode in this context, unless `training`."""
    modules = [] if training else [m for m in module.modules() if m.training]
    for inner in modules:
        inner.training = False
    try:
        yield
    finally:
        for inner in modules:
            inner.training = True


@contextmanager
def numbers_kept(module: Any) -> Iterator[None]:
    """Preserve the values of one-element tensors in plain attributes during an export: torch.export computes with them, and if
    the forward writes them, such as the count of a cache, it writes the module's own."""
    held = [(tensor, tensor.detach().clone()) for tensor in plain_tensors(module) if tensor.numel() == 1]
    try:
        yield
    finally:
        for tensor, value in held:
            tensor.detach().copy_(value)


def plain_tensors(module: Any) -> list[Any]:
    """Return the tensors among the attributes of a module and of the objects, lists and dicts that these hold."""
    import torch
    found, seen = [], set[int]()
    todo = [vars(inner) for inner in module.modules()]
    while todo:
        value: Any = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, dict):
            todo += value.values()
        elif isinstance(value, list | tuple | set):
            todo += value
        elif type(value).__module__.split(".")[0] not in ("builtins", "torch") and hasattr(value, "__dict__"):
            todo.append(vars(value))
    return found


def untraceable(error: Exception, name: str) -> Problem:
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    first = f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
    return Problem(f"torch.export cannot trace {name}: {first}", own_line(error), kind="unsupported",
                   labels=tuple(Label(None, line[:300]) for line in lines[1:MOST_LINES]),
                   help="forward must run on the example inputs, its control flow must not depend on values of tensors, and "
                   "what dynamic_shapes leaves open must be able to vary")


def own_line(error: Exception) -> Position | None:
    """Return the last Python line in the traceback that belongs neither to PyTorch nor to this package."""
    others = (package_folder("torch"), package_folder("torch_mlir"), str(Path(__file__).parents[2]) + os.sep)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((*others, "<"))]
    return Position(Source(frames[-1].filename), frames[-1].lineno or 1, 1) if frames else None
