"""The quick path of a call that must wait: a known kernel, for arguments with known metadata of which some contents are
pending, or that takes too long to run in the caller. It keeps the guarantees of `OpCall` (order, errors, cancellation, buffer
reuse) in a third of the time.
"""
from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..arena import Array
from ..errors import Problem
from .asynchronous import TRANSITION, AsyncValue, Waiting
from .callbacks import with_row
from .compiled_kernels import TypedOperation
from .handle import TensorHandle, given_away, keep_settled
from .metadata import TensorMetadata
from .operation import Stage, lost_thread
from .reporting import INTERRUPTS, problem_of
from .stealing import steal

if TYPE_CHECKING:
    from .core import CoreRuntime


class DeferredCall:
    """One call. It runs when all arguments are settled; an error among them becomes the result's."""
    __slots__ = ("arguments", "done", "entry", "is_long", "location", "metadata", "op_name", "runtime", "stage", "stolen",
                 "thread")

    def __init__(self, runtime: CoreRuntime, op_name: str, location: object, metadata: TensorMetadata, entry: TypedOperation,
                 arguments: list[TensorHandle]) -> None:
        self.runtime, self.op_name, self.location, self.entry = runtime, op_name, location, entry
        self.metadata, self.arguments, self.stage = metadata, arguments, Stage.WAITING
        self.stolen: int | None = None
        self.is_long = entry.is_long
        self.done = TensorHandle(runtime, metadata, None, Waiting(self))
        """The result."""

    def start(self) -> TensorHandle:
        """Wait for the pending arguments, and return the result, which is pending, too. If all arguments have been settled
        meanwhile, begin the run here, because nobody else would."""
        done = self.done
        try:
            self.runtime.track(self)
            keep_settled(self.arguments)
            pending = [a for a in self.arguments if type(a._state) is Waiting]
            for argument in pending:
                argument.then(self.arrived)
            if not pending:
                self.arrived(None)
        except BaseException as error:
            self._give_up(error)
            raise
        return done

    def inputs_of_run(self) -> Sequence[AsyncValue]:
        """Return all values that the call waits for."""
        return self.arguments

    def arrived(self, _: object) -> None:
        """Schedule the run once all arguments are settled; if two arrive at the same time, only one of the runs begins."""
        for argument in self.arguments:
            if type(argument._state) is Waiting:
                if len(self.arguments) > 1:
                    keep_settled(self.arguments)
                return
        self.runtime.schedule(self)

    def begin(self, _: object) -> None:
        """Run the call, unless an argument is an error or the call has been cancelled."""
        if not self.claim():
            return
        arrays = [a._array for a in self.arguments]
        if self.runtime.cancelled is not None or None in map(type_of, arrays):
            error = next((a.error for a in self.arguments if a.error is not None), None)
            self.finish(error or self.runtime.cancelled or given_away())
            return
        try:
            self.deliver(self.dispatch(arrays))
        except BaseException as exception:
            self._give_up(exception)
            if isinstance(exception, INTERRUPTS):
                raise

    def dispatch(self, arrays: list[Array | None]) -> Array:
        """Return the result's array."""
        entry = self.entry
        if entry.fitting:
            arrays.clear()  # these are references, too
            taken = steal(self.runtime, entry, self.arguments)
            if taken is not None:
                self.stolen, array = taken
                return array
            arrays += [a._array for a in self.arguments]
        found: Array = entry.kernel().call(*[arrays[n] for n in entry.inputs])
        return found

    def deliver(self, array: Array) -> None:
        """Settle the result."""
        self.arguments = []
        self.done._set(array, self.metadata, self.stolen)
        self.stage = Stage.DONE
        self.runtime.untrack(self)

    def claim(self) -> bool:
        """Begin the run; return False if it has been settled already."""
        with TRANSITION:
            if self.stage is not Stage.WAITING:
                return False
            self.stage, self.thread = Stage.RUNNING, get_ident()
        return True

    def finish(self, error: Problem) -> None:
        """Make the result an error, and release the arguments."""
        self.stage, self.arguments = Stage.DONE, []
        self.done._fail(error)
        self.runtime.untrack(self)

    def _give_up(self, error: BaseException) -> None:
        """Make the result an error after the call failed, or an error ended the code that should have begun it."""
        if self.stage is Stage.WAITING or (self.stage is Stage.RUNNING and self.thread == get_ident()):
            problem = problem_of(error, self.op_name)
            with_row(lambda _: self.finish(self.runtime.originate(problem, self.location, self.op_name)))

    def cancel(self, error: Problem) -> None:
        """Cancel the call unless it is running."""
        if self.claim():
            self.finish(error)

    def after_fork(self) -> None:
        """Handle a fork in the child: a run of another thread is lost; a waiting call checks its arguments again, whose
        callbacks may be lost."""
        if self.stage is Stage.RUNNING and self.thread != get_ident():
            self.finish(lost_thread(self.op_name))
        elif self.stage is Stage.WAITING:
            self.arrived(None)


def type_of(array: Array | None) -> object:
    return None if array is None else True


def is_deferrable(arguments: Sequence[Any], entry: TypedOperation) -> bool:
    """True if all arguments are handles with metadata that are ready or pending, and there is a reason to wait."""
    pending = 0
    for argument in arguments:
        if type(argument) is not TensorHandle or argument._metadata is None:
            return False
        pending += type(argument._state) is Waiting
    return pending > 0 or entry.is_long
