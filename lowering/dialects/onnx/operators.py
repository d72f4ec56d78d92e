"""The complete table of ONNX's operators, to which each module beside this one adds its kind, and the lookup of a node's
operator."""
from __future__ import annotations

from ....runtime.errors import Problem
from ...graph.foreign import spelling
from ...graph.graph import Module, Operation
from . import (  # noqa: F401
    activations,
    along_axis,
    arithmetic,
    block_weights,
    boxes,
    casts,
    comparisons,
    constants,
    contractions,
    control_flow,
    convolutions,
    deformed_convolutions,
    functions,
    gathering,
    joining,
    layout,
    losses,
    ngrams,
    normalization,
    pools,
    quantize,
    quantized_convolutions,
    quantized_elementwise,
    quantized_pools,
    quantized_products,
    quantized_recurrence,
    recurrence,
    reductions,
    resize,
    sampling,
    sequences,
    shapes,
    signal,
    strings,
    suppression,
)
from .custom_operator import CustomOperator, is_custom
from .node import PREFIX, version_of
from .operator import OPERATORS, Inside, Operator, no_regions

__all__ = ["OPERATORS", "operator_of"]


def remedy(domain: str, name: str) -> str:
    """Return a remedy for an unknown operator. A class of the user's has numbers and lists of them as fields; an operator of
    ai.onnx.ml has trees and texts."""
    if domain == "ai.onnx.ml":
        return "run this operator with another library, and give tosaic the model from its results on: onnx.utils.extract_model"
    if not domain:
        return f"ONNX has no {name} in a version that tosaic knows; onnx.version_converter may express it with other operators"
    return f'give it a class of your own: @tosaic.custom("{domain}", "{name}")'


def operator_of(operation: Operation, module: Module, inside: Inside = no_regions) -> Operator:
    """Return the operator of a node. Raise a Problem if it is not known, or has other attributes."""
    name = spelling(operation).removeprefix(PREFIX)
    found = OPERATORS.get(name)
    version = version_of(operation, module)
    if is_custom(operation, module):
        return CustomOperator(operation, version, inside)
    if found is None:
        domain, _, short = name.rpartition(".")
        where = f"of the domain {domain} " if domain else ""
        raise Problem(f"operator {short} {where}is not known", kind="unsupported",
                      help=remedy(domain, short))
    return found(operation, version, inside)
