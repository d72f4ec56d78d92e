"""Facts about a model's file that need no compile: `tosaic info`.

If the package that reads a kind of file is missing, the facts are the kind, the extra and, for a .tflite, whose tables are read
here, the operators and signatures.
"""
from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...lowering.graph.shape_options import shape_options
from ...runtime.errors import Problem
from ...runtime.records import dataclass
from ..descriptors import TensorDescriptor
from .entry import Entry
from .file_kinds import Kind, kind_of, readable
from .front_door import load
from .glimpse import glimpse_of_bytes, glimpse_of_path
from .model import Model
from .stated_shapes import stated_note

if TYPE_CHECKING:
    from ...lowering.graph.graph import Module, Operation
    from ...lowering.graph.types import TensorType

PLUMBING = ("tosa.const", "tosa.const_shape", "onnx.Constant", "tf.Const", "tf.Identity", "tf_executor.fetch",
            "tf_executor.yield")
"""Operations that compute nothing, and are not counted as operators."""

TYPED = re.compile(r"(?<=\d) : i(?:32|64)\b")
"""Pattern of the type that MLIR writes after a number."""
OPEN = "extents are open"


@dataclass(frozen=True, slots=True)
class EntryFacts:
    """An entry: descriptors of its tensors; the number of each TOSA operator in its graph; the bytes of its constants; its
    multiply-adds, with each loop's body counted once. `unknown` gives the reason for fields that are None."""
    name: str
    inputs: tuple[TensorDescriptor, ...]
    outputs: tuple[TensorDescriptor, ...]
    variables: tuple[TensorDescriptor, ...] = ()
    operators: Mapping[str, int] | None = None
    constant_bytes: int | None = None
    multiply_adds: int | None = None
    unknown: str = ""
    note: str = ""
    """A line about shapes that were taken from the file."""

    def as_json(self) -> dict[str, Any]:
        tensors = {kind: [t.as_json() for t in getattr(self, kind)] for kind in ("inputs", "outputs", "variables")}
        return {"name": self.name, **tensors, "operators": None if self.operators is None else dict(self.operators),
                "constant_bytes": self.constant_bytes, "multiply_adds": self.multiply_adds, "unknown": self.unknown or None,
                "note": self.note or None}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A file: its kind, its size in bytes (None for a folder), its producer information; the number of each operator in its own
    graph; its entries, if they can be read."""
    name: str
    kind: Kind
    nbytes: int | None
    made: Mapping[str, str]
    operators: Mapping[str, int]
    entries: tuple[EntryFacts, ...]

    def as_json(self) -> dict[str, Any]:
        return {"file": self.name, "kind": self.kind.name, "is": self.kind.words, "bytes": self.nbytes,
                "extra": self.kind.extra or None, "missing": list(self.kind.missing), "made": dict(self.made),
                "operators": dict(self.operators), "entries": [entry.as_json() for entry in self.entries]}


def facts_of(source: str | os.PathLike[str] | bytes, name: str, shapes: Mapping[str, Sequence[int]]) -> ModelFacts:
    """Return the facts of a file or of bytes; `shapes` are for inputs whose extents the model leaves open. Raises a Problem if
    the source is no model."""
    glimpse = glimpse_of_bytes(source) if isinstance(source, bytes) else glimpse_of_path(source)
    kind, size = kind_of(glimpse), None if glimpse.is_folder else glimpse.size
    if kind.reader is None:
        readable(glimpse, name)
    made: dict[str, str] = {}
    operators = Counter[str]()
    if kind.name == "tflite":
        made, operators = of_tflite(source if isinstance(source, bytes) else file_of(source), name)
    if kind.missing:
        return ModelFacts(name, kind, size, made, operators, ())
    model = load(source, name)
    entries = tuple(entry_facts(entry, shapes, len(model) == 1) for entry in model)
    own = model.module
    made = made or made_of(own)
    return ModelFacts(name, kind, size, made, operators or own_operators(model), entries)


def file_of(path: str | os.PathLike[str]) -> bytes:
    from .read import first_bytes
    return first_bytes(path, -1)


def of_tflite(data: bytes, name: str) -> tuple[dict[str, str], Counter[str]]:
    """Return the version and the operators of a .tflite."""
    from ...lowering.tflite.decode import decode
    record = decode(data, name)
    signatures = ", ".join(s.key for s in record.signatures)
    return ({"version": str(record.version)} | ({"signatures": signatures} if signatures else {}),
            Counter(o.kind for graph in record.subgraphs for o in graph.operators))


def made_of(module: Module) -> dict[str, str]:
    """Return a module's producer information as text: opsets, versions, a producer."""
    from ...lowering.text.attribute_printer import format_attribute
    return {key: value if isinstance(value, str) else TYPED.sub("", format_attribute(value))
            for key, value in module.attributes.items()}


