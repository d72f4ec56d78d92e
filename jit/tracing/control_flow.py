"""`tosaic.cond` and `tosaic.while_loop`: Python functions become the regions of COND_IF and WHILE_LOOP.

The functions may use tensors from the enclosing function; tensors that they compute stay in their region unless they return
them. State and results may be nested in tuples, lists and dicts.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...lowering.graph.graph import Block
from ...lowering.graph.types import I1
from ...runtime.errors import Position, TypeProblem, class_of
from ...runtime.public_names import public
from .complex_tensor import leaf_tensor
from .conversion import tensor
from .pytree import Structure, flatten, unflatten
from .tensor import Tensor
from .trace import Scope, caller, current, operator, problem, record

Result = TypeVar("Result")


class TracedRegion:
    """A Python function that was run to record its operations; its results are not yet tensors of one type."""

    def __init__(self, label: str, name: str, function: Callable[..., Any], structure: Structure,
                 state: Sequence[Tensor]) -> None:
        if not callable(function):
            raise problem(f"{name} is {class_of(function)}, not a function", "argument", raised=TypeProblem)
        self.trace = current().trace
        self.scope: Scope = self.trace.scope(label)
        self.leaves: list[Any] = []
        position = caller()
        with self.trace.inside(self.scope):
            self.scope.label = name
            leaves = [self.scope.argument(x.type, f"arg{i}", position) for i, x in enumerate(state)]
            arguments: Sequence[Any] = unflatten(structure, iter(leaves))
            check_parameters(name, function, arguments)
            self.structure = flatten(function(*arguments), self.leaves)

    def finish(self, like: Sequence[Any], position: Position | None) -> Block:
        """Return the block; numbers among the results take the element types of `like`."""
        with self.trace.inside(self.scope):
            elements = [x.element if isinstance(x, Tensor) else None for x in like]
            return self.scope.finish([with_elements(leaf_tensor(x, e)) for x, e in zip(self.leaves, elements)], position)


def check_parameters(name: str, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    """Raise a Problem unless the function takes that number of arguments. Accept a function whose parameters Python does not
    know."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        given = ", ".join(str(x.type) if isinstance(x, Tensor) else class_of(x) for x in arguments) or "nothing"
        raise problem(f"{name} has the parameters {signature} and is called with {given}: {error}", "argument",
                      help=f"give it {len(arguments)} parameter{'s' * (len(arguments) != 1)}", raised=TypeProblem) from None


def with_elements(x: Tensor) -> Tensor:
    """Return x, which crosses the border of a region. Raise a Problem if x has no elements."""
    if not x.size:
        raise problem(f"{x.type} has no elements: branches and loops have no such state", "unsupported")
    return x


@public("tosaic.cond")
def cond(predicate: Any, then: Callable[..., Result], otherwise: Callable[..., Result], *arguments: Any) -> Result:
    """Return `then(*arguments)` if the predicate, one bool, is true at run time, else `otherwise(*arguments)`.

    Both functions return the same nest of tensors of the same types. Only the chosen one runs, including its writes to
    variables. A Python bool chooses when tracing.
    """
    if isinstance(predicate, bool):
        chosen = then if predicate else otherwise
        check_parameters("the function for true" if predicate else "the function for false", chosen, arguments)
        return chosen(*arguments)
    test = tensor(predicate)
    if test.element != I1 or test.size != 1:
        raise problem(f"the condition of cond is {test.type}, it must be one bool", help="x.any() or x.all() make one")
    leaves: list[Any] = []
    structure = flatten(arguments, leaves)
    state = [with_elements(leaf_tensor(leaf)) for leaf in leaves]
    first = TracedRegion("then", "the function for true", then, structure, state)
    second = TracedRegion("else", "the function for false", otherwise, structure, state)
    if first.structure != second.structure:
        raise problem(f"the functions of cond return {first.structure} and {second.structure}", "argument",
                      help="both must return as many tensors, nested alike")
    like = [b if isinstance(b, Tensor) else a for a, b in zip(first.leaves, second.leaves)]
    position = caller()
    blocks = first.finish(like, position), second.finish(like, position)
    for number, (a, b) in enumerate(zip(*(block.yields for block in blocks))):
        if a.type != b.type:
            raise problem(f"result {number} of cond is {a.type} where the condition is true, else {b.type}",
                          help="both functions must return the same types: astype, broadcast_to")
    results = record(operator("cond_if")(), test, *state, regions=blocks)
    found: Result = unflatten(first.structure, iter(results))
    return found


@public("tosaic.while_loop")
def while_loop(test: Callable[..., Any], body: Callable[..., Result], *state: Any) -> Result:
    """Return the state after repeating `state = body(*state)` while `test(*state)`, one bool, is true.

    `body` returns the new state: a tuple, or a single value if the state is one value; its types stay. Numbers in the first
    state become tensors of i32, f32 or i1. The result has the form of `body`'s result.
    """
    if not state:
        raise problem("while_loop needs a state that changes", "argument", help="while_loop(test, body, first_state)")
    leaves: list[Any] = []
    structure = flatten(state, leaves)
    values = [with_elements(leaf_tensor(leaf)) for leaf in leaves]
    condition = TracedRegion("while", "the test of while_loop", test, structure, values)
    step = TracedRegion("do", "the body of while_loop", body, structure, values)
    single = structure.children[0] if len(state) == 1 else None
    if step.structure not in (structure, single):
        raise problem(f"the body of while_loop returns {step.structure}, its state is {single or structure}",
                      "argument", help="return as many tensors, nested alike")
    position = caller()
    blocks = condition.finish([None] * len(condition.leaves), position), step.finish(values, position)
    for number, (before, after) in enumerate(zip(values, blocks[1].yields)):
        if before.type != after.type:
            raise problem(f"state {number} of while_loop is {before.type}, its body returns {after.type}",
                          help="the types of the state stay: give the first state the body's type")
    tests = blocks[0].yields
    if len(tests) != 1 or tests[0].tensor.element != I1 or tests[0].tensor.size != 1:
        raise problem(f"the test of while_loop returns {', '.join(str(t.type) for t in tests) or 'nothing'}, "
                      "it must be one bool", help="x.any() or x.all() make one")
    results = record(operator("while_loop")(), *values, regions=blocks)
    found: Result = unflatten(step.structure, iter(results))
    return found
