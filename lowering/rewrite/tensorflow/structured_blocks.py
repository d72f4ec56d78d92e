"""The blocks of a function and the branches between them -> COND_IF and WHILE_LOOP.

The method is that of Ramsey ("Beyond Relooper", 2022) on values instead of jumps. The walk follows the dominator tree: at a
fork, each arm runs up to the join blocks, which come after the fork; a loop's header becomes a loop whose state is the header's
arguments. An arm or a loop with several exit blocks gives a number, the selector of the exit, and the arguments of each exit
block. No block is duplicated. An irreducible graph, or one that is nested too deeply, becomes one loop in which the selector
chooses the next block.
"""
from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from ....runtime.errors import Problem
from ....runtime.records import dataclass
from ...dialects.control_flow import branch, choose, condition_of, loop, with_zeros
from ...dialects.data import Datum
from ...dialects.standard.blocks import COND_BRANCH, NAME, RETURN, SWITCH, Blocks
from ...graph.graph import Operation, Value
from ...graph.types import I32, I64
from ..prune import has_effect
from .block_facts import END, BlockFacts
from .special import Scope, special

if TYPE_CHECKING:
    from .translate import Translation

DEEPEST = 100
"""Maximum nesting depth of forks, including those that are decided at compile time."""


@special(NAME)
def blocks(t: Translation, operation: Operation, operands: list[Datum], scope: Scope) -> Sequence[Datum]:
    assert isinstance(operation.op, Blocks)
    return Structure(t, operation, operation.op).results(scope)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The blocks that may come next, in order; the selector of the next block (None if there is only one); the arguments of
    each block."""
    targets: tuple[int, ...]
    selector: Value | None
    handed: dict[int, list[Datum]]


class Structure:
    """The translation of one function's blocks into TOSA."""

    def __init__(self, t: Translation, operation: Operation, op: Blocks) -> None:
        self.t, self.e, self.operation = t, t.emitter, operation
        self.facts = BlockFacts(operation, op)
        self.depth = 0

    def results(self, scope: Scope) -> Sequence[Datum]:
        """Return the results of the function."""
        outcome = (self.structured(scope) if self.facts.is_reducible else None) or self.chosen(scope)
        if END not in outcome.targets:
            raise Problem("no way through these blocks returns", self.operation.position, kind="unsupported")
        return outcome.handed[END]

    def structured(self, scope: Scope) -> Outcome | None:
        """Return the blocks as nested branches and loops; None if they are nested deeper than TOSA allows."""
        try:
            with self.e.region("blocks") as builder:
                outcome = self.run(0, dict(scope), frozenset())
        except Problem as problem:
            if problem.kind not in ("model", "nesting"):
                raise
            self.facts.give_up_structure()
            return None
        self.e.blocks[-1].operations.extend(builder.operations)
        return outcome

    # ---- outcomes ----------------------------------------------------------------------------------------------------
    def size(self, target: int) -> int:
        return self.facts.arguments(target, len(self.operation.results))

    def flat(self, outcome: Outcome, targets: Sequence[int]) -> list[Datum]:
        """Return the outcome as values, among these targets: the selector, and the arguments of each target."""
        number = outcome.selector
        if number is None and outcome.targets:
            number = self.e.constant(np.int32(outcome.targets[0]))
        given = [outcome.handed.get(t, [None] * self.size(t)) for t in targets]
        return [*([number] if len(targets) > 1 else []), *(x for each in given for x in each)]

    def outcome(self, targets: Sequence[int], data: Sequence[Datum]) -> Outcome:
        """Return the outcome that `flat` made these values from."""
        values = list(data)
        selector = values.pop(0) if len(targets) > 1 else None
        assert selector is None or isinstance(selector, Value)
        handed = {}
        for target in targets:
            size = self.size(target)
            handed[target], values = values[:size], values[size:]
        return Outcome(tuple(targets), selector, handed)

    def is_next(self, outcome: Outcome, target: int) -> Value:
        """Return a bool that is true if a target is the next block."""
        assert outcome.selector is not None
        return self.e("equal", outcome.selector, self.e.constant(np.int32(target)))

    def targets(self, block: int, stops: Set[int]) -> tuple[int, ...]:
        """Return the targets of an edge to a block that runs on up to the stops."""
        return (block,) if block in stops or block == END else tuple(sorted(self.facts.reached(block, stops)))

    # ---- the walk ----------------------------------------------------------------------------------------------------
    def run(self, block: int, scope: Scope, stops: Set[int], entered: bool = False) -> Outcome:
        """Emit a block and its successors up to the stops. `entered`: treat a loop's header as a block of the loop's body."""
        while True:
            is_loop = block in self.facts.loops and not entered
            behind = self.facts.behind(block) if is_loop else self.facts.joins(block)
            behind = [b for b in behind if b not in stops]
            inner = stops | set(behind)
            outcome = self.loop(block, scope, inner) if is_loop else self.straight(block, scope, inner)
            for number, join in enumerate(behind[:-1]):
                if join in outcome.targets:
                    outcome = self.joined(outcome, join, scope, stops | set(behind[number + 1:]))
            if behind and behind[-1] in outcome.targets and len(outcome.targets) > 1:
                outcome = self.joined(outcome, behind[-1], scope, stops)
            only = outcome.targets[0] if len(outcome.targets) == 1 else END
            if only == END or only in stops:
                return outcome
            scope, block, entered = self.bound(only, outcome, scope), only, False

    def bound(self, block: int, outcome: Outcome, scope: Scope) -> Scope:
        """Return the scope with the values that a block gets."""
        return {**scope, **dict(zip(self.facts.taken(block), outcome.handed[block], strict=True))}

    def joined(self, outcome: Outcome, join: int, scope: Scope, stops: Set[int]) -> Outcome:
        """Return the outcome after running a block that some of its edges lead to."""
        rest = tuple(t for t in outcome.targets if t != join)
        targets = tuple(sorted({*rest, *self.targets(join, stops)}))

        def there() -> list[Datum]:
            return self.flat(self.nested(join, self.bound(join, outcome, scope), stops), targets)

        if not rest:
            return self.outcome(targets, there())
        left = Outcome(rest, outcome.selector if len(rest) > 1 else None, {t: outcome.handed[t] for t in rest})
        return self.outcome(targets, branch(self.e, self.is_next(outcome, join), there, lambda: self.flat(left, targets)))

    def nested(self, block: int, scope: Scope, stops: Set[int]) -> Outcome:
        self.depth += 1
        if self.depth > DEEPEST:
            raise Problem(f"branches are nested more than {DEEPEST} deep", self.operation.position, kind="nesting")
        try:
            return self.run(block, scope, stops)
        finally:
            self.depth -= 1

    # ---- one block ---------------------------------------------------------------------------------------------------
    def straight(self, number: int, scope: Scope, stops: Set[int]) -> Outcome:
        """Emit a block, and the arms that it forks into."""
        block, end = self.facts.blocks[number], self.facts.exits[number]
        yields = self.t.block(block, scope)
        if end.spelling == RETURN:
            return Outcome((END,), None, {END: list(yields)})
        ways = list(zip(end.targets, self.arguments(number, yields), strict=True))
        targets = tuple(sorted({t for target, _ in ways for t in self.targets(target, stops)}))

        def arm(target: int, given: list[Datum]) -> list[Datum]:
            return self.flat(self.way(target, given, scope, stops), targets)

        match end.spelling:
            case _ if len(ways) == 1 and end.spelling != COND_BRANCH:
                return self.handed_on(*ways[0], scope)
            case name if name == COND_BRANCH:
                (first, a), (second, b) = ways
                condition = condition_of(self.e, yields[0])
                return self.outcome(targets, branch(self.e, condition, lambda: arm(first, a), lambda: arm(second, b)))
            case name:
                assert name == SWITCH
                order = [*ways[1:], ways[0]]
                arms = [lambda target=target, given=given: arm(target, given) for target, given in order]
                return self.outcome(targets, choose(self.e, self.case(yields[0], end.cases), arms))

    def arguments(self, number: int, yields: Sequence[Datum]) -> list[list[Datum]]:
        """Return the arguments that a block passes to each target."""
        block, end = self.facts.blocks[number], self.facts.exits[number]
        values = dict(zip(block.yields, yields))
        return [[values[v] for v in given] for given in end.handed(block.yields)]

    def handed_on(self, target: int, given: list[Datum], scope: Scope) -> Outcome:
        return Outcome((target,), None, {target: [*given, *(scope[v] for v in self.facts.handed[target])]})

    def way(self, target: int, given: list[Datum], scope: Scope, stops: Set[int]) -> Outcome:
        """Return the outcome of an edge to a block: the edge ends at a stop, or the block is run."""
        outcome = self.handed_on(target, given, scope)
        return outcome if target in stops else self.nested(target, self.bound(target, outcome, dict(scope)), stops)

    def case(self, flag: Datum, cases: Sequence[int]) -> Value:
        """Return the index of the case that a flag selects; the number of cases for the default."""
        if not isinstance(flag, Value):
            raise Problem("the flag of a switch is no tensor", kind="type")
        wide = flag if flag.tensor.element == I64 else self.e.cast(flag, I32)
        found = self.e.constant(np.int32(len(cases)))
        for number, case in enumerate(cases):
            here = self.e("equal", wide, self.e.constant(np.array(case, wide.tensor.element.dtype)))
            found = self.e.select(here, self.e.constant(np.int32(number)), found)
        return found

    # ---- loops -------------------------------------------------------------------------------------------------------
    def loop(self, header: int, scope: Scope, stops: Set[int]) -> Outcome:
        """Emit a loop, up to its exit blocks."""
        return self.tested_loop(header, scope) if self.only_tests(header) else self.selected_loop(header, scope)

    def only_tests(self, header: int) -> bool:
        """True if a header only decides whether the loop continues: it may run twice for each iteration."""
        block, end = self.facts.blocks[header], self.facts.exits[header]
        stays = [t for t in end.targets if t in self.facts.loops[header]]
        if end.spelling != COND_BRANCH or len(stays) != 1 or any(map(has_effect, block.operations)):
            return False
        left = self.facts.left_for(header)
        results = {r for o in block.operations for r in o.results}
        is_read = any(results.intersection(self.facts.live[t]) for t in end.targets) or not results.isdisjoint(block.yields[1:])
        return not is_read and (stays[0] == header or self.facts.reached(stays[0], {header, *left}) == {header})

    def tested_loop(self, header: int, scope: Scope) -> Outcome:
        """Emit a loop with the header as condition and the rest as body."""
        block, end = self.facts.blocks[header], self.facts.exits[header]
        taken = self.facts.taken(header)
        stays = 0 if end.targets[0] in self.facts.loops[header] else 1
        stops = frozenset({header, *self.facts.left_for(header)})

        def within(state: Sequence[Datum]) -> Scope:
            return {**scope, **dict(zip(taken, state, strict=True))}

        def test(state: Sequence[Datum]) -> Datum:
            found = self.t.block(block, within(state))[0]
            if stays == 0 or not isinstance(found, Value):
                return found
            return self.e("logical_not", condition_of(self.e, found))

        def body(state: Sequence[Datum]) -> Sequence[Datum]:
            return self.way(end.targets[stays], given(stays, inner := within(state)), inner, stops).handed[header]

        def given(way: int, inner: Scope) -> list[Datum]:
            return [inner[v] for v in end.handed(block.yields)[way]]

        last = within(loop(self.e, [scope[v] for v in taken], test, body))
        return self.handed_on(end.targets[1 - stays], given(1 - stays, last), last)

    def selected_loop(self, header: int, scope: Scope) -> Outcome:
        """Emit a loop whose body computes whether to continue, and the exit block if not."""
        stops = frozenset({header, *self.facts.left_for(header)})
        targets = tuple(sorted(self.facts.reached(header, stops), key=lambda target: (target != header, target)))
        taken = self.facts.taken(header)
        if targets == (header,):
            raise Problem("this loop never ends", self.facts.blocks[header].position, kind="unsupported")

        def body(state: Sequence[Datum]) -> Sequence[Datum]:
            inner = {**scope, **dict(zip(taken, self.outcome(targets, state).handed[header], strict=True))}
            found = self.flat(self.run(header, inner, stops, entered=True), targets)
            return [old if x is None else x for x, old in zip(found, state, strict=True)]

        begin = Outcome((header,), None, {header: [scope[v] for v in taken]})
        state = loop(self.e, self.flat(begin, targets), lambda state: self.is_next(self.outcome(targets, state), header), body)
        found = self.outcome(targets, state)
        rest = tuple(sorted(targets[1:]))
        return Outcome(rest, found.selector if len(rest) > 1 else None, {t: found.handed[t] for t in rest})

    # ---- irreducible graphs ------------------------------------------------------------------------------------------
    def chosen(self, scope: Scope) -> Outcome:
        """Emit one loop; each iteration goes through the blocks in order and runs those that are next."""
        every = frozenset(range(len(self.facts.blocks)))
        first = self.straight(0, dict(scope), every)
        targets = tuple(sorted({END, *every} - {0}))

        def turn(state: Sequence[Datum]) -> Sequence[Datum]:
            data = list(state)
            for block in targets[1:]:
                data = self.perhaps(block, self.outcome(targets, data), scope, every)
            return data

        typed = self.typed(first, scope, every)
        begin = [with_zeros(self.e, x, y) for x, y in zip(self.flat(first, targets), self.flat(typed, targets))]
        state = loop(self.e, begin, lambda state: self.e("logical_not", self.is_next(self.outcome(targets, state), END)), turn)
        return Outcome((END,), None, {END: self.outcome(targets, state).handed[END]})

    def perhaps(self, block: int, before: Outcome, scope: Scope, every: Set[int]) -> list[Datum]:
        """Return the next block and its arguments, after running `block` if it is the next one."""
        kept = self.flat(before, before.targets)

        def there() -> list[Datum]:
            outcome = self.straight(block, self.bound(block, before, scope), every)
            return [old if x is None else x for x, old in zip(self.flat(outcome, before.targets), kept, strict=True)]

        return branch(self.e, self.is_next(before, block), there, lambda: kept)

    def typed(self, first: Outcome, scope: Scope, every: Set[int]) -> Outcome:
        """Return an outcome with data of the right type for each value that a block gets: the operations emitted to find the
        types are dropped."""
        handed, queue = dict(first.handed), list(first.targets)
        while queue:
            block = queue.pop()
            if block == END:
                continue
            with self.e.region("types"):
                found = self.straight(block, self.bound(block, Outcome((block,), None, handed), scope), every)
            queue += [t for t in found.targets if t not in handed]
            handed = {**found.handed, **handed}
        return Outcome(tuple(sorted(handed)), first.selector, handed)
