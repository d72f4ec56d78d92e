"""A measured search for faster schedules of a function's kernels, on this machine and with one thread.

Each round gives every kernel another of its alternatives (`lowering/schedule/search_space.py`), runs that code alternately with
the current code, and notes the time of each kernel in both (`profile`): so kernels are measured in context, with the cache
contents that the others leave. The alternatives that were clearly faster are combined and measured once more as a whole, and
dropped if the whole is not faster. The findings go to a file, or to the cache, where later compiles find them.
"""
from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...lowering.graph.types import Array
from ...runtime.errors import Problem, Source, printable
from ...runtime.progress import counted, report_progress

if TYPE_CHECKING:
    from ...lowering.kernels.kernel import Kernel
    from ...lowering.options import CompileOptions
    from ...lowering.schedule.search_space import Choices
    from ...lowering.schedule.strategy import Strategy
    from ...lowering.target.target import Target
    from ..stage_data import LoweredData
    from .profile import Profile

CLEARLY = 1.04
"""Minimum speedup of a kernel; smaller ones may be noise."""
AT_ALL = 1.01
"""Minimum speedup of the whole."""
TURNS = 4
"""Number of alternate runs of the two programs that are compared."""
FORMAT = "tosaic tuning 3"

Lower = Callable[["CompileOptions"], "LoweredData"]
"""A function that lowers the function to loops and a plan, by options."""
Findings = Mapping[str, tuple[str, ...]]
"""Choices of a trial, by the names of kernels."""
Trials = Callable[["TuningRun", Sequence[Findings]], Iterator[tuple[int, dict[int, float]]]]
"""A function that runs trials and yields, in the order in which they end, the number of each and the speedup of each kernel."""


@dataclass(frozen=True, slots=True)
class Change:
    """A kernel that is faster with other choices; `ratio` is the measured speedup."""
    number: int
    origin: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    ratio: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of a search: `findings` for a target, the changes that they make, and microseconds of a call without and with
    them, the minimum over alternate calls."""
    findings: Choices
    changes: tuple[Change, ...]
    before: float
    after: float
    trials: int

    def __repr__(self) -> str:
        return f"<Tuning: {self.before:,.2f} -> {self.after:,.2f} us a call, {len(self.changes)} kernels changed>"

    def __str__(self) -> str:
        if not self.changes:
            return f"nothing is faster than {self.before:,.2f} us a call, in {self.trials} trials"
        lines = [f"{self.before:,.2f} -> {self.after:,.2f} us a call, x{self.before / self.after:.2f}, in {self.trials} trials"]
        for c in self.changes:
            lines += [f"  x{c.ratio:.2f} kernel {c.number} {printable(c.origin)}", *(
                f"    {b} -> {a}" for b, a in zip(c.before, c.after) if a != b)]
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON data, with times in microseconds."""
        return {"before": self.before, "after": self.after, "trials": self.trials, "changes": [
            {"kernel": c.number, "origin": c.origin, "ratio": c.ratio, "before": c.before, "after": c.after}
            for c in self.changes]}


def tune(lower: Lower, inputs: Sequence[Array], options: CompileOptions | None = None, calls: int = 5,
         on_progress: Callable[[str], None] = lambda text: None, trials: Trials | None = None) -> Tuning:
    """Search among the programs that `lower` makes, with calls on these arrays. `on_progress` is called with a description of
    each step; `trials` runs the trials elsewhere (`many/tune_trials`). Raises a Problem if the function cannot be compiled, or
    this processor's counter is not known."""
    from ...lowering.options import CompileOptions
    from ...lowering.target.presets import host
    options = dataclasses.replace(options or CompileOptions(), threads=1, target=host())
    search = TuningRun(lower, inputs, options, calls)
    plain = search.lowered(())
    rounds = candidates(plain)
    best: dict[str, tuple[float, tuple[str, ...], int]] = {}
    on_progress(f"{len(rounds)} trials")
    for done, (number, ratios) in enumerate((trials or here)(search, rounds)):
        report_progress("trials", done + 1, len(rounds))
        for kernel, ratio in ratios.items():
            name = search.names[kernel]
            texts = rounds[number].get(name)
            if texts is not None and ratio > max(CLEARLY, best.get(name, (0.0,))[0]):
                best[name] = ratio, texts, kernel
    combined: Choices = tuple((name, texts) for name, (_, texts, _) in best.items())
    on_progress("trying what was faster together")
    before, after = search.whole(combined)
    if not combined or before < AT_ALL * after:
        return Tuning((), (), before, before, len(rounds))
    origins = plain.kernels.kernels
    changes = [Change(kernel, origins[kernel].origin, search.texts[kernel], texts, ratio)
               for ratio, texts, kernel in best.values()]
    return Tuning(combined, tuple(sorted(changes, key=lambda c: c.number)), before, after, len(rounds))


def here(search: TuningRun, rounds: Sequence[Findings]) -> Iterator[tuple[int, dict[int, float]]]:
    """Run the trials in this process, one after the other."""
    for number, findings in enumerate(counted("trials", rounds)):
        yield number, search.ratios(findings)


def candidates(lowered: LoweredData) -> Sequence[Findings]:
    """Return for each trial the choices of the kernels that have an alternative left for it."""
    from ...lowering.schedule.search_space import alternatives, name_of
    trials: list[dict[str, tuple[str, ...]]] = []
    for kernel, by_rows in kernels_of(lowered):
        each = [likely_first(alternatives(s)) for s in strategies(kernel, by_rows, lowered)]
        for number in range(1, max(map(len, each), default=0)):
            while len(trials) < number:
                trials.append({})
            trials[number - 1][name_of(kernel, by_rows)] = tuple(
                str(found[number] if number < len(found) else found[0]) for found in each)
    return trials


