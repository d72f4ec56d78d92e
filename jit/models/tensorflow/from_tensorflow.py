"""TensorFlow -> TOSA, through TensorFlow's own importer, which prints a graph as MLIR (the extra `tensorflow`).

A function's variables are classified when it is read: those that no operation writes become constants, the others become
variables of the model, with their current values in TensorFlow. Functions that are read together share their variables.
"""
from __future__ import annotations

import importlib.util
import inspect
import os
import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....runtime.errors import KeyProblem, Problem, TypeProblem, class_of
from ....runtime.later import now
from ....runtime.public_names import public
from ....runtime.variables import Context, checked_context
from ...tracing.pytree import Structure, flatten
from ..entry import Entry, graph_of
from ..load_model import outlines_of
from ..model import Model

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.rewrite.tensorflow import Bindings
    from ...source import ImportedSource


_names: set[str] = set()
_naming = threading.Lock()
"""Names of models whose variables are the process's."""


@public("tosaic.from_tensorflow")
def from_tensorflow(source: Any, *arguments: Any, name: str | None = None, outputs: Sequence[str] = (),
                    signatures: Sequence[str] = (), context: Context | None = None) -> Model:
    """Load a model of a `tf.function` or any callable (including a Keras model) with its `arguments` (arrays,
    `tf.TensorSpec`s), of a concrete function, of a SavedModel's folder (all its signatures, or those that are named), or of a
    GraphDef (or the path of a `.pb` file) with the names of its `outputs`.

    Extents that a specification leaves open (None) are those of the arrays of each call. Variables are named NAME/VARIABLE,
    where NAME is `name` or, by default, the source's name. They belong to the model (`model.context`); with a `context` they
    belong to that context, which models can share, and with a `name` alone to the process, with a number after NAME from its
    second model on. Raises a Problem if TensorFlow is missing, or cannot read the source.
    """
    checked_context(context)
    tf = tensorflow()
    found = concrete_functions(tf, source, arguments, outputs, signatures)
    title = name or title_of(source)
    if name is not None and context is None:
        return TensorFlowConverter(tf, found, unused(name)).model()
    return TensorFlowConverter(tf, found, title).model().within(context or Context(title))


def unused(name: str) -> str:
    """Return the name, with a number if another model of the process has it."""
    with _naming:
        found = next(n for n in (name, *(f"{name}_{number}" for number in range(2, len(_names) + 3))) if n not in _names)
        _names.add(found)
        return found


def tensorflow() -> Any:
    if importlib.util.find_spec("tensorflow") is None:
        raise Problem("TensorFlow is not installed", kind="file", help='pip install "tosaic[tensorflow]"')
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    return tf


