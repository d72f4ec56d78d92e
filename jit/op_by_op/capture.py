"""Recording a region of op-by-op execution: its operations become one graph, which is compiled and run as a whole.

    with rt.capture() as region:
        y = x @ w + b
    y.get()                          computed by one program when the region ended
    f = region.compile(y)            that program: takes the region's inputs, as arrays, in the order of their first use
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ...runtime.op_by_op.asynchronous import Waiting
from ...runtime.op_by_op.attributes import FrozenOpAttrs
from ...runtime.op_by_op.handle import TensorHandle
from ...runtime.op_by_op.handler import OpInvocation
from ...runtime.op_by_op.kernel_handler import CompiledOperation
from ...runtime.op_by_op.operation import OpCall
from ...runtime.op_by_op.recording import begin, end, recorders, sources_of
from ...runtime.op_by_op.reporting import text_of
from ..call_signature import TensorSpec
from ..compiled import Compiled
from ..decorator import Jit
from . import operations
from .compile_lock import compiling
from .compilers import plain

if TYPE_CHECKING:
    from ...runtime.op_by_op.core import CoreRuntime


@dataclass(frozen=True, slots=True)
class RecordedOperation:
    """A recorded operation; values of the region are numbered, inputs and results alike."""
    op_name: str
    attributes: FrozenOpAttrs
    operands: tuple[int, ...]
    results: tuple[int, ...]


class CapturedRegion:
    """The operations of one `with` block. `inputs` are the handles from outside that they use, in the order of first use."""

    def __init__(self, runtime: CoreRuntime) -> None:
        self.runtime = runtime
        self.inputs: list[TensorHandle] = []
        self.steps: list[RecordedOperation] = []
        self._input_numbers: list[int] = []
        self._handles: list[weakref.ref[TensorHandle]] = []
        self._numbers: dict[int, int] = {}
        self._known: set[int] = set()
        """Values that an operation must know when it is compiled: constants of the region's program."""

    def __enter__(self) -> CapturedRegion:
        self.runtime.begin_recording(self)
        begin(self.runtime, self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        end()
        self.runtime.end_recording(self)
        results = self._alive()
        try:
            if error is not None:
                self._fail(results, error)
            elif (outer := self._waits_for()) is not None:
                outer.adopt(self)
            else:
                self._run(results)
        except BaseException as failure:
            self._fail(results, failure)
            raise

    def _fail(self, results: Sequence[TensorHandle], error: BaseException) -> None:
        """Set an error on all results that have not been computed."""
        problem = Problem(f"the region was left by an error: {text_of(error)}", kind="cancelled")
        problem.__cause__ = error
        for handle in results:
            handle._fail(problem)

    def _waits_for(self) -> CapturedRegion | None:
        """Return the innermost enclosing region, of this thread, that has yet to compute an input."""
        open_regions, sources = recorders(), sources_of(self.inputs)
        return next((r for r in reversed(open_regions) if r in sources and isinstance(r, CapturedRegion)), None)

    def adopt(self, inner: CapturedRegion) -> None:
        """Take over the operations of an inner region whose inputs this region computes: they run when this region ends."""
        numbers: dict[int, int] = {n: self._number(h) for n, h in zip(inner._input_numbers, inner.inputs)}
        for step in inner.steps:
            for n in step.results:
                handle = inner._handles[n]()
                numbers[n] = self._result(handle) if handle is not None else self._place(inner._handles[n])
            self.steps.append(RecordedOperation(step.op_name, step.attributes, tuple([numbers[n] for n in step.operands]),
                                                tuple([numbers[n] for n in step.results])))

    # ---- recording ---------------------------------------------------------------------------------------------------
    def record(self, invocation: OpInvocation) -> None:
        """Add an operation; its results are pending until the region ends."""
        runtime = self.runtime
        operation = runtime.cpu.find(invocation.op_name, len(invocation.arguments))
        if not isinstance(operation, CompiledOperation):
            self._refuse(invocation, "it is no operation that is compiled")
            return
        call = OpCall(runtime, operation, invocation)
        if (error := next((a.error for a in call.arguments if a.error is not None), None)) is not None:
            call.finish(error)
        elif call.infer() and not any(0 in a.shape for a in (*call.arguments, *call.results)):
            operands = tuple([self._number(a) for a in call.arguments])
            self._known |= {operands[n] for n in operations.constants(call.op_name, len(operands))}
            self.steps.append(RecordedOperation(call.op_name, call.attributes, operands,
                                                tuple([self._result(r) for r in call.results])))
        elif invocation.problem is None:
            self._refuse(invocation, "a tensor here has no elements")

    def _refuse(self, invocation: OpInvocation, why: str) -> None:
        problem = Problem(f"{invocation.op_name} cannot be recorded: {why}", kind="unsupported",
                          help="run it outside of the region")
        invocation.problem = self.runtime.originate(problem, invocation.location, invocation.op_name)
        invocation.fail(invocation.problem)

    def _result(self, handle: TensorHandle) -> int:
        """Number a value that this region will compute."""
        if type(handle._state) is Waiting:
            handle._state.source = self
        return self._add(handle)

    def _number(self, handle: TensorHandle) -> int:
        known = self._numbers.get(id(handle))
        if known is not None and self._handles[known]() is handle:
            return known
        number = self._add(handle)
        self.inputs.append(handle)
        self._input_numbers.append(number)
        return number

    def _add(self, handle: TensorHandle) -> int:
        number = self._numbers[id(handle)] = self._place(weakref.ref(handle))
        return number

    def _place(self, handle: weakref.ref[TensorHandle]) -> int:
        """Assign a number to a value."""
        self._handles.append(handle)
        return len(self._handles) - 1

    def _alive(self) -> list[TensorHandle]:
        """Return the results that are still referenced."""
        found = [self._handles[n]() for step in self.steps for n in step.results]
        return [h for h in found if h is not None]

    # ---- as one program ----------------------------------------------------------------------------------------------
    def compile(self, *outputs: TensorHandle, inputs: Sequence[TensorHandle] | None = None) -> Compiled:
        """Return the region as a compiled function of `inputs` (by default all of them except shapes and axes), with the
        results `outputs`; other inputs become constants."""
        given = self._variable_inputs() if inputs is None else list(inputs)
        numbers, wanted = [self._number_of(h) for h in given], [self._number_of(h) for h in outputs]
        traced = Jit(self._function(numbers, wanted)).trace(*[TensorSpec(h.shape, h.dtype) for h in given])
        with compiling():
            return traced.compile()

    def function(self, *outputs: TensorHandle, inputs: Sequence[TensorHandle] | None = None) -> Callable[..., Any]:
        """Return the region as a function of tensors, for `tosa.cond_if` and `tosa.while_loop`; inputs and outputs as in
        `compile`."""
        given = self._variable_inputs() if inputs is None else list(inputs)
        return self._function([self._number_of(h) for h in given], [self._number_of(h) for h in outputs])

    def _function(self, numbers: Sequence[int], wanted: Sequence[int]) -> Callable[..., Any]:
        """Return a function from values of these numbers to the wanted ones; other inputs become constants."""
        steps, needed = self._needed(wanted)
        constants = {n: h.get() for n, h in zip(self._input_numbers, self.inputs) if n in needed and n not in numbers}

        def region(*tensors: Any) -> Any:
            values: dict[int, Any] = {**constants, **dict(zip(numbers, tensors))}
            for step in steps:
                results = operations.call(step.op_name, [values[n] for n in step.operands], plain(step.attributes))
                values.update(zip(step.results, results))
            return values[wanted[0]] if len(wanted) == 1 else tuple(values[n] for n in wanted)

        return region

    def _variable_inputs(self) -> list[TensorHandle]:
        """Return the inputs that may differ in another call."""
        return [h for n, h in zip(self._input_numbers, self.inputs) if n not in self._known]

    def _number_of(self, handle: TensorHandle) -> int:
        number = self._numbers.get(id(handle))
        if number is None or self._handles[number]() is not handle:
            raise Problem("this handle is neither an input nor a result of the region", kind="argument",
                          help="pass handles that the region's operations take or give")
        return number

    def _needed(self, wanted: Sequence[int]) -> tuple[list[RecordedOperation], set[int]]:
        """Return the steps that these values need, in order, and all values of these steps."""
        needed, steps = set(wanted), []
        for step in reversed(self.steps):
            if needed & {*step.results}:
                needed |= {*step.operands, *step.results}
                steps.append(step)
        return steps[::-1], needed

    def _errors(self) -> dict[int, Problem]:
        """Return the errors of the values that have one: an input's error propagates to all values that depend on it."""
        errors = {n: h.error for n, h in zip(self._input_numbers, self.inputs) if h.wait() and h.error is not None}
        for step in self.steps:
            if (first := next((errors[n] for n in step.operands if n in errors), None)) is not None:
                errors |= dict.fromkeys(step.results, first)
        return errors

    def _run(self, results: Sequence[TensorHandle]) -> None:
        """Compute the results that are still wanted."""
        errors = self._errors()
        failed = [(h, errors[n]) for h in results if (n := self._number_of(h)) in errors]
        for handle, error in failed:
            handle._fail(error)
        results = [h for h in results if self._number_of(h) not in errors]
        if results:
            self._compute(results)

    def _compute(self, results: Sequence[TensorHandle]) -> None:
        _, needed = self._needed([self._number_of(h) for h in results])
        inputs = [h for n, h in zip(self._input_numbers, self.inputs) if n in needed and n not in self._known]
        try:
            arrays = self.compile(*results, inputs=inputs)(*[h.get() for h in inputs])
        except Problem as problem:
            for handle in results:
                handle._fail(problem)
            return
        for handle, array in zip(results, arrays if len(results) > 1 else (arrays,)):
            assert handle.metadata is not None
            handle._set(array, handle.metadata)
