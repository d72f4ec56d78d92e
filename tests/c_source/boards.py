"""Machines that compile C source of models here: those of `aot.machines`, and a Xtensa core that QEMU emulates."""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..aot.machines import BARE, BOARD, HOST, MACHINES, Machine

LX106 = Machine("lx106", "lx106", ("xtensa-lx106-elf-gcc", *BARE, "-T", str(BOARD / "lx106.ld")), (BOARD / "lx106.c",),
                ("qemu-system-xtensa", "-M", "sim", "-cpu", "lx106", "-semihosting", "-nographic", "-monitor", "none",
                 "-serial", "none", "-kernel"))
LIBGCC = Path("-lgcc")
"""What a compiler's own library is called on its command line, behind the sources."""
CORTEX_M4 = next(m for m in MACHINES if m.name == "cortex-m4")
BARE_COMPILE = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffreestanding", "-c")
COMPILERS = {
    "gcc": ("gcc", "-O2"), "gcc without optimisation": ("gcc", "-O0"),
    "gcc for 32 bits": ("gcc", "-m32", "-msse2", "-mfpmath=sse", "-O2"),
    "clang": ("clang", "-O2"), "clang for RISC-V": ("clang", "--target=riscv32-unknown-elf", "-Os"),
    "arm-none-eabi-gcc": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-Os"),
    "arm-none-eabi-gcc for Cortex-M0": ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "-O2"),
    "riscv64-unknown-elf-gcc": ("riscv64-unknown-elf-gcc", "-march=rv32imc", "-mabi=ilp32", "-O2"),
    "xtensa-lx106-elf-gcc": ("xtensa-lx106-elf-gcc", "-O2"),
    "avr-gcc": ("avr-gcc", "-mmcu=atmega2560", "-Os"),
}
"""Commands of compilers, each with its processor."""
compilers = pytest.mark.parametrize("compiler", [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(command[0]) is None, reason=f"there is no {command[0]}"))
    for name, command in COMPILERS.items()])

__all__ = ["BARE_COMPILE", "COMPILERS", "CORTEX_M4", "HOST", "LIBGCC", "LX106", "compilers"]
