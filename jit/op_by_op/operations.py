"""The operations of the op-by-op runtime as functions of traced tensors: the operators of the specification by their names
(`tosa.add`), and the functions of `tosaic.ops` by theirs (`add`, `matmul`). An operation's attributes are the parameters that
are not tensors.
"""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from ..tracing.promotion import explicit_conversions
from ..tracing.tensor import Tensor
from . import control_flow, tensorflow_operations

LISTS = frozenset({"parts", "arrays"})
"""Parameters that are lists of tensors."""

STATEFUL = frozenset({"tosa.variable", "tosa.variable_read", "tosa.variable_write", "tosa.variable.read",
                      "tosa.variable.write"})
"""Operators that are not functions of tensors: `runtime.op_by_op.stateful_operations` registers them."""

CONSTANTS = frozenset({"shift", "multiplier", "pad_const", "table", "row_count"})
"""Operands of TOSA's operators that are known when compiling, besides shapes and zero points."""

OF_RESIZE = frozenset({"scale", "offset", "border"})
"""Lists of numbers for RESIZE; a block-scaled tensor's scale is a tensor."""

LAST = {"tosa.reshape_block_scaled": "shape", "tosa.row_gather_block_scaled": "row_count"}
"""Name of the last operand of operators with a variable number of operands."""


def knows(name: str) -> bool:
    """True if there is an operation of that name."""
    if name == "getitem" or name in control_flow.FUNCTIONS:
        return True
    if name.startswith(tensorflow_operations.PREFIX):
        return tensorflow_operations.knows(name)
    if name.startswith("tosa."):
        from ...lowering.dialects import tosa as _  # noqa: F401  fills the table
        from ...lowering.graph.operator import OPERATORS
        return name in OPERATORS and name not in STATEFUL
    from ..tracing import ops
    return name in ops.__all__


def names() -> Iterator[str]:
    """Yield all names of operations."""
    from ...lowering.dialects import tosa as _  # noqa: F401  fills the table
    from ...lowering.graph.operator import OPERATORS
    from ..tracing import ops
    every = ("getitem", *control_flow.FUNCTIONS, *tensorflow_operations.names(), *OPERATORS, *ops.__all__)
    return (name for name in dict.fromkeys(every) if knows(name))


@functools.cache
def function(name: str) -> Callable[..., Any]:
    """Return the function of an operation."""
    if name == "getitem":
        return getitem
    if name in control_flow.FUNCTIONS:
        return control_flow.FUNCTIONS[name]
    if name.startswith(tensorflow_operations.PREFIX):
        return tensorflow_operations.function(name)
    if name.startswith("tosa."):
        from ...lowering.graph.operator import OPERATORS
        from ..tracing import tosa_namespace
        operator: Any = OPERATORS[name]
        return tosa_namespace.function(operator)
    from ..tracing import ops
    found: Callable[..., Any] = getattr(ops, name)
    return found


@functools.cache
def constants(name: str, count: int) -> tuple[int, ...]:
    """Return the operands, of `count`, whose contents must be known when compiling."""
    if name in control_flow.FUNCTIONS:
        return ()
    if name.startswith(tensorflow_operations.PREFIX):
        return tensorflow_operations.constants(name, count)
    if not name.startswith("tosa."):
        return ()
    from ..tracing.tosa_namespace import NUMBERS
    title = name.removeprefix("tosa.")
    return tuple(n for n, p in enumerate(operand_names(name, count))
                 if is_shape(name, p) or p in CONSTANTS or p.endswith("_zp") or (title, p) in NUMBERS)


def operand_names(name: str, count: int) -> list[str]:
    """Return the parameters of a TOSA operator that its operands go to."""
    parameters = inspect.signature(function(name)).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        names = [next(iter(parameters))] * count
        return [*names[:-1], LAST[name]] if name in LAST else names
    return list(parameters)[:count]


def is_shape(name: str, parameter: str) -> bool:
    """True if an operand is a list of extents."""
    from ..tracing.tosa_namespace import NUMBERS, SHAPES
    title = name.removeprefix("tosa.")
    if parameter in OF_RESIZE:
        return title == "resize"
    return title == "concat_shape" or (parameter in SHAPES and (title, parameter) not in NUMBERS)


def version(name: str, attributes: Mapping[str, Any]) -> Hashable:
    """Return the dependency of an operation besides its name and its attributes: the implementation of a custom operator that
    is registered now."""
    if name != "tosa.custom":
        return None
    from ...lowering.dialects.tosa.custom import IMPLEMENTATIONS
    key: Any = attributes.get("domain_name"), attributes.get("operator_name")
    found: Hashable = IMPLEMENTATIONS.get(key)  # type: ignore[assignment]
    return found


def call(name: str, tensors: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """Apply an operation to traced tensors of its own types: the caller must have converted others."""
    positional, named = arguments(function(name), list(tensors), dict(attributes))
    with explicit_conversions():
        found = function(name)(*positional, **named)
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def arguments(of: Callable[..., Any], tensors: list[Any], attributes: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Distribute tensors and attributes over the parameters of a function: an attribute goes to the parameter of its name, the
    tensors go to the others in order."""
    positional: list[Any] = []
    for name, parameter in inspect.signature(of).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [attributes.pop(name)] if name in attributes else tensors
            tensors = []
        elif name in LISTS:
            positional, tensors = [*positional, tensors], []
        elif name in attributes or not tensors:
            break
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(tensors.pop(0))
    rest = iter(n for n in list(inspect.signature(of).parameters)[len(positional):] if n not in attributes)
    named = {next(rest, f"operand{n}"): t for n, t in enumerate(tensors)}
    return positional, {**attributes, **named}


def getitem(x: Tensor, key: str) -> Any:
    """Apply NumPy's basic indexing; the key is in the form that `plain_key` writes."""
    return x[python_key(ast.literal_eval(key))]


def python_key(key: Any) -> Any:
    match key:
        case ("slice", start, stop, step): return slice(start, stop, step)
        case tuple(): return tuple(map(python_key, key))
        case "...": return ...
    return key
