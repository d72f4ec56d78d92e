"""The position of an operation in the text that `tosaic show` prints of a module that was not read from text: for messages."""
from __future__ import annotations

from ...runtime.errors import Position, Source
from ..graph.foreign import spelling
from ..graph.graph import Module, Operation
from .printer import print_module

ELIDED = 32
"""Maximum number of elements of a constant that `show` prints; larger constants are shortened."""


def printed_position(module: Module, operation: Operation) -> Position | None:
    """Return the position of an operation, in a source with the module's own name; None if it is not in the module."""
    count = 0
    for function in module.functions:
        for each in function.body.walk():
            if each is operation or (each.results and each.results == operation.results):
                return nth(module, spelling(operation), count)
            count += spelling(each) == spelling(operation)
    return None


def nth(module: Module, name: str, number: int) -> Position | None:
    """Return the position of the operation of that name that follows `number` others."""
    text, sought, at = print_module(module, elide=ELIDED), f'"{name}"(', -1
    for _ in range(number + 1):
        at = text.find(sought, at + 1)
        if at < 0:
            return None
    source = Source(module.position.source.name if module.position else "<model>", text)
    return source.position(at, len(sought) - 1)
