"""COND_IF and WHILE_LOOP: operators with regions. TOSA 1.0, control flow operators.

A region's arguments are the operands after the condition (COND_IF) or all operands (WHILE_LOOP); it may also use values of the
enclosing blocks. The code that runs regions is in the interpreter and in fusion.
"""
from __future__ import annotations

from collections.abc import Sequence

from ....runtime.errors import Problem, require
from ....runtime.limits import NESTED
from ...graph.graph import Block, Value
from ...graph.operator import Op, Operand
from ...graph.types import I1, TensorType, Type
from .operands import product, same_shape

LARGEST_DEPTH = NESTED
"""Maximum depth of nested control flow at the specification's level 8K."""


class CondIf(Op, name="tosa.cond_if"):
    """The first region where the one element of the condition is true, the second where it is false."""
    regions = 2

    def region_types(self, operands: Sequence[Operand], regions: Sequence[Block]) -> tuple[Type, ...]:
        """Return the types of the results: the types that both regions yield."""
        check_regions(self, regions)
        require(len(operands) > 0, "a cond_if needs a condition")
        check_condition(operands[0], "the condition")
        then, otherwise = regions
        for region, what in ((then, "the region for true"), (otherwise, "the region for false")):
            check_types(region.arguments, operands[1:], f"the arguments of {what}", "the operands")
        check_types(otherwise.yields, then.yields, "what the region for false yields",
                    "what the region for true yields")
        return tuple(map(joined, then.yields, otherwise.yields))


class WhileLoop(Op, name="tosa.while_loop"):
    """The second region again and again, from the operands on, while the first region yields true for its values."""
    regions = 2

    def region_types(self, operands: Sequence[Operand], regions: Sequence[Block]) -> tuple[Type, ...]:
        """Return the types of the results: those of the operands."""
        check_regions(self, regions)
        test, body = regions
        check_types(test.arguments, operands, "the arguments of the condition's region", "the operands")
        check_types(body.arguments, operands, "the arguments of the body", "the operands")
        check_types(body.yields, operands, "what the body yields", "the operands")
        require(len(test.yields) == 1, f"the condition's region yields {len(test.yields)} values, not one")
        check_condition(test.yields[0], "what the condition's region yields")
        return tuple(map(joined, operands, body.yields))


def check_regions(op: Op, regions: Sequence[Block]) -> None:
    """Check that there are two regions, nested no deeper than the specification allows."""
    require(len(regions) == 2, f"{op.name} has {len(regions)} regions, not two")
    depth = 1 + max(map(nesting, regions))
    require(depth <= LARGEST_DEPTH, f"control flow is nested {depth} deep, {LARGEST_DEPTH} is the most", kind="model")


def nesting(block: Block) -> int:
    """Return the depth of the most deeply nested region in `block`."""
    return max((1 + max(map(nesting, o.regions)) for o in block.operations if o.regions), default=0)


def check_condition(value: Operand, what: str) -> None:
    """Check that a value is one element of i1."""
    found = value.type
    require(isinstance(found, TensorType) and found.element == I1, f"{what} must be a tensor of i1, not {found}")
    require(found.shape is None or product(found.shape) in (1, None),
            f"{what} must have one element, it is {found}", kind="shape")


def check_types(values: Sequence[Operand], others: Sequence[Operand], what: str, expected: str) -> None:
    """Check that there are as many values as expected, of types that can be equal."""
    require(len(values) == len(others), f"{what} are {len(values)}, {expected} are {len(others)}")
    for number, (value, other) in enumerate(zip(values, others)):
        if not can_be_equal(value.type, other.type):
            raise Problem(f"number {number} of {what} is {value.type}, of {expected} {other.type}", kind="type",
                          position=value.position if isinstance(value, Value) else None)


def can_be_equal(a: Type, b: Type) -> bool:
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.element == b.element and (a.shape is None or b.shape is None or same_shape(a.shape, b.shape))
    return a == b


def joined(a: Operand, b: Operand) -> Type:
    """Return the type that holds both values: an extent that differs between them is unknown."""
    first, second = a.type, b.type
    if not isinstance(first, TensorType) or not isinstance(second, TensorType):
        result: Type = first
        return result
    if first.shape is None or second.shape is None:
        return TensorType(None, first.element)
    return TensorType(tuple(n if n == m else None for n, m in zip(first.shape, second.shape)),
                      first.element)
