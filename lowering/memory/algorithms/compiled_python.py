"""Functions over arrays of integers, as machine code: the planner's inner loops are written once, in a small subset of
Python, run as they stand where there is little to do, and are compiled where there is much. Both give the same answer.

The subset: functions of a record and integers that return an integer; a record's fields are arrays of integers. `if`,
`while`, `for` over `range`, `break`, `continue`, `return`; assignment; `+ - * & | ^ << >>`, `//` and `%` of what is not
negative, comparisons, `and or not`, `min` and `max` of two; calls of one another, but no recursion. Every integer has 64
bits.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....runtime.records import dataclass
from ...machine_code.codegen import Engine, binding, parse, target_machine
from ...target.presets import host
from .compiled_python_ir import Function, module_text

Ints = Any
"""An array of a record: a list of integers for Python, a NumPy array of int64 for machine code."""


def as_array(values: Sequence[int]) -> np.ndarray:
    """The array that stands for a list in a record of machine code."""
    return np.array(values, np.int64)


@dataclass(frozen=True, slots=True)
class MachineCode:
    """A compiled function; called with a record whose fields are int64 arrays, and integers."""
    fields: tuple[str, ...]
    engine: Engine
    entry: Callable[[int], int]

    def __call__(self, record: Any, *numbers: int) -> int:
        arrays = [getattr(record, name) for name in self.fields]
        assert all(a.dtype == np.int64 and a.flags.c_contiguous for a in arrays)
        frame = np.array([*(a.ctypes.data for a in arrays), *numbers], np.int64)
        return self.entry(frame.ctypes.data)


MADE: dict[Function, MachineCode | None] = {}
"""The functions that this process has compiled."""


def compiled(entry: Function, record: type) -> MachineCode | None:
    """The machine code of `entry` and of what it calls, made once per process; None where Python's source is not there
    to compile, or the process may not make code. Its first parameter is a `record`, a dataclass; its result must fit into
    32 bits."""
    if entry not in MADE:
        try:
            engine = Engine(optimized(module_text(entry, record)), host())
            MADE[entry] = MachineCode(tuple(f.name for f in dataclasses.fields(record)), engine, engine.function("entry"))
        except (OSError, RuntimeError):
            MADE[entry] = None
    return MADE[entry]


def is_compiled(entry: Function) -> bool:
    """True if its machine code is there already."""
    return MADE.get(entry) is not None


def optimized(text: str) -> str:
    """The module with its variables in registers."""
    llvm = binding()
    module = parse(text)
    passes = llvm.create_new_module_pass_manager()
    for name in ("always_inliner", "sroa", "simplify_cfg", "instruction_combine", "new_gvn", "loop_rotate",
                 "simplify_cfg", "instruction_combine", "dead_code_elimination"):
        getattr(passes, f"add_{name}_pass")()
    builder = llvm.create_pass_builder(target_machine(host(), "pic", "jitdefault"),
                                       llvm.create_pipeline_tuning_options(speed_level=2))
    passes.run(module, builder)
    return str(module)
