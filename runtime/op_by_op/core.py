"""The core runtime: `execute` runs one operation on the handler that the client names, immediately if its arguments are ready
and otherwise later. `run` does the same for Python code, and immediately raises errors that are known then.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any, Literal, overload

from ..errors import KeyProblem, Position, Problem, TypeProblem
from ..variables import Context, checked_context, process
from .asynchronous import AsyncValue, raised
from .attributes import EMPTY, FrozenOpAttrs, OpAttrs
from .buffer_reuse import HANDLE
from .callbacks import hold, release, run_callbacks
from .chain import Chain
from .compiled_kernels import Compiler, Known, TypedOperation
from .deferred import DeferredCall, is_deferrable
from .effects import Effects, Link
from .forks import follow_forks
from .handle import TensorHandle, TensorResolver, borrow
from .handler import NullOpHandler, OpHandler, OpInvocation, run_handler
from .kernel_handler import DispatchFunction, KernelOpHandler, MetadataFunction, PythonOperation
from .location import CodeLocation, Diagnostic, Place, caller, line_of
from .metadata import TensorMetadata
from .operands import operands_of
from .operation import OpCall
from .recording import Recorder, check_no_region, recording
from .reporting import INTERRUPTS, mark_reported, problem_of, unraisable
from .stealing import steal
from .work_queue import WorkQueue

QUICK = 1024
"""Maximum number of kernels in the quick table."""

Quick = dict[tuple[Any, ...], Known]
"""The quick table: by operation and metadata of the arguments, for operators; by operation, handler, attributes and metadata,
for `execute`. The attributes are None if there are none, because their hash is Python code."""
Decode = Callable[[object], "Position | None"]


class CoreRuntime:
    """Runs operations one by one. All methods may be called from any thread.

    `diagnostic` is called once for each error, at its origin (without a handler, errors of side effects that nobody else
    reports are printed); its exceptions are reported to `sys.unraisablehook`. `threads` threads run the operations that must
    wait, with at most `queue_size` in the queue (a thread that submits one more runs it itself); `decode` converts a client's
    locations to positions; `cpu` and `reference` compile kernels; variables live in `context`; each handler keeps at most
    `kernels` kernels.
    """

    def __init__(self, diagnostic: Callable[[Diagnostic], None] | None = None, *, threads: int = 2, queue_size: int = 1024,
                 decode: Decode | None = None, cpu: Compiler | None = None, reference: Compiler | None = None,
                 place: Place = line_of, context: Context = process, kernels: int = 1024) -> None:
        self.diagnostic, self.decode, self.place, self.context = diagnostic, decode, place, checked_context(context) or process
        self.queue = WorkQueue(threads, queue_size)
        self.cancelled: Problem | None = None
        self.is_shut_down = False
        self.buffers_reused = self.buffers_refused = 0
        """Number of results that reused an argument's buffer, and number of those whose kernel could have but no argument was
        free."""
        self.effects = Effects(self)
        """The order of the side effects that `run` calls."""
        self.quick: Quick = {}
        self._quick: Quick = self.quick
        self._recorders = 0
        self._lock = threading.RLock()
        self._calls: dict[OpCall | DeferredCall, None] = {}
        follow_forks(self)
        registered: dict[str, PythonOperation] = {}
        self.cpu = KernelOpHandler(self, cpu, NullOpHandler(), registered, kernels)
        self.handlers: dict[str, OpHandler] = {
            "null": NullOpHandler(), "cpu": self.cpu,
            "reference": KernelOpHandler(self, reference, NullOpHandler(), registered, kernels)}
        self.default: OpHandler = self.cpu
        """The handler of Python's operators and of `run`."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeProblem("a CoreRuntime is neither copied nor pickled: it has threads, and the calls that wait for them",
                          kind="argument", help="make one there: tosaic.CoreRuntime(); handles can be pickled, and its "
                          "tensor() takes them")

    # ---- handlers ----------------------------------------------------------------------------------------------------
    def register_op_handler(self, name: str, handler: OpHandler) -> None:
        """Give a handler a name, which an earlier handler of that name loses."""
        self.handlers[name] = handler
        self._set_quick({})

    def get_op_handler(self, name: str) -> OpHandler:
        """Return the handler of that name; raise a Problem if there is none."""
        found = self.handlers.get(name)
        if found is None:
            raise KeyProblem(f"op_handler not found: {name}", kind="argument",
                             help=f"there are {', '.join(sorted(self.handlers))}")
        return found

    def register(self, op_name: str, dispatch: DispatchFunction, metadata: MetadataFunction | None = None, *,
                 side_effect: bool = False, is_long: bool = False) -> None:
        """Register an operation of Python functions: `metadata(inputs, attributes)` returns the results' TensorMetadata (one,
        or a sequence) or raises a Problem; `dispatch(call)` returns the results (see `OpCall`): arrays, or pending handles,
        followed by a chain if the effect takes longer. An operation with a side effect needs a chain; a long one runs in the
        work queue."""
        self.cpu.register(op_name, PythonOperation(op_name, dispatch, metadata, side_effect, is_long))
        self._set_quick({})

    def use(self, handler: OpHandler | str) -> None:
        """Select the handler of Python's operators."""
        self.default = self.get_op_handler(handler) if isinstance(handler, str) else handler
        self._set_quick({})

    # ---- operations --------------------------------------------------------------------------------------------------
    def execute(self, op_name: str, op_handler: OpHandler | str, location: object, arguments: list[TensorHandle | None],
                attributes: OpAttrs | FrozenOpAttrs | None, results: list[TensorHandle | None],
                chain: Chain | None = None) -> Chain | None:
        """Run an operation. `location` is passed to the diagnostic (None: the caller's position in its Python code). The
        arguments are taken over: all are None afterwards, and a buffer without other references may be reused. `results`, a
        list with one element for each result, is filled; errors are stored in it. Returns the chain of the effect if a `chain`
        is given."""
        fixed = EMPTY if attributes is None else attributes.freeze()
        if chain is None and self._execute_quickly(op_name, op_handler, location, arguments, fixed, results):
            return None
        handler = self.get_op_handler(op_handler) if isinstance(op_handler, str) else op_handler
        taken = [a for a in arguments if a is not None]
        is_complete = len(taken) == len(arguments)
        arguments[:] = [None] * len(arguments)
        invocation = OpInvocation(op_name, location, taken, fixed, [None] * len(results), chain, runtime=self)
        del taken
        try:
            self._execute(handler, invocation, is_complete)
            release()
        except BaseException as error:  # an interrupt: the missing results become errors, too
            invocation.fill(problem_of(error, op_name))
            raise
        finally:
            results[:] = invocation.results
        if handler is self.cpu and chain is None:
            self._learn(invocation, (op_name, op_handler, None if invocation.attributes is EMPTY else invocation.attributes))
        return invocation.out_chain

    def _execute_quickly(self, op_name: str, op_handler: OpHandler | str, location: object,
                         arguments: list[TensorHandle | None], attributes: FrozenOpAttrs,
                         results: list[TensorHandle | None]) -> bool:
        """Run a known kernel, now if all arguments are ready, otherwise later; return False if the case is not that simple."""
        try:
            given: list[Any] = arguments
            key = op_name, op_handler, None if attributes is EMPTY else attributes, *[a._metadata for a in given]
            found = self.quick.get(key)
            if found is None or len(results) != 1:
                return False
            metadata, call, entry = found
            is_free = False
            if call is None:
                return self._execute_later(op_name, location, arguments, metadata, entry, results)
            for a in given:
                if a._array is None or type(a) is not TensorHandle:
                    del a
                    return self._execute_later(op_name, location, arguments, metadata, entry, results)
                if a._metadata is metadata and sys.getrefcount(a) <= HANDLE:
                    is_free = True
            if is_free and entry.fitting:
                del a
                if (taken := steal(self, entry, given)) is not None:
                    results[0] = taken_over = TensorHandle(self, metadata, taken[1])
                    taken_over._stolen_from = taken[0]
                    arguments[:] = [None] * len(arguments)
                    return True
            result = call(*[a._array for a in given])
        except Exception:  # the ordinary path reports the error
            return False
        arguments[:] = [None] * len(arguments)
        results[0] = TensorHandle(self, metadata, result)
        return True

    def _execute_later(self, op_name: str, location: object, arguments: list[TensorHandle | None], metadata: TensorMetadata,
                       entry: TypedOperation, results: list[TensorHandle | None]) -> bool:
        """Let a known kernel wait for pending arguments, or for the queue if it is long; return False if there is no reason to
        wait."""
        given: list[Any] = arguments
        if not is_deferrable(given, entry):
            return False
        taken, arguments[:] = given[:], [None] * len(given)
        where = caller() if location is None else location
        results[0] = DeferredCall(self, op_name, where, metadata, entry, taken).start()
        return True

    def run_later(self, op_name: str, known: Known, arguments: list[TensorHandle]) -> TensorHandle:
        """Return the result of a known kernel that is long or has pending arguments."""
        if not is_deferrable(arguments, known[2]):
            return self.run(op_name, *arguments)
        return DeferredCall(self, op_name, caller(), known[0], known[2], arguments).start()

    def _learn(self, invocation: OpInvocation, begin: tuple[Any, ...]) -> None:
        """Add this kernel to the quick table, under a key of `begin` and the arguments' metadata."""
        if self.quick is not self._quick or invocation.problem is not None:
            return
        inputs = tuple([a.metadata for a in invocation.arguments])
        if (known := self.cpu.plain_kernel(invocation.op_name, invocation.attributes, inputs)) is not None:
            if len(self._quick) >= QUICK:
                self._quick.clear()
            self._quick[(*begin, *inputs)] = known

    def _execute(self, handler: OpHandler, invocation: OpInvocation, is_complete: bool = True) -> None:
        error = self.cancelled
        if error is None and not (is_complete and all(a.is_valid for a in invocation.arguments)):
            error = self.originate(Problem(f"an argument of {invocation.op_name} is no tensor: it has been given away",
                                           kind="argument", help="keep a copy of a handle before it is given to execute"),
                                   invocation.location, invocation.op_name)
            invocation.problem = error
        if error is not None:
            invocation.fail(error)
        elif (recorder := recording(self)) is not None:
            recorder.record(invocation)
        elif (problem := run_handler(handler, invocation)) is not None:
            invocation.problem = self.originate(problem, invocation.location, invocation.op_name)
            invocation.fail(invocation.problem)

    def __repr__(self) -> str:
        state = "shut down" if self.is_shut_down else f"{len(self.handlers)} handlers"
        return f"<CoreRuntime, {state}, variables in {self.context!r}>"

    @overload
    def run(self, op_name: str, *operands: Any, outputs: Literal[1] = 1, **attributes: Any) -> TensorHandle: ...
    @overload
    def run(self, op_name: str, *operands: Any, outputs: int, **attributes: Any) -> tuple[TensorHandle, ...] | Any: ...
    def run(self, op_name: str, *operands: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Run an operation from Python: operands are handles, arrays and numbers (which take the type of the first handle), and
        the result is one handle, or a tuple for several `outputs`. Side effects follow each other in the order of their calls.
        Raises a Problem that is found immediately."""
        fixed = OpAttrs(attributes).freeze() if attributes else EMPTY
        handles = operands_of(self, operands)
        invocation = OpInvocation(op_name, None, handles, fixed, [None] * outputs, runtime=self)
        self.run_invocation(invocation)
        release()
        if invocation.problem is not None:
            raise raised(invocation.problem)
        if self.default is self.cpu and outputs == 1 and not attributes:
            self._learn(invocation, (op_name,))
        results = tuple(invocation.results)
        return results[0] if outputs == 1 else results if outputs else None

    def run_invocation(self, invocation: OpInvocation) -> None:
        """Run an operation on the default handler, in the order of effects if it has one."""
        found = self.cpu.find(invocation.op_name, len(invocation.arguments))
        if found is None or not found.side_effect:
            self._execute(self.default, invocation)
            return
        link = Link(self.effects, invocation)
        try:
            self.effects.append(link, invocation)
            self._execute(self.default, invocation)
        finally:
            try:
                link.close(invocation)
            except BaseException:
                link.close(invocation)  # Ctrl-C may have come before it began
                raise

    def tensor(self, x: Any, *, copy: bool = False) -> TensorHandle:
        """Return a handle of an array: NumPy's, the buffer protocol's, DLPack's, or Python's numbers and lists. The array is
        borrowed: the client must not change it while the handle is used; with `copy` the runtime has its own."""
        array = borrow(x)
        if copy:
            array = array.copy()
        return TensorHandle(self, TensorMetadata.of(array), array)

    def pending(self, metadata: TensorMetadata | None = None) -> tuple[TensorHandle, TensorResolver]:
        """Return a handle whose tensor is provided later from outside, and the object that settles it."""
        return TensorHandle.pending(metadata, self)

    # ---- cancellation and the end ------------------------------------------------------------------------------------
    def cancel(self) -> None:
        """Make all pending operations, and all new ones until `restart`, the error that they were cancelled. Running operations
        are finished."""
        error = self.cancelled = Problem("the operation was cancelled", kind="cancelled", help="call restart, and run it again")
        self.quick = {}
        for call in list(self._calls):
            call.cancel(error)

    def restart(self) -> None:
        """Run operations again. Cancelled operations stay errors."""
        if self.is_shut_down:
            raise Problem("the runtime has been shut down", kind="argument", help="make another one")
        self.cancelled = None
        self._set_quick(self._quick)

    def shutdown(self) -> None:
        """Cancel pending operations, finish the running ones, and end the threads; all later operations are errors."""
        self.is_shut_down = True
        self.cancel()
        self.queue.shutdown()

    def wait(self, *values: AsyncValue) -> None:
        """Block until these values are settled; without values, all operations that have been called. In that case, then raise
        the error of any side effect that failed since the last time, after its call by `run` had returned: its effect is
        lost."""
        waited = values or (*[call.done for call in list(self._calls)], self.effects.last)
        check_no_region(waited)
        for value in waited:
            value.wait()
        if not values:
            self.effects.raise_losses()

    # ---- what the operations call ------------------------------------------------------------------------------------
    def track(self, call: OpCall | DeferredCall) -> None:
        """Track a pending call, so that a cancellation ends it."""
        self._calls[call] = None
        if (error := self.cancelled) is not None:
            call.cancel(error)

    def untrack(self, call: OpCall | DeferredCall) -> None:
        self._calls.pop(call, None)

    def schedule(self, call: OpCall | DeferredCall) -> None:
        """Run a call whose inputs are settled: here if this is a thread of the queue and the call is short, otherwise in the
        queue, or here if that is full."""
        if (not call.is_long and self.queue.is_worker()) or not self.queue.add(call):
            run_callbacks((call.begin,), None)  # once no caller's variable refers to the arguments

    def locate(self) -> CodeLocation | None:
        """Return the caller's position in a form that is cheap to take."""
        return caller()

    def originate(self, problem: Problem, location: object, op_name: str) -> Problem:
        """Report a new error to the client, once."""
        where = caller() if location is None else location
        problem.position = decoded = self.decoded(where)
        mark_reported(problem)
        if self.diagnostic is not None:
            try:
                self.diagnostic(Diagnostic(problem.message, location, decoded, op_name, problem))
            except BaseException as error:
                hold_or_report(error, self.diagnostic)
        return problem

    def decoded(self, location: object) -> Position | None:
        """Return a location as a position; None if it is not known."""
        try:
            match location:
                case Position():
                    return location
                case CodeLocation(CodeType() as code, instruction, line):
                    return self.place(code, instruction, line)
            return None if self.decode is None else self.decode(location)
        except BaseException as error:
            hold_or_report(error, self.decode)
            return None

    def after_fork(self) -> None:
        """Reset the state in a forked child: no other thread has the locks."""
        self._lock = threading.RLock()
        self.effects.after_fork()

    def go_on_after_fork(self) -> None:
        """Continue in a forked child, when all locks are new: waiting calls go on, and calls that other threads were running
        are lost."""
        for call in list(self._calls):
            call.after_fork()

    # ---- recording ---------------------------------------------------------------------------------------------------
    def begin_recording(self, recorder: Recorder) -> None:
        with self._lock:
            self._recorders += 1
            self.quick = {}

    def end_recording(self, recorder: Recorder) -> None:
        with self._lock:
            self._recorders -= 1
        self._set_quick(self._quick)

    def _set_quick(self, quick: Quick) -> None:
        """Use this table, unless a recording or a cancellation closes the quick path."""
        self._quick = quick
        is_open = self.cancelled is None and not self._recorders
        self.quick = quick if is_open else {}


def hold_or_report(error: BaseException, culprit: object) -> None:
    """Handle an exception of a client's handler, which is no error of the operation: an interrupt is raised when the state is
    consistent, other exceptions are reported."""
    if isinstance(error, INTERRUPTS):
        hold(error)
    else:
        unraisable(error, culprit)
