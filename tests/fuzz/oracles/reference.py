"""What a module should give, and how sure that is: the interpreter's results, and how far they move when every inexact
operator errs by as much as the specification lets it.

Compiled code may differ from the interpreter by the rounding of each operator, and what becomes of that at the end (much
in a sine of a large number, a different index from an argmax) follows from no rule. So the module is interpreted a few
times more, each float result off by its bound in a random direction, zeros of a random sign: an element that does not
move must be equal, one that moves may differ by a few times as much, and one that jumps (an integer, a NaN) says nothing.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from tosaic.lowering.dialects.tosa.compliance import FRACTION_BITS, bound
from tosaic.lowering.graph.graph import Block, Module, Operation
from tosaic.lowering.graph.types import Array, TensorType
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables

SAMPLES = ((1, 1, np.nan), (1, -1, 0.0), (2, 1, np.inf), (2, -1, -np.inf), (3, 1, 1.0), (3, -1, -1.0))
"""Seed, sign and what is put where an error has no limit. Two with one seed err in opposite directions."""
ROOM = 6.0
"""How many times as far as the samples an element may be."""


class Erring:
    """An operator whose float results are off by as much as its bound allows. Where that is without limit, they are
    `wild`."""

    def __init__(self, operation: Operation, numbers: np.random.Generator, sign: int, wild: float) -> None:
        self.op, self.numbers, self.sign, self.wild = operation.op, numbers, sign, wild
        self.types = [v.type for v in operation.results]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.op, name)

    def reference(self, *arrays: Array) -> Any:
        found = self.op.reference(*arrays)
        if isinstance(found, tuple):
            return tuple(self.erred(np.asarray(x), type, arrays) for x, type in zip(found, self.types, strict=True))
        return self.erred(np.asarray(found), self.types[0], arrays)

    def erred(self, exact: Array, type: Any, arrays: Sequence[Array]) -> Array:
        """One result, off by its bound."""
        if not isinstance(type, TensorType) or not type.element.is_float or hasattr(self.op, "values"):
            return exact
        allowed = bound(self.op, arrays, exact, type.element)
        direction = self.sign * self.numbers.choice((-1.0, 1.0), exact.shape)
        direction = direction * self.numbers.uniform(0.25, 1, exact.shape)  # so that two errors do not just cancel
        moved = exact if allowed is None else self.moved(exact, np.broadcast_to(allowed, exact.shape), direction)
        if exact.dtype.kind in "iu" or type.element.name == "f8E8M0FNU":  # which have no sign of a zero
            return moved
        signed = np.copysign(moved.astype(np.float64), direction).astype(exact.dtype)
        return np.where(exact.astype(np.float64) == 0, signed, moved)

    def moved(self, exact: Array, allowed: Array, direction: Array) -> Array:
        wide = exact.astype(np.float64)
        result = np.where(np.isfinite(wide), wide + allowed * direction, wide).astype(exact.dtype)
        return np.asarray(np.where(allowed == np.inf, np.asarray(self.wild, exact.dtype), result))


def erring(module: Module, seed: int, sign: int, wild: float) -> Module:
    """The module with every operator that computes replaced by one that errs."""
    numbers = np.random.default_rng(seed)

    def block(b: Block) -> Block:
        return replace(b, operations=tuple(operation(o) for o in b.operations))

    def operation(o: Operation) -> Operation:
        regions = tuple(map(block, o.regions))
        op: Any = o.op if regions or o.op.variable_effect else Erring(o, numbers, sign, wild)
        return replace(o, op=op, regions=regions)

    return replace(module, functions=tuple(replace(f, body=block(f.body)) for f in module.functions))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outputs and variables after each call; of one that failed, the error and the variables."""
    results: tuple[tuple[Array, ...], ...]
    state: tuple[dict[str, Array | None], ...]
    problem: Problem | None = None


def outcome(module: Module, calls: Sequence[Sequence[Array]]) -> Outcome:
    run = Interpreter(module, "main", InterpreterVariables())
    results: list[tuple[Array, ...]] = []
    state: list[dict[str, Array | None]] = []
    for inputs in calls:
        try:
            results.append(run(*inputs))
        except Problem as problem:
            return Outcome(tuple(results), (*state, run.variables.snapshot()), problem)
        state.append(run.variables.snapshot())
    return Outcome(tuple(results), tuple(state))


