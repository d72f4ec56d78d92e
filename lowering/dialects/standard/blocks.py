"""A function's body of several blocks, between which `cf.br`, `cf.cond_br` and `cf.switch` branch: one operation whose regions
are the blocks, the first one the entry, in reverse postorder.

A block sees the values of the blocks that dominate it. It yields the operands of its terminator: `return` its results; a branch
the arguments of its target; a fork its condition, then the arguments of both targets; a switch its flag, then those of each
target. Unreachable blocks are not kept.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence

from ....runtime.errors import Position, Problem
from ....runtime.records import dataclass
from ...graph.dominance import immediate_dominators
from ...graph.graph import Block, Operation, Value
from ...graph.operator import UnknownOp, attribute
from ...graph.types import TensorType
from ...graph.verify import compatible
from .operators import is_condition, scalar_tensor

RETURN, BRANCH, COND_BRANCH, SWITCH = "return", "cf.br", "cf.cond_br", "cf.switch"
BRANCHES = (BRANCH, COND_BRANCH, SWITCH)
NAME = "tosaic.blocks"


@dataclass(frozen=True, slots=True)
class Exit:
    """The terminator of a block. `targets` are the blocks that it may branch to, `counts` the numbers of arguments for each;
    `cases` are the numbers of a switch, one for each target after the default."""
    spelling: str
    targets: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    cases: tuple[int, ...] = ()

    @property
    def decides(self) -> int:
        """Number of values before the arguments: the condition, or the flag."""
        return int(self.spelling in (COND_BRANCH, SWITCH))

    def handed(self, yields: Sequence[Value]) -> list[tuple[Value, ...]]:
        """Return the arguments for each target among the values that the block yields."""
        found, at = [], self.decides
        for count in self.counts:
            found.append(tuple(yields[at:at + count]))
            at += count
        return found


class Blocks(UnknownOp):
    """The blocks of a function. `exits` has the terminator of each."""
    foreign = True
    spelling: str = NAME
    exits: tuple[Exit, ...] = attribute("none", default=())

    def region_parents(self) -> Sequence[int]:
        return dominators_of(self.exits)

    def verify(self, operation: Operation, parent: Operation | None) -> None:
        for block, end in zip(operation.regions, self.exits, strict=True):
            check_exit(operation, block, end)


@functools.lru_cache(maxsize=64)
def dominators_of(exits: tuple[Exit, ...]) -> Sequence[int]:
    """The immediate dominator of each block."""
    return immediate_dominators([end.targets for end in exits])


def check_exit(operation: Operation, block: Block, end: Exit) -> None:
    """Check that a block passes the arguments that its targets take, that a condition is one boolean, and a flag one
    integer."""
    place = block.terminator_position or operation.position
    if end.spelling == RETURN:
        return
    if len(block.yields) != end.decides + sum(end.counts):
        raise Problem(f"{end.spelling} hands on {len(block.yields) - end.decides} values, not {sum(end.counts)}", place,
                      kind="type")
    check_decision(end, block, place)
    for target, values in zip(end.targets, end.handed(block.yields)):
        takes = [v.type for v in operation.regions[target].arguments]
        given = [v.type for v in values]
        if len(takes) != len(given) or not all(map(compatible, given, takes)):
            raise Problem(f"{end.spelling} hands ({', '.join(map(str, given))}) to a block that takes "
                          f"({', '.join(map(str, takes))})", place, kind="type")
        if target == 0:
            raise Problem(f"{end.spelling} goes to the first block, which no branch may", place, kind="type")


def check_decision(end: Exit, block: Block, place: Position | None) -> None:
    if not end.decides:
        return
    value = block.yields[0]
    type = scalar_tensor(value.type)
    if end.spelling == COND_BRANCH and not is_condition(value.type):
        raise Problem(f"{end.spelling} takes an i1, %{value.name} is a {value.type}", place, kind="type")
    if end.spelling == SWITCH and not (isinstance(type, TensorType) and type.shape == () and type.element.is_integer):
        raise Problem(f"{end.spelling} takes an integer, %{value.name} is a {value.type}", place, kind="type")
