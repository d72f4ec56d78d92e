"""The op handlers that a program makes: the cpu's operations with a fallback of its own, and a log in the program's output."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....runtime.op_by_op.core import CoreRuntime
from ....runtime.op_by_op.handle import TensorHandle
from ....runtime.op_by_op.handler import OpHandler, OpInvocation
from ....runtime.op_by_op.logging_handler import LoggingOpHandler
from .tensor_printing import tensor_text

if TYPE_CHECKING:
    from .execution import Execution


class CpuOpHandler(OpHandler):
    """A handler of the operations of the runtime's cpu handler; unknown operations go to the fallback."""

    def __init__(self, runtime: CoreRuntime, fallback: OpHandler) -> None:
        super().__init__(fallback)
        self.runtime = runtime

    def execute(self, invocation: OpInvocation) -> bool:
        return self.runtime.cpu.execute(invocation)


class WorkingOpHandler(OpHandler):
    """A handler that delegates an operation to another handler, and does the work that its results wait for before it
    continues."""

    def __init__(self, handler: OpHandler, execution: Execution) -> None:
        super().__init__()
        self.handler, self.execution = handler, execution

    def execute(self, invocation: OpInvocation) -> bool:
        done = self.handler.run(invocation)
        self.execution.work.settle([r for r in invocation.results if r is not None])
        return done


class ProgramLoggingOpHandler(LoggingOpHandler):
    """A handler that logs to the program's output, with tensors of all kinds as programs print them."""

    def __init__(self, fallback: OpHandler, execution: Execution, sync_log_results: bool) -> None:
        delegate = WorkingOpHandler(fallback, execution) if sync_log_results else fallback
        super().__init__(delegate, execution.write, sync_log_results)
        self.execution = execution

    def log(self, head: str, begin: str, number: int, handles: Sequence[TensorHandle]) -> None:
        self.write(head)
        for place, handle in enumerate(handles):
            error = handle.error
            text = f"error: {error.message}" if error is not None else tensor_text(handle.get(), self.execution.scalars)
            self.write(f"{begin} [{number}] tensor {place}: {text}")
