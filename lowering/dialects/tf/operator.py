"""An operation of TensorFlow: kept as it is written, by its name, whether anything knows it or not.

What it means is the business of later stages, by a table over `spelling`. Properties (`<{...}>`) and attributes (`{...}`) stay
apart, because MLIR prints them apart; `find` looks into both.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....runtime.errors import Problem
from ...graph.graph import Operation
from ...graph.operator import Operand, UnknownOp
from ...graph.types import Array

PREFIX = "tf."
CONST, YIELD = "tf.Const", "tf.Yield"
SEND, RECEIVE = ("tf._Send", "tf._HostSend"), ("tf._Recv", "tf._HostRecv")
CALLEES = ("then_branch", "else_branch", "true_branch", "false_branch", "cond", "body", "branches", "f")
"""Properties that name functions, or lists of them."""


class TensorFlowOp(UnknownOp):
    """An operator of the open dialect: `spelling` is its name (`tf.MatMul`), `properties` what stands in `<{...}>`.

    The attributes of the operation (`Operation.attributes`) are what stands in `{...}`. A region ends in `tf.Yield`, whose
    operands are the block's `yields`.
    """
    foreign = True

    def verify(self, operation: Operation, parent: Operation | None) -> None:
        from .definitions import check_definition
        check_definition(operation)

    def constant(self, operands: Sequence[Operand]) -> Array | None:
        """The data of `tf.Const`, where it is numbers."""
        value = (self.properties or {}).get("value") if self.spelling == CONST else None
        found: Array | None = getattr(value, "array", None)
        return found

    def reference(self, *arrays: Array) -> Array:
        """The data of `tf.Const`; the other operators are not known here."""
        known = self.constant(())
        return super().reference(*arrays) if known is None else known


def is_tensorflow(operation: Operation, *names: str) -> bool:
    """Whether it is an operation of the dialect, and of one of these names if there are any."""
    return isinstance(operation.op, TensorFlowOp) and (not names or operation.op.spelling in names)


def find(operation: Operation, name: str, default: Any = None) -> Any:
    """The property or attribute of that name."""
    properties: Mapping[str, Any] = getattr(operation.op, "properties", None) or {}
    return properties.get(name, operation.attributes.get(name, default))


def required(operation: Operation, name: str) -> Any:
    """The property or attribute of that name; a Problem where there is none."""
    value = find(operation, name)
    if value is None:
        raise Problem(f"{spelling(operation)} has no {name}", operation.position, kind="attribute")
    return value


def flag(operation: Operation, name: str) -> bool:
    """Whether a unit or boolean property is set."""
    value = find(operation, name, False)
    return value if isinstance(value, bool) else True


def number(operation: Operation, name: str, default: float | None = None) -> int | float:
    """A number, `1 : i64`; where there is none, the default if there is one."""
    if default is not None and find(operation, name) is None:
        return default
    value = getattr(required(operation, name), "value", None)
    if not isinstance(value, int | float):
        raise Problem(f"{name} of {spelling(operation)} must be a number", operation.position, kind="attribute")
    return value


def string(operation: Operation, name: str) -> str:
    value = required(operation, name)
    if not isinstance(value, str):
        raise Problem(f"{name} of {spelling(operation)} must be a string", operation.position, kind="attribute")
    return value


def callees(operation: Operation) -> dict[str, tuple[str, ...]]:
    """The functions that it names, by the property that names them: {"branches": ("a", "b")}."""
    found: dict[str, tuple[str, ...]] = {}
    for name in CALLEES:
        value = find(operation, name)
        symbols = value if isinstance(value, tuple) else (value,)
        paths = [s.path[-1] for s in symbols if hasattr(s, "path")]
        if paths:
            found[name] = tuple(paths)
    return found


def spelling(operation: Operation) -> str:
    """Its name as MLIR writes it."""
    return operation.op.name or str(getattr(operation.op, "spelling", ""))
