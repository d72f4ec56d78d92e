"""Variables that a function may write, by the handles among its arguments.

A handle flows from operation to operation, through calls, branches and loops. The analysis is conservative: an operation's
results may be any handle among its operands.
"""
from __future__ import annotations

from ...graph.foreign import callees, spelling
from ...graph.graph import Function, Module, Operation, Value
from .operator import is_tensorflow

WRITES = ("tf.Assign", "tf.ResourceApply", "tf.ResourceScatter", "tf.ResourceSparseApply", "tf.ResourceStridedSliceAssign")
"""Prefixes of the names of operations that change the variable of their first operand."""
Origins = dict[Value, frozenset[int]]
"""The arguments whose handles a value may be."""


def written_arguments(module: Module, name: str) -> frozenset[int]:
    """Return the numbers of a function's arguments that are handles of variables which it may write."""
    return Writes(module).of(module.function(name))


class Writes:
    """The analysis of writes by the functions of a module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.found: dict[str, frozenset[int]] = {}

    def of(self, function: Function) -> frozenset[int]:
        if function.name not in self.found:
            self.found[function.name] = frozenset()  # during the search, for recursive functions
            self.found[function.name] = self.search(function)
        return self.found[function.name]

    def search(self, function: Function) -> frozenset[int]:
        origins: Origins = {v: frozenset([n]) for n, v in enumerate(function.arguments)}
        operations = list(function.body.walk())
        before = -1
        while before != sum(map(len, origins.values())):  # loops hand values back
            before = sum(map(len, origins.values()))
            for operation in operations:
                follow(operation, origins)
        return frozenset(n for o in operations for n in self.written(o, origins))

    def written(self, operation: Operation, origins: Origins) -> frozenset[int]:
        """Return the arguments that one operation, its regions not counted, writes."""
        if is_tensorflow(operation) and spelling(operation).startswith(WRITES):
            return origins.get(operation.operands[0], frozenset())
        names = [f for found in callees(operation).values() for f in found]
        return frozenset(n for name in names for n in self.through(name, operation, origins))

    def through(self, name: str, operation: Operation, origins: Origins) -> frozenset[int]:
        """Return the arguments that an operation passes, among its last operands, to parameters which the named function
        writes."""
        function = self.module.function(name)
        first = len(operation.operands) - len(function.arguments)
        handed = [operation.operands[first + n] for n in self.of(function) if 0 <= first + n < len(operation.operands)]
        return frozenset(n for v in handed for n in origins.get(v, frozenset()))


def follow(operation: Operation, origins: Origins) -> None:
    """Propagate the handles among an operation's operands and its regions' yields to its results and its regions' arguments."""
    given = frozenset(n for v in operation.operands for n in origins.get(v, frozenset()))
    given |= frozenset(n for region in operation.regions for v in region.yields for n in origins.get(v, frozenset()))
    for value in (*operation.results, *(v for region in operation.regions for v in region.arguments)):
        origins[value] = origins.get(value, frozenset()) | given
    token = [v for v in (*operation.operands, *operation.results) if str(v.type).endswith("token")]
    for value in token:  # from a Sink to its Source
        origins[value] = origins.get(value, frozenset()) | given
        for result in operation.results:
            origins[result] = origins.get(result, frozenset()) | origins[value]