def likely_first(found: Sequence[Strategy]) -> Sequence[Strategy]:
    """Return the current strategy, then the others: first those that the cost model estimates fastest."""
    return [found[0], *sorted(found[1:], key=lambda s: s.cost())]


def strategies(kernel: Kernel, by_rows: bool, lowered: LoweredData) -> Sequence[Strategy]:
    """Return the strategies of a kernel's nests that the cost model chooses."""
    from ...lowering.schedule.schedule import strategies_of
    from ...lowering.schedule.schedule_cache import ScheduleRequest
    return strategies_of(kernel, ScheduleRequest(lowered.target, lowered.options.precision, by_rows,
                                                  weights=lowered.options.weights))


def kernels_of(lowered: LoweredData) -> list[tuple[Any, bool]]:
    """Return the kernels, and whether they run by rows."""
    program = lowered.program
    return [(k, f.rows is not None and not f.phases) for k, f in zip(program.kernels, program.functions)]


class TuningRun:
    """The current code, and its times beside those of other code."""

    def __init__(self, lower: Lower, inputs: Sequence[Array], options: CompileOptions, calls: int) -> None:
        from ...lowering.schedule.search_space import name_of
        self.lower, self.inputs, self.options, self.calls = lower, inputs, options, calls
        self.plain = self.lowered(())
        self.names = [name_of(k, by_rows) for k, by_rows in kernels_of(self.plain)]
        self.texts = [tuple(map(str, strategies(k, by_rows, self.plain))) for k, by_rows in kernels_of(self.plain)]
        self.profiled = Profiled(self.plain, inputs, calls)

    def lowered(self, findings: Choices) -> LoweredData:
        return self.lower(dataclasses.replace(self.options, tuning=findings))

    def ratios(self, findings: Mapping[str, tuple[str, ...]]) -> dict[int, float]:
        """Return the speedup of each kernel with these choices."""
        before, after = self.both(tuple(findings.items()))
        return {number: before[number] / after[number] for number in before if after.get(number)}

    def both(self, findings: Choices) -> tuple[dict[int, float], dict[int, float]]:
        """Return the minimum nanoseconds of each kernel without and with these choices; those of the whole at -1."""
        try:
            other = Profiled(self.lowered(findings), self.inputs, self.calls)
        except Problem:  # for example, not enough memory
            return {}, {}
        least: tuple[dict[int, float], dict[int, float]] = {}, {}
        for _ in range(TURNS):
            for times, profiled in zip(least, (self.profiled, other)):
                profile = profiled.again()
                for number, ns in [(-1, profile.least), *((k.number, k.least) for k in profile.kernels)]:
                    times[number] = min(ns, times.get(number, math.inf))
        return least

    def whole(self, findings: Choices) -> tuple[float, float]:
        """Return the microseconds of a call without and with these choices."""
        before, after = self.both(findings)
        return before.get(-1, 0.0) / 1e3, after.get(-1, math.inf) / 1e3


class Profiled:
    """Code that notes when its steps begin and end, ready to be run repeatedly."""

    def __init__(self, lowered: LoweredData, inputs: Sequence[Array], calls: int) -> None:
        from ...lowering.native.driver.timed_driver import new_events
        from .profile import WARM_UP, timed
        self.lowered, self.inputs, self.calls, self.events = lowered, inputs, calls, new_events(len(lowered.kernels.kernels))
        self.run = timed(lowered, self.events)
        for _ in range(WARM_UP):
            self.run(inputs)

    def again(self) -> Profile:
        from .profile import measured, summary
        return summary(self.lowered, measured(lambda: self.run(self.inputs), self.events, self.calls))


def write_findings(path: str | os.PathLike[str], tuning: Tuning, machine: Target) -> None:
    """Write the findings to a file, for `--tuning`."""
    from ..aot import write_files
    found = {"format": FORMAT, "target": machine.triple, "cpu": machine.cpu, "findings": dict(tuning.findings)}
    write_files(Path(path).parent, {Path(path): json.dumps(found, indent=1).encode()})


def read_findings(path: str | os.PathLike[str]) -> Choices:
    """Return the findings that `write_findings` wrote; `cache.programs.findings_of` returns those of the cache. Raises a
    Problem for another file."""
    name, remedy = os.fspath(path), "tosaic tune MODEL -o FILE writes one"
    try:
        source = Source(name, text := Path(name).read_text("utf-8"))
    except OSError as error:
        raise Problem(f"{name} cannot be read: {error.strerror}", kind="file") from None
    except ValueError:
        raise Problem(f"{name} is no tuning: it is no text", kind="file", help=remedy) from None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Problem(f"{name} is no tuning: it is no JSON", source.position(getattr(error, "pos", 0)), kind="file",
                      help=remedy) from None
    match found:
        case {"format": str(known), "findings": dict(findings)} if known == FORMAT and all(
                isinstance(texts, list) for texts in findings.values()):
            return tuple((kernel, tuple(map(str, texts))) for kernel, texts in findings.items())
        case _:
            raise Problem(f"{name} is no tuning: it has not the format {FORMAT!r} and its findings", source.position(0),
                          kind="file", help=remedy)
