"""Boards that count: programs built for a Cortex-M, or for a bare 64-bit Arm or RISC-V, and run under QEMU, whose clock goes by
instructions, so that a count is the same on every machine. A program marks what is counted (counting.h); what it prints comes
back as one record for each mark.

An instruction is one that the processor executes: what a cycle counter would say depends on memories and pipelines, which QEMU
does not have.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tosaic import CompileOptions, target
from tosaic.lowering.memory.planner import Memory

from ...aot.machines import PROCESSORS, Machine
from .virtual import VECTORS_128, VECTORS_256, arm64, riscv32, riscv64

HERE = Path(__file__).parent
SHIFT = 6
"""An instruction takes 2^SHIFT ns: more than a tick of the timer, so that each one is seen."""
TICK_NANOSECONDS: Mapping[str, float] = {"mps2-an385": 40.0, "mps2-an386": 40.0, "mps2-an500": 40.0, "mps2-an505": 50.0,
                                         "mps3-an547": 31.25}
"""The period of each board's processor clock, which its timer counts."""
ARM64_TICK_NANOSECONDS = 16.0
"""Of the timer that 64-bit Arm has on the board `virt`."""
FLAGS = ("-O2", "-Wl,--wrap=memcpy", "-Wl,--wrap=memset", f"-I{HERE}")
EMPTY = """
#include "console.h"
#include "counting.h"
static int32_t nothing(void) { return 0; }
int main(void) { int32_t (*volatile f)(void) = nothing; return COUNTED(f()); }
"""


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted at one mark: instructions, and the bytes that were printed behind it."""
    instructions: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Board:
    """A machine of the tests of objects, which counts in ticks of its timer; on RISC-V of its counter of instructions, which
    goes by the clock, too. `overhead` are the instructions of a mark itself, `weights` how weights of bytes are kept."""
    machine: Machine
    tick_nanoseconds: float
    overhead: int = 0
    weights: Literal["int8", "int16"] = "int8"

    @property
    def processor(self) -> str:
        return self.machine.target + (", weights int16" if self.weights == "int16" else "")

    @property
    def is_cortex_m(self) -> bool:
        return self.processor.startswith("cortex-m")

    def options(self, memory: Memory = Memory()) -> CompileOptions:
        """How to compile for it."""
        return CompileOptions(target(self.machine.target), memory=memory, weights=self.weights)

    def calibrated(self, folder: Path) -> Board:
        """The same, which knows what a mark around a call of nothing counts."""
        (folder / "empty.c").write_text(EMPTY)
        (count,) = replace(self, overhead=0).counts(folder, [folder / "empty.c"])
        return replace(self, overhead=count.instructions)

    def counts(self, folder: Path, files: Sequence[Path], flags: Sequence[str] = ()) -> list[Count]:
        """Build a program in a folder and run it: what it counted, mark after mark."""
        program = self.machine.build(folder, [HERE / "counting.c", *files], [*FLAGS, *flags])
        emulator, *rest = self.machine.runner
        runner = (emulator, "-icount", f"shift={SHIFT}", *rest)
        _, *records = replace(self.machine, runner=runner).run(program).split("ticks ")
        return [self.count(record) for record in records]

    def count(self, record: str) -> Count:
        ticks, _, data = record.partition("\n")
        instructions = round(int(ticks) * self.tick_nanoseconds / 2**SHIFT)
        return Count(instructions - self.overhead, bytes.fromhex(data))


def cortex_m(machine: Machine) -> Board:
    return Board(machine, TICK_NANOSECONDS[machine.runner[machine.runner.index("-M") + 1]])


CORTEX_M = ("cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55")
"""Those with a timer, and a table of vectors that can be moved."""
BOARDS: Mapping[str, Board] = {
    **{machine.name: cortex_m(machine) for machine in PROCESSORS if machine.name in CORTEX_M},
    **{f"{machine.name}-int16": replace(cortex_m(machine), weights="int16") for machine in PROCESSORS
       if machine.name in ("cortex-m4", "cortex-m7", "cortex-m33")},
    "rv32imc": Board(riscv32("rv32imc"), 1.0),
    **{name: Board(arm64(name), ARM64_TICK_NANOSECONDS) for name in ("aarch64", "cortex-a76", "neoverse-v1")},
    **{name: Board(riscv64(name, cpu), 1.0) for name, cpu in (
        ("rv64gc", ""), ("rv64gcv", VECTORS_128), ("rv64gcv_zvl256b", VECTORS_256))}}
"""Boards by processor."""
