"""tosaic as a system under test: one conformance test, run by the native engine, by the reference interpreter, or as C source
that a C compiler makes a library of.

`Subject` reads a test's graph once for all engines. What a run gives is one of Arm's four graph results: results
(VALID), an error that tosaic reports about the graph (ERROR), or anything else (OTHER), which no test expects: what
tosaic does not support, an argument that it refuses, an exception that is not a Problem.
"""
from __future__ import annotations

import json
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .arrays import Array, read_input, written

Engine = Literal["native", "interpreter", "c"]
ENGINES: tuple[Engine, ...] = ("native", "interpreter", "c")

NOT_THE_GRAPH = ("unsupported", "argument", "file", "option")
"""Kinds of Problems that say nothing against the graph. A negative test must not pass because of one."""


class Outcome(StrEnum):
    """What running a graph came to; the runner's TosaGraphResult has these names."""
    VALID = "TOSA_VALID"
    ERROR = "TOSA_ERROR"
    OTHER = "OTHER_ERROR"


@dataclass(frozen=True, slots=True)
class Machine:
    """What native code is made for: this machine with `features` added or taken away, and how many threads."""
    features: str = ""
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One test on one engine. `results` are by file name, in the form that the verifier wants."""
    outcome: Outcome
    message: str = ""
    results: dict[str, Array] = field(default_factory=dict)
    compile_seconds: float = 0.0
    run_seconds: float = 0.0


HERE = Machine()


class Subject:
    """A test's folder, description and graph; the graph is read when an engine first needs it."""

    def __init__(self, folder: Path, desc: dict[str, Any] | None = None, machine: Machine = HERE) -> None:
        self.folder, self.machine = folder, machine
        self.desc: dict[str, Any] = desc if desc is not None else json.loads((folder / "desc.json").read_text())
        self._model: Any = None
        self._failure: Exception | None = None

    def model(self) -> Any:
        """tosaic's model; reading it fails again as it failed before."""
        import tosaic
        if self._failure is not None:
            raise self._failure
        if self._model is None:
            try:
                self._model = tosaic.load(self.folder / self.desc["tosa_file"], level="8K")  # as the suite is written
            except Exception as failure:
                self._failure = failure
                raise
        return self._model

    def run(self, engine: Engine) -> Run:
        """Compile and run the graph; never raises for what the graph or tosaic does."""
        from tosaic import Problem
        start = time.perf_counter()
        compiled = start
        try:
            call = self.call(engine)
            compiled = time.perf_counter()
            with np.errstate(all="ignore"):
                arrays = call(self.inputs(call))
            results = self.named(call, arrays)
        except Problem as problem:
            outcome = Outcome.OTHER if problem.kind in NOT_THE_GRAPH else Outcome.ERROR
            return Run(outcome, str(problem), compile_seconds=time.perf_counter() - start)
        except Exception:
            return Run(Outcome.OTHER, traceback.format_exc(), compile_seconds=time.perf_counter() - start)
        return Run(Outcome.VALID, "", results, compiled - start, time.perf_counter() - compiled)

    def call(self, engine: Engine) -> Call:
        match engine:
            case "native":
                return native(self.model(), self.machine)
            case "interpreter":
                return interpreter(self.model())
            case "c":
                return c_source(self.model())

    def inputs(self, call: Call) -> list[Array]:
        """The test's input arrays in the order of the graph's inputs."""
        files = dict(zip(self.desc["ifm_name"], self.desc["ifm_file"]))
        return [read_input(self.folder / files[name], element) for name, element in call.inputs]

    def named(self, call: Call, arrays: Sequence[Array]) -> dict[str, Array]:
        """Results by file name. A block-scaled one has a second file, of its scales."""
        given = {name: (array, element) for (name, element), array in zip(call.outputs, arrays, strict=True)}
        found: dict[str, Array] = {}
        for name, file in zip(self.desc["ofm_name"], self.desc["ofm_file"]):
            found |= written(file, *given[name])
        return found


@dataclass(frozen=True, slots=True)
class Call:
    """A graph ready to run: names and element types (None: a shape) of its inputs and of its outputs, and the function."""
    inputs: tuple[tuple[str, Any], ...]
    outputs: tuple[tuple[str, Any], ...]
    function: Any

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Array]:
        results: Sequence[Array] = self.function(*arrays)
        return results


def call_of(function: Any, run: Any) -> Call:
    """`run`, which is the graph function `function` in some form."""
    def described(values: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
        return tuple((v.name, getattr(v.type, "element", None)) for v in values)
    return Call(described(function.arguments), described(function.body.yields), run)


def native(model: Any, machine: Machine) -> Call:
    """Compiled code."""
    entry = model.entry()
    compiled = entry.compile(options_of(machine))
    return decomposed(entry.trace().function, compiled.executable)


def c_source(model: Any) -> Call:
    """C source, for any machine, compiled without optimisation: that takes longest."""
    from ..c_source.library import QUICK, Library, lowered_for_c
    entry = model.entry()
    with tempfile.TemporaryDirectory(prefix="tosaic-") as folder:
        return decomposed(entry.trace().function, Library(lowered_for_c([entry]), Path(folder), QUICK))


def decomposed(function: Any, code: Any) -> Call:
    """Code of the graph function; it takes and gives two arrays where the graph has one block-scaled tensor."""
    from tosaic.lowering.graph.block_scaled_arrays import joined_all, split_all
    taken, given = [v.type for v in function.arguments], [v.type for v in function.body.yields]

    def run(*arrays: Array) -> Sequence[Array]:
        return joined_all(code(*split_all(arrays, taken)), given)

    return call_of(function, run)


@cache
def options_of(machine: Machine) -> Any:
    """None: this machine as it is, with one thread."""
    import tosaic
    target = tosaic.target("host", features=machine.features) if machine.features else None
    return tosaic.CompileOptions(target, machine.threads) if target or machine.threads > 1 else None


def interpreter(model: Any) -> Call:
    """The reference interpreter, on the graph as it was read: nothing of the compiler has touched it."""
    from tosaic.runtime.interpreter import interpret
    function = model.entry().trace().function
    return call_of(function, lambda *arrays: interpret(model.module, function, arrays))
