"""PyTorch -> TOSA, through torch.export and torch-mlir (the extra `torch`): `tosaic.from_torch`.

The module is exported in the user's process, where its classes and weights are; what torch.export gives becomes torch-mlir's own
dialect there, as bytes, and a process of its own brings these down to TOSA (`torch_mlir`). A buffer that the module writes is
made an input and a result of the exported graph, which then become a variable.
"""
from __future__ import annotations

import collections
import os
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Label, Position, Problem, Source
from ..model import Model, model_of
from .torch_mlir import Request, lowered, need, package_folder, with_names

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.graph.types import Array

MOST_LINES = 8
"""Lines of PyTorch's message that a Problem holds at most."""

_numbers: collections.Counter[str] = collections.Counter()
_numbers_lock = threading.Lock()


def from_torch(module: Any, *example_inputs: Any, kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None,
               state: bool = True, training: bool = False, strict: bool = False, name: str | None = None) -> Model:
    """A model from a `torch.nn.Module` and inputs for it, or from a `torch.export.ExportedProgram`.

        model = tosaic.from_torch(module, torch.zeros(1, 3, 224, 224))
        y = model(x)                                     # arrays or tensors in, arrays out

    Inputs are called as in `forward`; Python numbers among them, and what depends on them, are fixed. Extents are those of the
    example inputs, unless `dynamic_shapes`, as torch.export takes it, leaves some open: these are compiled for the shapes of
    each call. The module is exported as for inference (`eval`), and left as it was; with `training` its own mode holds.

    A buffer that the module writes is a variable of the process, NAME.BUFFER, with the buffer's value at first; the module's own
    buffer stays as it is. NAME is `name`, or else the class, with a number from its second conversion on: models share state only
    if they are given one name. `state=False` gives a function without state instead: the buffers' old values are its first
    inputs, their new ones its first results.

    Raises a Problem where a package is missing, torch.export cannot trace the module, or torch-mlir cannot lower an operation.
    """
    need("torch", "a PyTorch module", ("torch", "torch_mlir"))
    shown = name or type(module).__name__
    program = exported(module, example_inputs, dict(kwargs or {}), dynamic_shapes, training, strict, shown)
    interface = opened(program, shown)
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        source = Path(folder, "module.mlirbc")
        write_bytecode(program, source, shown)
        found = with_names(lowered(Request("torch", source, shown)).module, interface.inputs)
    if state:
        found = with_state(found, interface, name or numbered(shown, interface))
    return model_of(lambda: found, None)


# ---- torch.export ----------------------------------------------------------------------------------------------------------
def exported(module: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any, training: bool, strict: bool,
             name: str) -> Any:
    """The ExportedProgram, in operations that torch-mlir knows."""
    import torch
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table
    if not isinstance(module, torch.nn.Module | torch.export.ExportedProgram):
        raise Problem(f"from_torch takes a torch.nn.Module or an ExportedProgram, not a {type(module).__name__}",
                      kind="argument", help="a function of tensors is the forward of a small module")
    try:
        with quiet(), attention_in_parts(torch), mode(module, training):
            if isinstance(module, torch.nn.Module):
                module = torch.export.export(module, inputs, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
            return module.run_decompositions(get_decomposition_table())
    except Exception as error:
        raise untraceable(error, name) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of what PyTorch's own code will have to change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@contextmanager
def attention_in_parts(torch: Any) -> Iterator[None]:
    """With attention as operations that there are lowerings for, not as one call of a whole encoder layer."""
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)


@contextmanager
def mode(module: Any, training: bool) -> Iterator[None]:
    """With every module in its mode for inference, unless `training`."""
    modules = [] if training or not hasattr(module, "modules") else [m for m in module.modules() if m.training]
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
                   help="forward must run on the example inputs, and its control flow must not depend on values of tensors")


def own_line(error: Exception) -> Position | None:
    """The last line of Python in its traceback that is neither PyTorch's nor of this package."""
    others = (package_folder("torch"), package_folder("torch_mlir"), str(Path(__file__).parents[2]) + os.sep)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((*others, "<"))]
    return Position(Source(frames[-1].filename), frames[-1].lineno or 1, 1) if frames else None


