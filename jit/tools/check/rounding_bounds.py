"""Bounds on the difference of a whole function's results from the interpreter's, by Monte Carlo arithmetic: the function is
interpreted again with every inexact operator off by a random part of its bound (`compliance`), and the change of the results is
measured.

Compiled code may round each operator differently, and the effect on an output follows from the graph and the operands: large
where large terms cancel, none after a clamp, another index after an argmax. An element that does not move must be equal; one
that moves may differ by a few times as much; one that jumps (an integer, a NaN, next to a pole) decides nothing, and is
counted.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....lowering.dialects.tosa.compliance import FRACTION_BITS, bound, ulp
from ....lowering.graph.graph import Function, Module, Operation, Value
from ....lowering.graph.types import Array, ElementType, TensorType
from ....runtime.errors import Problem
from ....runtime.interpreter import Interpreter, InterpreterVariables
from ....runtime.limits import OutOfTime, bounded_iterations
from .instrument import InstrumentedOp, instrumented

SAMPLES = ((1, 1, np.nan), (1, -1, 0.0), (2, 1, np.inf), (2, -1, -np.inf), (3, 1, 1.0), (3, -1, -1.0))
"""Seed, sign, and the value that replaces an error without a limit. Two samples of one seed err in opposite directions. The
fuzz tests check thousands of random graphs against these six."""
PAIR = 2
RESIZE_UNITS = 20.0
"""Error of a bilinear RESIZE, in units of the largest operand: the specification allows 0.006 of it, which would hide errors of
a network after the RESIZE; compiled code and other systems are within a few units."""
ROOM = 6.0
"""Limit of an element's difference, as a multiple of the samples' differences."""
STEPS_ROOM, NARROW_BYTES = 2, 2
"""The same for quantized integers, and the maximum number of bytes of these integers."""
MORE_ITERATIONS, LEAST_ITERATIONS = 4, 1000
"""Maximum iterations of the loops of a perturbed run: a multiple of those of the exact run, and a number added to it."""
NEAR_POLE, OF_ITSELF = 0.05, 0.3
"""Fractions of the usual magnitude and of an element's own. An element that moves by both is next to a pole: no error is small
enough."""
NARROW = {"float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e5m2": 2, "float8_e4m3fnuz": 3,
          "float8_e5m2fnuz": 2, "float6_e2m3fn": 3, "float6_e3m2fn": 2, "float4_e2m1fn": 1, "float8_e8m0fnu": 0, "float64": 52}
"""Fraction bits of types other than float32, by NumPy's names."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of operators: floats err by their bound, at least by `units` of the last place; RESCALE by `steps`."""
    units: float = 0.0
    steps: int = 0
    at: frozenset[Value] = frozenset()
    """Values whose integers are off by these steps, too."""


COMPILED = Errors()
"""Errors of compiled code: those that the specification allows."""


@dataclass(frozen=True, slots=True)
class CallResults:
    """Results of a call: outputs, variables after it, and the results of operators that a check of one operator cannot
    predict."""
    outputs: Sequence[Array]
    state: Mapping[str, Array | None]
    observed: Mapping[Value, Array]


class Samples:
    """Perturbed runs of a function, each on its own state, made as they are requested. `iterations` is the maximum number of
    iterations of the loops of an exact call."""

    def __init__(self, module: Module, function: Function, calls: Sequence[Sequence[Array]], errors: Errors = COMPILED) -> None:
        self.calls, self.iterations = calls, 0
        def make(n: int) -> PerturbedRun:
            return PerturbedRun(module, function.name, errors, *SAMPLES[n], iterations=self.most_iterations)
        self.runs = [Later(make, n) for n in range(len(SAMPLES))]

    def most_iterations(self) -> int:
        """Return the maximum iterations of the loops of a perturbed call: an error in a loop's condition may make it
        endless."""
        return MORE_ITERATIONS * self.iterations + LEAST_ITERATIONS

    def pairs(self, call: int) -> Iterator[list[CallResults | None]]:
        """Yield the outcomes of a call: of two samples, of four, of all; None for a run that ended with a Problem."""
        found: list[CallResults | None] = []
        for first in range(0, len(SAMPLES), PAIR):
            found += [run.after(self.calls, call) for run in self.runs[first:first + PAIR]]
            yield list(found)


