"""Function bodies of several blocks -> one operation that holds them (`dialects.standard.blocks`).

Names are resolved along the dominator tree: a block sees the names of the blocks that dominate it.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...runtime.errors import Problem
from ..dialects.standard.blocks import BRANCHES, COND_BRANCH, RETURN, SWITCH, Blocks, Exit, dominators_of
from ..graph.dominance import reverse_postorder, walk
from ..graph.graph import Block, Operation, Value
from ..graph.types import Type
from .attributes import Numbers
from .names import uses
from .operations import RETURNS
from .syntax import BlockSyntax, OperationSyntax, RegionSyntax, SuccessorSyntax, place

if TYPE_CHECKING:
    from lark import Token

    from .operations import OperationReader

MOST_BLOCKS = 10_000
SEGMENTS = ("operandSegmentSizes", "operand_segment_sizes", "case_operand_segments", "case_values")


def read_blocks(reader: OperationReader, syntax: RegionSyntax, entry: Sequence[tuple[Token, Type]],
                results: Sequence[Type]) -> Block:
    """Return the body of a function with branches."""
    if len(syntax.blocks) > MOST_BLOCKS:
        raise Problem(f"a function has at most {MOST_BLOCKS} blocks, found {len(syntax.blocks)}",
                      place(reader.source, syntax.start), kind="unsupported")
    return FunctionBlocks(reader, syntax).body(entry, results)


class FunctionBlocks:
    """The blocks of one function, in the order of the graph: reverse postorder."""

    def __init__(self, reader: OperationReader, syntax: RegionSyntax) -> None:
        self.reader, self.syntax = reader, syntax
        labels = self.labels(syntax.blocks)
        ends = [self.end(block) for block in syntax.blocks]
        targets = [[self.target(labels, s) for s in end.successors] for end in ends]
        order = reverse_postorder(targets)
        numbers = {old: new for new, old in enumerate(order)}
        self.blocks = [syntax.blocks[old] for old in order]
        self.ends = [ends[old] for old in order]
        self.targets = [tuple(numbers[t] for t in targets[old]) for old in order]

    def labels(self, blocks: Sequence[BlockSyntax]) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, block in enumerate(blocks):
            if block.label is not None and found.setdefault(str(block.label), number) != number:
                raise Problem(f"the block {block.label} is defined twice", place(self.reader.source, block.label),
                              kind="symbol")
        return found

    def target(self, labels: dict[str, int], successor: SuccessorSyntax) -> int:
        found = labels.get(str(successor.label))
        if found is None:
            raise Problem(f"there is no block {successor.label}", place(self.reader.source, successor.label), kind="symbol")
        return found

    def end(self, block: BlockSyntax) -> OperationSyntax:
        """Return the last operation of a block, which returns or branches."""
        last = block.operations[-1] if block.operations else None
        if isinstance(last, OperationSyntax) and last.spelling in (*RETURNS, *BRANCHES):
            return last
        where = block.label or self.syntax.end if last is None else getattr(last, "name", self.syntax.end)
        raise Problem("a block ends in return, cf.br, cf.cond_br or cf.switch", place(self.reader.source, where),
                      kind="syntax" if last is None else "unsupported")

    def body(self, entry: Sequence[tuple[Token, Type]], results: Sequence[Type]) -> Block:
        reader = self.reader
        first = self.blocks[0]
        named = [(a.name, reader.types.value(a.type)) for a in first.arguments if a.name is not None]
        arguments = tuple(reader.scopes.argument(name, type) for name, type in named or entry)
        exits = tuple(self.exit(number) for number in range(len(self.blocks)))
        regions = self.regions(exits)
        start = place(reader.source, self.syntax.start)
        values = tuple(Value(f"result{n}", type, start) for n, type in enumerate(results))
        self.check_returns(regions, exits, results)
        operation = Operation(Blocks(exits=exits), (), values, regions, position=start)
        return Block(arguments, (operation,), values, start, place(reader.source, self.syntax.end))

    def check_returns(self, regions: Sequence[Block], exits: Sequence[Exit], results: Sequence[Type]) -> None:
        for block, end in zip(regions, exits):
            found = [v.type for v in block.yields]
            if end.spelling == RETURN and (len(found) != len(results)):
                raise Problem(f"it returns {len(found)} values, but the function has {len(results)} results",
                              block.terminator_position, kind="type")

    # ---- ends of blocks ----------------------------------------------------------------------------------------------
    def exit(self, number: int) -> Exit:
        end, targets = self.ends[number], self.targets[number]
        if end.spelling in RETURNS:
            return Exit(RETURN)
        if end.types.signature is None:  # the custom form: each successor has its operands
            counts = tuple(len(list(uses(s.operands))) for s in end.successors)
            return Exit(end.spelling, targets, counts, tuple(int(case) for case in end.cases))
        return Exit(end.spelling, targets, *self.generic_counts(end))

    def generic_counts(self, end: OperationSyntax) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the number of operands of each successor, and the cases of a switch, in the generic form."""
        given = self.reader.attributes.dictionary(end.properties) | self.reader.attributes.dictionary(end.attributes)
        total = len(list(uses(end.operands)))
        sizes = next((numbers(given[k]) for k in SEGMENTS[:2] if k in given), None)
        cases: tuple[int, ...] = ()
        if end.spelling == SWITCH:
            behind = numbers(given.get("case_operand_segments", ()))
            array = getattr(given.get("case_values"), "array", None)
            cases = () if array is None else tuple(map(int, array.reshape(-1)))
            sizes = (1, total - 1 - sum(behind), *behind)
        counts = (total,) if sizes is None and end.spelling not in (COND_BRANCH, SWITCH) else tuple(sizes or ())[1:]
        if len(counts) != len(end.successors) or min(counts, default=0) < 0 or len(cases) not in (0, len(counts) - 1):
            raise Problem(f"{end.spelling} does not say which operands go to which block", place(self.reader.source, end.name),
                          kind="attribute", help="operandSegmentSizes says it")
        return counts, cases

    # ---- contents ----------------------------------------------------------------------------------------------------
    def regions(self, exits: tuple[Exit, ...]) -> tuple[Block, ...]:
        names = self.reader.scopes.names[-1]
        found: dict[int, Block] = {}
        before: list[frozenset[str]] = []
        for number, entering in walk(dominators_of(exits)):
            if entering:
                before.append(frozenset(names))
                found[number] = self.block(number)
            else:
                for name in names.keys() - before.pop():
                    del names[name]
        return tuple(found[number] for number in range(len(exits)))

    def block(self, number: int) -> Block:
        reader, syntax, end = self.reader, self.blocks[number], self.ends[number]
        outside, reader.before = reader.before, []
        given = () if number == 0 else syntax.arguments
        arguments = tuple(reader.scopes.argument(a.name, reader.types.value(a.type)) for a in given if a.name is not None)
        operations: list[Operation] = []
        for inner in syntax.operations[:-1]:
            operation = reader.any_operation(inner, RETURNS)
            operations += [*reader.before, operation] if operation else ()
            reader.before.clear()
        reader.before = outside
        attributes = reader.attributes.dictionary(end.properties) | reader.attributes.dictionary(end.attributes)
        for key in SEGMENTS:
            attributes.pop(key, None)
        return Block(arguments, tuple(operations), self.yields(end), place(reader.source, syntax.label or self.syntax.start),
                     place(reader.source, end.name), attributes)

    def yields(self, end: OperationSyntax) -> tuple[Value, ...]:
        """Return the operands of a terminator: its own, then those of each successor."""
        values, _ = self.reader.operands(end)
        for successor in end.successors:
            handed = self.reader.scopes.operands(successor.operands)
            declared = tuple(map(self.reader.types.value, successor.types))
            if successor.operands is not None and tuple(v.type for v in handed) != declared:
                raise Problem(f"what goes to {successor.label} is ({', '.join(str(v.type) for v in handed)}), its types here "
                              f"are ({', '.join(map(str, declared))})", place(self.reader.source, successor.operands),
                              kind="type")
            values = (*values, *handed)
        return values


def numbers(value: object) -> tuple[int, ...]:
    """Return the integers of `array<i32: 1, 2>`."""
    found = value.values if isinstance(value, Numbers) else value
    return tuple(n for n in found if isinstance(n, int)) if isinstance(found, tuple) else ()
