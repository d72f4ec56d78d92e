"""The first node of an ONNX model whose result differs from ONNX Runtime's: the model is loaded again with the results of all
its nodes as outputs, in order, and these are compared.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ....runtime.errors import Problem
from ...source import OperatorVerdict, first_line
from .run_onnx import onnx_source

if TYPE_CHECKING:
    from ....lowering.graph.graph import Module
    from ....lowering.graph.types import Array
    from ...tools.check.import_check import Largest

Load: TypeAlias = "Callable[[bytes, dict[str, tuple[int, ...]]], Module]"
"""Loads the bytes of a model, for inputs of these shapes."""
MOST_BYTES = 1 << 30
"""Maximum number of bytes of a model that is imported again: protobuf cannot serialize a larger one as a message."""


def first_node(source: bytes, arrays: Sequence[Array], graph_of: Load) -> OperatorVerdict:
    """Return the number of nodes compared, and the first that differs; no node if the import with all results is not
    possible."""
    import onnx

    from ...stages import prepared
    from ...tools.check.import_check import check_import
    try:
        model = onnx.load_from_string(source)
        if model.ByteSize() > MOST_BYTES:
            return OperatorVerdict(0, reason="the model is too large to be made again with all results")
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in weights]
        nodes = observed(onnx, model)
        data = model.SerializeToString()
        module = prepared(graph_of(data, {name: array.shape for name, array in zip(names, arrays)}))
        found = check_import(onnx_source(lambda: data), module, module.function("main"), [arrays])
    except (Problem, onnx.checker.ValidationError, ValueError) as error:
        return OperatorVerdict(0, reason=first_line(error))
    wrong: Largest | None = next((each for each in found.largest if each.difference > each.allowed), None)
    number = int(wrong.where.removeprefix("output ")) if wrong else len(nodes)
    return OperatorVerdict(len(nodes), nodes[number] if number < len(nodes) else None)


def observed(onnx: Any, model: Any) -> list[str]:
    """Make the results of nodes the model's outputs if their types are known; return a description of the node of each
    output."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    typed = {value.name: value for value in (*graph.value_info, *graph.output)}
    values, nodes = [], []
    for number, node in enumerate(graph.node):
        for name in node.output:
            if name in typed and typed[name].type.tensor_type.HasField("shape") and node.op_type != "Constant":
                values.append(typed[name])
                nodes.append(f"node {node.name or number}, {node.op_type}, which gives {name}")
    del model.graph.output[:]
    model.graph.output.extend(values)
    return nodes
