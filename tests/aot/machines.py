"""Machines that compile and run C programs here: this one, and others that QEMU emulates, with an operating system or bare.

Programs print by `console_write` (samples/use_cases/console.h), so that the same program runs on all of them.
"""
from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSOLE, BOARD, HERE = ROOT / "samples" / "use_cases", ROOT / "samples" / "board", Path(__file__).parent
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1")
BARE = ("-nostdlib", "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-Wl,-z,noexecstack")
"""No C library: what the program needs of it is in its own sources."""


@dataclass(frozen=True)
class Machine:
    """`target` is its name in tosaic, `compiler` and `runner` are commands, `own` the sources that every program needs."""
    name: str
    target: str
    compiler: tuple[str, ...]
    own: tuple[Path, ...]
    runner: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Commands that are not installed here."""
        return [c for c in (self.compiler[0], *self.runner[:1]) if shutil.which(c) is None]

    def build(self, folder: Path, files: Sequence[Path], flags: Sequence[str] = ()) -> Path:
        """The program of these sources and objects."""
        program = folder / "program"
        command = [*self.compiler, *WARNINGS, *flags, f"-I{folder}", f"-I{CONSOLE}", *map(str, (*self.own, *files)), "-o",
                   str(program)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return program

    def run(self, program: Path) -> str:
        """What the program prints; it must end with 0."""
        done = subprocess.run([*self.runner, str(program)], capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr)
        return done.stdout


def cortex(name: str, target: str, board: str, *flags: str) -> Machine:
    """A Cortex-M board without an operating system."""
    compiler = ("arm-none-eabi-gcc", f"-mcpu={name}", "-mthumb", "-mfloat-abi=hard", *flags, *BARE, "-T",
                str(BOARD / "cortex_m4.ld"))
    runner = ("qemu-system-arm", "-M", board, "-display", "none", "-monitor", "none", "-serial", "none", "-chardev",
              "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console", "-kernel")
    return Machine(name, target, compiler, (BOARD / "cortex_m4.c",), runner)


HOST = Machine("host", "host", ("gcc",), (CONSOLE / "host.c",))
MACHINES = (
    HOST,
    Machine("aarch64", "aarch64", ("aarch64-linux-gnu-gcc", "-static"), (CONSOLE / "host.c",), ("qemu-aarch64",)),
    Machine("riscv64", "riscv64", ("riscv64-linux-gnu-gcc", "-static"), (CONSOLE / "host.c",), ("qemu-riscv64",)),
    Machine("riscv32", "riscv32", ("riscv64-unknown-elf-gcc", "-march=rv32imafc", "-mabi=ilp32f", "-static", *BARE),
            (HERE / "riscv32.c",), ("qemu-riscv32",)),
    cortex("cortex-m4", "thumbv7em", "mps2-an386"),
    cortex("cortex-m7", "cortex-m7", "mps2-an500", "-mfpu=fpv5-d16"))


def needs(machine: Machine) -> pytest.MarkDecorator:
    """A mark that skips a test where the machine is not to be had."""
    return pytest.mark.skipif(bool(machine.missing), reason=f"not installed: {', '.join(machine.missing)}")


machines = pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in MACHINES])
needs_host = needs(HOST)
