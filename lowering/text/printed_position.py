"""Where an operation of a module that was read from no text stands in its text, as `tosaic show` prints it: for messages."""
from __future__ import annotations

from ...runtime.errors import Position, Source
from ..graph.foreign import spelling
from ..graph.graph import Module, Operation
from .printer import print_module

ELIDED = 32
"""Elements of constants that `show` prints; the others are shortened."""


def printed_position(module: Module, operation: Operation) -> Position | None:
    """The place of an operation, in a source that is called as the module's own; None where it is not in the module."""
    count = 0
    for function in module.functions:
        for each in function.body.walk():
            if each is operation or (each.results and each.results == operation.results):
                return nth(module, spelling(operation), count)
            count += spelling(each) == spelling(operation)
    return None


def nth(module: Module, name: str, number: int) -> Position | None:
    """The place of the operation of that name which `number` others come before."""
    text, sought, at = print_module(module, elide=ELIDED), f'"{name}"(', -1
    for _ in range(number + 1):
        at = text.find(sought, at + 1)
        if at < 0:
            return None
    source = Source(module.position.source.name if module.position else "<model>", text)
    return source.position(at, len(sought) - 1)
