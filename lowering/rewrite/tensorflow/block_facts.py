"""Facts about a control flow graph for its structured form: loops, join blocks, live values.

A loop is natural: all blocks that reach its header again without passing through it. A graph with another entry into a loop is
irreducible.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from ...dialects.standard.blocks import RETURN, Blocks
from ...graph.dominance import dominates, predecessors
from ...graph.graph import Operation, Value, captures

END = -1
"""Number for the end of the function among the targets of a branch."""


class BlockFacts:
    """Facts about the blocks of one `Blocks` operation."""

    def __init__(self, operation: Operation, op: Blocks) -> None:
        self.operation, self.exits = operation, op.exits
        self.blocks = operation.regions
        self.targets: list[tuple[int, ...]] = [(END,) if end.spelling == RETURN else end.targets for end in op.exits]
        self.inside = [[t for t in targets if t != END] for targets in self.targets]
        self.dominators = op.region_parents()
        self.before = predecessors(self.inside)

    # ---- loops -------------------------------------------------------------------------------------------------------
    def give_up_structure(self) -> None:
        """Treat the graph as irreducible."""
        for name in ("loops", "handed"):
            self.__dict__.pop(name, None)
        self.__dict__["is_reducible"] = False

    @cached_property
    def is_reducible(self) -> bool:
        """True if every loop is entered only at its header."""
        return all(dominates(self.dominators, header, block) for header, block in self.back_edges)

    @cached_property
    def back_edges(self) -> list[tuple[int, int]]:
        """Branches to an earlier block or to the block itself: (target, branching block)."""
        return [(t, block) for block, targets in enumerate(self.inside) for t in targets if t <= block]

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """The blocks of each loop, by its header; empty for an irreducible graph."""
        found: dict[int, set[int]] = {}
        for header, block in self.back_edges if self.is_reducible else ():
            self.gather(found.setdefault(header, {header}), block)
        return {header: frozenset(blocks) for header, blocks in found.items()}

    def gather(self, loop: set[int], latch: int) -> None:
        """Add the blocks that reach the latch without passing the header, which is in the loop already."""
        queue = [latch]
        while queue:
            block = queue.pop()
            if block not in loop:
                loop.add(block)
                queue += self.before[block]

    def left_for(self, header: int) -> frozenset[int]:
        """Return the blocks outside a loop that its blocks branch to."""
        loop = self.loops[header]
        return frozenset(t for block in loop for t in self.inside[block] if t not in loop)

    # ---- joins -------------------------------------------------------------------------------------------------------
    @cached_property
    def children(self) -> list[list[int]]:
        """The blocks that each block immediately dominates, in order."""
        found: list[list[int]] = [[] for _ in self.blocks]
        for block in range(1, len(self.blocks)):
            found[self.dominators[block]].append(block)
        return found

    def joins(self, block: int) -> list[int]:
        """Return the join blocks that a block immediately dominates, in order."""
        return [c for c in self.children[block] if sum(p < c for p in self.before[c]) > 1]

    def behind(self, header: int) -> list[int]:
        """Return the blocks outside a loop that a block of the loop immediately dominates, in order."""
        loop = self.loops[header]
        return sorted(c for block in loop for c in self.children[block] if c not in loop)

    def reached(self, block: int, stops: Iterable[int]) -> frozenset[int]:
        """Return the stops, or END, that a block reaches without passing another stop."""
        found, seen, queue, ends = set(), {block}, [block], {*stops, END}
        while queue:
            for target in self.targets[queue.pop()]:
                if target in ends:
                    found.add(target)
                elif target not in seen:
                    seen.add(target)
                    queue.append(target)
        return frozenset(found)

    # ---- values ------------------------------------------------------------------------------------------------------
    @cached_property
    def definer(self) -> dict[Value, int]:
        """The block that defines each value."""
        return {v: number for number, block in enumerate(self.blocks)
                for v in (*block.arguments, *(r for o in block.operations for r in o.results))}

    @cached_property
    def live(self) -> list[dict[Value, None]]:
        """The values of other blocks that are live at the start of each block."""
        own = [self.read(number) for number in range(len(self.blocks))]
        found: list[dict[Value, None]] = [dict(values) for values in own]
        changed = True
        while changed:
            changed = False
            for number in reversed(range(len(self.blocks))):
                size = len(found[number])
                for target in self.inside[number]:
                    found[number].update((v, None) for v in found[target] if self.definer[v] != number)
                changed |= len(found[number]) != size
        return found

    def read(self, number: int) -> dict[Value, None]:
        block = self.blocks[number]
        used = [v for o in block.operations for v in (*o.operands, *captures(o))] + list(block.yields)
        return {v: None for v in used if self.definer.get(v, number) != number}

    @cached_property
    def handed(self) -> list[tuple[Value, ...]]:
        """The values that each block gets besides its arguments: those that a loop defines and a block after it reads; all live
        values if blocks are selected one by one."""
        if not self.is_reducible:
            return [tuple(values) for values in self.live]
        return [tuple(v for v in self.live[number] if any(self.definer[v] in loop and number not in loop
                                                          for loop in self.loops.values()))
                for number in range(len(self.blocks))]

    def arguments(self, number: int, results: int) -> int:
        """Return the total number of values that a block gets; for the end of the function, the number of its results."""
        return results if number == END else len(self.blocks[number].arguments) + len(self.handed[number])

    def taken(self, number: int) -> Sequence[Value]:
        """Return the values that a block gets."""
        return (*self.blocks[number].arguments, *self.handed[number])