def own_operators(model: Model) -> Counter[str]:
    """Return the operators of the model's own graphs."""
    modules = [entry.trace().module for entry in model] if model.is_stand_in and not model.module.functions else [model.module]
    return Counter(spelling(o) for m in modules for f in m.functions for o in f.body.walk() if spelling(o) not in PLUMBING)


def spelling(operation: Operation) -> str:
    return getattr(operation.op, "spelling", "") or operation.op.name


def entry_facts(entry: Entry, shapes: Mapping[str, Sequence[int]], is_only: bool) -> EntryFacts:
    """Return the facts of an entry; if it cannot be translated unchanged, those that its outline has. The outline of a model's
    only entry must be readable."""
    try:
        found = entry.specialize(shapes) if shapes else entry
        traced = found.trace()
        body = traced.module.function(traced.name).body
        operations = list(body.walk())
    except Problem as problem:
        tensors = entry.tensors if is_only and not (entry.is_dynamic or entry.stated_shapes) else None
        return EntryFacts(entry.name, tensors.inputs if tensors else (), tensors.outputs if tensors else (),
                          unknown=problem.message)
    tensors = found.tensors
    counts = Counter(spelling(o) for o in operations)
    if found.is_dynamic and not any(name.startswith("tosa.") for name in counts):  # it is translated only for known extents
        return EntryFacts(entry.name, tensors.inputs, tensors.outputs, tensors.variables,
                          unknown=f"{OPEN}, {shape_options(traced.module.function(traced.name))} gives them")
    return EntryFacts(entry.name, tensors.inputs, tensors.outputs, tensors.variables,
                      {name: n for name, n in counts.items() if name not in PLUMBING},
                      sum(array.nbytes for array in constants(operations)), *multiply_adds(operations),
                      note=stated_note(found) or "")


def constants(operations: Sequence[Operation]) -> Iterator[Any]:
    """Yield the arrays of constants, each once."""
    arrays = [getattr(o.op, "values", None) for o in operations if spelling(o) in ("tosa.const",)]
    yield from {id(a): a for a in arrays if a is not None}.values()


def multiply_adds(operations: Sequence[Operation]) -> tuple[int | None, str]:
    """Return the number of multiply-adds in convolutions and matrix products; None and the reason if an extent is open."""
    found = 0
    for operation in operations:
        rule = PRODUCTS.get(spelling(operation))
        if rule is None:
            continue
        types = [v.type for v in (*operation.operands, *operation.results)]
        if not all(getattr(t, "is_static", True) for t in types):
            return None, OPEN
        found += rule(operation)
    return found, ""


def dims(operation: Operation, operand: int) -> tuple[int, ...]:
    found: TensorType = operation.operands[operand].tensor
    return found.dims


def results(operation: Operation) -> int:
    return math.prod(operation.results[0].tensor.dims)


PRODUCTS = {
    "tosa.conv2d": lambda o: results(o) * math.prod(dims(o, 1)[1:]),
    "tosa.conv3d": lambda o: results(o) * math.prod(dims(o, 1)[1:]),
    "tosa.depthwise_conv2d": lambda o: results(o) * math.prod(dims(o, 1)[:2]),
    "tosa.transpose_conv2d": lambda o: math.prod(dims(o, 0)) * math.prod(dims(o, 1)[:3]),
    "tosa.matmul": lambda o: results(o) * dims(o, 0)[-1],
    "tosa.matmul_t": lambda o: results(o) * dims(o, 0)[-1],
    "tosa.conv2d_block_scaled": lambda o: results(o) * math.prod(dims(o, 2)[1:]),
    "tosa.matmul_t_block_scaled": lambda o: results(o) * dims(o, 0)[-1]}
"""Number of multiply-adds of an operation, by operator, from its results or from the elements that it spreads over results."""