class Requirement(Protocol):
    """What an outcome must be like."""

    def check(self, actual: Outcome, what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Expected:
    """The exact outcome and some where operators err."""
    exact: Outcome
    samples: tuple[Outcome, ...]

    @staticmethod
    def of(module: Module, calls: Sequence[Sequence[Array]]) -> Expected:
        """The outcomes of a module; they follow from it alone."""
        with np.errstate(all="ignore"):
            return Expected(outcome(module, calls),
                            tuple(outcome(erring(module, *sample), calls) for sample in SAMPLES))

    @property
    def checked(self) -> int:
        """Elements that must be right, or nearly."""
        return sum(int((~self.limits(call, number)[1]).sum()) for call, results in enumerate(self.exact.results)
                   for number in range(len(results)))

    def limits(self, call: int, number: int) -> tuple[Array, Array]:
        """(allowed error, whether anything goes) for each element of an output."""
        return limits(self.exact.results[call][number], [s.results[call][number] for s in self.samples])

    def check(self, actual: Outcome, what: str) -> None:
        """Fails where an outcome is not this one."""
        assert (actual.problem is None) == (self.exact.problem is None), (
            f"{what}: {actual.problem or 'no error'}, reference: {self.exact.problem or 'no error'}")
        assert len(actual.results) == len(self.exact.results), f"{what}: {len(actual.results)} calls"
        for call, (results, right) in enumerate(zip(actual.results, self.exact.results)):
            assert len(results) == len(right), f"{what}: {len(results)} results"
            for number, (a, e) in enumerate(zip(results, right)):
                same(a, e, [s.results[call][number] for s in self.samples], f"{what}: output {number} of call {call}")
        for call, (state, wanted) in enumerate(zip(actual.state, self.exact.state)):
            for name, value in wanted.items():
                if value is not None:
                    held = state.get(name)
                    assert held is not None, f"{what}: @{name} is not written"
                    samples = [s.state[call][name] for s in self.samples]
                    same(held, value, [s for s in samples if s is not None], f"{what}: @{name} after call {call}")


def limits(exact: Array, samples: Sequence[Array]) -> tuple[Array, Array]:
    wide = exact.astype(np.float64) if exact.dtype != np.int64 else exact
    jumps = np.zeros(exact.shape, bool)
    spread = np.zeros(exact.shape)
    for sample in samples:
        if exact.dtype.kind in "iub":
            jumps |= sample != exact
            continue
        other = sample.astype(np.float64)
        equal = (other == wide) | (np.isnan(other) & np.isnan(wide))
        jumps |= ~equal & ~(np.isfinite(other) & np.isfinite(wide))
        with np.errstate(all="ignore"):
            spread = np.maximum(spread, np.where(equal | jumps, 0, np.abs(other - wide)))
    finite = np.where(np.isfinite(wide), np.abs(wide), 0)
    usual = np.median(finite[finite > 0]) if (finite > 0).any() else 0
    jumps |= (spread > 0.05 * usual) & (spread > 0.3 * finite)  # near a pole, where no error is small enough
    if spread.any():  # a sample may miss by chance what another element shows: units of the last place
        bits = next((b for name, b in FRACTION_BITS.items() if exact.dtype.name in NAMES.get(name, ())), 23)
        spread = np.maximum(spread, finite * 2.0 ** -bits)
    return ROOM * spread, jumps


NAMES = {"f16": ("float16",), "bf16": ("bfloat16",), "f32": ("float32",), "f8E4M3FN": ("float8_e4m3fn",),
         "f8E5M2": ("float8_e5m2",)}


def same(actual: Array, exact: Array, samples: Sequence[Array], what: str) -> None:
    assert (actual.dtype, actual.shape) == (exact.dtype, exact.shape), f"{what}: {actual.dtype}{actual.shape}"
    allowed, jumps = limits(exact, samples)
    if exact.dtype.kind in "iub":
        wrong = (actual != exact) & ~jumps
    else:
        a, e = actual.astype(np.float64), exact.astype(np.float64)
        with np.errstate(all="ignore"):
            wrong = ~((a == e) | (np.abs(a - e) <= allowed) | (np.isnan(a) & np.isnan(e)) | jumps)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(f"{what}: {int(wrong.sum())} of {wrong.size} elements of {exact.dtype}{list(exact.shape)}, the "
                             f"first at {list(index)}: {actual[index]}, not {exact[index]} (+-{allowed[index]:.3g})")
