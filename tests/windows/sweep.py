"""Many windows in one module, compiled together, each result against the interpreter's: integers and exact sums of floats bit
for bit, other floats within the specification's bounds. A fault names its case, and with that it is drawn again alone.
"""
from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.block_scaled_arrays import split_all
from tosaic.lowering.graph.graph import Module, Operation, Value
from tosaic.lowering.graph.types import F64, Array, TensorType
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.target.target import Target
from tosaic.runtime.variables import Context

from ..fuzz.oracles import native
from ..fuzz.oracles.reference import outcome
from ..table.bounds import Limit, limits
from ..table.combinations import TABLE, expanded, written
from ..table.data import MOODS
from ..table.draft import Draft
from ..table.property import check_result
from .chains import FAMILIES, Whole, chain
from .operators import OPERATORS, THIN

TARGETS: dict[str, Target] = {**native.TARGETS, "scalar by rows": replace(native.BASE, vector_bytes=1, has_cache=False)}
"""The last one is like a microcontroller: kernels run by rows where that saves memory."""
CONVOLUTIONS = ("conv2d", "conv3d", "depthwise_conv2d", "transpose_conv2d", "conv2d_block_scaled")
HALF = 2
"""Whole numbers and halves: of their products, quarters."""


@dataclass(frozen=True, slots=True)
class Case:
    """One window or chain: operator:types:seed, or chain:family:seed."""
    name: str
    types: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name}:{self.types}:{self.seed}"

    def draw(self, d: Draft) -> Value:
        """It, in a draft that may have others before."""
        d.rng = random.Random(str(self))
        d.mood = d.choice("whole", "whole", "whole", *MOODS)
        d.known = d.choice(*(None,) * 7, 0.0)
        if self.name == "chain":
            return chain(d, self.types)
        return {**OPERATORS, **THIN}[self.name](d, next(expanded(self.types)))


@dataclass(frozen=True, slots=True)
class Way:
    """How the cases are compiled and run."""
    target: str
    threads: int = 1
    rows: str | None = None

    def __str__(self) -> str:
        return f"{self.target}, {self.threads} threads, rows {self.rows}"

    @property
    def options(self) -> tosaic.CompileOptions:
        return tosaic.CompileOptions(TARGETS[self.target], self.threads, rows=self.rows)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Sheet:
    """Cases as one function, which has a result for each of them; what each must be, and how near."""
    cases: tuple[Case, ...]
    module: Module
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    limits: tuple[Limit | None, ...]

    @staticmethod
    def of(cases: Sequence[Case]) -> Sheet:
        d = Whole(random.Random(0)) if cases[0].name == "chain" else Draft(random.Random(0))
        results = [case.draw(d) for case in cases]
        made = {v: o for o in d.operations for v in o.results}
        needed = dict.fromkeys(v for r in results for v in made[r].operands if v in made and v.constant is None)
        with np.errstate(all="ignore"):
            found = outcome(d.module(*results, *needed), [tuple(d.data)])
        assert found.problem is None, found.problem
        known = {**dict(zip(d.arguments, d.data)), **dict(zip((*results, *needed), found.results[0]))}
        near = tuple(limit_of(made[r], [known[v] if v.constant is None else v.constant for v in made[r].operands])
                     for r in results)
        return Sheet(tuple(cases), d.module(*results), tuple(d.data), found.results[0][:len(results)], near)

    def failures(self, way: Way) -> list[str]:
        """What is wrong, a line for each case; of cases that cannot be compiled, each is tried alone."""
        try:
            actual = self.compiled(way)
        except Exception as error:  # any exception is a fault of the compiler
            if len(self.cases) == 1:
                return [f"TOSAIC_WINDOW_CASE='{self.cases[0]}' ({way}): {type(error).__name__}: {error}"]
            half = len(self.cases) // 2
            found = [f for part in (self.cases[:half], self.cases[half:]) for f in Sheet.of(part).failures(way)]
            return found or [f"{self.cases[0]} and {len(self.cases) - 1} more, but not alone ({way}): {error}"]
        return [line for case, a, e, limit in zip(self.cases, actual, self.expected, self.limits, strict=True)
                for line in differences(case, a, e, limit, way)]

    def compiled(self, way: Way) -> tuple[Array, ...]:
        """The results of machine code, which may not touch anything else."""
        verify(self.module)
        context = Context(str(way))
        compiled = Traced(self.module, "main").lower(way.options).compile(context)
        types = [v.type for v in self.module.function("main").arguments]
        try:
            found = native.outcome(compiled, [split_all(self.inputs, types)], context, str(way))
        finally:
            compiled.close()
        assert found.problem is None, found.problem
        return found.results[0]


def differences(case: Case, actual: Array, expected: Array, limit: Limit | None, way: Way) -> Iterator[str]:
    try:
        check_result(actual, expected, limit, f"TOSAIC_WINDOW_CASE='{case}' ({way})")
    except AssertionError as error:
        yield str(error)


def limit_of(operation: Operation, operands: Sequence[Array]) -> Limit | None:
    """How near a result must be; a sum that is exact in any order is exactly what the reference says."""
    name = operation.op.name.removeprefix("tosa.")
    if name not in TABLE or (found := limits(operation, operands)) is None:
        return None
    limit = found[0]
    if name not in CONVOLUTIONS[:-1] or not all(is_whole(a, v) for a, v in zip(operands, operation.operands)):
        return limit
    with np.errstate(all="ignore"):
        most = np.asarray(operation.op.reference(*(np.abs(np.asarray(a, np.float64)) for a in operands)), np.float64)
    bits = 53 if operation.results[0].tensor.element == F64 else 24
    exact = most * HALF**2 <= 2.0**bits
    return replace(limit, error=np.where(exact, 0.0 * limit.error, limit.error), exact=np.where(
        exact, rounded(limit.exact, operation), limit.exact))


def is_whole(array: Array, value: Value) -> bool:
    """True if all numbers are whole, or halves."""
    if not isinstance(value.type, TensorType) or array.dtype.names or array.dtype.kind in "iu":
        return False
    with np.errstate(all="ignore"):
        wide = np.asarray(array, np.float64) * HALF
    return bool(np.isfinite(wide).all() and (wide == np.rint(wide)).all())


def rounded(exact: Array, operation: Operation) -> Array:
    """The exact result, rounded once to the type of the operation's."""
    with np.errstate(all="ignore"):
        return np.asarray(exact.astype(operation.results[0].tensor.element.dtype), np.float64)


# ---- selections ------------------------------------------------------------------------------------------------------
def windows(seed: int, versions: Sequence[str] = ("1.0", "1.1", "more")) -> list[Case]:
    """Each operator once with each combination of element types that these versions have, in a random order."""
    found = [Case(name, written(types), seed) for name in OPERATORS for types in TABLE[name].combinations(*versions)]
    random.Random(seed).shuffle(found)
    return found


def thin_windows(seed: int, versions: Sequence[str] = ("1.0", "1.1", "more")) -> list[Case]:
    """Convolutions of floats on thin images, each once with each combination of element types."""
    found = [Case(f"thin {name}", written(types), seed) for name in CONVOLUTIONS[:-1] if f"thin {name}" in THIN
             for types in TABLE[name].combinations(*versions) if types[0].is_float]
    random.Random(seed).shuffle(found)
    return found


def chains(seed: int) -> list[Case]:
    """A chain of each family."""
    return [Case("chain", family, seed) for family in FAMILIES]


def replayed(text: str) -> Case:
    """The case that a report names."""
    name, types, seed = text.split(":")
    return Case(name, types, int(seed))
