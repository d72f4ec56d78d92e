"""The execution of one operation: from its arguments, through its metadata, to its results.

    metadata    at once if that of all arguments is known, else as soon as it is; an error here is the results' error at once
    dispatch    when all arguments and the chain are settled: inline in the caller's thread if they are settled already and the
                operation is short, else in the work queue
    errors      of an argument or the chain become the results', and the operation is not run
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..arena import Array
from ..errors import Problem
from .asynchronous import TRANSITION, AsyncValue, Waiting
from .callbacks import with_row
from .chain import Chain
from .handle import DonatedHandle, TensorHandle, keep_settled
from .handler import OpInvocation
from .metadata import TensorMetadata
from .reporting import INTERRUPTS, is_reported, problem_of

if TYPE_CHECKING:
    from .core import CoreRuntime


class Operation(Protocol):
    """A handler's description of an operation."""
    @property
    def side_effect(self) -> bool:
        """True if the operation needs a chain."""

    @property
    def is_long(self) -> bool:
        """True if the operation always runs in the work queue. A compiled one does if its kernel is estimated to be long."""

    def waits_for(self, arguments: Sequence[TensorHandle]) -> Sequence[TensorHandle] | None:
        """Return the arguments on whose contents the metadata depends, in addition to the metadata of all; None if there is no
        metadata function."""

    def infer(self, call: OpCall) -> tuple[TensorMetadata, ...]:
        """Return the metadata of the results. Raises a Problem."""

    def dispatch(self, call: OpCall) -> Any:
        """Return the results: arrays, or pending handles, followed by a chain if the effect takes longer; or None if it has
        filled `call.results`. Raises a Problem."""


