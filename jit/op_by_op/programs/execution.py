"""The execution of a program's functions: each kernel runs as soon as its operands are ready, whatever the order in the text.

    operands      an error among them becomes the results', and the kernel is not run
    side effects  are ordered by chains alone
    errors        are reported once, with the position of the kernel where they begin
    cancellation  turns all that has not run yet into the error `Cancelled`, until the function is over
"""
from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ....lowering.text.attributes import Attribute, Symbol
from ....runtime.errors import Position, Problem
from ....runtime.op_by_op.asynchronous import AsyncValue
from ....runtime.op_by_op.attributes import FrozenOpAttrs
from ....runtime.op_by_op.core import CoreRuntime, hold_or_report
from ....runtime.op_by_op.handle import TensorHandle
from ....runtime.op_by_op.handler import OpHandler
from ....runtime.op_by_op.reporting import INTERRUPTS, is_sound, problem_of
from ....runtime.op_by_op.tensor_kinds import SCALARS
from ..program_text.kernel_program import Body, Function, Kernel, Program, Value
from .attribute_conversion import operation_attributes
from .control import CONTROL, Steps
from .kernels import KERNELS
from .registers import Register, first_error, when_settled
from .work import Work

MAXIMUM_CALLS = 64
"""Maximum depth of nested calls."""
CANCELLED = "cancelled"
"""Kind of the error of a cancelled kernel."""

Report = Callable[[Position | None, str], object]