def title_of(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return os.path.splitext(os.path.basename(os.path.normpath(os.fspath(source))))[0]
    found = getattr(source, "name", None) or getattr(source, "__name__", None) or type(source).__name__
    return found.decode() if isinstance(found, bytes) else str(found)


# ---- what there is to read -------------------------------------------------------------------------------------------
def concrete_functions(tf: Any, source: Any, arguments: Sequence[Any], outputs: Sequence[str],
                       signatures: Sequence[str]) -> dict[str, Any]:
    """Return TensorFlow's concrete functions of a source, by the names of the entries."""
    if isinstance(source, tf.compat.v1.GraphDef):
        return {"main": of_graph_def(tf, source, outputs)}
    if isinstance(source, str | os.PathLike):
        return of_path(tf, os.fspath(source), outputs, signatures)
    if hasattr(source, "captured_inputs") and hasattr(source, "graph"):
        return {identifier(title_of(source)): source}
    if not callable(source):
        raise TypeProblem(f"{class_of(source)} is no TensorFlow function, model or graph", kind="argument",
                          help="pass a tf.function, a Keras model, a SavedModel's folder or a GraphDef")
    return {identifier(title_of(source)): traced(tf, source, arguments)}


def identifier(name: str) -> str:
    """Return a name that is an identifier in Python and C."""
    found = re.sub(r"\W+", "_", re.sub(r"^__inference_(.+?)(_\d+)?$", r"\1", name)).strip("_")
    return found if found.isidentifier() else f"f_{found}"


def traced(tf: Any, source: Any, arguments: Sequence[Any]) -> Any:
    """Return the concrete function of a callable for these arguments."""
    require_module(source)
    specs = [a if isinstance(a, tf.TensorSpec) else tf.TensorSpec(np.shape(a), np.asarray(a).dtype) for a in arguments]
    if not specs and isinstance(source, tf.keras.Model):
        specs = [tf.TensorSpec(t.shape, t.dtype, t.name) for t in tf.nest.flatten(source.inputs or ())]
    function = source if hasattr(source, "get_concrete_function") else tf.function(source)
    if isinstance(source, tf.keras.Model):
        function = tf.function(lambda *x: source(x[0] if len(x) == 1 else list(x), training=False))
    try:
        return function.get_concrete_function(*specs)
    except (TypeError, ValueError) as error:
        raise Problem(f"TensorFlow cannot trace {title_of(source)}: {first_line(error)}", kind="argument",
                      help="pass arrays or tf.TensorSpecs for its arguments") from None


def require_module(source: Any) -> None:
    """Raise a Problem for a method whose object no longer exists: a tf.function holds the object only by a weak reference."""
    function = getattr(source, "python_function", None)
    cells = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    owner = cells.get("weak_instance")
    if isinstance(owner, weakref.ref) and owner() is None:
        raise Problem(f"the object that {title_of(source)} is a method of exists no more: TensorFlow holds it by a weak "
                      "reference", kind="argument",
                      help="keep the object in a variable of your own: m = Module(); from_tensorflow(m.method)")


def first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def of_path(tf: Any, path: str, outputs: Sequence[str], signatures: Sequence[str]) -> dict[str, Any]:
    """Return the signatures of a SavedModel, or a frozen graph."""
    if os.path.isdir(path):
        try:
            loaded = tf.saved_model.load(path)
        except (OSError, ValueError) as error:
            raise Problem(f"{path} is no SavedModel: {first_line(error)}", kind="file") from None
        found = {identifier(k): f for k, f in loaded.signatures.items()}
        for missing in [s for s in signatures if s not in found]:
            raise KeyProblem(f"{path} has no signature {missing}", kind="argument", help=f"it has {', '.join(found) or 'none'}")
        if not found:
            raise Problem(f"{path} has no signatures", kind="file", help="save it with signatures=..., or pass its function")
        chosen = {k: found[k] for k in signatures or found}
        for function in chosen.values():
            function._tosaic_keeps = loaded  # variables live as long as the object that holds them
        return chosen
    graph = tf.compat.v1.GraphDef()
    try:
        with open(path, "rb") as file:
            graph.ParseFromString(file.read())
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}", kind="file") from None
    except Exception as error:  # protobuf's own error, whose class is not public
        raise Problem(f"{path} is no GraphDef: {first_line(error)}", kind="file") from None
    return {"main": of_graph_def(tf, graph, outputs)}


def in_order(nest: Any) -> Any:
    """Return a nest with the keys of its dicts in order."""
    if isinstance(nest, dict):
        return {key: in_order(nest[key]) for key in sorted(nest)}
    if isinstance(nest, tuple) and not hasattr(nest, "_fields"):
        return tuple(map(in_order, nest))
    return [in_order(n) for n in nest] if isinstance(nest, list) else nest


def of_graph_def(tf: Any, graph: Any, outputs: Sequence[str]) -> Any:
    """Return a GraphDef from its placeholders to its outputs, by default the tensors that nothing reads."""
    inputs = [n.name for n in graph.node if n.op == "Placeholder"]
    names = list(outputs) or sinks(graph)
    wrapped = tf.compat.v1.wrap_function(lambda: tf.compat.v1.import_graph_def(graph, name=""), [])

    def tensor(name: str) -> Any:
        try:
            return wrapped.graph.as_graph_element(name if ":" in name else f"{name}:0")
        except (KeyError, ValueError):
            raise Problem(f"the graph has no tensor {name}", kind="argument") from None
    found = [tensor(n) for n in names]
    return wrapped.prune([tensor(n) for n in inputs], found[0] if len(found) == 1 else tuple(found))


def sinks(graph: Any) -> list[str]:
    """Return the nodes whose results no other node reads."""
    read = {i.split(":")[0].lstrip("^") for n in graph.node for i in n.input}
    silent = ("NoOp", "Assert", "Placeholder", "Const", "AssignVariableOp")
    return [n.name for n in graph.node if n.name not in read and n.op not in silent]


