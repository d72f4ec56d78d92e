"""PyTorch -> TOSA, through torch.export and torch-mlir (the extra `torch`): `tosaic.from_torch`.

The module is exported in the user's process, which has its classes and weights (`export`); there the exported program is
written as bytecode in torch-mlir's own dialect, which a separate process lowers to TOSA (`torch_mlir`). A buffer that the
module writes is made an input and a result of the exported graph (`exported_program`), which then become a variable.
"""
from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....runtime.errors import Problem, temporary_file
from ....runtime.public_names import public
from ....runtime.variables import Context, checked_context
from ..load_model import model_of
from ..model import Model
from ..torch_mlir.to_tosa import ConversionRequest, lowered, need, with_names
from .export import example_shapes, exported, reexported, simpler
from .exported_program import ProgramInterface, check, extent_bounds, opened

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array
    from ...source import ImportedSource, OperatorVerdict



@public("tosaic.from_torch")
def from_torch(module: Any, *example_inputs: Any, kwargs: Mapping[str, Any] | None = None, dynamic_shapes: Any = None,
               state: bool = True, training: bool = False, strict: bool = False, name: str | None = None,
               context: Context | None = None) -> Model:
    """Load a model from a `torch.nn.Module` and inputs for it, or from a `torch.export.ExportedProgram`.

        model = tosaic.from_torch(module, torch.zeros(1, 3, 224, 224))
        y = model(x)                                     # arrays or tensors in, arrays out

    Inputs have the names of `forward`; Python numbers among them, and values that depend on them, are fixed. Extents are those
    of the example inputs, unless `dynamic_shapes`, as torch.export takes it, leaves some open: the model is then compiled for
    the shapes of each call. The module is exported in inference mode (`eval`), and not changed; with `training` its own mode
    applies.

    A buffer that the module writes is a variable, NAME.BUFFER, whose initial value is the buffer's; the module's own buffer is
    not changed. NAME is `name` or, by default, the class. The variables belong to the model (`model.context`); with a `name`
    they belong to the process, and with a `context` to that context: models with the same name, or the same context, share
    them. `state=False` returns a function without state instead: the buffers' old values are its first inputs, their new ones
    its first results.

    Raises a Problem if a package is missing, torch.export cannot trace the module, or torch-mlir cannot lower an operation.
    """
    checked_context(context)
    need("torch", "a PyTorch module", ("torch", "torch_mlir"))
    shown = name or type(module).__name__
    program = exported(module, example_inputs, kwargs or {}, dynamic_shapes, training, strict, shown)
    simple = simpler(program, shown)
    check(simple, shown)
    interface = opened(simple, shown)
    variables = shown if state and interface.buffers else None
    from .run_torch import torch_source
    values = {buffer: array_of(value) for buffer, value in zip(interface.buffers, interface.values)}

    def locate(entry: str, arrays: Sequence[Array]) -> OperatorVerdict:
        from .first_node import compare_nodes
        return compare_nodes(program, arrays if variables else arrays[len(values):], graph_of)
    imported = torch_source(module, program, training, values, variables, locate)
    model = TorchConversion(shown, variables, imported).model(program, simple, interface)
    return model.within(Context(shown) if context is None and name is None else context)


@dataclass(frozen=True, slots=True)
class TorchConversion:
    """A module's name for messages, the prefix of its variables' names (None: it has no state), and the source of the
    import."""
    name: str
    variables: str | None
    imported: ImportedSource

    def model(self, program: Any, simple: Any, interface: ProgramInterface) -> Model:
        """Return the model of an exported program. If torch-mlir cannot lower its open extents, its graph is made anew for each
        set of shapes."""
        first = 0 if self.variables is None else len(interface.buffers)
        bounds = extent_bounds(simple, interface.input_tensors[first:])
        try:
            found = with_bounds(self.graph(simple, interface), bounds)
            return model_of(lambda: found, None, imported=self.imported)
        except Problem:
            if not interface.is_open:
                raise
        from ..open_extents import open_model
        example = example_shapes(program)
        made = {tuple(example.values()): self.made(program, example)}  # so that an operation with no lowering is refused now

        def make(shapes: Mapping[str, tuple[int, ...]]) -> Module:
            return made.pop(tuple(shapes.values()), None) or self.made(program, shapes)

        return open_model(*interface.types(self.variables is not None), "torch.exported_program", make,
                          self.imported, bounds)

    def made(self, program: Any, shapes: Mapping[str, tuple[int, ...]]) -> Module:
        """Return the graph for inputs of these shapes."""
        simple = simpler(reexported(program, shapes, self.name), self.name)
        return self.graph(simple, opened(simple, self.name))

    def graph(self, simple: Any, interface: ProgramInterface) -> Module:
        with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
            source = Path(folder, "module.mlirbc")
            write_bytecode(simple, source, self.name)
            found = with_names(lowered(ConversionRequest(source, self.name)), interface.inputs)
        return found if self.variables is None else with_state(found, interface, self.variables)


def graph_of(module: Any, inputs: tuple[Any, ...]) -> Module:
    """Return the graph of a module of this package, whose variables are not shared."""
    return from_torch(module, *inputs, name="observed", context=Context("observed")).entry().trace().module


def with_bounds(module: Module, bounds: tuple[Mapping[str, Any], ...]) -> Module:
    """Return the module whose inputs have these attributes."""
    main = module.function("main")
    bound = replace(main, argument_attributes=bounds)
    return replace(module, functions=tuple(bound if f is main else f for f in module.functions)) if bounds else module


# ---- state -----------------------------------------------------------------------------------------------------------------
def with_state(module: Module, interface: ProgramInterface, name: str) -> Module:
    """Return the module with its first inputs and results as variables."""
    from ....lowering.rewrite.function_interface import PersistentTensor, bind_state
    from ....lowering.rewrite.infer_shapes import verified

    state = [
        PersistentTensor(f"{name}.{buffer}", array_of(value)) for buffer, value in zip(interface.buffers, interface.values)
    ]
    return verified(bind_state(module, module.function("main"), state))


def array_of(tensor: Any) -> Array:
    """Return a read-only copy of a tensor's values."""
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


# ---- torch-mlir ------------------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def own_symbols() -> Iterator[None]:
    """Let libraries that are loaded in this context resolve symbols in themselves first: TensorFlow, if the process has it,
    exports those of its own LLVM, and torch-mlir's LLVM ends the process when it finds the options of the other one."""
    if not hasattr(os, "RTLD_DEEPBIND"):  # glibc has it
        yield
        return
    flags = sys.getdlopenflags()
    sys.setdlopenflags(flags | os.RTLD_DEEPBIND)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)


def write_bytecode(program: Any, path: Path, name: str) -> None:
    """Write the program in torch-mlir's own dialect."""
    with own_symbols():
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
    with temporary_file(), open(path, "wb") as file:
        importer.module.operation.write_bytecode(file)
