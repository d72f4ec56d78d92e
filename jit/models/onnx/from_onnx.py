"""ONNX files as models: `tosaic.from_onnx`. The file becomes a module of `onnx` operations (`lowering/onnx`), which remains the
model's own graph; its entry is translated for the shapes of the inputs."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....runtime.errors import KeyProblem, Problem
from ....runtime.later import now
from ....runtime.public_names import public
from ..load_model import load_model, outlines_of
from ..model import Model
from ..read import first_bytes, is_onnx, read_bytes
from ..stated_shapes import say_what_is_stated
from .carried_state import CarriedCalls, with_state
from .known_values import GivenValues, with_values
from .named_extents import input_types

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module, Value
    from ....lowering.graph.types import Type
    from ....runtime.variables import Context
    from ...source import SourceEvaluator


@public("tosaic.from_onnx")
def from_onnx(model: Any, *, shapes: Mapping[str, Sequence[int] | int] | None = None, name: str | None = None,
              state: Mapping[str, Any] | None = None, values: Mapping[str, Any] | None = None,
              context: Context | None = None) -> Model:
    """Load a model from an ONNX file's path, its bytes, an open file, or an `onnx.ModelProto`.

        model = tosaic.from_onnx("model.onnx", shapes={"image": (1, 3, 224, 224)})
        y = model(x)

    Inputs have the names of the file. `shapes` maps inputs to their shapes, or named extents to their numbers (`{"batch": 1}`),
    where the file leaves extents open. Named leading extents, such as a batch, are 1 for everything that needs a known shape,
    unless others stay open; a call with other shapes is compiled for those. Weights in files beside the model are found if a
    path is given. The file is memory-mapped until its code is compiled, so it must not change meanwhile.

    `state` names inputs that take the values of outputs of the previous call (`{"h": "hn"}`, with an initial value `{"h":
    ("hn", array)}`): they become variables, of the model (`model.context`) or of `context`, and calls neither take nor return
    them.

    `values` gives inputs fixed values (`{"axes": [1]}`): they become constants. If a model's code depends on the value of an
    input with few numbers, such as a number of elements or the axes of a reduction, a call compiles code for that value.

    Raises a Problem if the package onnx is missing, the file is no ONNX model, or a node is not supported.
    """
    source, shown = checked_source(model)
    found = load_model(source, name or shown)
    own = found.context
    if shapes:
        found = closed(found, shapes, may_be_cached=not values and not state)
    if values:
        found = valued(found, values)
    if state:
        found = carried(found, state)
    return say_what_is_stated(found).within(own if context is None else context)


def closed(model: Model, shapes: Mapping[str, Sequence[int] | int], may_be_cached: bool) -> Model:
    """Return the model with inputs of these shapes and extents. If all are given and the graph stays as in the file, its code
    may be in the cache; constants and state need the types in the graph itself."""
    given = {key: tuple(map(int, shape)) for key, shape in shapes.items() if not isinstance(shape, int)}
    entry = model.entry()
    if may_be_cached and set(shapes) == set(entry.input_names) == set(given):
        return model.with_entries({"main": entry.specialize(given)})
    extents = {key: int(extent) for key, extent in shapes.items() if isinstance(extent, int)}
    module = with_types(model.module, input_types(model.module.function("main"), given, extents))
    return Model(now(module), outlines_of(module, None), imported=model.imported)


def valued(model: Model, values: Mapping[str, Any]) -> Model:
    """Return the model with these inputs as constants; its reference for checks is given them, too."""
    function, imported = model.module.function("main"), model.imported
    names = [v.name for v in function.arguments]
    if unknown := next((n for n in values if n not in names), None):
        raise KeyProblem(f"the model has no input named {unknown}", kind="argument", help=f"its inputs: {', '.join(names)}")
    module = with_values(model.module, "main", values)
    if imported is not None:
        def begins(one: SourceEvaluator) -> SourceEvaluator:
            return replace(one, start=lambda entry: GivenValues(function, values, one.start(entry)))
        imported = replace(imported, locate=None, evaluators=tuple(map(begins, imported.evaluators)))
    return Model(now(module), outlines_of(module, None), imported=imported)


def carried(model: Model, state: Mapping[str, Any]) -> Model:
    """Return the model with the state that these inputs and outputs carry as variables; its reference for checks carries the
    state, too."""
    module = with_state(model.module, state)
    function, imported = module.function("main"), model.imported
    if imported is not None:
        def begins(one: SourceEvaluator) -> SourceEvaluator:
            return replace(one, start=lambda entry: CarriedCalls(function, one.start(entry)))
        imported = replace(imported, locate=None, evaluators=tuple(map(begins, imported.evaluators)))
    return Model(now(module), outlines_of(module, None), imported=imported)


def with_types(module: Module, types: Sequence[Type]) -> Module:
    """Return the module with inputs of these types."""
    from ....lowering.rewrite.substitute import ValueSubstitution
    found = dict(zip(module.function("main").arguments, types, strict=True))

    def typed(value: Value) -> Value:
        type = found.get(value, value.type)
        return value if type == value.type else replace(value, type=type)
    return ValueSubstitution(typed).module(module)


def checked_source(model: Any) -> tuple[Any, str]:
    """Return the loadable source, and its name for messages; raise a Problem unless it is an ONNX model."""
    source, shown = (model, str(os.fspath(model))) if isinstance(model, str | os.PathLike) else serialized(model)
    head = source[:8] if isinstance(source, bytes) else first_bytes(source, 8)
    if not is_onnx(head):
        raise Problem(f"{shown} is {'empty, it is ' if not head else ''}no ONNX model", kind="file",
                      help="tosaic.load takes MLIR text, .tosa and .tflite files")
    return source, shown


def serialized(model: Any) -> tuple[bytes, str]:
    """Return the bytes of a model that is no path, and its name for messages."""
    if not hasattr(model, "SerializeToString"):
        return read_bytes(model)
    if not model.ir_version:
        model = type(model).FromString(model.SerializeToString())
        model.ir_version = 8
    try:
        return model.SerializeToString(), str(model.graph.name or "<model>")
    except Exception as error:  # protobuf's own error, for more than 2 GiB
        raise Problem(f"the model cannot be written: {error}", kind="file",
                      help="save it with its weights in files beside it, and pass the path") from None
