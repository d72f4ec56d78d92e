"""`tosaic.tosa`: the operators of the specification as functions of traced tensors, generated from the table of operators.

Operands come in the specification's order, attributes by keyword. An operand that the specification requires to be constant may
be a Python number or list: shapes, zero points (default 0), multipliers, tables. Ranks and types are taken as they are;
`tosaic.ops` aligns them.

    y = tosaic.tosa.conv2d(x, weight, bias, pad=(1, 1, 1, 1), stride=(2, 2))
"""
from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from operator import index
from typing import Any

from ...lowering.graph.operator import OPERATORS, Op
from ...lowering.graph.types import BF16, F8E4M3, F8E5M2, F16, F32, I4, I8, I16, I32, I48, ElementType, TensorType
from ...runtime.errors import AttributeProblem, Problem, TypeProblem
from ...runtime.public_names import closest
from .conversion import element_type, is_number, tensor
from .tensor import Tensor
from .trace import problem, record, shape

SHAPES = frozenset({"shape", "shape1", "shape2", "padding", "start", "size", "multiples", "scale", "offset", "border", "kernel",
                    "stride", "pad", "dilation"})
"""Operands that are lists of extents."""
NUMBERS = frozenset({("slice_shape", "start"), ("slice_shape", "size"), ("row_gather", "row_count")})
"""Operands that are one i32, known when compiling."""

ELSEWHERE = {"variable": "tosaic.Variable", "variable_read": "tosaic.Variable", "variable_write": "tosaic.Variable",
             "variable.read": "tosaic.Variable", "variable.write": "tosaic.Variable", "cond_if": "tosaic.cond",
             "while_loop": "tosaic.while_loop", "yield": "return"}
"""Operators that Python writes in another way."""

ACCUMULATORS = {I8: I32, I4: I32, I16: I48, F8E4M3: F16, F8E5M2: F16, F16: F32, BF16: F32, F32: F32}

Parameters = list[inspect.Parameter]


class Namespace:
    """The operators by name."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from ...lowering.dialects import tosa as _  # noqa: F401  fills the table
        if f"tosa.{name}" not in OPERATORS or name in ELSEWHERE:
            raise self._unknown(name)
        found: Any = OPERATORS[f"tosa.{name}"]
        return function(found)

    def __repr__(self) -> str:
        return f"<tosaic.tosa, {len(dir(self))} operators>"

    def _unknown(self, name: str) -> AttributeProblem:
        if name in ELSEWHERE:
            return AttributeProblem(f"tosaic.tosa has no operator {name}, it is written {ELSEWHERE[name]}", kind="symbol")
        meant = None if name.startswith("_") else closest(name, dir(self))
        return AttributeProblem(f"tosaic.tosa has no operator {name}", kind="symbol",
                                help=f"did you mean {meant}?" if meant else "dir(tosaic.tosa) lists them")

    def __dir__(self) -> list[str]:
        from ...lowering.dialects import tosa as _  # noqa: F401  fills the table
        names = (name.removeprefix("tosa.") for name in OPERATORS if name.startswith("tosa."))
        return sorted(name for name in names if name.isidentifier() and name not in ELSEWHERE)


@cache
def function(operator: Any) -> Callable[..., Any]:
    """Return the Python function of an operator, with a signature of its operands and attributes."""
    parameters = list(inspect.signature(operator.infer).parameters.values())[1:]
    attributes = [inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY,
                                    default=inspect.Parameter.empty if f.default is dataclasses.MISSING else f.default)
                  for f in dataclasses.fields(operator)]
    if operator.name in ("tosa.const", "tosa.const_shape"):
        return constant(operator.name)

    def call(*operands: Any, **given: Any) -> Any:
        named = {p.name: given.pop(p.name) for p in parameters if p.name in given}
        op = operator(**attribute_values(operator, given, operands))
        results = record(op, *operand_tensors(op, parameters, operands, named))
        return results[0] if len(results) == 1 else results

    call.__name__ = call.__qualname__ = operator.name.removeprefix("tosa.")
    call.__doc__ = operator.__doc__
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(annotation=inspect.Parameter.empty) for p in parameters] + attributes)
    return call


def constant(name: str) -> Callable[..., Tensor]:
    def const(values: Any, dtype: Any = None) -> Tensor:
        """A constant; `dtype` is its element type if the values do not determine it."""
        element = None if dtype is None else element_type(dtype)
        if element is None:
            return tensor(values)
        import numpy as np

        from . import trace
        return trace.constant(np.asarray(values, element.dtype), element)

    return const if name == "tosa.const" else shape


def attribute_values(operator: Any, given: Mapping[str, Any], operands: tuple[Any, ...]) -> dict[str, Any]:
    """Return the attributes in the form of the operator's fields, with those that follow from the operands."""
    fields = {f.name: f for f in dataclasses.fields(operator)}
    title = operator.name.removeprefix("tosa.")
    for name in given:
        if name not in fields:
            raise problem(f"{title} has no attribute {name}", "argument", help=f"it has {', '.join(fields) or 'none'}",
                          raised=TypeProblem)
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given:
            values[name] = attribute_value(title, name, field.metadata["mlir"], given[name])
        elif field.default is dataclasses.MISSING:
            values[name] = default(title, name, operands)
    return values


