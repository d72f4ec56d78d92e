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
MEMORY = HERE / "memory.c"
"""`memcpy` and its like, where there is no C library."""
BARE = ("-nostdlib", "-ffreestanding", "-fno-tree-loop-distribute-patterns", "-Wl,-z,noexecstack", "-Wl,--fatal-warnings")
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
        """The program of these sources and objects, with the compiler's own library where there is no other."""
        program = folder / "program"
        library = ("-lgcc",) if "-nostdlib" in self.compiler else ()
        command = [*self.compiler, *WARNINGS, *flags, f"-I{folder}", f"-I{CONSOLE}", *map(str, (*self.own, *files)), *library,
                   "-o", str(program)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return program

    def run(self, program: Path) -> str:
        """What the program prints; it must end with 0."""
        done = subprocess.run([*self.runner, str(program)], capture_output=True, text=True, timeout=300,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr)
        return done.stdout


def cortex(name: str, target: str, board: str, *flags: str, script: str = "cortex_m4", cpu: str = "") -> Machine:
    """A Cortex-M board without an operating system; `cpu` is what gcc calls the processor, if not as the machine is called."""
    abi = () if any(f.startswith("-mfloat-abi") for f in flags) else ("-mfloat-abi=hard",)
    compiler = ("arm-none-eabi-gcc", f"-mcpu={cpu or name}", "-mthumb", *abi, *flags, *BARE, f"-L{BOARD}", "-T",
                str(BOARD / f"{script}.ld"))
    runner = ("qemu-system-arm", "-M", board, "-display", "none", "-monitor", "none", "-serial", "none", "-chardev",
              "stdio,id=console", "-semihosting-config", "enable=on,target=native,chardev=console", "-kernel")
    return Machine(name, target, compiler, (BOARD / "cortex_m.c",), runner)


def riscv32(name: str, march: str, extensions: str, mabi: str = "ilp32") -> Machine:
    """A RISC-V with Linux's system calls, and no extension that it lacks."""
    compiler = ("riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={mabi}", "-static", *BARE, "-Wl,--no-warn-rwx-segments")
    runner = ("qemu-riscv32", *(("-cpu", extensions) if extensions else ()))
    return Machine(name, name, compiler, (HERE / "riscv32.c", MEMORY), runner)


def linux(name: str, gcc: str, flags: str, *runner: str) -> Machine:
    """One with Linux."""
    return Machine(name, name, (gcc, *flags.split(), "-static", "-Wl,--fatal-warnings"), (CONSOLE / "host.c",), runner)


HOST = Machine("host", "host", ("gcc",), (CONSOLE / "host.c",))
MACHINES = (
    HOST,
    linux("aarch64", "aarch64-linux-gnu-gcc", "", "qemu-aarch64"),
    linux("riscv64", "riscv64-linux-gnu-gcc", "", "qemu-riscv64"),
    riscv32("riscv32", "rv32imafc", "", "ilp32f"),
    cortex("cortex-m4", "thumbv7em", "mps2-an386"),
    cortex("cortex-m7", "cortex-m7", "mps2-an500", "-mfpu=fpv5-d16"))

SOFT = "-mfloat-abi=soft"
NO_FLOAT = "rv32,f=false,d=false"
PROCESSORS = (
    cortex("cortex-m0", "cortex-m0", "microbit", SOFT, script="microbit"),
    cortex("cortex-m0plus", "cortex-m0plus", "microbit", SOFT, script="microbit"),
    cortex("cortex-m3", "cortex-m3", "mps2-an385", SOFT),
    cortex("cortex-m4", "cortex-m4", "mps2-an386"),
    cortex("cortex-m4, softfp", "cortex-m4", "mps2-an386", "-mfloat-abi=softfp", cpu="cortex-m4"),
    cortex("cortex-m4+nofp", "cortex-m4+nofp", "mps2-an386", SOFT, cpu="cortex-m4"),
    cortex("cortex-m7", "cortex-m7", "mps2-an500"),
    cortex("cortex-m7+nofp.dp", "cortex-m7+nofp.dp", "mps2-an500"),
    cortex("cortex-m7+nofp", "cortex-m7+nofp", "mps2-an500", SOFT),
    cortex("cortex-m23", "cortex-m23", "mps2-an505", SOFT, script="mps2_an505"),
    cortex("cortex-m33", "cortex-m33", "mps2-an505", script="mps2_an505"),
    cortex("cortex-m33+nodsp", "cortex-m33+nodsp", "mps2-an505", script="mps2_an505"),
    cortex("cortex-m33+nofp", "cortex-m33+nofp", "mps2-an505", SOFT, script="mps2_an505"),
    cortex("cortex-m33+nodsp+nofp", "cortex-m33+nodsp+nofp", "mps2-an505", SOFT, script="mps2_an505"),
    cortex("cortex-m55", "cortex-m55", "mps3-an547", script="mps3_an547"),
    cortex("cortex-m85", "cortex-m85", "mps3-an547", script="mps3_an547", cpu="cortex-m55"),
    riscv32("rv32imc", "rv32imc", f"{NO_FLOAT},a=false"),
    riscv32("rv32imac", "rv32imac", NO_FLOAT),
    riscv32("rv32imafc", "rv32imafc", "rv32,d=false", "ilp32f"),
    riscv32("rv32imac_zba_zbb_zbs", "rv32imac", f"{NO_FLOAT},zba=true,zbb=true,zbs=true"),
    linux("rv64gc", "riscv64-linux-gnu-gcc", "", "qemu-riscv64", "-cpu", "rv64,v=false,zba=false,zbb=false,zbs=false"),
    linux("rv64gcv", "riscv64-linux-gnu-gcc", "", "qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"),
    linux("rv64gcv_zvl256b", "riscv64-linux-gnu-gcc", "", "qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,vext_spec=v1.0"),
    linux("spacemit-k1", "riscv64-linux-gnu-gcc", "", "qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,vext_spec=v1.0"),
    linux("sifive-x280", "riscv64-linux-gnu-gcc", "", "qemu-riscv64", "-cpu", "rv64,v=true,vlen=512,vext_spec=v1.0"),
    linux("cortex-a53", "aarch64-linux-gnu-gcc", "-mcpu=cortex-a53", "qemu-aarch64", "-cpu", "cortex-a53"),
    linux("cortex-a55", "aarch64-linux-gnu-gcc", "-mcpu=cortex-a55", "qemu-aarch64", "-cpu", "max"),
    linux("cortex-a72", "aarch64-linux-gnu-gcc", "-mcpu=cortex-a72", "qemu-aarch64", "-cpu", "cortex-a72"),
    linux("cortex-a76", "aarch64-linux-gnu-gcc", "-mcpu=cortex-a76", "qemu-aarch64", "-cpu", "cortex-a76"),
    linux("cortex-a510", "aarch64-linux-gnu-gcc", "-march=armv8.2-a", "qemu-aarch64", "-cpu", "max"),
    linux("cortex-x2", "aarch64-linux-gnu-gcc", "-march=armv8.2-a", "qemu-aarch64", "-cpu", "max"),
    linux("neoverse-n1", "aarch64-linux-gnu-gcc", "-march=armv8.2-a", "qemu-aarch64", "-cpu", "max"),
    linux("neoverse-v1", "aarch64-linux-gnu-gcc", "-march=armv8.2-a", "qemu-aarch64", "-cpu", "max"),
    linux("neoverse-v2", "aarch64-linux-gnu-gcc", "-march=armv8.2-a", "qemu-aarch64", "-cpu", "max"),
    linux("x86-64", "gcc", "", "qemu-x86_64", "-cpu", "qemu64"),
    linux("x86-64-v2", "gcc", "", "qemu-x86_64", "-cpu", "Nehalem"),
    linux("x86-64-v3", "gcc", "", "qemu-x86_64", "-cpu", "Haswell"))
"""Each processor of the tables that runs here, on the board that has it or the nearest one."""


def needs(machine: Machine) -> pytest.MarkDecorator:
    """A mark that skips a test where the machine is not to be had."""
    return pytest.mark.skipif(bool(machine.missing), reason=f"not installed: {', '.join(machine.missing)}")


machines = pytest.mark.parametrize("machine", [pytest.param(m, marks=needs(m), id=m.name) for m in MACHINES])
needs_host = needs(HOST)
