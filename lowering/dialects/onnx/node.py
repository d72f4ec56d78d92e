"""A node of an ONNX graph: kept as in the file, by its operator's name, whether the operator is known or not.

`onnx.Conv` is an operator of ai.onnx, `onnx.com.microsoft.Gelu` one of another domain. Attributes of the node are properties;
subgraphs are regions, which end in `onnx.Return`. An omitted operand is a value of type `none`, made by `onnx.NoValue`. The
semantics of operators are in `operator` and the modules beside it.
"""
from __future__ import annotations

from ...graph.foreign import find, spelling
from ...graph.graph import Module, Operation
from ...graph.operator import ForeignOp
from ...graph.types import OpaqueType

PREFIX = "onnx."
CONSTANT, NO_VALUE, RETURN = "onnx.Constant", "onnx.NoValue", "onnx.Return"
NONE = OpaqueType("none")
UNTYPED = OpaqueType("!onnx.tensor")
"""Type of a value whose type the file does not declare."""
OPSETS = "onnx.opsets"
"""Attribute of the module: the version of each domain's operators; of an operation: its own version, if it differs."""

WITHOUT_ELEMENTS = "onnx.without_elements"
"""Attribute of a graph of TOSA: indices and types of the outputs without elements, which the graph therefore lacks."""
IN_FLOAT = "onnx.in_float"
"""Attribute of a module of TOSA: lines that name the parts of a quantized model that compute in floats, and why."""
MADE_FROM = "onnx.made_from"
"""Attribute of a module of TOSA: the versions of operators that the file imports, and the producer of the file."""
PRODUCER = "onnx.producer"
"""Attribute of a module of ONNX: the producer of the file."""


class OnnxOp(ForeignOp):
    """An operator of the open dialect: `spelling` is its name prefixed by `onnx.`, `properties` are its attributes."""
    terminator = RETURN
    constant_spelling = CONSTANT


def is_onnx(module: Module) -> bool:
    """True if a module is a model of ONNX."""
    return OPSETS in module.attributes


def made_from(module: Module) -> str:
    """Return a one-line description of the file."""
    opsets = ", ".join(f"{domain} {number.value}" for domain, number in module.attributes[OPSETS].items())
    producer = module.attributes.get(PRODUCER)
    return f"ONNX, opset {opsets}" + (f", from {producer}" if producer else "")


def domain_of(operation: Operation) -> str:
    """Return the domain of an operation's operator; empty for ai.onnx."""
    return spelling(operation).removeprefix(PREFIX).rpartition(".")[0]


def version_of(operation: Operation, module: Module) -> int:
    """Return the version of an operator's domain that the model imports; the newest if the model has none."""
    domain = domain_of(operation) or "ai.onnx"
    for opsets in (operation.attributes.get(OPSETS), module.attributes.get(OPSETS)):
        if isinstance(opsets, dict) and domain in opsets:
            return int(opsets[domain].value)
    return NEWEST if domain == "ai.onnx" else 1


NEWEST = 28
"""The newest version of ai.onnx that the operators here follow."""


def label(operation: Operation, module: Module) -> str:
    """Return a node's label: its name, if it has one, its operator and the operator's version."""
    name = find(operation, "onnx.node")
    operator = f"{spelling(operation).removeprefix(PREFIX)} of opset {version_of(operation, module)}"
    return f"node {name}, {operator}" if isinstance(name, str) and name else operator
