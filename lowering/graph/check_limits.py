"""A module against the limits that its user has set (`runtime.limits`): operators, bytes of tensors and of constants. Without
limits nothing is looked at. `verify` holds what holds for every model."""
from __future__ import annotations

from ...runtime.limits import check_bytes, check_nodes, here
from .graph import Module, Value
from .types import TensorType


def check_limits(module: Module) -> None:
    """A Problem where a module is beyond a limit, at the first operation that is."""
    if here.scope is None:
        return
    count, constants = 0, 0
    for function in module.functions:
        for argument in function.arguments:
            check_value(argument)
        for operation in function.body.walk():
            count += 1
            check_nodes(count, operation.position)
            for value in operation.results:
                nbytes = check_value(value)
                constants += nbytes if not operation.operands and value.constant is not None else 0
            check_bytes(constants, "the constants up to here have", operation.position)


def check_value(value: Value) -> int:
    """The bytes of a tensor, of which a limit allows no more; 0 where an extent is open."""
    type = value.type
    if not isinstance(type, TensorType) or not type.is_static:
        return 0
    check_bytes(type.nbytes, f"%{value.name} has", value.position)
    return type.nbytes
