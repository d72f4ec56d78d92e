"""Options of a compile: everything that a user may choose, handed down the pipeline; each stage reads its own options."""
from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

from ..runtime.deprecation import deprecated
from ..runtime.errors import TypeProblem, ValueProblem, class_of
from ..runtime.public_names import checked_fields
from ..runtime.records import shown_changes
from ..runtime.threads import checked
from .memory.planner import Memory
from .row_tiling.row_tiling import RowPolicy
from .schedule.schedule_text import ScheduleText
from .schedule.strategy import Precision, Weights
from .target.presets import target
from .target.target import Target

Tuning = tuple[tuple[str, tuple[str, ...]], ...]
"""Schedules that a measured search has found faster: the name of a kernel, and the texts of its strategies."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of a compile. The defaults are for this machine, and for the fastest code.

    `target` is the machine (a `tosaic.target` or its name; None: this one). Steps with enough work are divided among
    `threads` threads (None: as many as the process uses, and 1 for another machine). `precision` lets contractions of f32 be
    sums of products of bfloat16 limbs on a matrix unit: "bf16x6" with about the error of f32, "bf16x3" with 2^-15 of the sums
    of absolute values (`schedule/contraction/bf16_split`); with "winograd" convolutions of 3 x 3 take fewer products, with an
    error in relation to the largest inputs (`schedule/winograd`).

    `rows` selects the kernels that are tiled by rows, some rows of each at a time: "cache" those whose tensors outgrow the
    cache, "memory" those that then need less memory, "never" none (None: "memory" on microcontrollers, else "cache"). With
    `order`, kernels run in the order that needs the least memory. `tuning` are schedules that `tune` has found; `schedule` is
    the text of a schedule, as `show("schedule")` prints it, whose strategies and tasks are used. `memory` are the memories of
    the target, and the options of planning them. With `weights` "int16", processors that multiply pairs of 16 bits (Cortex-M4,
    M7, M33) keep weights of bytes as pairs of 16 bits, which is faster and takes twice their flash.
    """
    __repr__ = shown_changes
    target: Target | None = None
    threads: int | None = None
    precision: Precision = "f32"
    rows: RowPolicy | None = None
    order: bool = True
    tuning: Tuning = ()
    memory: Memory = field(default_factory=Memory)
    schedule: ScheduleText | str | None = None
    weights: Weights = "int8"

    def __new__(cls, *values: Any, **named: Any) -> CompileOptions:
        checked_fields("tosaic.CompileOptions", cls, values, named)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        if isinstance(self.target, str):
            object.__setattr__(self, "target", target(self.target))
        if not isinstance(self.memory, Memory):
            raise TypeProblem(f"memory is {class_of(self.memory)}", kind="option", help="give a tosaic.Memory")
        for name, value in self.memory.moved:
            if getattr(self, name) == DEFAULTS[name]:
                object.__setattr__(self, name, value)
        if self.memory.moved:
            object.__setattr__(self, "memory", replace(self.memory, moved=()))
        if isinstance(self.schedule, str):
            object.__setattr__(self, "schedule", ScheduleText(self.schedule))
        if self.threads is not None:
            checked(self.threads)
        if self.rows not in (None, *get_args(RowPolicy)):
            raise ValueProblem(f"rows is {self.rows!r}", kind="option", help=f"it may be {', '.join(get_args(RowPolicy))}")
        if self.precision not in get_args(Precision):
            raise ValueProblem(f"precision is {self.precision!r}", kind="option",
                               help=f"it may be {', '.join(get_args(Precision))}")
        if self.weights not in get_args(Weights):
            raise ValueProblem(f"weights is {self.weights!r}", kind="option",
                               help=f"it may be {', '.join(get_args(Weights))}")


DEFAULTS = {f.name: f.default for f in fields(CompileOptions)}


def chosen(function: str, options: CompileOptions | Target | None, **given: Any) -> CompileOptions | None:
    """Return the options of a call of `function`; None if it gives none. `given` are old spellings: keywords with the names, or
    old names, of fields of the options. A target in place of the options is an old spelling, too."""
    if isinstance(options, Target):
        deprecated(f"{function}(target)", f"{function}(tosaic.CompileOptions(target=...))")
        options = CompileOptions(target=options)
    elif not isinstance(options, CompileOptions | None):
        raise ValueProblem(f"the options of {function} are {class_of(options)}", kind="option",
                           help="give a tosaic.CompileOptions")
    used = {name: value for name, value in given.items() if value is not None}
    if not used:
        return options
    for name in used:
        field_name = RENAMED.get(name, name)
        deprecated(f"{function}({name}=...)", f"{function}(options=tosaic.CompileOptions({field_name}=...))")
    return replace(options or CompileOptions(), **{RENAMED.get(name, name): value for name, value in used.items()})


RENAMED = {"num_threads": "threads"}
"""Old names of fields."""


def for_object(options: CompileOptions | None, emit: str = "object") -> CompileOptions:
    """Return the options for an object: 1 thread unless given, as the threads of this process are not those of the program that
    links the object. C source is for any processor unless one is named."""
    options = options or CompileOptions()
    if emit == "c" and options.target is None:
        options = replace(options, target=target("any"))
    return replace(options, threads=1) if options.threads is None else options