class Stage(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()


class OpCall:
    """One call. A dispatch function receives it: `arrays` and `attributes` are its inputs, `metadata` that of its results
    (empty without a metadata function), `location` the client's."""
    __slots__ = ("arguments", "attributes", "chain", "done", "entry", "invocation", "is_long", "location", "metadata",
                 "missing", "missing_metadata", "op_name", "operation", "results", "runtime", "stage", "stolen", "thread",
                 "types_known")

    def __init__(self, runtime: CoreRuntime, operation: Operation, invocation: OpInvocation) -> None:
        self.runtime, self.operation = runtime, operation
        self.invocation: OpInvocation | None = invocation
        self.op_name, self.location, self.attributes = invocation.op_name, invocation.location, invocation.attributes
        self.arguments, self.chain = invocation.arguments, invocation.chain
        self.results = [TensorHandle(runtime, None, None, Waiting(self)) for _ in invocation.results]
        invocation.results[:] = self.results
        self.done = Chain(Waiting(self))
        invocation.out_chain = None if self.chain is None else self.done
        self.metadata: tuple[TensorMetadata, ...] = ()
        self.stolen: tuple[int | None, ...] = ()
        self.entry: Any = None
        self.stage, self.types_known, self.is_long = Stage.WAITING, False, operation.is_long

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arguments' contents, read-only."""
        return tuple(a.get() for a in self.arguments)

    # ---- before it runs ----------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Infer the metadata and run, now or when the values that it waits for are settled. An interrupt of that becomes the
        results' error."""
        try:
            self.begin_or_defer()
        except BaseException as error:
            self._give_up(error)
            raise

    def begin_or_defer(self) -> None:
        if self.operation.side_effect and self.chain is None:
            self.fail(Problem(f"{self.op_name} has a side effect and needs a chain", kind="argument",
                              help="pass Chain.ready(), or the chain of the operation that comes before"))
            return
        pending = [v for v in self.inputs_of_run() if type(v._state) is Waiting]
        if not pending and not self.is_long:
            if not self.infer():
                return
            if not self.is_long:
                self.run()
                return
        self.defer(pending)

    def inputs_of_run(self) -> list[AsyncValue]:
        """Return all values that the call waits for."""
        return [*self.arguments] if self.chain is None else [*self.arguments, self.chain]

    def defer(self, pending: list[AsyncValue]) -> None:
        """Wait for the pending values."""
        if self.location is None:
            self.location = self.runtime.locate()
        early = self.operation.waits_for(self.arguments)
        unknown = [] if early is None else [a for a in self.arguments if a.is_pending and a.metadata is None]
        late = [] if early is None else [a for a in early if a.is_pending]
        if early is not None and not unknown and not late and not self.infer():
            return
        self.invocation = None  # what goes wrong from now on is reported later
        self.missing_metadata, self.missing = len(unknown) + len(late), len(pending) + 1
        keep_settled(self.arguments)
        self.runtime.track(self)
        if self.missing_metadata:
            self.missing += 1
        for argument in unknown:
            argument.then_metadata(self.metadata_arrived)
        for argument in late:
            argument.then(self.metadata_arrived)
        for value in pending:
            value.then(self.value_arrived)
        self.value_arrived(self)

    def metadata_arrived(self, _: object) -> None:
        with TRANSITION:
            self.missing_metadata -= 1
            is_last = self.missing_metadata == 0
        if is_last:
            self.infer()
            self.value_arrived(self)

    def value_arrived(self, _: object) -> None:
        with TRANSITION:
            self.missing -= 1
            is_last = self.missing <= 0
        if not is_last and len(self.arguments) > 1:
            keep_settled(self.arguments)
        elif is_last and not self.is_waiting():  # a child of `fork` may hear twice of one value
            self.runtime.schedule(self)

    def is_waiting(self) -> bool:
        """True if a value that the call needs is pending."""
        for argument in self.arguments:
            if type(argument._state) is Waiting:
                return True
        return self.chain is not None and self.chain.is_pending

    def infer(self) -> bool:
        """Infer the metadata of the results, unless an argument is an error, which the run reports. Return False if that
        fails."""
        if self.types_known or self.operation.waits_for(self.arguments) is None:
            return True
        for argument in self.arguments:
            if argument._array is None and type(argument._state) is not Waiting:  # an error, or given away
                return True
        try:
            metadata = self.operation.infer(self)
            self.check_count(len(metadata))
        except BaseException as error:
            self.fail(problem_of(error, self.op_name))
            if isinstance(error, INTERRUPTS):
                raise
            return False
        self.metadata, self.types_known = metadata, True
        self.is_long = self.is_long or (self.entry is not None and self.entry.is_long)
        for result, known in zip(self.results, metadata):
            result._set_metadata(known)
        return True

    # ---- when all is there -------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Run the call, unless an input is an error or the call has been cancelled."""
        if not self.claim():
            return
        error = next((v.error for v in self.inputs_of_run() if v._state is not None), None) or self.runtime.cancelled
        if error is not None:
            self.finish(error)
            return
        if not self.types_known and not self.infer():
            return
        try:
            found = self.operation.dispatch(self)
            if type(found) is np.ndarray and len(self.results) == 1:
                self.set(0, self.results[0], found)
                self.finish(None)
            elif found is not None:
                self.deliver(found if isinstance(found, tuple | list) else (found,))
            elif all(not r.is_pending for r in self.results):
                self.finish(None)
            else:
                raise Problem(f"{self.op_name} gave no result", kind="argument", help="return an array for each result")
        except BaseException as exception:
            self.fail(problem_of(exception, self.op_name))
            if isinstance(exception, INTERRUPTS):
                raise

    def begin(self, _: object) -> None:
        """Run the call, as a callback."""
        self.run()

    def claim(self) -> bool:
        """Begin the run; return False if it has been settled already."""
        with TRANSITION:
            if self.stage is not Stage.WAITING:
                return False
            self.stage, self.thread = Stage.RUNNING, threading.get_ident()
        return True

    def deliver(self, found: Sequence[Any]) -> None:
        """Settle the results; the call is done when the pending ones are settled."""
        values = list(found)
        effect = [values.pop()] if values and isinstance(values[-1], Chain) else []
        self.check_count(len(values))
        later: list[AsyncValue] = [v for v in (*values, *effect) if isinstance(v, AsyncValue)]
        for number, (result, value) in enumerate(zip(self.results, values)):
            if isinstance(value, TensorHandle):
                value._check_valid()
                result._follow(value)
            else:
                self.set(number, result, np.asarray(value))
        if not later:
            self.finish(None)
            return
        delivery = Delivery(self, len(later))
        for value in later:
            value.then(delivery.arrived)

    def set(self, number: int, result: TensorHandle, array: Array) -> None:
        """Settle one result."""
        metadata = TensorMetadata.of(array)
        if self.metadata and metadata is not self.metadata[number]:
            raise Problem(f"{self.op_name} gave {metadata}, its metadata function {self.metadata[number]}", kind="type")
        if not array.flags.c_contiguous or not array.flags.aligned:
            array = np.array(array, order="C")
        result._set(array, metadata, self.stolen[number] if self.stolen else None)

    def check_count(self, count: int) -> None:
        if count != len(self.results):
            raise Problem(f"{self.op_name} has {count} results, {len(self.results)} were asked for", kind="argument",
                          help="make the list of results as long as the operation has them")

    def fail(self, error: Problem) -> None:
        """Fail the call with a new error."""
        with TRANSITION:
            if self.stage is Stage.DONE:
                return
        with_row(lambda _: self.report(error))

    def report(self, error: Problem) -> None:
        """Report an error; the diagnostic handler has returned before any waiting code sees the error."""
        error = self.runtime.originate(error, self.location, self.op_name)
        if self.invocation is not None:
            self.invocation.problem = error
        self.finish(error)

    def finish(self, error: Problem | None) -> None:
        """End the call: unsettled results become the error, and the arguments are released."""
        with TRANSITION:
            if self.stage is Stage.DONE:
                return
            self.stage = Stage.DONE
        try:
            self.settle(error)
        except BaseException:  # an interrupt in the middle of it
            self.settle(error)
            raise

    def settle(self, error: Problem | None) -> None:
        donated = [a for a in self.arguments if type(a) is DonatedHandle]
        self.arguments, self.entry = [], None
        for handle in donated:
            handle._invalidate()
        if error is not None:
            for result in self.results:
                result._fail(error)
        self.runtime.untrack(self)
        self.done._settle(error)
        self.results = []

    def _give_up(self, error: BaseException) -> None:
        """Fail the call after an error ended the code that should have run it, or one of its callbacks."""
        if self.stage is Stage.WAITING or (self.stage is Stage.RUNNING and self.thread == threading.get_ident()):
            self.fail(problem_of(error, self.op_name))

    def cancel(self, error: Problem) -> None:
        """Cancel the call unless it is running."""
        if self.claim():
            self.finish(error)

    def after_fork(self) -> None:
        """Handle a fork in the child: a run of another thread is lost, and so are the callbacks that it was about to call."""
        if self.stage is Stage.RUNNING and self.thread != threading.get_ident():
            self.abandon()
        elif self.stage is Stage.WAITING:
            self.missing, self.missing_metadata = sum(v.is_pending for v in self.inputs_of_run()), 0
            if not self.missing:
                self.runtime.schedule(self)

    def abandon(self) -> None:
        """Fail the call, because the thread that was running it does not exist any more."""
        self.finish(lost_thread(self.op_name))


def lost_thread(op_name: str) -> Problem:
    return Problem(f"{op_name} was running in another thread when the process forked", kind="cancelled",
                   help="fork when nothing is running, or run it again in the child")


class Delivery:
    """Ends a call when its pending results, `left` of them, are settled; the first error among them is the call's. Such an
    error originated elsewhere: it is reported here only if it has not been reported before."""
    __slots__ = ("call", "left")

    def __init__(self, call: OpCall, left: int) -> None:
        self.call, self.left = call, left

    def arrived(self, value: AsyncValue) -> None:
        with TRANSITION:
            self.left -= 1
            is_last = self.left == 0
        if (error := value.error) is not None:
            if not is_reported(error):
                error = self.call.runtime.originate(error, self.call.location, self.call.op_name)
            self.call.finish(error)
        elif is_last:
            self.call.finish(None)

    def _give_up(self, error: BaseException) -> None:
        self.call.fail(problem_of(error, self.call.op_name))
