"""The verifier of TensorFlow's operations with regions: the number of regions, their arguments, and the values they yield. A
violation is a Problem at the operation.

A branch has no arguments: it captures what it reads, and yields the operation's results. The condition of a loop yields one i1,
after which it may forward its arguments; the body yields the state of the next iteration.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ....runtime.errors import Problem
from ...graph.foreign import spelling
from ...graph.graph import Block, Operation, Value
from ...graph.types import I1, I32, ElementType, TensorType
from .types import can_be_equal


def verify_regions(operation: Operation) -> None:
    """Raise a Problem unless the regions of an operation are those that its operator requires."""
    rule = RULES.get(spelling(operation))
    if rule is not None:
        rule(operation)


def wrong(operation: Operation, message: str, region: Block | None = None) -> Problem:
    place = None if region is None else region.terminator_position or region.position
    return Problem(f"{spelling(operation)} {message}", place or operation.position, kind="type")


# ---- branches --------------------------------------------------------------------------------------------------------
def verify_if(operation: Operation) -> None:
    check_number(operation, "operands", len(operation.operands), 1)
    check_number(operation, "regions", len(operation.regions), 2)
    check_scalar(operation, operation.operands[0], I1, "its condition")
    check_branches(operation)


def verify_case(operation: Operation) -> None:
    check_number(operation, "operands", len(operation.operands), 1)
    if not operation.regions:
        raise wrong(operation, "has one region or more, found none")
    check_scalar(operation, operation.operands[0], I32, "its index")
    check_branches(operation)


def check_branches(operation: Operation) -> None:
    """Check that the branches have no arguments and yield the operation's results."""
    for number, region in enumerate(operation.regions):
        if region.arguments:
            raise Problem(f"{spelling(operation)} has no arguments in region {number}, found {len(region.arguments)}",
                          region.position or operation.position, kind="type", help="a branch captures what it reads")
        check_values(operation, region, f"region {number} yields", region.yields, "the operation has", operation.results)


# ---- loops -----------------------------------------------------------------------------------------------------------
def verify_while(operation: Operation) -> None:
    """Check that operands, arguments of both regions, yields of the body and results agree."""
    check_number(operation, "regions", len(operation.regions), 2)
    condition, body = operation.regions
    check_values(operation, None, "takes", operation.operands, "it has", operation.results, "operands", "results")
    for what, region in (("condition", condition), ("body", body)):
        check_values(operation, None, f"has in its {what}", region.arguments, "it takes", operation.operands, "arguments",
                     "operands")
    check_values(operation, body, "its body yields", body.yields, "the operation has", operation.results)
    check_condition(operation, condition)


def check_condition(operation: Operation, condition: Block) -> None:
    """Check that the condition yields one i1, optionally followed by the region's unchanged arguments."""
    if not condition.yields or condition.yields[1:] not in ((), condition.arguments):
        raise wrong(operation, "has a condition that yields one tensor<i1>, and may forward its arguments behind it: it yields "
                    f"{len(condition.yields)} values", condition)
    check_scalar(operation, condition.yields[0], I1, "what its condition yields", condition)


# ---- parts -----------------------------------------------------------------------------------------------------------
def check_number(operation: Operation, what: str, found: int, expected: int) -> None:
    if found != expected:
        raise wrong(operation, f"has {expected} {what}, found {found}")


def check_scalar(operation: Operation, value: Value, element: ElementType, what: str, region: Block | None = None) -> None:
    """Check that a value is a tensor of rank 0, or of unknown rank."""
    type = value.type
    if not (isinstance(type, TensorType) and type.element == element and type.shape in (None, ())):
        raise wrong(operation, f"needs a tensor<{element}> as {what}, %{value.name} is a {type}", region)


def check_values(operation: Operation, region: Block | None, giving: str, found: Sequence[Value], having: str,
                 expected: Sequence[Value], what: str = "values", other: str = "results") -> None:
    """Check that there are as many values as expected, of types that can be equal."""
    if len(found) != len(expected):
        raise wrong(operation, f"{giving} {len(found)} {what}, but {having} {len(expected)} {other}", region)
    for number, (given, wanted) in enumerate(zip(found, expected)):
        if not can_be_equal(given.type, wanted.type):
            raise wrong(operation, f"{giving} a {given.type} as number {number} of its {what}, but {having} a {wanted.type} "
                        "there", region)


RULES: Mapping[str, Callable[[Operation], None]] = {
    "tf.IfRegion": verify_if, "tf.CaseRegion": verify_case, "tf.WhileRegion": verify_while}
