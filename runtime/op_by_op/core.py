"""The core runtime: `execute` runs one operation, at once where its arguments are ready and later where they are not, on the
handler that the client names. `run` is the same for Python code: it raises at once what is known at once.
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
"""Kernels that are found the quick way at most."""

Quick = dict[tuple[Any, ...], Known]
"""By operation and metadata of the arguments, for operators; by operation, handler, attributes and metadata, for `execute`:
None where there are no attributes, because their hash is Python code."""
Decode = Callable[[object], "Position | None"]


class CoreRuntime:
    """Runs operations one by one. Everything may be called from any thread.

    `diagnostic` is called once for each error, where it begins (without one, those of side effects that nobody else hears of
    are printed); what it raises is reported to `sys.unraisablehook`. `threads` work on what has to wait, at most `queue_size`
    operations in line (the thread that brings one more runs it itself); `decode` turns a client's locations into positions;
    `cpu` and `reference` make kernels; variables live in `context`; `kernels` are kept at most, for each handler.
    """

    def __init__(self, diagnostic: Callable[[Diagnostic], None] | None = None, *, threads: int = 2, queue_size: int = 1024,
                 decode: Decode | None = None, cpu: Compiler | None = None, reference: Compiler | None = None,
                 place: Place = line_of, context: Context = process, kernels: int = 1024) -> None:
        self.diagnostic, self.decode, self.place, self.context = diagnostic, decode, place, checked_context(context) or process
        self.queue = WorkQueue(threads, queue_size)
        self.cancelled: Problem | None = None
        self.is_shut_down = False
        self.buffers_reused = self.buffers_refused = 0
        """How often a result took over an argument's buffer, and how often its kernel could have but no argument was free."""
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
        """Give a handler a name; a handler that had it before loses it."""
        self.handlers[name] = handler
        self._set_quick({})

    def get_op_handler(self, name: str) -> OpHandler:
        """The handler of that name; a Problem where there is none."""
        found = self.handlers.get(name)
        if found is None:
            raise KeyProblem(f"op_handler not found: {name}", kind="argument",
                             help=f"there are {', '.join(sorted(self.handlers))}")
        return found

    def register(self, op_name: str, dispatch: DispatchFunction, metadata: MetadataFunction | None = None, *,
                 side_effect: bool = False, is_long: bool = False) -> None:
        """Make an operation of Python functions: `metadata(inputs, attributes)` gives the results' TensorMetadata (one, or a
        sequence) or raises a Problem; `dispatch(call)` gives the results (see `OpCall`): arrays, or pending handles, with a
        chain behind them where the effect takes longer. One with a side effect needs a chain; a long one runs in the work
        queue."""
        self.cpu.register(op_name, PythonOperation(op_name, dispatch, metadata, side_effect, is_long))
        self._set_quick({})

    def use(self, handler: OpHandler | str) -> None:
        """Make a handler that of Python's operators."""
        self.default = self.get_op_handler(handler) if isinstance(handler, str) else handler
        self._set_quick({})

    # ---- operations --------------------------------------------------------------------------------------------------
    def execute(self, op_name: str, op_handler: OpHandler | str, location: object, arguments: list[TensorHandle | None],
                attributes: OpAttrs | FrozenOpAttrs | None, results: list[TensorHandle | None],
                chain: Chain | None = None) -> Chain | None:
        """Run an operation. `location` is what the diagnostic gets (None: the caller's place in its Python code). The arguments
        are taken over: all are None afterwards, and a buffer to which nobody else refers may be reused. `results`, as long as
        results are wanted, is filled; errors are in them. Returns the chain of the effect where a `chain` is given."""
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
        except BaseException as error:  # an interrupt: what has no result yet becomes an error, too
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
        """Run a kernel that is known, where all is ready, or later; False where it is not so simple."""
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
        except Exception:  # the ordinary way finds out what is wrong
            return False
        arguments[:] = [None] * len(arguments)
        results[0] = TensorHandle(self, metadata, result)
        return True

    def _execute_later(self, op_name: str, location: object, arguments: list[TensorHandle | None], metadata: TensorMetadata,
                       entry: TypedOperation, results: list[TensorHandle | None]) -> bool:
        """Let a kernel that is known wait for arguments that are pending, or for the queue if it is long; False where there is
        no such reason."""
        given: list[Any] = arguments
        if not is_deferrable(given, entry):
            return False
        taken, arguments[:] = given[:], [None] * len(given)
        where = caller() if location is None else location
        results[0] = DeferredCall(self, op_name, where, metadata, entry, taken).start()
        return True

    def run_later(self, op_name: str, known: Known, arguments: list[TensorHandle]) -> TensorHandle:
        """The result of a kernel that is known, which is long or whose arguments are not all there."""
        if not is_deferrable(arguments, known[2]):
            return self.run(op_name, *arguments)
        return DeferredCall(self, op_name, caller(), known[0], known[2], arguments).start()

    def _learn(self, invocation: OpInvocation, begin: tuple[Any, ...]) -> None:
        """Let this kernel be found the quick way, under a key of `begin` and the arguments' metadata."""
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
        the result one handle, or a tuple where several `outputs` are wanted. Side effects follow each other in the order of
        their calls. Raises a Problem that is found at once."""
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
        """Run it on the default handler, in the order of effects where it has one."""
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
        """A handle of an array: NumPy's, the buffer protocol's, DLPack's, or Python's numbers and lists. It is borrowed: the
        client does not change it as long as the handle is used; with `copy` the runtime has its own."""
        array = borrow(x)
        if copy:
            array = array.copy()
        return TensorHandle(self, TensorMetadata.of(array), array)

    def pending(self, metadata: TensorMetadata | None = None) -> tuple[TensorHandle, TensorResolver]:
        """A handle whose tensor comes from outside, later, and the object that settles it."""
        return TensorHandle.pending(metadata, self)

    # ---- cancellation and the end ------------------------------------------------------------------------------------
    def cancel(self) -> None:
        """Make all that is pending, and all that comes until `restart`, the error that it was cancelled. What is running is
        finished."""
        error = self.cancelled = Problem("the operation was cancelled", kind="cancelled", help="call restart, and run it again")
        self.quick = {}
        for call in list(self._calls):
            call.cancel(error)

    def restart(self) -> None:
        """Run operations again. What was cancelled stays an error."""
        if self.is_shut_down:
            raise Problem("the runtime has been shut down", kind="argument", help="make another one")
        self.cancelled = None
        self._set_quick(self._quick)

    def shutdown(self) -> None:
        """Cancel what is pending, finish what is running, and end the threads; operations are errors from now on."""
        self.is_shut_down = True
        self.cancel()
        self.queue.shutdown()

    def wait(self, *values: AsyncValue) -> None:
        """Block until these values are settled; without values, all operations that have been called. Then the error of a side
        effect that failed since the last time, after its call by `run` had returned, is raised: its effect is lost."""
        waited = values or (*[call.done for call in list(self._calls)], self.effects.last)
        check_no_region(waited)
        for value in waited:
            value.wait()
        if not values:
            self.effects.raise_losses()

    # ---- what the operations call ------------------------------------------------------------------------------------
    def track(self, call: OpCall | DeferredCall) -> None:
        """Know of a pending call, which a cancellation ends."""
        self._calls[call] = None
        if (error := self.cancelled) is not None:
            call.cancel(error)

    def untrack(self, call: OpCall | DeferredCall) -> None:
        self._calls.pop(call, None)

    def schedule(self, call: OpCall | DeferredCall) -> None:
        """Run a call whose inputs are settled: here where this is a thread of the queue and the call is short, else in the
        queue, and here, too, where that is full."""
        if (not call.is_long and self.queue.is_worker()) or not self.queue.add(call):
            run_callbacks((call.begin,), None)  # once nothing on the way here refers to the arguments

    def locate(self) -> CodeLocation | None:
        """The caller's place, cheaply."""
        return caller()

    def originate(self, problem: Problem, location: object, op_name: str) -> Problem:
        """An error that begins now: tell the client, once."""
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
        """A location as a position, where that is known."""
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
        """In the child: no other thread has the locks."""
        self._lock = threading.RLock()
        self.effects.after_fork()

    def go_on_after_fork(self) -> None:
        """In the child, when all locks are new: what waits goes on, and what other threads were running is lost."""
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
        """Use this table, unless something stands in the way of the quick way."""
        self._quick = quick
        is_open = self.cancelled is None and not self._recorders
        self.quick = quick if is_open else {}


def hold_or_report(error: BaseException, culprit: object) -> None:
    """What a client's handler raises is no error of the operation: an interrupt is raised when all is in order, else it is
    reported."""
    if isinstance(error, INTERRUPTS):
        hold(error)
    else:
        unraisable(error, culprit)
