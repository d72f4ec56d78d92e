"""`tosaic convert`: a model as a .tosa file or as MLIR text."""
from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...lowering.graph.shape_options import shape_options
from ...runtime.errors import Problem
from ..models.entry_graphs import dialect_of
from ..models.model import Model
from .answer import YES, Answer
from .model_options import model_of, shapes_of
from .progress import Progress

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module


def convert(options: argparse.Namespace) -> Answer:
    """Write a model in the format that the name of the output selects: a .tosa flatbuffer, or MLIR text."""
    from ..aot import write_files
    output = Path(options.output)
    write = WRITERS.get(output.suffix.lower())
    if write is None:
        raise Problem(f"{output} does not say what to write", kind="argument",
                      help=f"let it end in {' or '.join(WRITERS)}")
    with Progress("reading") as progress:
        module = module_to_write(model_of(options, progress), shapes_of(options), output.suffix.lower() == ".tosa")
        progress.update(f"writing {output}")
        data = write(module)
        write_files(output.parent, {output: data})
    return Answer(YES, f"{output}: {len(data):,} bytes", {"file": str(output), "bytes": len(data)})


def module_to_write(model: Model, shapes: Mapping[str, tuple[int, ...]], is_tosa: bool) -> Module:
    """Return the model's own graphs. Return their TOSA form instead if the file can hold only TOSA, or if the model's own
    graphs need values of another system beside them."""
    if shapes:
        return model.entry().specialize(shapes).trace().module
    if not (model.is_stand_in or (is_tosa and dialect_of(model.module))):
        return model.module
    for entry in model:
        if entry.is_dynamic:
            inputs = ", ".join(t for t in entry.inputs if "?" in t)
            raise Problem(f"{entry.name} has inputs whose extents are open: {inputs}", kind="shape",
                          help=f"TOSA of it needs all extents: {shape_options(entry.trace().module.function(entry.name))}")
    return joined([entry.trace().module for entry in model])


def joined(modules: Sequence[Module]) -> Module:
    """Return one module with the functions and variables of several modules; functions and variables of the same name are the
    same."""
    from ...lowering.graph.verify import symbol_of
    functions = {f.name: f for module in modules for f in module.functions}
    declarations = {symbol_of(d): d for module in modules for d in module.declarations}
    return replace(modules[0], functions=tuple(functions.values()), declarations=tuple(declarations.values()))


def as_flatbuffer(module: Module) -> bytes:
    from ...lowering.flatbuffer.writer import write_module
    return write_module(module)


def as_text(module: Module) -> bytes:
    from ...lowering.text.printer import print_module
    return print_module(module).encode()


WRITERS: dict[str, Callable[[Module], bytes]] = {".tosa": as_flatbuffer, ".mlir": as_text}
"""Writers of `convert`, by the suffix of the output's name."""
