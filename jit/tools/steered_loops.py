"""Inputs that control loops: values on which a while loop's condition depends, so that random numbers for them determine the
trip count. A forward slice of the graph, through regions, and from one call to the next through variables.
"""
from __future__ import annotations

from collections.abc import Iterator

from ...lowering.graph.graph import Function, Operation, Value


def steers_a_loop(function: Function, value: Value) -> bool:
    """True if the condition of a while loop may depend on `value`."""
    loops = [o for o in function.body.walk() if o.op.name == "tosa.while_loop"]
    if not loops:
        return False
    reached, symbols, known = {value}, set[str](), -1
    while len(reached) + len(symbols) > known:
        known = len(reached) + len(symbols)
        for operation in function.body.walk():
            reached.update(next_values(operation, reached, symbols))
    return any(o.regions[0].yields[0] in reached for o in loops)


def next_values(operation: Operation, reached: set[Value], symbols: set[str]) -> Iterator[Value]:
    """Yield the values that an operation computes from reached ones; `symbols` are the variables that hold a reached value."""
    if not operation.regions:
        symbol = getattr(operation.op, "symbol", None)
        is_reached = any(v in reached for v in operation.operands)
        if is_reached and operation.op.variable_effect == "write":
            symbols.add(str(symbol))
        if is_reached or (operation.op.variable_effect == "read" and symbol in symbols):
            yield from operation.results
        return
    is_branch = operation.op.name == "tosa.cond_if"
    carried = operation.operands[1:] if is_branch else operation.operands
    for region in operation.regions:
        yield from (a for a, v in zip(region.arguments, carried) if v in reached)
    test = operation.operands[0] if is_branch else operation.regions[0].yields[0]
    if test in reached:  # it selects the branch that gives a result, and the iteration
        yield from operation.results
    for region in operation.regions if is_branch else operation.regions[1:]:
        yield from (r for r, v in zip(operation.results, region.yields) if v in reached)
        if not is_branch:
            yield from (a for r in operation.regions for a, v in zip(r.arguments, region.yields) if v in reached)
    if not is_branch:
        yield from (r for r, a in zip(operation.results, operation.regions[0].arguments) if a in reached)
