"""A model file -> a model. If the cache on disk knows the file (`cache.models`), it is parsed only when more than a call is
needed.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ...runtime.garbage_collection import seldom_collecting
from ...runtime.later import Later, now
from ...runtime.limits import check_bytes, here
from ...runtime.variables import Context
from ..cache.models import CachedModel, Origin, Outline, file_key, known_data, known_file, remember_file
from .dynamic_shapes import Shape, is_dynamic, stated_shapes
from .entry_graphs import dialect_of
from .model import Model
from .read import file_bytes, first_bytes, is_onnx, is_text, read_again, read_bytes, read_module

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module
    from ...lowering.rewrite.tensorflow import Bindings
    from ..source import ImportedSource


def load_model(source: Any, name: str | None = None, bindings: Bindings | None = None) -> Model:
    """Read a model from a path, an open binary file, bytes, or MLIR text, and verify it."""
    if isinstance(source, str | os.PathLike) and not is_text(source) and bindings is None:
        return load_file(source, name)
    data, shown = (source, "<text>") if is_text(source) else read_bytes(source)
    known = known_data(data) if bindings is None and here.scope is None else None
    return of_its_own(model_of(lambda: read_verified(data, name or shown), known.origin if known else None, bindings,
                               source_of(data[:8], lambda: data)), name or shown)


def load_tflite(source: Any, name: str | None = None) -> Model:
    """Load a model that must be a .tflite: a path, an open binary file, or bytes (`load_model`)."""
    if isinstance(source, str | os.PathLike) and os.path.isfile(source):  # other sources can be read once
        head, shown = first_bytes(source, 8), str(source)
    else:
        source, shown = read_bytes(source)
        head = source[:8]
    if head[4:] != b"TFL3":
        raise Problem(f"{name or shown} is no .tflite file: its bytes from 4 on are not TFL3", kind="file",
                      help="tosaic.load takes MLIR text and .tosa files, too")
    return load_model(source, name or shown)


def known_model(path: str | os.PathLike[str], name: str | None) -> Model | None:
    """Return the model of a file that the cache knows by the file's metadata, without reading the file."""
    if here.scope is not None:  # the cache's entries were made without these limits
        return None
    key, place, shown = file_key(os.fspath(path)), os.path.abspath(path), name or str(path)
    known = known_file(key)
    cached = known.origin.recall() if known and known.origin else None
    if known is None or cached is None:
        return None
    again = Later(lambda: read_again(place, known.sha256))
    return of_its_own(Model(Later(lambda: read_verified(again(), shown, Path(place).parent)), cached.outlines, cached,
                            imported=source_of(first_bytes(path, 8), again, Path(place))), shown)


def load_file(path: str | os.PathLike[str], name: str | None) -> Model:
    """Read a model from a file, or find it in the cache by the file's metadata."""
    found = known_model(path, name)
    if found is not None:
        return found
    key, place, shown = file_key(os.fspath(path)), os.path.abspath(path), name or str(path)
    with suppress(OSError):  # the code that reads the file reports it
        check_bytes(os.stat(path).st_size, f"{shown} has")
    data = file_bytes(path)
    held = known_data(data) if here.scope is None else None
    if held:
        remember_file(place, key, held)
    return of_its_own(model_of(lambda: read_verified(data, shown, Path(place).parent), held.origin if held else None,
                               imported=source_of(data[:8], lambda: data, Path(place))), shown)


def of_its_own(model: Model, name: str) -> Model:
    """Return the model with variables of its own if it comes from another system's file. MLIR and .tosa name the process's
    variables."""
    return model if model.imported is None else model.within(Context(name))


def source_of(head: str | bytes | memoryview, data: Callable[[], Any], path: Path | None = None) -> ImportedSource | None:
    """Return the source of a file in another system, by its first eight bytes: a .tflite, whose bytes `data` returns, or an
    ONNX model, which may be at `path`."""
    if is_onnx(head):
        from .onnx.first_difference import first_node
        from .onnx.run_onnx import onnx_source
        return onnx_source(path or data, lambda entry, arrays: first_node(bytes(data()), arrays, graph_with_shapes))
    if head[4:8] != b"TFL3":
        return None
    from .tflite.run_tflite import tflite_source
    return tflite_source(data, graph_with_shapes)


def model_of(read: Callable[[], Module], origin: Origin | None, bindings: Bindings | None = None,
             imported: ImportedSource | None = None) -> Model:
    """Return the model that `read` reads; if the cache knows it, `read` is called only when needed."""
    cached = origin.recall() if origin else None
    if cached is not None:
        return Model(Later(read), cached.outlines, cached, imported=imported)
    module = read()
    outlines = outlines_of(module, bindings)
    return Model(now(module), outlines, CachedModel(origin, outlines) if origin else None, bindings, imported)


def outlines_of(module: Module, bindings: Bindings | None) -> tuple[Outline, ...]:
    """Return the entry functions of a module, including those without a graph (declared only, or not understood), whose use
    raises a Problem."""
    absent = tuple(Outline(f.name, False, ()) for f in module.absent if not f.is_private)
    foreign = dialect_of(module)
    if foreign is not None:
        return (*foreign.outlines(module, bindings), *absent)
    return absent + tuple(Outline(f.name, is_dynamic(f), tuple(v.name for v in f.arguments), stated_shapes(f))
                 for f in module.functions if not f.is_private)


def graph_with_shapes(data: bytes, shapes: Mapping[str, Shape]) -> Module:
    """Return the graph of a model's bytes for inputs of these shapes."""
    return load_model(data).entry().specialize(shapes).trace().module


def read_verified(data: str | bytes | memoryview, name: str, folder: Path | None = None) -> Module:
    from ...lowering.graph.check_limits import check_limits
    from ...lowering.rewrite.infer_shapes import verified
    check_bytes(len(data), f"{name} has")
    with seldom_collecting():
        found = verified(read_module(data, name, folder))
        check_limits(found)
        return found


def at_level(model: Model, level: str) -> Model:
    """Return the model, if it is within a level of TOSA; for models of another dialect, their TOSA graphs are checked too."""
    if level == "none":
        return model
    from ...lowering.graph.levels import check_level
    check_level(model.module, level)
    if dialect_of(model.module) is not None:
        for entry in model:
            check_level(entry.trace().module, level)
    return model