# ---- inputs, results and state ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Interface:
    """Names of the graph's inputs, in order; of the buffers that are among them, first, and their values."""
    inputs: tuple[str, ...]
    buffers: tuple[str, ...]
    values: tuple[Any, ...]


def opened(program: Any, name: str) -> Interface:
    """What the program takes, after its signature has been changed: buffers that it writes are inputs and results. Results that
    are no tensors are dropped."""
    from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
    signature = program.graph_signature
    written: dict[str, Any] = {}
    for spec in signature.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            raise Problem(f"the forward of {name} writes into its argument {spec.target}", kind="unsupported",
                          help="let it work on a clone, and return the new value")
        if spec.kind in (OutputKind.BUFFER_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None)):
            written[spec.target] = spec
    kept = [spec for spec in signature.output_specs if not isinstance(spec.arg, ConstantArgument)]
    buffers = [spec for spec in signature.input_specs if spec.target in written and spec.kind != InputKind.USER_INPUT]
    interface = Interface((*(spec.target for spec in buffers), *user_inputs(signature)),
                          tuple(spec.target for spec in buffers), tuple(value_of(program, spec) for spec in buffers))
    first = [written[spec.target] for spec in buffers]
    signature.output_specs[:] = [*first, *(spec for spec in kept if spec.target not in written)]
    signature.input_specs[:] = [*buffers, *(spec for spec in signature.input_specs if spec.target not in written)]
    for spec in buffers:
        spec.kind, spec.target = InputKind.USER_INPUT, None
    for spec in first:
        spec.kind, spec.target = OutputKind.USER_OUTPUT, None
    return interface


def user_inputs(signature: Any) -> Iterator[str]:
    """The names that `forward` gives its tensors."""
    from torch.export.graph_signature import InputKind, SymIntArgument, TensorArgument
    for spec in signature.input_specs:
        if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, SymIntArgument):
            raise Problem(f"{spec.arg.name} is a number that is not fixed", kind="unsupported",
                          help="pass it as a tensor, or leave it out of dynamic_shapes")
        if spec.kind == InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument):
            yield spec.arg.name


def value_of(program: Any, spec: Any) -> Any:
    """The tensor that a buffer or a parameter holds."""
    return (program.constants if spec.persistent is False else program.state_dict)[spec.target]


def with_state(module: Module, interface: Interface, name: str) -> Module:
    """The module, its first inputs and results as variables."""
    from ...lowering.graph.verify import verify
    from ...lowering.rewrite.interface import State, bind_state
    state = [State(f"{name}.{buffer}", array_of(value)) for buffer, value in zip(interface.buffers, interface.values)]
    found = bind_state(module, module.function("main"), state)
    verify(found)
    return found


def array_of(tensor: Any) -> Array:
    """A copy of a tensor's values, read-only."""
    import numpy as np
    import torch
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes
        array = tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()
    else:
        array = np.array(tensor.numpy(), order="C")
    array.flags.writeable = False
    return array


def numbered(name: str, interface: Interface) -> str:
    """The name, with a number where an earlier module's state has it."""
    if not interface.buffers:
        return name
    with _numbers_lock:
        _numbers[name] += 1
        return name if _numbers[name] == 1 else f"{name}_{_numbers[name]}"


# ---- torch-mlir ------------------------------------------------------------------------------------------------------------
def write_bytecode(program: Any, path: Path, name: str) -> None:
    """Write the program in torch-mlir's own dialect."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.fx_importer import FxImporter
    context = ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    try:
        importer.import_program(program, func_name="main")
    except Exception as error:
        said = str(error).splitlines() or [""]
        raise Problem(f"torch-mlir cannot take {name}: {type(error).__name__}: {said[0][:300]}", kind="unsupported",
                      help="write it with other operations; torch.where, for a condition, computes both sides") from error
    with open(path, "wb") as file:
        importer.module.operation.write_bytecode(file)
