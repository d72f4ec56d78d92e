"""A .tflite run by LiteRT's reference kernels."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...source import ImportedSource, SourceEvaluator, SourceRun, StatelessRun
from .first_operator import Load, compare_operators

if TYPE_CHECKING:
    from ....lowering.graph.types import Array


def tflite_source(data: Callable[[], bytes], graph_of: Load) -> ImportedSource:
    """Return the source of a file whose bytes `data` returns; `graph_of` loads another file."""
    return ImportedSource("a .tflite model", (
        SourceEvaluator("LiteRT", "ai_edge_litert.interpreter", "ai-edge-litert", lambda entry: run(data(), entry)),),
        lambda entry, arrays: compare_operators(bytes(data()), entry, arrays, graph_of))


def run(data: bytes, entry: str) -> SourceRun:
    """Return a run of the signature of that name, or of the first subgraph; variables live in the interpreter."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    interpreter = Interpreter(model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    signature = signature_of(data, entry)
    if signature is None:
        return StatelessRun(lambda arrays: by_tensor(interpreter, arrays))
    inputs, outputs = signature
    runner = interpreter.get_signature_runner(entry)

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        found: Mapping[str, Array] = runner(**dict(zip(inputs, arrays, strict=True)))
        return [found[name] for name in outputs]

    return StatelessRun(call)


def signature_of(data: bytes, entry: str) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the names of a signature's inputs and outputs, in the order of its subgraph; None if the subgraph is the first,
    whose tensors can be used directly."""
    from ....lowering.tflite.decode import decode
    model = decode(data)
    found = next((s for s in model.signatures if s.key == entry), None)
    if found is None or found.subgraph == 0:
        return None
    graph = model.subgraphs[found.subgraph]
    return [found.inputs[t] for t in graph.inputs], [found.outputs[t] for t in graph.outputs]


def by_tensor(interpreter: Any, arrays: Sequence[Array]) -> Sequence[Array]:
    """Call the first subgraph."""
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