class Execution:
    """A program being run on a runtime. `write` gets each line that it prints, `report` each error where it begins."""

    def __init__(self, program: Program, runtime: CoreRuntime, write: Callable[[str], object]) -> None:
        self.program, self.runtime, self._write = program, runtime, write
        self.work, self.scalars = Work(), SCALARS
        self.report: Report = lambda position, message: None
        self.cancelled: Problem | None = None
        self.handlers: dict[str, OpHandler] = {}
        self._attributes: dict[Kernel, FrozenOpAttrs] = {}
        self._uses: dict[Body, Counter[Value]] = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    def write(self, line: str) -> None:
        with self._lock:
            self._write(line)

    def handler(self, name: str) -> OpHandler:
        """Return the handler of that name: the program's, or else the runtime's."""
        return self.handlers.get(name) or self.runtime.get_op_handler(name)

    # ---- functions ---------------------------------------------------------------------------------------------------
    def run(self, function: Function) -> list[Register]:
        """Return the results of a function without arguments, after all its work is done."""
        results = self.call(function, [])
        self.work.finish()
        self.runtime.wait()
        if self.cancelled is not None:
            self.cancelled = None
            self.runtime.restart()
        return results

    def call(self, function: Function, arguments: Sequence[Register], is_last: bool = True) -> list[Register]:
        """Return the registers of a function's results; `is_last` as in `body`."""
        depth = getattr(self._local, "depth", 0)
        if depth >= MAXIMUM_CALLS:
            raise Problem(f"more than {MAXIMUM_CALLS} calls are inside each other, the last one of @{function.name}",
                          kind="kernel")
        self._local.depth = depth + 1
        try:
            return self.body(function.body, arguments, is_last)
        finally:
            self._local.depth = depth

    def callee(self, symbol: Attribute) -> Function:
        assert isinstance(symbol, Symbol)
        return self.program.function("::".join(symbol.path))

    def body(self, body: Body, arguments: Sequence[Register], is_last: bool = True) -> list[Register]:
        """Return the registers of a body's results; its kernels have been started, or wait for their operands. With `is_last`
        the caller's use of the arguments ends here."""
        uses = self.uses(body)
        for value, register in zip(body.arguments, arguments):
            register.lend(uses[value] - is_last)
        registers: dict[Value, Register] = dict(zip(body.arguments, arguments))
        for kernel in body.kernels:
            results = [Register.pending(uses[v]) for v in kernel.results]
            self.start(kernel, [registers[v] for v in kernel.operands], results)
            registers.update(zip(kernel.results, results))
        return [registers[v] for v in body.returned]

    def uses(self, body: Body) -> Counter[Value]:
        """Return the number of uses of each value in a body; counted once."""
        found = self._uses.get(body)
        if found is None:
            found = self._uses[body] = Counter([*(v for k in body.kernels for v in k.operands), *body.returned])
        return found

    # ---- kernels -----------------------------------------------------------------------------------------------------
    def start(self, kernel: Kernel, operands: list[Register], results: list[Register]) -> None:
        """Run a kernel, now or later."""
        steps = CONTROL.get(kernel.name)
        if steps is not None:
            self.advance(kernel, steps(self, kernel, operands, results), results)
        elif not any(o.is_pending for o in operands):
            self.run_kernel(kernel, operands, results)
        else:
            done = Register.pending()
            self.work.track(done)
            when_settled(operands, lambda: self.run_kernel(kernel, operands, results, done))
        for result in results:
            self.work.track(result)

    def advance(self, kernel: Kernel, steps: Steps, results: Sequence[Register]) -> None:
        """Advance control flow until it has to wait."""
        try:
            for values in steps:
                if any(v.is_pending for v in values):
                    when_settled(values, lambda: self.advance(kernel, steps, results))
                    return
        except RecursionError:
            self.fail(results, self.originate(Problem("calls are nested too deep", kind="kernel"), kernel))
        except BaseException as error:
            self.failed(error, kernel, results)

    def run_kernel(self, kernel: Kernel, operands: Sequence[Register], results: Sequence[Register],
                   done: Register | None = None) -> None:
        error = first_error(operands) or self.cancelled
        try:
            if error is not None:
                self.fail(results, error)
            else:
                self.deliver(KERNELS[kernel.name](ProgramCall(self, kernel, [o.take() for o in operands])), results)
        except BaseException as failure:
            self.failed(failure, kernel, results)
        finally:
            if done is not None:
                done.set(None)

    def deliver(self, found: Any, results: Sequence[Register]) -> None:
        """Settle the results of a kernel: with values, or with handles and registers that will have them."""
        for result, value in zip(results, found if isinstance(found, tuple) else (found,)):
            if isinstance(value, TensorHandle):
                self.work.track(value)
                result.set(value)
            elif isinstance(value, AsyncValue):
                result.follow(value)
            else:
                result.set(value)

    def fail(self, results: Sequence[Register], error: Problem) -> None:
        for result in results:
            result.fail(error)

    def failed(self, error: BaseException, kernel: Kernel, results: Sequence[Register]) -> None:
        """Set a kernel's exception as the error of its results. Raise an interrupt again when nobody waits for the kernel any
        more."""
        problem = error if isinstance(error, Problem) and is_sound(error) else problem_of(error, kernel.name)
        self.fail(results, self.originate(problem, kernel))
        if isinstance(error, INTERRUPTS):
            raise error

    def originate(self, problem: Problem, kernel: Kernel) -> Problem:
        """Report an error that begins at a kernel."""
        problem = problem.at(kernel.position)
        try:
            self.report(problem.position, problem.message)
        except BaseException as error:
            hold_or_report(error, self.report)
        return problem

    def attributes(self, kernel: Kernel) -> FrozenOpAttrs:
        """Return the attributes of an operation, made once."""
        found = self._attributes.get(kernel)
        if found is None:
            found = self._attributes[kernel] = operation_attributes(kernel.attributes)
        return found

    def cancel(self) -> None:
        """Cancel the function that is running."""
        self.cancelled = Problem("Cancelled", kind=CANCELLED, help="run the program again")
        self.runtime.cancel()
        self.work.cancel(self.cancelled)


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One run of a kernel: the values of its operands, all ready and none an error."""
    execution: Execution
    kernel: Kernel
    values: list[Any]

    def take(self) -> list[Any]:
        """Return the values and drop the references here, so that a value without further uses in the program has none left."""
        taken = list(self.values)
        self.values.clear()
        return taken

    def attribute(self, name: str) -> Any:
        return self.kernel.attributes[name]

    def after(self, values: Sequence[AsyncValue], compute: Callable[[], Any]) -> Register:
        """Return the register of `compute`'s result once all values are ready, or of the error of the first value that has
        one."""
        register, execution = Register.pending(), self.execution

        def arrived() -> None:
            error = first_error(values) or execution.cancelled
            if error is not None:
                register.fail(error)
                return
            self.settle(register, compute)

        when_settled(values, arrived)
        return register

    def later(self, compute: Callable[[], Any]) -> Register:
        """Return the register of `compute`'s result when the task has its turn."""
        register = Register.pending()
        self.execution.work.add(lambda: self.settle(register, compute), register.fail)
        return register

    def settle(self, register: Register, compute: Callable[[], Any]) -> None:
        """Set a register to `compute`'s result, or to the error that it raises."""
        try:
            register.set(compute())
        except BaseException as error:
            self.execution.failed(error, self.kernel, [register])
