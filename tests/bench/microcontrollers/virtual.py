"""QEMU's board `virt` with a 64-bit Arm or a RISC-V processor and no operating system: programs that count (boards.py) are
built for it, and run there.
"""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...aot.machines import BARE, MEMORY, Machine

HERE = Path(__file__).parent
BOARD = (
    "-m", "512", "-net", "none", "-display", "none", "-monitor", "none", "-serial", "none", "-chardev", "stdio,id=console",
    "-semihosting-config", "enable=on,target=native,chardev=console")


def virtual(target: str, gcc: str, flags: Sequence[str], start: int, emulator: Sequence[str], cpu: str) -> Machine:
    """QEMU's board `virt` with a processor; its memory is free from `start` on."""
    compiler = (gcc, *flags, *BARE, "-static", "-no-pie", f"-Wl,--defsym=START={start:#x}", "-Wl,--no-warn-rwx-segments",
                "-Wl,--build-id=none", "-T", str(HERE / "virt.ld"))
    runner = (*emulator, "-M", "virt", "-cpu", cpu, *BOARD, "-kernel")
    return Machine(target, target, compiler, (HERE / "virt.c", MEMORY), runner)


def arm64(target: str) -> Machine:
    return virtual(target, "aarch64-linux-gnu-gcc", (), 0x40200000, ("qemu-system-aarch64",), "max")


def riscv64(target: str, cpu: str = "") -> Machine:
    """`cpu` are the vectors that it has."""
    flags = ("-march=rv64gc", "-mabi=lp64d", "-mcmodel=medany")
    return virtual(target, "riscv64-unknown-elf-gcc", flags, 0x80000000, ("qemu-system-riscv64", "-bios", "none"), f"rv64{cpu}")


def riscv32(target: str) -> Machine:
    flags = (f"-march={target}_zicsr", "-mabi=ilp32", "-mcmodel=medany")
    cpu = "rv32,f=false,d=false,a=false"
    return virtual(target, "riscv64-unknown-elf-gcc", flags, 0x80000000, ("qemu-system-riscv32", "-bios", "none"), cpu)


VECTORS_128 = ",v=true,vlen=128,vext_spec=v1.0"
VECTORS_256 = ",v=true,vlen=256,vext_spec=v1.0"
