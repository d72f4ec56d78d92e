"""Native code that calls compiled code many times and reads the processor's counter around each call: its measurements include
neither Python nor the first call. Before each pass over the calls it restores the variables, so that every pass does the same.
"""
from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from ....runtime.arena import address
from ....runtime.later import Later
from ...graph.types import Array
from ...machine_code.codegen import Engine
from ...machine_code.llvm_writer import OWN_ATTRIBUTES, Function, Member, attribute_group, constant, module
from ...target.presets import host
from ..driver.timed_driver import COUNTERS

Kept = tuple[int, int, int]
"""Memory that each pass restores: its address, the address of its initial contents, and its bytes."""

PARAMETERS = {"run": "ptr", "frame": "ptr", "calls": "i64", "passes": "i64", "times": "ptr", "kept": "ptr", "count": "i64"}


def measure() -> Function:
    """`i32 measure(run, frame, calls, passes, times, kept, count)`: measure the ticks of each call of each pass, followed by
    their total. Return a call's status if it is not 0; that ends the measurement."""
    f = Function("measure", "i32", PARAMETERS, linkage="")
    run, frame, calls, passes, times, kept, count = f.params
    read, (ended,) = COUNTERS[host().architecture], f.blocks("ended")
    started = read(f)
    with f.loop(passes) as number:
        with f.loop(count) as i:
            row = f.address(kept, i, "[3 x i64]")
            f.copy(f.load(row, "ptr"), f.load(row, Member(8, "ptr")), f.load(row, Member(16, "i64")))
        first = f.op("mul", number, calls)
        with f.loop(calls) as i:
            begin = read(f)
            status = f.call(run, "i32", frame)
            end = read(f)
            f.store(f.op("sub", end, begin), f.address(times, f.op("add", first, i), "i64"))
            further, = f.blocks("further")
            f.branch(f.compare("eq", status, 0), further, ended(status))
            f.enter(further)
    f.store(f.op("sub", read(f), started), f.address(times, f.op("mul", passes, calls), "i64"))
    f.give(constant("i32", 0))
    result, = f.enter(ended, "i32")
    f.give(result)
    return f


def nothing() -> Function:
    """A call that does nothing, to measure the cost of a reading."""
    f = Function("nothing", "i32", {"frame": "ptr"}, linkage="")
    f.give(constant("i32", 0))
    return f


def text() -> str:
    measuring = measure()
    return module(host().triple, measuring.declared.values(), measuring.definition(), nothing().definition(),
                  [attribute_group(*OWN_ATTRIBUTES)])


class CallTimer:
    """The code in this process."""

    def __init__(self) -> None:
        self.engine = Engine(text(), host())
        types = [ctypes.c_void_p if type == "ptr" else ctypes.c_int64 for type in PARAMETERS.values()]
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *types)
        self.call = kind(self.engine.address("measure"))
        self.nothing = self.engine.address("nothing")

    def ticks(self, run: int, frame: int, calls: int, passes: int, kept: Sequence[Kept] = ()) -> tuple[int, Array]:
        """Return the status, and the ticks of each call, followed by their total."""
        times, rows = np.zeros(passes * calls + 1, np.int64), np.array([*kept, (0, 0, 0)], np.int64)
        status = self.call(run, frame, calls, passes, address(times), address(rows), len(kept))
        return status, times


timer = Later(CallTimer)


def is_supported() -> bool:
    """True if this processor's counter is known."""
    return host().architecture in COUNTERS
