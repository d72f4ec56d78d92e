"""The sweep over every option of a compile, and over graphs from every door:

    python -m tosaic.tests.fuzz.option_sweep lower 10000 [FIRST]
    python -m tosaic.tests.fuzz.option_sweep compile 3000 [FIRST]
    python -m tosaic.tests.fuzz.option_sweep save 1000 [FIRST]

lowers graphs (everything but machine code, for errors of tosaic's own), compiles them and holds their values against the
interpreter's, bit by bit where the door's graphs are exact, or saves them as objects and C source of every form.
It prints the cases that fail, with their seeds, and how often each value of each option was drawn, and ends with 1 where a case
has failed, a value was never drawn, or a compile went on with less (`lowering/fallback.py`). A case follows from its seed:
`run("lower", 17)`.
"""
from __future__ import annotations

import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import tosaic
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.types import Array
from tosaic.runtime.errors import Problem
from tosaic.runtime.interpreter import Interpreter, InterpreterVariables
from tosaic.runtime.variables import Context

from .generators.compile_options import draw, draw_form, is_refusal, thresholds
from .generators.doors import DOORS, EXACT
from .generators.networks import Drawn
from .oracles.reference import Expected

Label = tuple[str, str]
ROUNDED = 2.0**-8
"""Of the greatest magnitude: what `precision` may round away."""
EVERY = 24
"""One case in this many is a `.tflite` file, which takes longer."""


@dataclass(slots=True)
class Tally:
    """The outcome of a sweep: draws of each value, failures, refusals, and compiles with fewer passes."""
    labels: Counter[Label] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def never(self) -> list[Label]:
        """The values that no case has had."""
        return [label for label, count in self.labels.items() if not count]

    def __str__(self) -> str:
        rows: dict[str, list[str]] = {}
        for (name, value), count in sorted(self.labels.items()):
            rows.setdefault(name, []).append(f"{value} {count}")
        lines = [f"{name}: {', '.join(found)}" for name, found in rows.items()]
        return "\n".join([*lines, ", ".join(f"{n} {what}" for what, n in sorted(self.outcomes.items()))])


def run(mode: str, seed: int) -> tuple[str, Counter[Label]]:
    """One case: what became of it ("right", "lowered", "saved", "refused"), and what was drawn. Raises whatever goes wrong."""
    rng = random.Random(f"{mode} {seed}")
    door = rng.choice([*EXACT, *EXACT, "any operator", "any operator"]) if seed % EVERY else "tflite"
    size = rng.choice((2, 4, 6, 9, 14))
    drawn = DOORS[door](rng.getrandbits(30), size)
    labels = Counter[Label]({("door", d): int(d == door) for d in DOORS})
    with thresholds(rng, labels), warnings.catch_warnings():
        warnings.filterwarnings("error", message="tosaic compiles .* without ", category=RuntimeWarning)
        traced = Traced(drawn.module, drawn.name)
        try:
            options, found = draw(rng, traced, mode == "compile")
            labels.update(found)
            lowered = traced.lower(options)
            if mode == "save":
                with tempfile.TemporaryDirectory() as folder:
                    lowered.save(folder, **draw_form(rng, labels))
                return "saved", labels
        except Problem as problem:
            if not is_refusal(problem):
                raise
            return "refused", labels
        if mode == "lower":
            return "lowered", labels
        context = Context("sweep")
        with np.errstate(all="ignore"):
            check(drawn, door, options, lowered.compile(context), context)
    return "right", labels


def check(drawn: Drawn, door: str, options: tosaic.CompileOptions, compiled: tosaic.Compiled, context: Context) -> None:
    """That compiled code gives what the interpreter does, twice where the door's graphs have no variables."""
    if door == "any operator":
        from .oracles.native import outcome
        if options.precision == "f32":
            Expected.of(drawn.module, [drawn.call]).check(outcome(compiled, [drawn.call], context, door), door)
        return
    right = Interpreter(drawn.module, drawn.name, InterpreterVariables())(*drawn.call)
    for _ in range(2):
        results = compiled(*drawn.call)
        for a, r in zip(results if isinstance(results, tuple) else (results,), right, strict=True):
            same(np.asarray(a), r, door in EXACT and options.precision != "winograd")


def same(actual: Array, right: Array, exact: bool) -> None:
    if exact or right.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, right)
    else:
        bound = ROUNDED * max(1.0, float(np.abs(right).max(initial=0)))
        np.testing.assert_allclose(actual, right, rtol=0, atol=bound)


def sweep(mode: str, seeds: Iterable[int]) -> Tally:
    """Many cases."""
    tally = Tally()
    for number, seed in enumerate(seeds):
        try:
            outcome, labels = run(mode, seed)
            tally.labels.update(labels)
        except Exception as error:  # any exception is a fault of the compiler
            outcome = "with less" if isinstance(error, RuntimeWarning) else "failed"
            place = traceback.extract_tb(error.__traceback__)[-1]
            tally.failures.append(f"{mode} {seed}: {type(error).__name__}: {str(error)[:300]} "
                                  f"({place.filename}:{place.lineno})")
            print(tally.failures[-1], flush=True)
        tally.outcomes[outcome] += 1
        if number % 100 == 99:
            print(f"{number + 1}: {dict(tally.outcomes)}", flush=True)
    return tally


def main(arguments: list[str]) -> int:
    mode, count = arguments[0], int(arguments[1])
    first = int(arguments[2]) if len(arguments) > 2 else 0
    tally = sweep(mode, range(first, first + count))
    print(tally)
    never = tally.never
    print(f"never drawn: {never}" if never else "every value of every option was drawn")
    return 1 if tally.failures or never else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