class Later:
    """A run that is created, and continued, when its outcome is requested."""

    def __init__(self, make: Callable[[int], PerturbedRun], number: int) -> None:
        self.make, self.number = make, number
        self.run: PerturbedRun | None = None
        self.outcomes: list[CallResults | None] = []

    def after(self, calls: Sequence[Sequence[Array]], call: int) -> CallResults | None:
        while len(self.outcomes) <= call:
            self.run = self.run or self.make(self.number)
            self.outcomes.append(self.run(calls[len(self.outcomes)]))
        return self.outcomes[call]


def bound_of(errors: Errors, operation: Operation, operands: Sequence[Array], exact: Array,
             element: ElementType) -> Array | None:
    """Return the error bound of a float result."""
    allowed = bound(operation.op, operands, exact, element)
    if operation.op.name == "tosa.resize" and allowed is not None:
        unit = 2.0 ** -FRACTION_BITS[element.name]
        allowed = allowed * (RESIZE_UNITS * unit / max(RESIZE_UNITS * unit, 0.006))
    if not errors.units or not rounds(operation, element):
        return allowed
    least_error = errors.units * ulp(exact.astype(np.float64), element)
    return least_error if allowed is None else np.maximum(allowed, least_error)


EXACT = frozenset({"reshape", "transpose", "slice", "concat", "pad", "tile", "reverse", "identity", "gather", "row_gather",
                   "scatter", "select", "maximum", "minimum", "clamp", "abs", "negate", "ceil", "floor", "max_pool2d",
                   "max_pool2d_adaptive", "reduce_max", "reduce_min", "argmax", "dim"})
"""Operators that round nothing."""


def rounds(operation: Operation, element: ElementType) -> bool:
    """True if a float result is rounded."""
    return operation.op.name.startswith("tosa.") and operation.op.name.removeprefix("tosa.") not in EXACT and element.is_float


class PerturbedRun:
    """One perturbed run, call after call; runs that get the same `variables` share them."""

    def __init__(self, module: Module, name: str, errors: Errors, seed: int, sign: int, wild: float,
                 variables: InterpreterVariables | None = None, iterations: Callable[[], int | None] = lambda: None) -> None:
        self.iterations = iterations
        self.numbers, self.sign, self.wild, self.errors = np.random.default_rng(seed), sign, wild, errors
        body = module.function(name).body
        erring = instrumented(module, lambda operation: InstrumentedOp(operation, self.erred))
        self.interpreter = Interpreter(erring, name, variables)
        self.kept = {o.results: o for o in body.operations if o.regions or o.op.variable_effect}

    def __call__(self, inputs: Sequence[Array]) -> CallResults | None:
        observed: dict[Value, Array] = {}

        def observe(operation: Operation, results: Sequence[Array]) -> None:
            if operation.results in self.kept:
                observed.update(zip(operation.results, results))

        try:
            with np.errstate(all="ignore"), bounded_iterations(self.iterations()):
                outputs = self.interpreter(*inputs, observe=observe)
        except OutOfTime:
            raise
        except Problem:
            return None
        return CallResults(outputs, self.interpreter.variables.snapshot(), observed)

    def erred(self, operation: Operation, operands: tuple[Array, ...]) -> Any:
        """Return the results of an operation, off by random parts of its bounds."""
        found = operation.op.reference(*operands)
        if not isinstance(found, tuple):
            return self.off(operation, 0, np.asarray(found), operands)
        return tuple(self.off(operation, number, np.asarray(x), operands) for number, x in enumerate(found))

    def off(self, operation: Operation, number: int, exact: Array, operands: tuple[Array, ...]) -> Array:
        type = operation.results[number].type
        if not isinstance(type, TensorType):
            return exact
        if type.element.is_float:
            return self.float_off(operation, exact, operands, type.element)
        steps = self.errors.steps
        is_rounded = operation.op.name == "tosa.rescale" or operation.results[number] in self.errors.at
        if steps and is_rounded and type.element.kind in ("signed", "unsigned"):
            moved = exact.astype(np.int64) + self.sign * self.numbers.integers(-steps, steps, exact.shape, endpoint=True)
            return moved.clip(type.element.minimum, type.element.maximum).astype(exact.dtype)
        return exact

    def float_off(self, operation: Operation, exact: Array, operands: tuple[Array, ...], element: ElementType) -> Array:
        direction = self.sign * self.numbers.choice((-1.0, 1.0), exact.shape)
        direction = direction * self.numbers.uniform(0.25, 1, exact.shape)  # so that two errors do not just cancel
        allowed = bound_of(self.errors, operation, operands, exact, element)
        moved = exact if allowed is None else self.moved(exact, np.broadcast_to(allowed, exact.shape), direction)
        if exact.dtype.kind in "iu" or element.name == "f8E8M0FNU":  # types without a signed zero
            return moved
        signed = np.copysign(moved.astype(np.float64), direction).astype(exact.dtype)
        return np.where(exact.astype(np.float64) == 0, signed, moved)

    def moved(self, exact: Array, allowed: Array, direction: Array) -> Array:
        wide = exact.astype(np.float64)
        result = np.where(np.isfinite(wide), wide + allowed * direction, wide).astype(exact.dtype)
        return np.asarray(np.where(allowed == np.inf, np.asarray(self.wild, exact.dtype), result))


