"""Graph -> graph: operators between DequantizeLinear and QuantizeLinear become an operator of integers, as in ONNX Runtime's
own rewrites: QLinearConv, QLinearMatMul, QGemm, QLinearAdd, QLinearMul, QLinearConcat, QLinearAveragePool, tables of 256
values, and operators that move elements on integers. Relu and Clip before a QuantizeLinear become bounds of its integers.
Unsigned bytes are stored as `i8` between these operators, because TOSA multiplies `i8`.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...dialects.onnx.node import is_onnx
from ...graph.foreign import find
from ...graph.graph import Block, Function, Module, Operation, Value, uses
from ...graph.types import I8
from .byte_tables import tabulated
from .edited_graph import (
    AS_UNSIGNED,
    DEQUANTIZE,
    HALF,
    QUANTIZE,
    EditedGraph,
    Steps,
    integer,
    name_of,
    properties_of,
    whole,
)
from .integer_products import PRODUCTS, product, product_in_floats
from .moved_integers import moved

BOUNDS = ("Relu", "Clip")
PAIRS = {"Add": "com.microsoft.QLinearAdd", "Sum": "com.microsoft.QLinearAdd", "Mul": "com.microsoft.QLinearMul"}


def in_integers(module: Module) -> Module:
    """Return the module with integer operators between quantized tensors; the same object if there are none."""
    if not is_onnx(module) or not any(name_of(o) in DEQUANTIZE for f in module.functions for o in f.body.walk()):
        return module
    return replace(module, functions=tuple(rewritten(module, f) for f in module.functions))


def rewritten(module: Module, function: Function) -> Function:
    graph = EditedGraph(module, uses(function.body))
    return replace(function, body=block(graph, function.body))


def block(graph: EditedGraph, source: Block) -> Block:
    """Rewrite the nodes of a block and of the regions in it."""
    outer, graph.operations = graph.operations, []
    for operation in source.operations:
        given = replace(operation, operands=tuple(graph.replaced.get(v, v) for v in operation.operands),
                        regions=tuple(block(graph, r) for r in operation.regions))
        node(graph, given)
    own, graph.operations = tuple(graph.operations), outer
    return replace(source, operations=own, yields=tuple(graph.replaced.get(v, v) for v in source.yields))


def node(graph: EditedGraph, operation: Operation) -> None:
    """Add one node or its replacement."""
    name = name_of(operation)
    if name in QUANTIZE:
        if not quantizing(graph, operation):
            graph.add(operation)
        return
    if name in DEQUANTIZE and graph.made_by(operation.operands[0], AS_UNSIGNED) is not None and (
            steps := graph.dequantized_by(operation)) is not None and steps.of_tensor:
        graph.node("DequantizeLinear", (steps.stored, *graph.parameters(steps)), operation.results, operation)
        return
    if moved(graph, operation):
        return
    if name in PRODUCTS and not is_bytes_later(graph, operation) and product_in_floats(graph, operation):
        return
    graph.add(operation)


# ---- QuantizeLinear ------------------------------------------------------------------------------------------------------
def quantizing(graph: EditedGraph, operation: Operation) -> bool:
    """True if a QuantizeLinear and the nodes before it were rewritten on integers."""
    result = operation.results[0]
    to = graph.steps(operation, result)
    if to is None or find(operation, "precision") is not None:
        return False
    before = graph.dequantized(operation.operands[0])
    if before is not None and before.same(to):
        graph.replaced[result] = before.stored
        return True
    if before is not None and before.same(to.signed):
        graph.node(AS_UNSIGNED, (before.stored,), (result,), operation)
        return True
    if not to.of_tensor or not to.is_byte:
        return False
    if to.element == I8:
        return written(graph, operation, to, result)
    stored = graph.value(f"{result.name}_signed", I8, result)
    if not written(graph, operation, to.signed, stored):
        graph.node("QuantizeLinear", (operation.operands[0], *graph.parameters(to.signed)), (stored,), operation)
    graph.node(AS_UNSIGNED, (stored,), (result,), operation)
    return True


def written(graph: EditedGraph, operation: Operation, to: Steps, result: Value) -> bool:
    return tabulated(graph, operation, to, result) or by_pattern(graph, operation, to, result)


def by_pattern(graph: EditedGraph, operation: Operation, to: Steps, result: Value) -> bool:
    """True if the operator before a QuantizeLinear, with bounds between them, was rewritten on integers."""
    found, bounds = behind_bounds(graph, operation.operands[0])
    if found is None:
        return False
    limits = [limit for each in bounds for limit in limits_of(graph, each, to)]
    if any(limit is None for limit in limits):
        return False
    needed = [(name, limit) for name, limit in limits if limit not in (None, END[name](to))]  # type: ignore[misc]
    values = [graph.value("bounded", to.element, result) for _ in needed] + [result]
    if not integers(graph, found, to, values[0]):
        return False
    for (name, limit), given, bounded in zip(needed, values, values[1:]):
        graph.node(name, (given, graph.new_constant(np.asarray(limit, to.element.dtype))), (bounded,), operation)
    return True


END = {"Max": lambda to: to.element.minimum, "Min": lambda to: to.element.maximum}
"""The bound that the element type implies."""


def behind_bounds(graph: EditedGraph, value: Value) -> tuple[Operation | None, list[Operation]]:
    """Return the node that a value comes from, and the Relus and Clips between the node and the value in order of execution;
    None if other nodes read them."""
    bounds: list[Operation] = []
    while (found := graph.maker(value)) is not None and graph.has_one_reader(value):
        if name_of(found) not in BOUNDS:
            return found, bounds
        bounds.insert(0, found)
        value = found.operands[0]
    return None, bounds


def limits_of(graph: EditedGraph, operation: Operation, to: Steps) -> list[tuple[str, int] | None]:
    """Return the bounds that a Relu or a Clip sets, as integers, with None for each unknown bound."""
    if name_of(operation) == "Relu":
        return [("Max", int(to.zero))]
    found: list[tuple[str, int] | None] = []
    for number, (name, attribute) in enumerate((("Max", "min"), ("Min", "max")), 1):
        own, operand = find(operation, attribute), graph.optional(operation, number)
        bound = None if operand is None else graph.constant(operand)
        if own is not None:
            bound = np.asarray(own.value, np.float32)
        elif operand is not None and (bound is None or bound.size != 1):
            return [None]
        if bound is not None and not np.isnan(bound).any():
            found.append((name, int(to.nearest(np.asarray(bound, np.float32).reshape(())))))
    return found


def integers(graph: EditedGraph, operation: Operation, to: Steps, result: Value) -> bool:
    """True if a node whose result becomes bytes was rewritten on integers."""
    name = name_of(operation)
    if name in PRODUCTS:
        return product(graph, operation, to, result)
    operands = [graph.dequantized(v) for v in operation.operands]
    given = [s for s in operands if s is not None and s.of_tensor and s.is_byte]
    if len(given) < len(operands) or not given:
        return False
    if name in PAIRS and len(given) == 2:
        parameters = [v for s in given for v in (s.stored, *graph.parameters(s))]
        lift = {"lift": whole(HALF)} if to.was_unsigned else {}
        graph.node(PAIRS[name], (*parameters, *graph.parameters(to)), (result,), operation, lift)
    elif name == "Concat":
        parameters = [v for s in given for v in (s.stored, *graph.parameters(s))]
        graph.node("com.microsoft.QLinearConcat", (*graph.parameters(to), *parameters), (result,), operation,
                   properties_of(operation))
    elif name == "GlobalAveragePool" or (name == "AveragePool" and find(operation, "dilations") is None and not (
            integer(operation, "ceil_mode", 0) and integer(operation, "count_include_pad", 0))):
        operand = given[0]
        parameters = [operand.stored, *graph.parameters(operand), *graph.parameters(to)]
        graph.node(f"com.microsoft.QLinear{name}", parameters, (result,), operation, properties_of(operation))
    else:
        return False
    return True


def is_bytes_later(graph: EditedGraph, operation: Operation) -> bool:
    """True if only a QuantizeLinear reads the result of a product, directly or through bounds."""
    value = operation.results[0]
    while graph.has_one_reader(value):
        reader = graph.readers[value][0]
        if reader is None or name_of(reader) not in (*BOUNDS, *QUANTIZE):
            return False
        if name_of(reader) in QUANTIZE:
            to = graph.steps(reader, reader.results[0])
            return to is not None and to.is_byte and to.of_tensor
        value = reader.results[0]
    return False
