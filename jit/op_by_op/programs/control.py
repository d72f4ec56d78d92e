"""Control flow: calls, branches and loops. These kernels wait for the deciding values, not for the values that they pass on.

Each is a generator that yields the values to wait for, and settles the results.
"""
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ....runtime.errors import Problem
from ....runtime.op_by_op.asynchronous import AsyncValue
from ....runtime.op_by_op.handle import TensorHandle
from ..program_text.kernel_program import Body, Function, Kernel
from .registers import Register, first_error
from .tensor_printing import is_true

if TYPE_CHECKING:
    from .execution import Execution

Registers: TypeAlias = list[Register]
Steps: TypeAlias = Generator[Sequence[AsyncValue], None, None]
Control: TypeAlias = Callable[["Execution", Kernel, Registers, Registers], Steps]


def forward(found: Sequence[Register], results: Sequence[Register]) -> None:
    for result, value in zip(results, found):
        result.follow(value)


def stop(execution: Execution, results: Sequence[Register], *deciding: AsyncValue) -> bool:
    """True if an error among the deciding values, or a cancellation, has become the results."""
    error = first_error(deciding) or execution.cancelled
    if error is not None:
        execution.fail(results, error)
    return error is not None


def call(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    """Run the function at once, with its operands ready or not."""
    if not stop(execution, results):
        forward(execution.call(execution.callee(kernel.attributes["callee"]), operands), results)
    yield ()


def merge(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    """Return a chain that is ready when all operands are, tensors included."""
    yield operands
    handles = handles_of(operands)
    yield handles
    if not stop(execution, results, *operands, *handles):
        results[0].set(None)


def handles_of(registers: Sequence[Register]) -> list[TensorHandle]:
    """Return the handles among settled registers."""
    return [r.value for r in registers if isinstance(r.value, TensorHandle)]


# Numbers decide

def if_region(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    condition, *passed = operands
    yield [condition]
    if stop(execution, results, condition):
        return
    region = kernel.regions[0] if condition.value else kernel.regions[-1] if len(kernel.regions) > 1 else None
    if region is not None:
        forward(execution.body(region, passed), results)


def if_function(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    condition, *passed = operands
    yield [condition]
    if not stop(execution, results, condition):
        function = kernel.attributes["a_true_fn" if condition.value else "b_false_fn"]
        forward(execution.call(execution.callee(function), passed), results)


def case(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    index, *passed = operands
    yield [index]
    if stop(execution, results, index):
        return
    branches: Any = kernel.attributes["branches"]
    if not 0 <= index.value < len(branches):
        raise Problem(f"tfrt.case has {len(branches)} branches, there is no number {index.value}", kind="kernel")
    forward(execution.call(execution.callee(branches[index.value]), passed), results)


def repeat(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    """Run a number of iterations, each on the results of the one before; the next begins when these are ready."""
    count, *values = operands
    yield [count]
    if stop(execution, results, count):
        return
    body: Body = kernel.regions[0]
    for _ in range(count.value):
        yield values
        if stop(execution, results, *values):
            return
        values = execution.body(body, values)
    forward(values, results)


def while_number(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    """Iterate while the last value that the body returns is true; `operands` begins with the first such value."""
    condition, *values = operands
    body = execution.callee(kernel.attributes["body_fn"])
    while True:
        yield [condition]
        if stop(execution, results, condition):
            return
        if not condition.value:
            break
        yield values
        if stop(execution, results, *values):
            return
        *values, condition = execution.call(body, values)
    forward(values, results)


# Tensors decide

def tensor_cond(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    predicate, *passed = operands
    branch = yield from decided(execution, results, predicate, passed)
    if branch is not None:
        function = kernel.attributes["a_true_fn" if branch else "b_false_fn"]
        forward(execution.call(execution.callee(function), passed), results)


def decided(execution: Execution, results: Registers, predicate: Register,
            passed: Registers) -> Generator[Sequence[AsyncValue], None, bool | None]:
    """Return the value of a predicate; None if the predicate, or a passed value, is an error, which has become the results."""
    yield [predicate]
    handles = handles_of([predicate])
    yield handles
    known = [r for r in passed if not r.is_pending]
    error = first_error([predicate, *handles, *known, *handles_of(known)]) or execution.cancelled
    if error is None:
        return is_true(handles[0].get(), execution.scalars)
    yield from ended(execution, results, passed, error)
    return None


def ended(execution: Execution, results: Registers, passed: Registers, error: Problem) -> Steps:
    """Set an error on all results: at once, except for the chain, which waits for all passed values so that outstanding work
    ends."""
    execution.fail(results[1:], error)
    yield passed
    yield handles_of(passed)
    results[0].fail(error)


def tensor_while(execution: Execution, kernel: Kernel, operands: Registers, results: Registers) -> Steps:
    """Iterate while the condition function holds; it returns a chain and a predicate."""
    condition = execution.callee(kernel.attributes["a_cond_fn"])
    body: Function = execution.callee(kernel.attributes["b_body_fn"])
    values = operands
    while True:
        known = [r for r in values if not r.is_pending]
        error = first_error([*known, *handles_of(known)])
        if error is not None:
            yield from ended(execution, results, values, error)
            return
        chain, predicate = execution.call(condition, values, is_last=False)
        yield [chain]
        branch = yield from decided(execution, results, predicate, [chain, *values])
        if branch is None:
            return
        if not branch:
            break
        values = execution.call(body, values)
        yield values
    forward(values, results)


CONTROL: dict[str, Control] = {
    "tfrt.call": call, "tfrt.merge.chains": merge, "tfrt.if": if_region, "tfrt.cond": if_function, "tfrt.case": case,
    "tfrt.repeat.i32": repeat, "tfrt.while": while_number, "corert.cond": tensor_cond, "corert.while": tensor_while}