def attribute_value(title: str, name: str, kind: str, value: Any) -> Any:
    """Convert one attribute to its kind in MLIR."""
    try:
        match kind:
            case "type" | "result":
                return None if value is None else element_type(value)
            case "array<i32>" | "array<i64>" | "array<i8>" | "array<i16>":
                return tuple(index(v) for v in value)
            case "i32" | "i64":
                return index(value)
            case "bool":
                return bool(value)
            case "nan_mode" | "rounding_mode" | "resize_mode":
                return str(value).upper()
            case _:
                return value
    except Problem:
        raise
    except TypeError:
        raise problem(f"attribute {name} of {title} is {kind}, not {value!r}", "argument", raised=TypeProblem) from None


def default(title: str, name: str, operands: tuple[Any, ...]) -> Any:
    """Return the usual value of an attribute: no padding, strides of 1, the accumulator of the input's type."""
    first = operands[0] if operands else None
    if isinstance(first, Tensor):
        spatial = first.ndim - 2
        match name:
            case "pad" | "out_pad":
                return (0,) * (2 * spatial)
            case "stride" | "dilation":
                return (1,) * spatial
            case "acc_type" if "pool2d" in title:
                return I32 if first.element.is_integer else ACCUMULATORS.get(first.element, F32)
            case "acc_type":
                return ACCUMULATORS.get(first.element, first.element)
            case "inverse" | "round" | "per_channel" | "input_unsigned" | "output_unsigned" | "allow_broadcast":
                return False
            case "scale32":
                return True
            case "rounding_mode":
                return "SINGLE_ROUND"
    raise problem(f"{title} needs the attribute {name}", "argument", raised=TypeProblem)


def operand_tensors(op: Op, parameters: Parameters, operands: tuple[Any, ...],
                    named: Mapping[str, Any]) -> list[Tensor]:
    """Return the operands in order: tensors unchanged, numbers and lists as constants, missing zero points as 0."""
    title = op.name.removeprefix("tosa.")
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
        return [shape(v) if title == "concat_shape" and isinstance(v, list | tuple) else tensor(v) for v in given]
    if len(operands) > len(parameters):
        raise problem(f"{title} takes {len(parameters)} operands, not {len(operands)}", "argument",
                      help=f"they are {', '.join(p.name for p in parameters)}; attributes go by keyword", raised=TypeProblem)
    values = dict(zip((p.name for p in parameters), operands)) | dict(named)
    tensors = {name: v for name, v in values.items() if isinstance(v, Tensor) and isinstance(v.value.type, TensorType)}
    return [operand(op, p.name, values, tensors) for p in parameters]


def operand(op: Op, name: str, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Tensor:
    """Return one operand as a tensor; `tensors` holds those that are tensors already."""
    title = op.name.removeprefix("tosa.")
    peers = [v for n, v in tensors.items() if n != "condition"]
    element = element_of(op, name, tensors, peers[0].element if peers else None)
    if name not in values:
        if not (name.endswith("_zp") or (title, name) in (("mul", "shift"), ("pad", "pad_const"))):
            raise problem(f"{title} needs the operand {name}", "argument", raised=TypeProblem)
        return tensor(0, element, 1)
    value = values[name]
    if name in SHAPES and (title, name) not in NUMBERS and not isinstance(value, Tensor):
        return shape(value)
    if is_number(value):
        single = (name.endswith("_zp") or name in ("shift", "multiplier", "pad_const") or (title, name) in NUMBERS
                  or not peers)
        return tensor(value, element, 1 if single else peers[0].ndim)
    return tensor(value, element)


def element_of(op: Op, name: str, tensors: Mapping[str, Tensor], first: ElementType | None) -> ElementType | None:
    """Return the element type of a number as operand `name`; `first` is that of the first tensor."""
    match name:
        case _ if (op.name.removeprefix("tosa."), name) in NUMBERS:
            return I32
        case "shift":
            return I8
        case "multiplier":
            return I32 if getattr(op, "scale32", True) else I16
        case "output_zp":
            return getattr(op, "to", None) or first
        case "bias":
            return ACCUMULATORS.get(first, first) if first is not None and first.is_integer else first
        case "indices":
            return I32
        case _ if name.endswith("_zp"):
            source = tensors.get(name.removesuffix("_zp"))
            return first if source is None else source.element
        case _:
            return first