# ---- functions to a model --------------------------------------------------------------------------------------------
class TensorFlowConverter:
    """A converter of functions that share their variables."""

    def __init__(self, tf: Any, functions: Mapping[str, Any], title: str) -> None:
        self.tf, self.functions, self.title = tf, functions, title
        self.variables: dict[int, tuple[str, Any]] = {}
        """Names and variables, by the identity of the variable's handle."""
        for function in functions.values():
            for variable in function.graph.variables:
                self.name(variable)

    def name(self, variable: Any) -> None:
        """Give a variable a unique name."""
        if id(variable.handle) in self.variables:
            return
        wanted = f"{self.title}/{variable.name.split(':')[0]}"
        taken = {name for name, _ in self.variables.values()}
        names = (wanted, *(f"{wanted}_{n}" for n in range(1, len(taken) + 2)))
        self.variables[id(variable.handle)] = next(n for n in names if n not in taken), variable

    def model(self) -> Model:
        modules = {name: self.module(name, f) for name, f in self.functions.items()}
        written = set[str]().union(*(self.written(m, b) for m, b in modules.values()))
        from .run_tensorflow import tensorflow_source
        imported = tensorflow_source(self.functions, dict(self.variables.values()))
        entries: dict[str, Entry] = {}
        for name, (module, bindings) in modules.items():
            entries[name] = self.entry(name, module, bindings, written, imported)
        return Model.of_entries(entries, next(iter(modules.values()))[0])

    def module(self, name: str, function: Any) -> tuple[Module, Bindings]:
        """Return the graph of a function, and the bindings of its handles and captured tensors."""
        from ....lowering.rewrite.tensorflow import Bindings
        from ..read import read_module
        from .named_operations import with_constants, with_names
        try:
            text = with_constants(with_names(self.tf.mlir.experimental.convert_function(function, show_debug_info=True)))
        except Exception as error:  # TensorFlow's own kinds of errors
            raise Problem(f"TensorFlow cannot convert {name}: {first_line(error)}", kind="file") from None
        module = read_module(text, f"{name} (as MLIR)")
        own = next(f for f in module.functions if not f.is_private)
        main = replace(own, name=name, result_attributes=self.result_names(name, len(own.result_types)))
        module = replace(module, functions=tuple(main if f is own else f for f in module.functions))
        first = len(main.arguments) - len(function.captured_inputs)
        symbols: dict[str, str] = {}
        values: dict[str, Any] = {}
        for argument, captured in zip(main.arguments[first:], function.captured_inputs, strict=True):
            if id(captured) in self.variables:
                symbols[argument.name] = self.variables[id(captured)][0]
            elif captured.dtype == self.tf.resource:
                raise Problem(f"{name} captures a resource that is no variable", kind="unsupported",
                              help="keep lookup tables, queues and datasets outside, and give what they find as an input")
            else:
                values[argument.name] = captured.numpy()
        return module, Bindings(symbols, arguments=values)

    def result_names(self, name: str, count: int) -> tuple[Mapping[str, Any], ...]:
        """Return the keys of a function that returns a mapping of tensors, as attributes of its results."""
        outputs = in_order(self.functions[name].structured_outputs)
        if not isinstance(outputs, dict) or len(outputs) != count or not all(isinstance(key, str) for key in outputs):
            return ()
        return tuple({"tf_saved_model.index_path": (key,)} for key in outputs)

    def nest(self, name: str) -> Structure:
        """Return the nest of a function's results; TensorFlow takes a dict's values in the order of its keys."""
        outputs = self.functions[name].structured_outputs
        return flatten(in_order(outputs), [])

    def written(self, module: Module, bindings: Bindings) -> set[str]:
        """Return the variables that a function may write."""
        from ....lowering.dialects.tf.handles import written_arguments
        main = next(f for f in module.functions if not f.is_private)
        numbers = written_arguments(module, main.name)
        return {bindings.symbols[v.name] for n, v in enumerate(main.arguments) if n in numbers and v.name in bindings.symbols}

    def entry(self, name: str, module: Module, bindings: Bindings, written: set[str], imported: ImportedSource) -> Entry:
        from ....lowering.graph.verify import verify
        verify(module)
        values = {symbol: variable.numpy() for symbol, variable in self.variables.values()
                  if symbol in bindings.symbols.values()}
        given = replace(bindings, initial={k: v for k, v in values.items() if k in written},
                        constants={k: v for k, v in values.items() if k not in written})
        outline, = outlines_of(module, given)
        return Entry(outline._replace(name=name), graph_of(now(module), name, given, self.nest(name), imported), None)
