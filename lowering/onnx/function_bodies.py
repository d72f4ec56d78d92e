"""Operators that ONNX defines by other operators: the body of an operator that has no class here, to be inlined where the
operator is called.

Some bodies depend on the types of the operands, which the file need not give: ONNX's own inference finds these types then.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...runtime.errors import Problem

Types = Callable[[], Mapping[str, Any]]
"""A function that returns the types of all values that ONNX's inference finds, by name."""


def function_body(node: Any, version: int, types: Types) -> Any | None:
    """Return the function that the operator of a node stands for, its attributes bound; None if ONNX has none."""
    import onnx
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "" if node.domain == "ai.onnx" else node.domain)
    except onnx.defs.SchemaError:
        return None
    if schema.has_function:
        fitting = [v for v in schema.function_opset_versions if v <= version]
        data = schema.get_function_with_opset_version(max(fitting)) if fitting else b""
        return parsed(onnx, data, schema)
    if schema.has_context_dependent_function:
        fitting = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if not fitting:
            return None
        known = types()
        given = [known[name].SerializeToString() if name in known else b"" for name in node.input]
        try:
            data = schema.get_context_dependent_function_with_opset_version(max(fitting), node.SerializeToString(), given)
        except Exception as error:  # ONNX's own
            raise Problem(f"ONNX cannot write {node.op_type} with other operators: {error}", kind="unsupported") from None
        return parsed(onnx, data, schema)
    return None


def parsed(onnx: Any, data: bytes, schema: Any) -> Any | None:
    """Return the function with the defaults of its attributes."""
    if not data:
        return None
    found = onnx.FunctionProto.FromString(data)
    known = {a.name for a in found.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name not in known and attribute.default_value.type:
            found.attribute_proto.append(attribute.default_value)
            found.attribute_proto[-1].name = name
    return found


def inferred_types(model: Any) -> dict[str, Any]:
    """Return the types that ONNX's inference finds for the values of a model's graph."""
    import onnx
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception as error:  # ONNX's own
        raise Problem(f"ONNX cannot infer the types of the model: {error}", kind="model") from None
    values = {v.name: v.type for v in (*graph.input, *graph.value_info, *graph.output)}
    for tensor in graph.initializer:
        values[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return values