# ---- limits ----------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Limits:
    """Limit of each element's difference, and a mask of the elements that may have any value."""
    allowed: Array
    free: Array


def limits(exact: Array, samples: Sequence[Array | None], has_steps: bool = False) -> Limits:
    """Return the limits of a result with the exact value `exact`; a sample of None is a run that ended with a Problem. With
    `has_steps`, narrow integers represent real numbers, and may differ by a few times the samples' differences."""
    if any(s is None or s.shape != exact.shape for s in samples):
        return Limits(np.zeros(exact.shape), np.ones(exact.shape, bool))
    if has_steps and exact.dtype.kind in "iu" and exact.dtype.itemsize <= NARROW_BYTES:
        moves = [np.abs(s.astype(np.int64) - exact.astype(np.int64)) for s in samples if s is not None]
        return Limits(STEPS_ROOM * np.max(moves, axis=0), np.zeros(exact.shape, bool))
    if exact.dtype.kind in "iub":
        free = np.zeros(exact.shape, bool)
        for sample in samples:
            free |= np.asarray(sample != exact)
        return Limits(np.zeros(exact.shape), free)
    wide, spread, jumps = exact.astype(np.float64), np.zeros(exact.shape), np.zeros(exact.shape, bool)
    with np.errstate(all="ignore"):
        for sample in samples:
            assert sample is not None
            other = sample.astype(np.float64)
            equal = (other == wide) | (np.isnan(other) & np.isnan(wide))
            jumps |= ~equal & ~(np.isfinite(other) & np.isfinite(wide))
            spread = np.maximum(spread, np.where(equal | jumps, 0, np.abs(other - wide)))
        finite = np.where(np.isfinite(wide), np.abs(wide), 0)
        usual = np.median(finite[finite > 0]) if (finite > 0).any() else 0.0
        jumps |= (spread > NEAR_POLE * usual) & (spread > OF_ITSELF * finite)
        return Limits(ROOM * least(spread, finite, exact.dtype.name), jumps)


def least(spread: Array, finite: Array, dtype: str) -> Array:
    """Return the minimum difference to allow: a unit of the last place, and the usual element's movement. An element may not
    have moved by chance, or may be just beyond a clamp."""
    if not spread.any():
        return spread
    usual = float(np.median(spread[spread > 0]))
    return np.maximum(np.maximum(spread, finite * 2.0 ** -NARROW.get(dtype, FRACTION_BITS["f32"])), usual / ROOM)
