"""Nodes of a quantized model that compute in floats, and why: one line for each operator and reason, for reports."""
from __future__ import annotations

from ...dialects.onnx.node import CONSTANT, NO_VALUE, PREFIX
from ...graph.foreign import find
from ...graph.graph import Block, Module, Operation, Value, uses
from ...graph.types import TensorType
from .edited_graph import AS_UNSIGNED, DEQUANTIZE, QUANTIZE, EditedGraph, name_of
from .integer_products import PRODUCTS

PLAIN = frozenset((*(name.removeprefix(PREFIX) for name in (CONSTANT, NO_VALUE)), "Shape", "Size", "Cast"))
"""Operators of any model that do not compute with floats."""
OF_INTEGERS = frozenset((
    *DEQUANTIZE, *QUANTIZE, "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul", "DynamicQuantizeLinear",
    "tosaic.QLinearTable", AS_UNSIGNED, *(f"com.microsoft.{name}" for name in (
        "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QGemm", "QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearWhere",
        "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSigmoid", "QLinearLeakyRelu", "DynamicQuantizeLSTM"))))
"""Operators of quantized models that compute with integers, or only convert between integers and floats."""
OF_BLOCKS = "com.microsoft.MatMulNBits"
NO_FORM = "it has no form in integers"
INSIDE = ("com.microsoft.QLinearSoftmax",)
"""Operators between bytes that compute in floats."""


def in_float(module: Module) -> tuple[str, ...]:
    """Return the nodes that compute in floats, each with a reason; none if the model has no quantized tensors."""
    names = {name_of(o) for f in module.functions for o in f.body.walk()}
    if not names & {*OF_INTEGERS, *INSIDE, OF_BLOCKS}:
        return ()
    nodes: Nodes = {}
    for function in module.functions:
        graph = EditedGraph(module, uses(function.body))
        floats = {v for v in function.arguments if is_float(v)}
        noted(graph, function.body, floats, nodes)
    return tuple(f"{name} ({listed(labels)}): {why}" for (name, why), labels in nodes.items())


Nodes = dict[tuple[str, str], list[str]]
"""Names of nodes, by their operator and the reason."""


def listed(labels: list[str]) -> str:
    """Return the names of nodes, or their number."""
    shown = [label for label in labels if label][:SHOWN]
    return ", ".join(shown) if len(shown) == len(labels) else f"{len(labels)} node{'s' * (len(labels) != 1)}"


SHOWN = 3


def is_float(value: Value) -> bool | None:
    """Return whether a value is a float; None if the file does not declare its type."""
    return value.type.element.is_float if isinstance(value.type, TensorType) else None


def noted(graph: EditedGraph, block: Block, floats: set[Value], nodes: Nodes) -> None:
    """Note the nodes of a block and of the regions in it; `floats` are the values known to be floats so far."""
    for operation in block.operations:
        graph.add(operation)
        takes = any((v in floats or is_float(v)) and graph.constant(v) is None for v in operation.operands)
        for region in operation.regions:
            noted(graph, region, floats, nodes)
        if takes or name_of(operation) in DEQUANTIZE:
            floats.update(r for r in operation.results if is_float(r) is not False and name_of(operation) not in QUANTIZE)
        if name_of(operation) in INSIDE or (takes and not operation.regions and name_of(operation) not in OF_INTEGERS | PLAIN):
            name = find(operation, "onnx.node")
            nodes.setdefault((name_of(operation), reason(graph, operation, floats)), []).append(str(name or ""))


def reason(graph: EditedGraph, operation: Operation, floats: set[Value]) -> str:
    """Return why a node computes in floats."""
    if name_of(operation) in INSIDE:
        return NO_FORM
    if name_of(operation) == OF_BLOCKS:
        return "its weights have a scale for each block"
    if name_of(operation) in PRODUCTS:
        return product_reason(graph, operation)
    steps = [graph.dequantized(v) for v in operation.operands if v in floats and graph.constant(v) is None]
    if not any(steps):
        return "its operands are not quantized"
    if wide := next((s.element.bits for s in steps if s is not None and not s.is_byte), 0):
        return f"it has operands of {wide} bits"
    readers = [reader for r in operation.results for reader in graph.readers.get(r, ())]
    if all(reader is not None and name_of(reader) in QUANTIZE for reader in readers):
        return NO_FORM
    return "its result is not quantized"


def product_reason(graph: EditedGraph, operation: Operation) -> str:
    """Return why a product between quantized tensors computes in floats."""
    x, w = (graph.dequantized(v) for v in operation.operands[:2])
    if x is None or w is None:
        found = next((graph.made_by(v, "DequantizeLinear") for v in operation.operands[:2]
                      if graph.made_by(v, "DequantizeLinear") is not None), None)
        if found is not None and find(found, "block_size") is not None:
            return "its weights have a scale for each block"
        return "one of its operands is not quantized"
    for steps in (x, w):
        if not steps.is_byte:
            return f"it has operands of {steps.element.bits} bits"
    if not x.of_tensor:
        return "its input has more than one scale"
    return "its weights' scales, or those of its bias, are not those of its outputs"
