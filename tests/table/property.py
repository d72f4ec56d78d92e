"""What must hold of a graph of one operator: its text and its file read back, and the reference, the kernels after fusion, the
loops and native code give the same: integers bit for bit, floats as near as the specification asks.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.flatbuffer.reader import read_module as read_file
from tosaic.lowering.flatbuffer.writer import write_module as write_file
from tosaic.lowering.graph.block_scaled_arrays import split_all
from tosaic.lowering.graph.types import Array, ShapeType
from tosaic.lowering.graph.verify import verify

from ..fuzz.oracles.kernels import check_kernels, check_loops
from ..fuzz.oracles.native import USABLE, check_native
from ..fuzz.oracles.reference import Outcome, outcome
from ..fuzz.oracles.text import check_text
from ..operators.float_bounds import ulps
from ..operators.harness import assert_close, assert_equal
from .bounds import FULL, Limit, limits
from .combinations import TABLE
from .signatures import Case

SMALL = 12_000
"""Elements read and products made by a case whose loops are interpreted, at most: that is slow."""
MEDIUM = 2_000_000
"""The same for the interpretation of kernels, which takes memory."""


@dataclass(frozen=True, slots=True)
class Required:
    """What the reference gives, as compiled code has it (block-scaled tensors are two), and how near a float result must be
    to the exact one."""
    reference: Outcome
    limits: Sequence[Limit] | None

    @staticmethod
    def of(case: Case) -> Required:
        with np.errstate(all="ignore"):
            found = outcome(case.module, case.calls)
        assert found.problem is None or found.problem.kind == "variable", found.problem
        types = case.function.result_types
        parts = tuple(tuple(split_all(r, types)) for r in found.results)
        return Required(replace(found, results=parts), limits_of(case))

    def check(self, actual: Outcome, what: str) -> None:
        """Fails where an outcome is not as required."""
        assert (actual.problem is None) == (self.reference.problem is None), (
            f"{what}: {actual.problem or 'no error'}, reference: {self.reference.problem or 'no error'}")
        assert len(actual.results) == len(self.reference.results), f"{what}: {len(actual.results)} calls"
        for results, right in zip(actual.results, self.reference.results):
            assert len(results) == len(right), f"{what}: {len(results)} results"
            for number, (a, e) in enumerate(zip(results, right)):
                check_result(a, e, self.limits[number] if self.limits else None, what)
        for state, wanted in zip(actual.state, self.reference.state):
            for name, value in wanted.items():
                held = state.get(name)
                assert (held is None) == (value is None), f"{what}: @{name} is{' not' * (held is None)} written"
                if held is not None and value is not None:
                    check_result(held, value, None, f"{what}: @{name}")

    def check_reference(self) -> None:
        """The reference is within the bounds, and but for the bounds the exact result rounded to the nearest."""
        self.check(self.reference, "reference")
        for result, limit in zip(self.reference.results[0], self.limits or ()):
            if limit.element in FULL:
                near = replace(limit, error=np.minimum(limit.error, ulps(limit.element, 0.5 + 2.0**-20)(limit.exact)))
                check_result(result, result, near, "reference, rounded once")


def limits_of(case: Case) -> Sequence[Limit] | None:
    operation = case.operation
    if operation is None or operation.regions or operation.op.variable_effect or not operation.operands:
        return None
    return limits(operation, case.operands)


def check_result(actual: Array, right: Array, limit: Limit | None, what: str) -> None:
    assert (actual.dtype, actual.shape) == (right.dtype, right.shape), f"{what}: {actual.dtype}{actual.shape}"
    try:
        if limit is None:
            assert_equal(actual, right)
        else:
            chosen = np.where(limit.anything, np.zeros((), right.dtype), actual)
            assert_close(chosen, np.where(limit.anything, 0, limit.exact), limit.error)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None


def check_shapes(case: Case) -> None:
    """What is known of shapes while compiling is what their operators' references give."""
    for operation in case.operations:
        if operation.results and isinstance(operation.results[0].type, ShapeType) and operation.op.name != "tosa.dim":
            found = operation.op.reference(*(v.constant for v in operation.operands))
            assert_equal(np.asarray(operation.results[0].constant), found)


def check_file(case: Case, reference: Outcome) -> None:
    """What is written to a .tosa file and read back gives the same, for all that such a file can hold."""
    if case.types not in TABLE[case.name].legal or getattr(case.operation and case.operation.op, "input_unsigned", False):
        return
    module = read_file(write_file(case.module), "case.tosa")
    verify(module)
    with np.errstate(all="ignore"):
        found = outcome(module, case.calls)
    assert (found.problem is None) == (reference.problem is None), f"file: {found.problem}"
    types = case.function.result_types
    for results, right in zip(found.results, reference.results, strict=True):
        for a, e in zip(split_all(results, types), right, strict=True):
            check_result(a, e, None, "file")


def check(case: Case, targets: Sequence[str], loops: bool = True) -> Required:
    """Every stage of the case against its reference, in native code for some targets."""
    verify(case.module)
    check_text(case.module)
    check_shapes(case)
    required = Required.of(case)
    required.check_reference()
    check_file(case, required.reference)
    calls = [split_all(call, [v.type for v in case.function.arguments]) for call in case.calls]
    for number, name in enumerate(targets):
        lowered = Traced(case.module, "main").lower(tosaic.CompileOptions(USABLE[name]))
        if number == 0 and case.work <= MEDIUM:
            check_kernels(lowered, calls, required)
        if number == 0 and loops and case.work <= SMALL:
            check_loops(lowered, calls, required)
        check_native(lowered, calls, required, name)
    return required
